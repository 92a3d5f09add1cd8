/* What hangs on a code object: its mark and its cache entries. */
#ifndef MD_CACHE_H
#define MD_CACHE_H

#include "context.h"
#include "thread.h"

/* What a frame of this code does when no entry fits. */
typedef enum {
    MD_UNMARKED = 0,     /* it is given to the compiler */
    MD_SKIP = 1,         /* it runs plain; frames that it calls may be compiled */
    MD_SKIP_SUBTREE = 2, /* it and everything that it calls run plain */
    MD_NO_COMPILE = 3,   /* likewise, this once; its entries are still tried */
    MD_TRANSFORMED = 4,  /* it is an entry's code: it runs as it is */
} MdMark;

/* SKIP code whose frames led to no capture so many times in a row becomes SKIP_SUBTREE. */
#define MD_FRUITLESS_LIMIT 16

struct MdCodeState {
    PyCodeObject *code;              /* borrowed: the code object that it hangs on */
    MdEntry *head;                   /* borrowed entries, oldest first */
    Py_ssize_t entries;              /* how many */
    struct MdHint *hints;            /* a table of `hint_room` places, a power of two or 0 (hints.h) */
    size_t hint_room;
    MdCodeState *all_next, *all_prev;
    MdMark mark;
    bool demoted;                    /* SKIP_SUBTREE by itself, not by order */
    uint32_t fruitless;
};

/* Asks CPython for a slot on code objects, once per process. -1 with an exception. */
int md_cache_init(void);

/* The state of a code object, NULL if it has none. Cannot fail. */
MdCodeState *md_state(PyCodeObject *code);
/* The same, made if there is none. NULL with an exception. */
MdCodeState *md_state_need(PyCodeObject *code);
/* The code object (borrowed) of a state, NULL for NULL and while the code object is dying. */
PyCodeObject *md_state_code(MdCodeState *state);

/* Sets the mark; `demoted`: it came by itself. */
void md_state_mark(MdCodeState *state, MdMark mark, bool demoted);

/* What an entry's guards loaded for its graph: references of ours from place[1] on; place[0] is scratch. */
typedef struct {
    PyObject **place; /* NULL: nothing */
    Py_ssize_t count;
    Py_ssize_t room; /* how many pointers fit */
} MdInputs;

/* Room for `count` inputs, whose places are not yet filled: -1 with MemoryError. It is used again and again: malloc tidies up
 * before it gives out some kilobytes, in each call. */
int md_inputs_make(MdInputs *inputs, Py_ssize_t count);
void md_inputs_give_back(MdInputs *inputs);

static inline void md_inputs_free(MdInputs *inputs)
{
    if (inputs->place != NULL) {
        for (Py_ssize_t i = 1; i <= inputs->count; i++) {
            Py_XDECREF(inputs->place[i]);
        }
        md_inputs_give_back(inputs);
    }
}

/* Inputs on their way from an entry's guards to the handle that its code calls. Lives on the C stack of whoever runs the
 * code, for as long as it does: between its guards and its graph anything may happen, such as a finalizer that calls the
 * same function, whose own inputs then lie on top. */
typedef struct MdLoaded {
    MdEntry *entry; /* borrowed; NULL: nothing, or taken */
    MdInputs inputs;
    struct MdLoaded *outer;
} MdLoaded;

/* `inputs` are moved. */
static inline void md_loaded_enter(MdThread *t, MdLoaded *loaded, MdEntry *entry, MdInputs *inputs)
{
    loaded->entry = NULL;
    loaded->inputs = *inputs;
    inputs->place = NULL;
    if (entry->takes_loaded) {
        loaded->entry = entry;
        loaded->outer = t->loaded;
        t->loaded = loaded;
    }
}

/* Takes what was loaded for `entry`; false if there is nothing. */
static inline bool md_loaded_take(MdThread *t, const MdEntry *entry, MdInputs *inputs)
{
    MdLoaded *loaded = t->loaded;
    if (loaded == NULL || loaded->entry != entry) {
        return false;
    }
    t->loaded = loaded->outer;
    loaded->entry = NULL;
    *inputs = loaded->inputs;
    loaded->inputs.place = NULL;
    return inputs->place != NULL;
}

