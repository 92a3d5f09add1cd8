/* CompileKey, CacheEntry, EntryHandle, Validity: who owns what.
 *
 *     OptimizeContext --strong--> CompileKey --strong--> CacheEntry --strong--> check_fn, code, targets of its handles,
 *                                                                               what `direct` needs
 *     code object ~~co_extra~~> MdCodeState ~~borrowed~~> CacheEntry ~~borrowed~~> the code object and the key
 *     entry.code ~~constant~~> EntryHandle ~~borrowed~~> target
 *
 * Code objects and co_extra are invisible to the garbage collector, so nothing strong leads out of them to a user's
 * object; every strong arrow above is visible to it. Whoever dies first unlinks itself from the others.
 */
#ifndef MD_ENTRY_H
#define MD_ENTRY_H

#include "frame_compat.h"

typedef struct MdEntry MdEntry;
typedef struct MdKey MdKey;
typedef struct MdCodeState MdCodeState;
typedef struct MdDirect MdDirect;

/* Validity: one flag, read as a byte, shared by a check function and whatever may declare its entry dead; and the number of
 * hits, which a recording reads when the entry is gone. */
typedef struct {
    PyObject_HEAD
    char valid;
    uint64_t hits;
    PyObject *weakrefs;
} MdValidity;

/* CompileKey: owns the entries that were made for it, in the order of their making. */
struct MdKey {
    PyObject_HEAD
    PyObject *backend;
    PyObject *dynamic;
    PyObject *options;
    MdEntry *first, *last; /* linked by key_next, key_prev; one reference each */
    PyObject *dict;
    PyObject *weakrefs;
};

/* EntryHandle: a hashable constant for emitted code that forwards calls to its target. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *target; /* owned until the handle is bound, then borrowed from the entry; NULL when the entry is dead */
    MdEntry *entry; /* borrowed; NULL before binding and after the entry's death */
    Py_ssize_t outputs; /* >= 0: a graph: runs with capture off, must return so many values */
    Py_ssize_t *loaded; /* owned: which of the graph's inputs the entry's guards load, the lowest first */
    Py_ssize_t loaded_count;
    PyObject *given; /* tuple: what they have loaded, for a call before the handle is bound; or NULL */
    char bound;
} MdHandle;

struct MdEntry {
    PyObject_HEAD
    MdEntry *next; /* borrowed: the next entry of the same code object */
    MdCodeState *state; /* borrowed: state of the code object that the entry serves; NULL once it is out */
    MdKey *key; /* borrowed: the owner; NULL once it is out */
    MdEntry *key_next, *key_prev;
    uint64_t serial; /* grows with every entry of the process */
    PyObject *check_fn;
    PyCodeObject *code; /* what runs on a hit */
    MdValidity *validity;
    PyObject *handles; /* tuple of EntryHandle */
    PyObject *targets; /* tuple: what the handles borrow */
    MdDirect *direct; /* owned: how C gets the result without the code; NULL: it cannot */
    PyObject *owned; /* tuple: whatever else the code borrows */
    PyObject *payload; /* for reports */
    PyObject *owner; /* weak reference to the OptimizeContext that made the entry */
    PyObject *last_error; /* str: first exception that check_fn raised */
    PyObject *graph_error; /* str: type and message of the last exception out of a graph */
    char has_break;
    char rerunnable;
    char takes_loaded; /* one of its handles is called without what the guards load */
};

extern PyTypeObject MdKeyed_Type;
extern PyTypeObject MdValidity_Type;
extern PyTypeObject MdKey_Type;
extern PyTypeObject MdHandle_Type;
extern PyTypeObject MdEntry_Type;
extern PyTypeObject MdSentinel_Type;

/* The object that emitted code returns when its graph call failed (immortal for the life of the process). */
extern PyObject *md_rerun;
PyObject *md_sentinel_new(const char *name);

/* Makes an entry out of a GuardedCode-like object, binds its handles and links it to `key`. The caller links it to a
 * code object. Returns a new reference; NULL with TypeError/ValueError/AttributeError. */
MdEntry *md_entry_new(MdKey *key, PyObject *owner, PyObject *guarded);

/* Takes the entry out of its code object and out of its key, in that order. May run arbitrary code (destructors);
 * the entry is dead afterwards unless somebody has pinned it. */
void md_entry_drop(MdEntry *entry);

/* Takes the entry out of its key's list and returns the key's reference to it, NULL if it has left before. */
MdEntry *md_key_release(MdEntry *entry);

/* Records that check_fn raised (takes the current exception away). Returns -1, with the exception kept, if it is no
 * Exception (KeyboardInterrupt, SystemExit, ...). */
int md_entry_guard_failed(MdEntry *entry);

/* Binds `handle` to `entry`: the entry now owns the target. Returns the target (new reference for the entry), or NULL
 * with ValueError if the handle belongs to an entry already. */
PyObject *md_handle_bind(MdHandle *handle, MdEntry *entry);
/* The entry dies. */
void md_handle_unbind(MdHandle *handle, MdEntry *entry);

/* What a graph returned (stolen; NULL: it raised): a tuple or list of `outputs` values, else NULL with RuntimeError.
 * The exception that is then set is noted on `entry` (may be NULL) for the report of a re-run. */
PyObject *md_graph_result_slow(MdEntry *entry, PyObject *result, Py_ssize_t outputs);
static inline PyObject *md_graph_result(MdEntry *entry, PyObject *result, Py_ssize_t outputs)
{
    if (MD_LIKELY(result != NULL && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == outputs)) {
        return result;
    }
    return md_graph_result_slow(entry, result, outputs);
}

#endif
