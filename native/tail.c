#include "tail.h"

#include "bind.h"
#include "direct.h"
#include "eval_frame.h"
#include "evaluator.h"
#include "stance.h"
#include "stats.h"

typedef struct MdTail {
    PyObject_VAR_HEAD
    PyFunctionObject *caller; /* its globals, builtins and closure are those of the continuation */
    PyCodeObject *code;
    PyFunctionObject *func; /* what runs now: set during the call only */
    PyObject *args[1];
} MdTail;

/* Dead ones with room for so many arguments, to be used again: one Tail lives while its call makes the next. */
#define MD_TAIL_SMALL 16
#define MD_TAILS_KEPT 4
static MdTail *unused[MD_TAILS_KEPT];
static int unused_count;

static MdTail *allocate(Py_ssize_t count)
{
    if (MD_UNLIKELY(count > MD_TAIL_SMALL)) {
        return PyObject_NewVar(MdTail, &MdTail_Type, count);
    }
    MdTail *self = unused_count > 0 ? unused[--unused_count] : PyObject_NewVar(MdTail, &MdTail_Type, MD_TAIL_SMALL);
    if (MD_LIKELY(self != NULL)) {
        Py_SET_SIZE(self, count);
        Py_SET_REFCNT(self, 1);
    }
    return self;
}

PyObject *md_tail_new(PyFunctionObject *caller, PyCodeObject *code, PyObject *const *args, Py_ssize_t count)
{
    MdTail *self = allocate(count);
    if (self == NULL) {
        return NULL;
    }
    self->caller = (PyFunctionObject *)Py_NewRef((PyObject *)caller);
    self->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    self->func = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        self->args[i] = Py_NewRef(args[i]);
    }
    return (PyObject *)self;
}

static void let_go(MdTail *self)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_CLEAR(self->args[i]);
    }
}

static void tail_dealloc(PyObject *op)
{
    MdTail *self = (MdTail *)op;
    let_go(self);
    Py_DECREF((PyObject *)self->caller);
    Py_DECREF((PyObject *)self->code);
    if (Py_SIZE(self) <= MD_TAIL_SMALL && unused_count < MD_TAILS_KEPT) {
        unused[unused_count++] = self;
    }
    else {
        PyObject_Free(self);
    }
}

bool md_tail_arrived_slow(MdThread *t, PyFunctionObject *func)
{
    MdTail *self = t->tail;
    t->tail = NULL; /* a frame has begun: whatever it is, the call has been made */
    if (self->func != func) {
        return false;
    }
    let_go(self); /* no last reference among them: the frame holds each */
    return true;
}

/* Calls `func` with the arguments; they are let go when its frame begins, unless they are needed once more. */
static PyObject *call(PyThreadState *ts, MdThread *t, MdTail *self, PyObject *func, bool keep)
{
    self->func = (PyFunctionObject *)func;
    t->tail = keep ? NULL : self;
    PyObject *result = md_call(ts, func, self->args, (size_t)Py_SIZE(self), NULL);
    t->tail = NULL;
    self->func = NULL;
    return result;
}

/* A plain run of the continuation with `context` active (NULL: capture off). */
static PyObject *run_plain(PyThreadState *ts, MdThread *t, MdTail *self, PyObject *context)
{
    PyObject *func = md_function_like(self->caller, self->code, false);
    if (func == NULL) {
        return NULL;
    }
    PyObject *result;
    if (context == t->active) {
        result = call(ts, t, self, func, false);
    }
    else {
        MdScope scope;
        md_scope_enter(ts, t, &scope, context);
        result = call(ts, t, self, func, false);
        md_scope_leave(ts, t, &scope);
    }
    Py_DECREF(func);
    return result;
}

/* Runs the entry's code in a frame made where `ended` lies. False: there is no room, or the frame has to be seen by another
 * evaluator that lies on ours. */