static inline void md_loaded_leave(MdThread *t, MdLoaded *loaded)
{
    if (MD_UNLIKELY(loaded->entry != NULL)) {
        t->loaded = loaded->outer;
    }
    md_inputs_free(&loaded->inputs);
}

/* Room for the arguments of a check function: [-1] is the callee's scratch, then flat arguments, globals, closure. */
#define MD_FLAT_SMALL 24
typedef struct {
    PyObject **values;               /* flat arguments in the order of the code's first local variables */
    Py_ssize_t count;                /* without globals and closure */
    bool owned;                      /* each value is a reference of ours */
    MdInputs inputs;                 /* of the entry that a lookup has found */
    PyObject *room[MD_FLAT_SMALL + 3];
} MdFlat;

/* Number of flat arguments of a code: positional, keyword-only, *args, **kwargs. */
static inline Py_ssize_t md_flat_count(PyCodeObject *code)
{
    return (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)
           + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

/* Are all flat arguments positional parameters? */
static inline bool md_flat_is_positional(PyCodeObject *code)
{
    return code->co_kwonlyargcount == 0 && (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0;
}

/* Room for `count` values, which the caller fills with borrowed references. -1 with MemoryError. */
static inline int md_flat_init(MdFlat *flat, Py_ssize_t count)
{
    PyObject **room = flat->room;
    if (MD_UNLIKELY(count > MD_FLAT_SMALL)) {
        room = PyMem_New(PyObject *, count + 3);
        if (room == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    flat->values = room + 1;
    flat->count = count;
    flat->owned = false;
    flat->inputs.place = NULL;
    return 0;
}

/* The same for values that become references of our own, NULL until they are known. */
static inline int md_flat_init_owned(MdFlat *flat, Py_ssize_t count)
{
    if (md_flat_init(flat, count) < 0) {
        return -1;
    }
    flat->owned = true;
    memset(flat->values, 0, (size_t)count * sizeof(PyObject *));
    return 0;
}

static inline void md_flat_free(MdFlat *flat)
{
    for (Py_ssize_t i = 0; flat->owned && i < flat->count; i++) {
        Py_XDECREF(flat->values[i]);
    }
    if (MD_UNLIKELY(flat->values != flat->room + 1)) {
        PyMem_Free(flat->values - 1);
    }
    md_inputs_free(&flat->inputs);
}

typedef enum { MD_HIT, MD_MISS, MD_FAILED } MdOutcome;

/* Looks for the first entry of `state` that serves `context` and whose check function holds on `flat` and on globals and
 * closure of `func`, `prefer` (the serial of an entry, or 0) before the others. The caller keeps the code object alive.
 * MD_HIT: `*found` is a new reference (the pin), `flat->inputs` what its graph takes if it is direct. MD_FAILED: a check function raised something that is no Exception. */
MdOutcome md_cache_lookup(PyThreadState *ts, MdThread *t, MdCodeState *state, MdContext *context, MdFlat *flat,
                          PyFunctionObject *func, uint64_t prefer, MdEntry **found);

/* Do the guards of one entry, held by the caller, hold on `flat` as in a look-up? 1: `flat->inputs` is what they loaded;
 * 0; -1 with an exception that is no failure. */
int md_cache_check(PyThreadState *ts, MdThread *t, MdEntry *entry, MdFlat *flat, PyFunctionObject *func);

/* Makes an entry of `code` from a GuardedCode-like object; entries of the same key that are no longer valid leave.
 * Returns a new reference. ValueError if the entry's code cannot stand in for `code`. */
MdEntry *md_cache_add(PyCodeObject *code, MdContext *context, PyObject *guarded);

/* Takes the entry out of its code object's list; its reference stays with the key. Runs no Python code. */
void md_cache_unlink(MdEntry *entry);

PyObject *md_py_mark_code(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *md_py_get_mark(PyObject *module, PyObject *code);
PyObject *md_py_add_entry(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *md_py_cache_entries(PyObject *module, PyObject *code);
PyObject *md_py_reset_code(PyObject *module, PyObject *code);
PyObject *md_py_reset_all(PyObject *module, PyObject *unused);

#endif
