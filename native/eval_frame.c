/* The evaluator: what happens to each Python frame while a context is active. */
#include "eval_frame.h"

#include "bind.h"
#include "direct.h"
#include "evaluator.h"
#include "stance.h"
#include "stats.h"
#include "tail.h"

static PyObject *convert_callback; /* convert_frame(context, code, args, globals, builtins, closure) or NULL */
static PyObject *rerun_callback;   /* rerun(entry, error) or NULL */

/* ---- one frame on its way through the evaluator ---- */

typedef struct {
    PyThreadState *ts;
    MdThread *t;
    MdFrame *frame;
    PyCodeObject *code; /* borrowed from the frame */
    int level;          /* in the chain of evaluators */
    bool tail;          /* a Tail has called it, and makes the next call too */
} Call;

static PyObject *run_plain(const Call *c)
{
    return md_evaluator_next(c->ts, c->t, c->frame, 0, c->level);
}

/* The frame and everything below it, with capture off. */
static PyObject *run_off(const Call *c)
{
    MdScope scope;
    md_scope_enter(c->ts, c->t, &scope, NULL);
    PyObject *result = run_plain(c);
    md_scope_leave(c->ts, c->t, &scope);
    return result;
}

/* The frame will not run: an exception is set. */
static PyObject *give_up(const Call *c)
{
    md_frame_discard(c->ts, c->frame);
    return NULL;
}

/* ---- marks ---- */

/* SKIP: run plain. If nothing that it calls is captured time after time, the evaluator is not needed in it. */
static PyObject *run_skip(const Call *c)
{
    MD_COUNT(runs_skip);
    PyCodeObject *code = (PyCodeObject *)Py_NewRef((PyObject *)c->code);
    uint64_t captures = c->t->captures;
    PyObject *result = run_plain(c);
    MdCodeState *state = md_state(code);
    if (state != NULL && state->mark == MD_SKIP) {
        if (c->t->captures != captures) {
            state->fruitless = 0;
        }
        else if (++state->fruitless >= MD_FRUITLESS_LIMIT) {
            md_state_mark(state, MD_SKIP_SUBTREE, true);
            MD_COUNT(demotions);
        }
    }
    Py_DECREF((PyObject *)code);
    return result;
}

/* SKIP_SUBTREE: a mark that came by itself goes away when something below is compiled after all. */
static PyObject *run_skip_subtree(const Call *c)
{
    MD_COUNT(runs_skip_subtree);
    PyCodeObject *code = (PyCodeObject *)Py_NewRef((PyObject *)c->code);
    uint64_t additions = c->t->additions;
    PyObject *result = run_off(c);
    MdCodeState *state = md_state(code);
    if (c->t->additions != additions && state != NULL && state->demoted) {
        md_state_mark(state, MD_SKIP, false);
    }
    Py_DECREF((PyObject *)code);
    return result;
}

/* ---- hits ---- */

bool md_check_rerun(MdEntry *entry, PyObject **result)
{
    Py_CLEAR(*result);
    if (!entry->rerunnable) {
        PyErr_SetString(PyExc_RuntimeError,
                        "minidynamo: internal error: the code of a cache entry asked to be run again in plain Python, "
                        "but the entry is not rerunnable");
        return false;
    }
    return true;
}