static bool run_after(PyThreadState *ts, MdThread *t, MdTail *self, MdEntry *entry, MdFrame *ended, PyObject **result)
{
    Py_ssize_t count = Py_SIZE(self);
    MdFrame *frame =
        md_evaluator_installed(ts) ? md_frame_after(ts, ended, self->caller, entry->code, self->args, count) : NULL;
    if (frame == NULL) {
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (entry->rerunnable) {
            Py_INCREF(self->args[i]);
        }
        else {
            self->args[i] = NULL;
        }
    }
    MD_COUNT(tails_in_place);
    bool again;
    int level = md_evaluator_level(t, frame, &again);
    *result = md_evaluator_next(ts, t, frame, 0, level);
    if (md_is_tail(*result) || *result == md_rerun) {
        md_frame_let_go(frame);
    }
    return true;
}

/* Runs an entry of the continuation (its reference is stolen: the pin). */
static PyObject *run_entry(PyThreadState *ts, MdThread *t, MdTail *self, MdEntry *entry, MdFlat *flat, MdFrame *ended)
{
    PyObject *result = NULL;
    entry->validity->hits++;
    t->captures++;
    MD_COUNT(hits_tail);
    if (entry->direct != NULL && !md_profiling(ts)) {
        result = md_direct_run(ts, t, entry, flat->values, &flat->inputs);
    }
    else {
        MdLoaded loaded;
        md_loaded_enter(t, &loaded, entry, &flat->inputs);
        if (ended == NULL || !run_after(ts, t, self, entry, ended, &result)) {
            PyObject *func = md_function_like(self->caller, entry->code, false);
            result = func != NULL ? call(ts, t, self, func, entry->rerunnable) : NULL;
            Py_XDECREF(func);
        }
        md_loaded_leave(t, &loaded);
    }
    if (md_wants_rerun(entry, &result)) {
        result = md_report_rerun(ts, t, entry, run_plain(ts, t, self, NULL));
    }
    Py_DECREF((PyObject *)entry);
    return result;
}

static PyObject *step(PyThreadState *ts, MdThread *t, MdTail *self, MdFrame *ended)
{
    MdCodeState *state = md_state(self->code);
    bool fits = Py_SIZE(self) == self->code->co_argcount && md_flat_is_positional(self->code);
    if (t->active == NULL || t->busy != 0 || md_stance_eager || !fits || state == NULL || state->head == NULL
        || md_tracing(ts) || md_code_monitored(self->code) || md_stack_low(ts, t)) {
        return run_plain(ts, t, self, t->active);
    }
    MdFlat flat;
    if (md_flat_init(&flat, Py_SIZE(self)) < 0) {
        return NULL;
    }
    memcpy(flat.values, self->args, (size_t)Py_SIZE(self) * sizeof(PyObject *));
    PyObject *context = Py_NewRef(t->active);
    MdEntry *entry = NULL;
    PyObject *result = NULL;
    switch (md_cache_lookup(ts, t, state, (MdContext *)context, &flat, self->caller, 0, &entry)) {
    case MD_HIT:
        result = run_entry(ts, t, self, entry, &flat, ended);
        break;
    case MD_MISS:
        t->missed = self->code;
        result = run_plain(ts, t, self, t->active);
        t->missed = NULL;
        break;
    case MD_FAILED:
        break;
    }
    Py_DECREF(context);
    md_flat_free(&flat);
    return result;
}

PyObject *md_tail_run(PyThreadState *ts, MdThread *t, PyObject *result, MdFrame *ended)
{
    while (md_is_tail(result) && !(ended != NULL && md_frame_is_held(ended))) {
        MdTail *self = (MdTail *)result;
        result = step(ts, t, self, ended);
        Py_DECREF((PyObject *)self);
    }
    return result;
}

PyTypeObject MdTail_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.Tail",
    .tp_basicsize = offsetof(MdTail, args),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A call of a resume function that is yet to be made. No program sees one.",
    .tp_dealloc = tail_dealloc,
};
