#include "cache.h"

#include "direct.h"
#include "guard_vm.h"
#include "hints.h"
#include "stats.h"

/* ---- state of a code object ---- */

static Py_ssize_t extra_index = -1;
static bool extra_is_plain; /* md_extra_read serves */
static MdCodeState *all_states; /* linked by all_next, all_prev, for reset_all */

/* CPython frees a code object: its entries serve nothing any more. */
static void state_free(void *extra)
{
    MdCodeState *state = extra;
    if (state == NULL) {
        return;
    }
    PyObject *exc = md_exc_take();
    while (state->head != NULL) {
        md_entry_drop(state->head);
    }
    if (state->all_prev != NULL) {
        state->all_prev->all_next = state->all_next;
    }
    else {
        all_states = state->all_next;
    }
    if (state->all_next != NULL) {
        state->all_next->all_prev = state->all_prev;
    }
    PyMem_Free(state->hints);
    PyMem_Free(state);
    md_exc_put(exc);
}

MdCodeState *md_state(PyCodeObject *code)
{
    if (MD_LIKELY(extra_is_plain)) {
        return md_extra_read(code, extra_index);
    }
    void *extra = NULL;
    /* fails for what is no code object only */
    (void)md_extra_get((PyObject *)code, extra_index, &extra);
    return extra;
}