PyObject *md_report_rerun(PyThreadState *ts, MdThread *t, MdEntry *entry, PyObject *result)
{
    PyObject *name = entry->graph_error;
    entry->graph_error = NULL;
    MD_COUNT(reruns);
    if (result == NULL || rerun_callback == NULL) {
        Py_XDECREF(name);
        return result;
    }
    if (name == NULL) {
        name = PyUnicode_FromString("Exception");
    }
    PyObject *answer = NULL;
    if (name != NULL) {
        PyObject *callback = Py_NewRef(rerun_callback);
        PyObject *args[2] = {(PyObject *)entry, name};
        MdScope scope;
        md_scope_enter(ts, t, &scope, NULL);
        answer = PyObject_Vectorcall(callback, args, 2, NULL);
        md_scope_leave(ts, t, &scope);
        Py_DECREF(callback);
        Py_DECREF(name);
    }
    if (answer == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(answer);
    return result;
}

/* What is needed to run the frame's function once more: its arguments and itself, held before the frame runs. */
typedef struct {
    MdFlat flat;
    PyObject *func;
    PyCodeObject *code;
} Again;

static int again_hold(Again *again, const Call *c)
{
    Py_ssize_t count = md_flat_count(c->code);
    if (md_flat_init_owned(&again->flat, count) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        again->flat.values[i] = Py_XNewRef(md_frame_local(c->frame, i));
    }
    again->func = Py_NewRef((PyObject *)md_frame_func(c->frame));
    again->code = (PyCodeObject *)Py_NewRef((PyObject *)c->code);
    return 0;
}

static void again_free(Again *again)
{
    md_flat_free(&again->flat);
    Py_DECREF(again->func);
    Py_DECREF((PyObject *)again->code);
}

static PyObject *again_run(Again *again, const Call *c, MdEntry *entry)
{
    PyFunctionObject *func = (PyFunctionObject *)again->func;
    PyObject *original = func->func_code == (PyObject *)again->code ? Py_NewRef(again->func)
                                                                    : md_function_like(func, again->code, false);
    if (original == NULL) {
        return NULL;
    }
    MdScope scope;
    md_scope_enter(c->ts, c->t, &scope, NULL);
    PyObject *result = md_call_flat(original, again->code, again->flat.values);
    md_scope_leave(c->ts, c->t, &scope);
    Py_DECREF(original);
    return md_report_rerun(c->ts, c->t, entry, result);
}

/* The frame has no room for the entry's code: call it, and give the frame back. */
static PyObject *run_called(const Call *c, MdEntry *entry)
{
    MD_COUNT(hits_called);
    MdFlat flat;
    Py_ssize_t count = md_flat_count(c->code);
    PyObject *func = md_function_like(md_frame_func(c->frame), entry->code, false);
    PyObject *result = NULL;
    if (func != NULL && md_flat_init(&flat, count) == 0) {
        for (Py_ssize_t i = 0; i < count; i++) {
            flat.values[i] = md_frame_local(c->frame, i);
        }
        result = md_call_flat(func, entry->code, flat.values);
        md_flat_free(&flat);
    }
    Py_XDECREF(func);
    md_frame_discard(c->ts, c->frame);
    return result;
}

/* Runs a direct entry in place of the frame, which is given back, or runs itself if the graph fails. */
static PyObject *run_direct(const Call *c, MdEntry *entry, MdInputs *inputs)
{
    MdFlat flat;
    Py_ssize_t count = md_flat_count(c->code);
    if (md_flat_init(&flat, count) < 0) {
        return give_up(c);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        flat.values[i] = md_frame_local(c->frame, i);
    }
    PyObject *result = md_direct_run(c->ts, c->t, entry, flat.values, inputs);
    md_flat_free(&flat);
    if (md_wants_rerun(entry, &result)) {
        return md_report_rerun(c->ts, c->t, entry, run_off(c));
    }
    md_frame_discard(c->ts, c->frame);
    return result;
}

/* The guards of an entry that has just been made run again, on the frame, for what they load. 1, 0 or -1 as md_cache_check. */
static int load_inputs(const Call *c, MdEntry *entry, MdInputs *inputs)
{
    MdFlat flat;
    Py_ssize_t count = md_flat_count(c->code);
    if (md_flat_init(&flat, count) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        flat.values[i] = md_frame_local(c->frame, i);
    }
    int held = md_cache_check(c->ts, c->t, entry, &flat, md_frame_func(c->frame));
    if (held > 0) {
        *inputs = flat.inputs;
        flat.inputs.place = NULL;
    }
    md_flat_free(&flat);
    return held;
}

/* The frame has returned a Tail (stolen): makes the calls, in its place. May return a Tail: the frame has to be cleared by
 * its caller first. */
static PyObject *make_tail_calls(const Call *c, PyObject *tail)
{
    md_frame_let_go(c->frame);
    return md_tail_run(c->ts, c->t, tail, c->frame);
}

/* Runs an entry (its reference is stolen: the pin) in the frame; `inputs` are what its guards loaded (released). */
static PyObject *run_entry(const Call *c, MdEntry *entry, MdInputs *inputs)
{
    bool have_inputs = inputs->place != NULL || !md_direct_takes_inputs(entry->direct);
    if (MD_UNLIKELY(entry->takes_loaded && inputs->place == NULL)) {
        int held = load_inputs(c, entry, inputs);
        if (held <= 0) { /* 0: what it was made for has changed meanwhile */
            Py_DECREF((PyObject *)entry);
            return held < 0 ? give_up(c) : run_plain(c);
        }
    }
    if (entry->direct != NULL && have_inputs && !md_profiling(c->ts)) {
        PyObject *value = run_direct(c, entry, inputs);
        Py_DECREF((PyObject *)entry);
        return value;
    }
    Again again;
    bool rerunnable = entry->rerunnable;
    if (rerunnable && again_hold(&again, c) < 0) {
        md_inputs_free(inputs);
        Py_DECREF((PyObject *)entry);
        return give_up(c);
    }
    PyObject *result;
    MdLoaded loaded;
    md_loaded_enter(c->t, &loaded, entry, inputs);
    if (MD_LIKELY(md_frame_retarget(c->ts, c->frame, entry->code))) {
        MD_COUNT(hits_in_place);
        result = run_plain(c);
    }
    else {
        result = run_called(c, entry);
    }
    md_loaded_leave(c->t, &loaded);
    if (md_wants_rerun(entry, &result)) {
        result = again_run(&again, c, entry);
    }
    if (rerunnable) {
        again_free(&again);
    }
    Py_DECREF((PyObject *)entry);
    if (md_is_tail(result) && !c->tail) {
        result = make_tail_calls(c, result);
        if (md_is_tail(result)) { /* whoever called this frame knows nothing of Tails */
            result = md_tail_run(c->ts, c->t, result, NULL);
        }
    }
    return result;
}

/* Runs the frame of an entry's code, which an optimized object or a Tail has called. May return a Tail. */
static PyObject *run_transformed(const Call *c)
{
    bool chained = c->t->chained == (PyObject *)md_frame_func(c->frame);
    c->t->chained = NULL;
    PyObject *result = run_plain(c);
    return md_is_tail(result) && chained ? make_tail_calls(c, result) : result;
}

/* ---- misses ---- */

/* Calls the compiler. Returns its answer, or NULL with an exception. */
static PyObject *convert(const Call *c, MdContext *context)
{
    PyFunctionObject *func = md_frame_func(c->frame);
    Py_ssize_t count = md_flat_count(c->code);
    PyObject *flat = PyTuple_New(count);
    if (flat == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SET_ITEM(flat, i, Py_NewRef(md_frame_local(c->frame, i)));
    }
    PyObject *args[6] = {
        (PyObject *)context, (PyObject *)c->code,  flat,
        c->frame->f_globals, c->frame->f_builtins, func->func_closure != NULL ? func->func_closure : Py_None,
    };
    PyObject *callback = Py_NewRef(convert_callback);
    MD_COUNT(converts);
    MdScope scope;
    md_scope_enter(c->ts, c->t, &scope, NULL);
    c->t->busy++;
    PyObject *answer = PyObject_Vectorcall(callback, args, 6, NULL);
    c->t->busy--;
    md_scope_leave(c->ts, c->t, &scope);
    Py_DECREF(callback);
    Py_DECREF(flat);
    if (answer == NULL) {
        MD_COUNT(convert_errors);
    }
    return answer;
}

static PyObject *run_marked(const Call *c, MdMark mark)
{
    switch (mark) {
    case MD_SKIP:
        return run_skip(c);
    case MD_SKIP_SUBTREE:
        return run_skip_subtree(c);
    case MD_NO_COMPILE:
        MD_COUNT(runs_no_compile);
        return run_off(c);
    default:
        return run_plain(c);
    }
}

/* The compiler answered with a mark for the code. */
static PyObject *run_newly_marked(const Call *c, PyObject *answer)
{
    long mark = PyLong_AsLong(answer);
    if (mark == -1 && PyErr_Occurred()) {
        return give_up(c);
    }
    if (mark < MD_SKIP || mark > MD_NO_COMPILE) {
        PyErr_Format(PyExc_ValueError, "convert_frame: %ld is not SKIP, SKIP_SUBTREE or NO_COMPILE", mark);
        return give_up(c);
    }
    MdCodeState *state = md_state_need(c->code);
    if (state == NULL) {
        return give_up(c);
    }
    md_state_mark(state, (MdMark)mark, false);
    return run_marked(c, (MdMark)mark);
}

/* Makes an entry of the compiler's answer (stolen) and runs it in the frame. */
static PyObject *add_and_run(const Call *c, MdContext *context, PyObject *answer)
{
    MdEntry *entry = md_cache_add(c->code, context, answer);
    Py_DECREF(answer); /* before the frame runs: it may hold what the frame would free */
    if (entry == NULL) {
        return give_up(c);
    }
    c->t->captures++;
    c->t->additions++;
    if (entry->state == NULL || !entry->validity->valid) { /* declared dead while it was made */
        Py_DECREF((PyObject *)entry);
        return run_plain(c);
    }
    MdInputs none = {0}; /* its guards have not run */
    return run_entry(c, entry, &none);
}

static PyObject *compile_and_run(const Call *c, MdContext *context)
{
    PyObject *answer = convert(c, context);
    if (answer == NULL) {
        return give_up(c);
    }
    if (PyExceptionInstance_Check(answer)) { /* raised here, its traceback begins at the caller of the frame */
        PyErr_SetObject((PyObject *)Py_TYPE(answer), answer);
        Py_DECREF(answer);
        return give_up(c);
    }
    if (answer != Py_None && answer != Py_NotImplemented && !PyLong_CheckExact(answer)) {
        return add_and_run(c, context, answer);
    }
    PyObject *result = answer == Py_None             ? run_plain(c)
                       : answer == Py_NotImplemented ? run_off(c)
                                                     : run_newly_marked(c, answer);
    Py_DECREF(answer);
    return result;
}

/* ---- the frame ---- */

/* Looks the frame up. MD_HIT: `*found` is pinned, `*inputs` what its guards loaded. */
static MdOutcome find(const Call *c, MdCodeState *state, MdContext *context, MdEntry **found, MdInputs *inputs)
{
    MdFlat flat;
    Py_ssize_t count = md_flat_count(c->code);
    if (md_flat_init(&flat, count) < 0) {
        return MD_FAILED;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        flat.values[i] = md_frame_local(c->frame, i);
    }
    MdOutcome outcome = md_cache_lookup(c->ts, c->t, state, context, &flat, md_frame_func(c->frame), 0, found);
    *inputs = flat.inputs;
    flat.inputs.place = NULL;
    md_flat_free(&flat);
    return outcome;
}

/* A frame that may be captured, with `context` active. */
static PyObject *run_captured(const Call *c, MdContext *context)
{
    MdCodeState *state = md_state(c->code);
    MdMark mark = state != NULL ? state->mark : MD_UNMARKED;
    bool missed = c->t->missed == c->code; /* an OptimizedFunction has tried the entries just now */
    c->t->missed = NULL;
    if (mark == MD_TRANSFORMED) {
        return run_transformed(c);
    }
    if (state != NULL && state->head != NULL && !missed && !md_code_monitored(c->code)) {
        MdEntry *entry;
        MdInputs inputs;
        switch (find(c, state, context, &entry, &inputs)) {
        case MD_HIT:
            entry->validity->hits++;
            c->t->captures++;
            return run_entry(c, entry, &inputs);
        case MD_FAILED:
            return give_up(c);
        case MD_MISS:
            mark = state->mark;
            break;
        }
    }
    if (mark != MD_UNMARKED) {
        return run_marked(c, mark);
    }
    if (convert_callback == NULL || md_collecting(c->ts) || md_code_monitored(c->code)) {
        return run_plain(c);
    }
    return compile_and_run(c, context);
}

static bool captures_nothing(PyCodeObject *code)
{
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    return (code->co_flags & generators) != 0 || (~code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS)) != 0;
}

