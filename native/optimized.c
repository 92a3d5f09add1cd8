/* Calling an OptimizedFunction: the warm path of the whole product. */
#include "optimized.h"

#include "bind.h"
#include "direct.h"
#include "eval_frame.h"
#include "stats.h"
#include "tail.h"

/* The arguments of one call and what they are for. */
typedef struct {
    MdOptimized *self;
    PyThreadState *ts;
    MdThread *t;
    PyFunctionObject *func; /* the Python function behind `self` */
    PyCodeObject *code;     /* its code at the time of the call, pinned */
    PyObject *const *args;
    size_t nargsf;
    PyObject *kwnames;
} Call;

static PyObject *call_function(const Call *c)
{
    return PyObject_Vectorcall((PyObject *)c->func, c->args, c->nargsf, c->kwnames);
}

static PyObject *call_function_scoped(const Call *c, PyObject *context)
{
    return md_scope_call(c->ts, c->t, context, (PyObject *)c->func, c->args, c->nargsf, c->kwnames);
}

/* ---- hits ---- */

void md_optimized_drop_runners(MdOptimized *self)
{
    for (int i = 0; i < MD_RUNNERS; i++) {
        self->runners[i].serial = 0;
        Py_CLEAR(self->runners[i].func);
    }
}

/* A function that runs the entry's code as `func` would run its own (new reference). It is made again when `func` has
 * got other defaults; globals, builtins and closure of a function never change. */
static PyObject *runner(MdOptimized *self, PyFunctionObject *func, MdEntry *entry)
{
    MdRunner *slot = &self->runners[entry->serial % MD_RUNNERS];
    PyFunctionObject *made = slot->func;
    if (MD_LIKELY(slot->serial == entry->serial && made->func_defaults == func->func_defaults
                  && made->func_kwdefaults == func->func_kwdefaults)) {
        return Py_NewRef((PyObject *)made);
    }
    PyObject *fresh = md_function_like(func, entry->code, true);
    if (fresh != NULL) {
        slot->serial = entry->serial;
        Py_XSETREF(slot->func, (PyFunctionObject *)Py_NewRef(fresh));
    }
    return fresh;
}

/* `inputs` are what its guards loaded (moved). */
static PyObject *run_code(const Call *c, MdEntry *entry, MdInputs *inputs)
{
    PyObject *function = runner(c->self, c->func, entry);
    if (function == NULL) {
        md_inputs_free(inputs);
        return NULL;
    }
    PyObject *result;
    MdLoaded loaded;
    md_loaded_enter(c->t, &loaded, entry, inputs);
    if (entry->has_break) {
        MdScope scope;
        md_scope_enter(c->ts, c->t, &scope, (PyObject *)c->self->context);
        c->t->chained = function;
        result = md_call(c->ts, function, c->args, c->nargsf, c->kwnames);
        c->t->chained = NULL;
        md_loaded_leave(c->t, &loaded);
        if (md_is_tail(result)) { /* the frame has not begun in our evaluator */
            result = md_tail_run(c->ts, c->t, result, NULL);
        }
        md_scope_leave(c->ts, c->t, &scope);
    }
    else if (MD_UNLIKELY(md_stack_low(c->ts, c->t))) { /* deep recursion: a scope borrows what is needed */
        result = md_scope_call(c->ts, c->t, c->t->active, function, c->args, c->nargsf, c->kwnames);
    }
    else {
        result = md_call(c->ts, function, c->args, c->nargsf, c->kwnames);
    }
    if (!entry->has_break) {
        md_loaded_leave(c->t, &loaded);
    }
    Py_DECREF(function);
    return result;
}

/* Runs an entry (its reference is stolen: the pin) that fits the flat arguments (emptied). A profiler sees the function
 * also where the graph alone would do. */
static PyObject *run_entry(const Call *c, MdEntry *entry, MdFlat *flat)
{
    MD_COUNT(hits_direct);
    entry->validity->hits++;
    c->self->last_hit = entry->serial;
    PyObject *result;
    if (entry->direct != NULL && !md_profiling(c->ts)) {
        result = md_direct_run(c->ts, c->t, entry, flat->values, &flat->inputs);
        md_flat_free(flat);
    }
    else {
        MdInputs inputs = flat->inputs;
        flat->inputs.place = NULL;
        md_flat_free(flat);
        result = run_code(c, entry, &inputs);
    }
    if (md_wants_rerun(entry, &result)) {
        result = md_report_rerun(c->ts, c->t, entry, call_function_scoped(c, NULL));
    }
    Py_DECREF((PyObject *)entry);
    return result;
}

/* ---- lookup and miss ---- */

static PyObject *run_missed(const Call *c, bool tried)
{
    MdCodeState *state = md_state(c->code);
    switch (state != NULL ? state->mark : MD_UNMARKED) {
    case MD_SKIP_SUBTREE:
    case MD_TRANSFORMED:
        return call_function(c);
    case MD_NO_COMPILE:
        MD_COUNT(runs_no_compile);
        return call_function_scoped(c, NULL);
    case MD_SKIP:
    case MD_UNMARKED:
        break;
    }
    c->t->missed = tried ? c->code : NULL;
    PyObject *result = call_function_scoped(c, (PyObject *)c->self->context);
    c->t->missed = NULL;
    return result;
}