MdCodeState *md_state_need(PyCodeObject *code)
{
    MdCodeState *state = md_state(code);
    if (state != NULL) {
        return state;
    }
    state = PyMem_Calloc(1, sizeof(*state));
    if (state == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    state->code = code;
    if (md_extra_set((PyObject *)code, extra_index, state) < 0) {
        PyMem_Free(state);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return NULL;
    }
    state->all_next = all_states;
    if (all_states != NULL) {
        all_states->all_prev = state;
    }
    all_states = state;
    return state;
}

/* Does md_extra_read read what has been set? -1 with an exception. */
static int prove_extra_read(void)
{
    PyCodeObject *code = PyCode_NewEmpty("minidynamo", "probe", 1);
    MdCodeState *state = code != NULL ? md_state_need(code) : NULL;
    extra_is_plain = state != NULL && md_extra_read(code, extra_index) == state;
    Py_XDECREF((PyObject *)code);
    return state != NULL ? 0 : -1;
}

int md_cache_init(void)
{
    if (extra_index < 0) {
        extra_index = md_extra_request(state_free);
    }
    if (extra_index < 0) {
        PyErr_SetString(PyExc_ImportError, "minidynamo: no slot for extra data on code objects is left");
        return -1;
    }
    return prove_extra_read();
}

PyCodeObject *md_state_code(MdCodeState *state)
{
    return state != NULL && Py_REFCNT(state->code) > 0 ? state->code : NULL;
}

void md_state_mark(MdCodeState *state, MdMark mark, bool demoted)
{
    state->mark = mark;
    state->demoted = demoted;
    state->fruitless = 0;
}

/* ---- inputs ---- */

static MdInputs spare; /* room that nobody uses; under the GIL */

int md_inputs_make(MdInputs *inputs, Py_ssize_t count)
{
    if (spare.room > count) {
        *inputs = spare;
        spare = (MdInputs){0};
    }
    else {
        inputs->place = PyMem_New(PyObject *, count + 1);
        inputs->room = count + 1;
    }
    inputs->count = count;
    if (inputs->place == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void md_inputs_give_back(MdInputs *inputs)
{
    PyObject **unused = inputs->place;
    if (inputs->room > spare.room) {
        unused = spare.place;
        spare = *inputs;
    }
    PyMem_Free(unused);
    inputs->place = NULL;
}

/* ---- lookup ---- */

static bool serves(MdEntry *entry, MdContext *context)
{
    return entry->key == context->key && entry->validity->valid && !(context->nopython && entry->has_break);
}

/* The oldest entry made after `serial`: where a walk goes on when its entry was taken out under it. */
static MdEntry *first_after(MdCodeState *state, uint64_t serial)
{
    MdEntry *entry = state->head;
    while (entry != NULL && entry->serial <= serial) {
        entry = entry->next;
    }
    return entry;
}

/* The entry with this serial, else (also for 0) the first one. */
static MdEntry *preferred(MdCodeState *state, uint64_t serial)
{
    MdEntry *head = state->head;
    if (serial == 0 || head == NULL || head->serial == serial) {
        return head;
    }
    MdEntry *entry = first_after(state, serial - 1);
    return entry != NULL && entry->serial == serial ? entry : head;
}

/* 1: the guards hold, 0: they do not, -1: an exception that is no failure. The entry is pinned by the caller. */
static int check(PyThreadState *ts, MdThread *t, MdEntry *entry, MdFlat *flat)
{
    MD_COUNT(guards);
    if (MD_LIKELY(Py_IS_TYPE(entry->check_fn, &MdGuards_Type))) {
        MdInputs *inputs = entry->takes_loaded || md_direct_takes_inputs(entry->direct) ? &flat->inputs : NULL;
        int verdict = md_guards_run((MdGuards *)entry->check_fn, flat->values, inputs, NULL);
        if (MD_LIKELY(verdict >= 0)) {
            return verdict;
        }
        MD_COUNT(guard_errors);
        t->busy++; /* str() of the exception may be the user's code */
        verdict = md_entry_guard_failed(entry);
        t->busy--;
        return verdict;
    }
    t->busy++;
    PyObject *result =
        md_call(ts, entry->check_fn, flat->values, (size_t)(flat->count + 2) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    int truth = result == Py_True ? 1 : result == NULL ? -1 : PyObject_IsTrue(result);
    Py_XDECREF(result);
    if (truth < 0) {
        MD_COUNT(guard_errors);
        truth = md_entry_guard_failed(entry);
    }
    t->busy--;
    return truth;
}

/* Tries one entry. MD_MISS leaves in `*next` where the walk goes on. */
static MdOutcome try_entry(PyThreadState *ts, MdThread *t, MdCodeState *state, MdContext *context, MdFlat *flat,
                           MdEntry *entry, MdEntry **next)
{
    uint64_t serial = entry->serial;
    Py_INCREF(entry);
    int truth = check(ts, t, entry, flat);
    bool linked = entry->state == state;
    if (truth > 0 && linked && serves(entry, context)) {
        return MD_HIT; /* the pin goes to the caller */
    }
    Py_DECREF(entry);
    md_inputs_free(&flat->inputs);
    if (truth < 0) {
        return MD_FAILED;
    }
    *next = linked ? entry->next : first_after(state, serial);
    return MD_MISS;
}

static void add_scope(MdFlat *flat, PyFunctionObject *func)
{
    flat->values[flat->count] = func->func_globals;
    flat->values[flat->count + 1] = func->func_closure != NULL ? func->func_closure : Py_None;
}

int md_cache_check(PyThreadState *ts, MdThread *t, MdEntry *entry, MdFlat *flat, PyFunctionObject *func)
{
    add_scope(flat, func);
    return check(ts, t, entry, flat);
}

MdOutcome md_cache_lookup(PyThreadState *ts, MdThread *t, MdCodeState *state, MdContext *context, MdFlat *flat,
                          PyFunctionObject *func, uint64_t prefer, MdEntry **found)
{
    add_scope(flat, func);
    bool many = state->entries >= MD_MANY_ENTRIES;
    uint64_t signature = many ? md_hint_signature(flat, func) : 0;
    MdEntry *entry = many ? md_hint_find(state, signature) : NULL;
    if (entry == NULL) {
        entry = preferred(state, prefer);
    }
    bool early = entry != state->head; /* it is tried out of turn, and not again in its turn */
    uint64_t skipped = early ? entry->serial : 0;
    while (entry != NULL) {
        MdEntry *next = entry->next;
        if ((early || entry->serial != skipped) && serves(entry, context)) {
            MdOutcome outcome = try_entry(ts, t, state, context, flat, entry, &next);
            if (MD_LIKELY(outcome != MD_MISS)) {
                if (many && outcome == MD_HIT) {
                    md_hint_set(state, signature, entry);
                }
                *found = entry;
                return outcome;
            }
        }
        entry = early ? state->head : next;
        early = false;
    }
    MD_COUNT(misses);
    return MD_MISS;
}

/* ---- adding and removing ---- */

void md_cache_unlink(MdEntry *entry)
{
    MdCodeState *state = entry->state;
    if (state == NULL) {
        return;
    }
    MdEntry **link = &state->head;
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    entry->next = NULL;
    entry->state = NULL;
    state->entries--;
    md_hint_drop(state, entry);
    MD_COUNT(entries_dropped);
}

/* The rules under which `code` can run in a frame, and behind the signature, of `original` (NULL: it can). */
static const char *misfit(PyCodeObject *original, PyCodeObject *code)
{
    const int shape = CO_VARARGS | CO_VARKEYWORDS | CO_OPTIMIZED | CO_NEWLOCALS;
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    if (code == original) {
        return "it is the original code itself";
    }
    if ((code->co_flags | original->co_flags) & generators) {
        return "generators and coroutines are run plain";
    }
    if ((code->co_flags & shape) != (original->co_flags & shape) || !(code->co_flags & CO_OPTIMIZED)
        || !(code->co_flags & CO_NEWLOCALS)) {
        return "flags for *args, **kwargs or function locals differ";
    }
    if (code->co_argcount != original->co_argcount || code->co_posonlyargcount != original->co_posonlyargcount
        || code->co_kwonlyargcount != original->co_kwonlyargcount) {
        return "the numbers of arguments differ";
    }
    if (code->co_nfreevars != original->co_nfreevars) {
        return "the free variables differ";
    }
    Py_ssize_t arguments = md_flat_count(original);
    int codes_free = code->co_nlocalsplus - code->co_nfreevars;
    int originals_free = original->co_nlocalsplus - original->co_nfreevars;
    for (Py_ssize_t i = 0; i < arguments + original->co_nfreevars; i++) {
        Py_ssize_t j = i < arguments ? i : i - arguments + originals_free;
        Py_ssize_t k = i < arguments ? i : i - arguments + codes_free;
        if (PyUnicode_Compare(PyTuple_GET_ITEM(original->co_localsplusnames, j),
                              PyTuple_GET_ITEM(code->co_localsplusnames, k))
            != 0) {
            return "the names of arguments or free variables differ";
        }
    }
    return NULL;
}

/* Entries of this key that have been declared dead leave when a new one comes. */
static void drop_invalid(MdCodeState *state, MdKey *key)
{
    MdEntry *entry = state->head;
    while (entry != NULL) {
        uint64_t serial = entry->serial;
        if (entry->key == key && !entry->validity->valid) {
            md_entry_drop(entry);
        }
        entry = first_after(state, serial);
    }
}

MdEntry *md_cache_add(PyCodeObject *code, MdContext *context, PyObject *guarded)
{
    MdCodeState *state = md_state_need(code);
    if (state == NULL) {
        return NULL;
    }
    MdEntry *entry = md_entry_new(context->key, (PyObject *)context, guarded);
    if (entry == NULL) {
        return NULL;
    }
    const char *reason =
        state->mark == MD_TRANSFORMED ? "the original is an entry's code itself" : misfit(code, entry->code);
    MdCodeState *transformed = reason == NULL ? md_state_need(entry->code) : NULL;
    if (transformed != NULL && transformed->head != NULL) {
        reason = "it has cache entries of its own";
    }
    if (reason != NULL) {
        PyErr_Format(PyExc_ValueError, "minidynamo: the transformed code cannot run in place of %U: %s",
                     code->co_qualname, reason);
    }
    if (reason != NULL || transformed == NULL) {
        PyObject *exc = md_exc_take();
        md_entry_drop(entry);
        Py_DECREF((PyObject *)entry);
        md_exc_put(exc);
        return NULL;
    }
    transformed->mark = MD_TRANSFORMED;
    entry->state = state;
    MdEntry **link = &state->head;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = entry;
    state->entries++;
    MD_COUNT(entries_added);
    drop_invalid(state, context->key);
    return entry;
}

/* ---- Python ---- */

static PyCodeObject *code_argument(PyObject *code, const char *function)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "%s: a code object is needed, not %.100s", function, Py_TYPE(code)->tp_name);
        return NULL;
    }
    return (PyCodeObject *)code;
}

static int argument_count(const char *function, Py_ssize_t wanted, Py_ssize_t count)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s: takes %zd arguments, got %zd", function, wanted, count);
        return -1;
    }
    return 0;
}