/* A frame of a thread that has nothing active, or of a guard or the compiler. */
static PyObject *pass(const Call *c, int throwflag)
{
    MD_COUNT(frames_passed);
    if (md_evaluator_unwanted()) {
        md_evaluator_heal(c->ts);
        return md_evaluator_next(c->ts, c->t, c->frame, throwflag, c->level);
    }
    bool lent = md_budget_lend(c->ts, c->t);
    PyObject *result = md_evaluator_next(c->ts, c->t, c->frame, throwflag, c->level);
    if (lent && c->t->scopes == 0 && c->t->active == NULL) {
        md_budget_collect(c->ts, c->t);
    }
    return result;
}

PyObject *md_eval_frame(PyThreadState *ts, MdFrame *f, int throwflag)
{
    MdThread *t = &md_thread;
    bool again;
    Call c = {.ts = ts, .t = t, .frame = f, .level = md_evaluator_level(t, f, &again)};
    if (MD_UNLIKELY(again)) {
        return md_evaluator_next(ts, t, f, throwflag, c.level);
    }
    if (t->active == NULL || t->busy != 0) {
        return pass(&c, throwflag);
    }
    MD_COUNT(frames);
    c.code = md_frame_code(f);
    c.tail = md_tail_arrived(t, md_frame_func(f));
    if (throwflag || !md_frame_is_fresh(f) || captures_nothing(c.code) || md_tracing(ts) || md_stance_eager) {
        MD_COUNT(frames_unfit);
        return md_evaluator_next(ts, t, f, throwflag, c.level);
    }
    if (MD_UNLIKELY(md_stack_low(ts, t))) {
        return run_off(&c); /* deeper calls need no C stack then */
    }
    PyObject *context = Py_NewRef(t->active);
    PyObject *result = run_captured(&c, (MdContext *)context);
    Py_DECREF(context);
    return result;
}

/* ---- Python ---- */

static PyObject *set_callback(PyObject **slot, PyObject *callback, const char *function)
{
    if (callback != Py_None && !PyCallable_Check(callback)) {
        return PyErr_Format(PyExc_TypeError, "%s: a callable or None is needed, not %.100s", function,
                            Py_TYPE(callback)->tp_name);
    }
    PyObject *before = *slot;
    *slot = callback != Py_None ? Py_NewRef(callback) : NULL;
    return before != NULL ? before : Py_NewRef(Py_None);
}

PyObject *md_py_set_convert_frame(PyObject *Py_UNUSED(module), PyObject *callback)
{
    return set_callback(&convert_callback, callback, "set_convert_frame");
}

PyObject *md_py_set_rerun_callback(PyObject *Py_UNUSED(module), PyObject *callback)
{
    return set_callback(&rerun_callback, callback, "set_rerun_callback");
}

PyObject *md_py_hook_installed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(md_evaluator_installed(PyThreadState_Get()));
}
