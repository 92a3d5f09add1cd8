#include "tail.h"

#include "bind.h"
#include "direct.h"
#include "eval_frame.h"
#include "stance.h"
#include "stats.h"

typedef struct MdTail {
    PyObject_VAR_HEAD
    PyFunctionObject *caller; /* its globals, builtins and closure are those of the continuation */
    PyCodeObject *code;
    PyFunctionObject *func; /* what runs now: set during the call only */
    PyObject *args[1];
} MdTail;

PyObject *md_tail_new(PyFunctionObject *caller, PyCodeObject *code, PyObject *const *args, Py_ssize_t count)
{
    MdTail *self = PyObject_NewVar(MdTail, &MdTail_Type, count);
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
    PyObject_Free(self);
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

/* Runs an entry of the continuation (its reference is stolen: the pin). */
static PyObject *run_entry(PyThreadState *ts, MdThread *t, MdTail *self, MdEntry *entry, MdFlat *flat)
{
    PyObject *result = NULL;
    entry->validity->hits++;
    t->captures++;
    MD_COUNT(hits_tail);
    if (entry->direct != NULL && !md_profiling(ts)) {
        result = md_direct_run(ts, t, entry, flat->values, &flat->inputs);
    }
    else {
        PyObject *func = md_function_like(self->caller, entry->code, false);
        if (func != NULL) {
            MdLoaded loaded;
            md_loaded_enter(t, &loaded, entry, &flat->inputs);
            result = call(ts, t, self, func, entry->rerunnable);
            md_loaded_leave(t, &loaded);
            Py_DECREF(func);
        }
    }
    if (md_wants_rerun(entry, &result)) {
        result = md_report_rerun(ts, t, entry, run_plain(ts, t, self, NULL));
    }
    Py_DECREF((PyObject *)entry);
    return result;
}

static PyObject *step(PyThreadState *ts, MdThread *t, MdTail *self)
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
        result = run_entry(ts, t, self, entry, &flat);
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

PyObject *md_tail_run(PyThreadState *ts, MdThread *t, PyObject *result)
{
    do {
        MdTail *self = (MdTail *)result;
        result = step(ts, t, self);
        Py_DECREF((PyObject *)self);
    } while (md_is_tail(result));
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