PyObject *md_py_mark_code(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (argument_count("mark_code", 2, count) < 0) {
        return NULL;
    }
    PyCodeObject *code = code_argument(args[0], "mark_code");
    if (code == NULL) {
        return NULL;
    }
    long mark = PyLong_AsLong(args[1]);
    if (mark == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (mark < MD_UNMARKED || mark > MD_NO_COMPILE) {
        return PyErr_Format(PyExc_ValueError, "mark_code: %ld is not 0, SKIP, SKIP_SUBTREE or NO_COMPILE", mark);
    }
    MdCodeState *state = md_state_need(code);
    if (state == NULL) {
        return NULL;
    }
    if (state->mark == MD_TRANSFORMED) {
        return PyErr_Format(PyExc_ValueError, "mark_code: %U is the code of a cache entry", code->co_qualname);
    }
    md_state_mark(state, (MdMark)mark, false);
    Py_RETURN_NONE;
}

PyObject *md_py_get_mark(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (code_argument(code, "get_mark") == NULL) {
        return NULL;
    }
    MdCodeState *state = md_state((PyCodeObject *)code);
    return PyLong_FromLong(state != NULL ? (long)state->mark : MD_UNMARKED);
}

PyObject *md_py_add_entry(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (argument_count("add_entry", 3, count) < 0) {
        return NULL;
    }
    PyCodeObject *code = code_argument(args[0], "add_entry");
    if (code == NULL) {
        return NULL;
    }
    if (!PyObject_TypeCheck(args[1], &MdContext_Type)) {
        return PyErr_Format(PyExc_TypeError, "add_entry: an OptimizeContext is needed, not %.100s",
                            Py_TYPE(args[1])->tp_name);
    }
    return (PyObject *)md_cache_add(code, (MdContext *)args[1], args[2]);
}

PyObject *md_py_cache_entries(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (code_argument(code, "cache_entries") == NULL) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    MdCodeState *state = md_state((PyCodeObject *)code);
    for (MdEntry *entry = state != NULL ? state->head : NULL; list != NULL && entry != NULL; entry = entry->next) {
        if (PyList_Append(list, (PyObject *)entry) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* Empties a state; the entries move into `list`, so that no destructor runs meanwhile. */
static int empty_state(MdCodeState *state, PyObject *list)
{
    while (state->head != NULL) {
        MdEntry *entry = state->head;
        if (PyList_Append(list, (PyObject *)entry) < 0) {
            return -1;
        }
        md_cache_unlink(entry);
        MdEntry *owned = md_key_release(entry);
        if (owned != NULL) {
            Py_DECREF((PyObject *)owned); /* not the last one: the list has another */
        }
    }
    if (state->mark != MD_TRANSFORMED) {
        md_state_mark(state, MD_UNMARKED, false);
    }
    return 0;
}

PyObject *md_py_reset_code(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (code_argument(code, "reset_code") == NULL) {
        return NULL;
    }
    MdCodeState *state = md_state((PyCodeObject *)code);
    PyObject *dropped = PyList_New(0);
    int failed = dropped == NULL || (state != NULL && empty_state(state, dropped) < 0);
    Py_XDECREF(dropped);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *md_py_reset_all(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *dropped = PyList_New(0);
    int failed = dropped == NULL;
    for (MdCodeState *state = all_states; !failed && state != NULL; state = state->all_next) {
        failed = empty_state(state, dropped) < 0;
    }
    Py_XDECREF(dropped);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}