static PyObject *look_up_and_run(const Call *c)
{
    MdCodeState *state = md_state(c->code);
    if (state == NULL || state->head == NULL) {
        return run_missed(c, false);
    }
    MdFlat flat;
    switch (md_bind(&flat, c->func, c->code, c->args, c->nargsf, c->kwnames)) {
    case MD_BIND_ERROR:
        return NULL;
    case MD_UNBOUND:
        return call_function(c); /* raises the user's own TypeError */
    case MD_BOUND:
        break;
    }
    MdEntry *entry = NULL;
    MdOutcome outcome =
        md_cache_lookup(c->ts, c->t, state, c->self->context, &flat, c->func, c->self->last_hit, &entry);
    if (MD_LIKELY(outcome == MD_HIT)) {
        return run_entry(c, entry, &flat);
    }
    md_flat_free(&flat);
    return outcome == MD_FAILED ? NULL : run_missed(c, true);
}

/* A stand-in that only calls the module shows in no traceback: its entry is the first, whoever raised. */
static __attribute__((noinline)) void hide_frame(PyCodeObject *code)
{
    PyObject *error = md_exc_take();
    PyObject *traceback = error == NULL ? NULL : PyException_GetTraceback(error);
    if (traceback != NULL && PyTraceBack_Check(traceback)) { /* else None: one that was taken away */
        PyTracebackObject *first = (PyTracebackObject *)traceback;
        PyCodeObject *outermost = PyFrame_GetCode(first->tb_frame);
        if (outermost == code) {
            PyException_SetTraceback(error, first->tb_next == NULL ? Py_None : (PyObject *)first->tb_next);
        }
        Py_DECREF(outermost);
    }
    Py_XDECREF(traceback);
    md_exc_put(error);
}

/* `func` is a Python function; `args` are what it is called with. */
static PyObject *call_python(MdOptimized *self, PyFunctionObject *func, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames)
{
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    MdThread *t = &md_thread;
    if (md_stack_check(t) < 0) {
        return NULL;
    }
    PyThreadState *ts = md_thread_state();
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    if (MD_UNLIKELY(t->busy != 0 || (code->co_flags & generators) != 0 || md_tracing(ts) || md_code_monitored(code))) {
        MD_COUNT(calls_plain);
        PyObject *plain = PyObject_Vectorcall((PyObject *)func, args, nargsf, kwnames);
        if (plain == NULL && self->hides_frame) {
            hide_frame(code);
        }
        return plain;
    }
    Call c = {
        .self = self,
        .ts = ts,
        .t = t,
        .func = func,
        .code = (PyCodeObject *)Py_NewRef((PyObject *)code),
        .args = args,
        .nargsf = nargsf,
        .kwnames = kwnames,
    };
    PyObject *result = look_up_and_run(&c);
    if (MD_UNLIKELY(result == NULL && self->hides_frame)) {
        hide_frame(c.code);
    }
    Py_DECREF((PyObject *)c.code);
    return result;
}

/* A bound method: its function, with the instance before the arguments. */
static PyObject *call_bound(MdOptimized *self, PyObject *method, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames)
{
    PyFunctionObject *func = (PyFunctionObject *)PyMethod_GET_FUNCTION(method);
    PyObject *instance = PyMethod_GET_SELF(method);
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    Py_ssize_t total = given + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *room[MD_FLAT_SMALL];
    PyObject **moved = room;
    if (total + 2 > MD_FLAT_SMALL) {
        moved = PyMem_New(PyObject *, total + 2);
        if (moved == NULL) {
            return PyErr_NoMemory();
        }
    }
    Py_INCREF(method);
    moved[0] = NULL; /* the callee's scratch */
    moved[1] = instance;
    if (total > 0) {
        memcpy(moved + 2, args, (size_t)total * sizeof(PyObject *));
    }
    PyObject *result =
        call_python(self, func, moved + 1, (size_t)(given + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    Py_DECREF(method);
    if (moved != room) {
        PyMem_Free(moved);
    }
    return result;
}

/* Whatever is not a Python function with a context; kept out of line, so that the warm path saves no registers for it. */
static __attribute__((noinline)) PyObject *call_other(MdOptimized *self, PyObject *const *args, size_t nargsf,
                                                      PyObject *kwnames)
{
    PyObject *fn = self->fn;
    PyObject *context = (PyObject *)self->context;
    if (fn == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "minidynamo: this OptimizedFunction has been cleared by the collector");
        return NULL;
    }
    if (context == NULL) {
        MD_COUNT(calls_off);
    }
    else if (Py_IS_TYPE(fn, &PyMethod_Type) && PyFunction_Check(PyMethod_GET_FUNCTION(fn))) {
        return call_bound(self, fn, args, nargsf, kwnames);
    }
    MdThread *t = &md_thread;
    if (t->busy != 0) {
        context = NULL;
    }
    if (context == NULL && t->active == NULL) {
        return PyObject_Vectorcall(fn, args, nargsf, kwnames);
    }
    Py_INCREF(fn);
    PyObject *result = md_scope_call(PyThreadState_Get(), t, context, fn, args, nargsf, kwnames);
    Py_DECREF(fn);
    return result;
}

PyObject *md_optimized_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdOptimized *self = (MdOptimized *)op;
    if (MD_LIKELY(self->context != NULL && self->fn != NULL && PyFunction_Check(self->fn))) {
        return call_python(self, (PyFunctionObject *)self->fn, args, nargsf, kwnames);
    }
    return call_other(self, args, nargsf, kwnames);
}

PyObject *md_optimized_call_plain(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdOptimized *self = (MdOptimized *)op;
    MD_COUNT(calls_plain);
    if (self->fn == NULL) {
        return call_other(self, args, nargsf, kwnames);
    }
    PyObject *fn = Py_NewRef(self->fn);
    PyObject *result = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    if (result == NULL && self->hides_frame && PyFunction_Check(fn)) {
        hide_frame((PyCodeObject *)((PyFunctionObject *)fn)->func_code);
    }
    Py_DECREF(fn);
    return result;
}
