/* GuardProgram: the guards of one entry as a flat program, run on the arguments of a call.
 *
 *     constructor (guard_program.c)   instructions from guards/lower.py, checked once, so that nothing is checked later
 *     guard_vm.c                      runs them in order
 *     guard_objects.c                 what they mean on plain objects; no user code runs there
 *
 * An instruction either loads a register or checks one. Registers hold references of their own while a program runs. */
#ifndef MD_GUARD_VM_H
#define MD_GUARD_VM_H

#include "cache.h"
#include "tensor_leaf.h"

typedef enum {
#define GUARD_OP(name, input, operand, doc) MD_OP_##name,
#include "../minidynamo/guards/guard_ops.def"
#undef GUARD_OP
    MD_OP_COUNT
} MdGuardOp;

/* How a constant is compared. */
typedef enum {
    MD_CONST_LITERAL, /* by exact type and bits (literals.same) */
    MD_CONST_EQUAL,   /* by exact type and the == of that C type */
    MD_CONST_OBJECT,  /* by identity */
    MD_CONST_WEAK,    /* by identity with what a weak reference points to; nothing equals a dead one */
    MD_CONST_COUNT
} MdConstKind;

typedef struct {
    PyObject *object; /* owned */
    Py_hash_t hash;   /* of the object, or of what it points to; -1: not hashable */
    MdConstKind kind;
} MdConst;

typedef struct {
    uint16_t op;
    int32_t in;        /* register that is read, or -1 */
    int32_t out;       /* register that is loaded, or -1 */
    Py_ssize_t index;  /* INDEX: the number; REG: the other register; lists: how many */
    union {
        const void *pointer;   /* PTR */
        MdConst *constants;    /* CONST: one; CONSTS: `index` of them */
        PyObject *object;      /* STR, TEXT, and the default dtype of CHECK_STATE; owned */
        void *leaf;            /* CHECK_TENSOR; owned */
        Py_ssize_t *registers; /* REGS: `index` of them, the first `bits` of them to be different */
    };
    uint64_t bits;
    bool stepped;    /* of a load: later loads start from its register */
    bool varies;     /* of a root: calls come with different objects */
    uint8_t useless; /* of a root: snapshots in a row that were of no use, while its object was another each time */
} MdInstr;

/* A root of which that is true so often is not part of snapshots. */
#define MD_USELESS 4
/* Dictionaries that snapshots go by single keys of. */
#define MD_LOOSE 32
/* Snapshots of single objects as roots; one more is common to all others. */
#define MD_OWN_SNAPSHOTS 4

/* What earlier runs of a program have seen (snapshot_set.c). */
typedef struct {
    struct MdSnapshot *of[MD_OWN_SNAPSHOTS + 1]; /* NULL where there is none; the common one last */
    uint64_t runs;
    uint32_t wait;     /* so many runs until the next one is made */
    uint32_t penalty;  /* for the next one that turns out to be useless */
    uint32_t patience; /* one that has answered none of so many runs may be replaced */
} MdSnapshots;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    MdInstr *code;
    Py_ssize_t count;
    Py_ssize_t registers;
    Py_ssize_t arguments; /* flat arguments; globals and closure follow them */
    PyObject *builtins;   /* dict or NULL */
    PyObject *validity;   /* MdValidity or NULL */
    PyObject *witness;    /* called as witness(verdict, *arguments, globals, closure) after each run, or NULL */
    Py_ssize_t *inputs;   /* registers that hold what the graph takes, in its order */
    Py_ssize_t input_count;
    bool reads_torch;     /* some instruction needs the state of torch's thread */
    const TensorLeafApi *leaves;
    MdSnapshots remembered;
    PyObject *loose[MD_LOOSE]; /* addresses, to be compared only */
} MdGuards;

extern PyTypeObject MdGuards_Type;

/* torch's part, once a program has needed it. */
extern const TensorLeafApi *md_tensor_leaves;

/* Runs the program. `values`: the flat arguments, globals, closure (a tuple or None), held by the caller, who also
 * holds the program. 1: all guards hold; 0: one does not; -1 with an exception: one raised. `failed` (may be NULL)
 * gets the index of the instruction that did not hold; `inputs` (may be NULL; empty) gets the inputs if all hold. */
int md_guards_run(MdGuards *self, PyObject *const *values, MdInputs *inputs, Py_ssize_t *failed);

/* ---- guard_objects.c ---- */

/* The object of a constant (new reference); NULL without an exception when it is dead. */
PyObject *md_const_get(const MdConst *constant);
/* literals.same(value, constant). Runs no Python code; cannot fail. */
bool md_const_same(const MdConst *constant, PyObject *value);
/* static_access.static_attr: a new reference; NULL without an exception when there is no such attribute. `name` is an
 * interned str. */
PyObject *md_static_attr(PyObject *obj, PyObject *name);
/* Where a static attribute was found. */
typedef enum {
    MD_FOUND_SLOT,     /* in the object, at `place` */
    MD_FOUND_PART,     /* likewise, and it may be given another value */
    MD_FOUND_DICT,     /* it is the instance dictionary, to which `place` points */
    MD_FOUND_ON_TYPE,  /* obj is a type: on it or its bases, or on its metatype */
    MD_FOUND_ON_CLASS, /* on the class of obj; `dict`, if any, has no such key */
    MD_FOUND_IN_DICT,  /* in the instance dictionary `dict`, to which `place` points */
    MD_FOUND_INLINE,   /* like the two before, for an object without a dict */
    MD_FOUND_OTHERWISE, /* not known: a getter has to be called, or a dict has keys that are no str */
} MdFoundWhere;
typedef struct {
    MdFoundWhere where;
    PyObject *value; /* borrowed; NULL: there is no such attribute */
    PyObject **place;
    PyObject *dict;
} MdFound;
/* The same look-up, which allocates nothing and runs no Python code at all, as far as that goes. */
MdFound md_find_attr(PyObject *obj, PyObject *name);
/* py_leaves.lacks_members and empty_members, by constants that are interned names. -1 with an exception. */
int md_lacks_members(PyObject *obj, const MdConst *names, Py_ssize_t count);
int md_empty_members(PyObject *obj, const MdConst *names, Py_ssize_t count);
/* py_leaves.has_own, by an interned name. -1 with an exception. */
int md_has_own(PyObject *obj, PyObject *name);
/* The same without a call of a getter: 1, 0, or MD_UNSURE. */
int md_has_own_pure(PyObject *obj, PyObject *name);
int md_lacks_members_pure(PyObject *obj, const MdConst *names, Py_ssize_t count);
int md_empty_members_pure(PyObject *obj, const MdConst *names, Py_ssize_t count);
/* The own dictionary if it is a real one with str keys only, and the place that points to it; NULL: not known. */
PyObject *md_own_dict(PyObject *obj, PyObject ***place);
/* static_access.static_len; -1 without an exception where there is none. */
Py_ssize_t md_static_len(PyObject *obj);
/* static_access.dict_keys compared with constants: the same keys in the same order. -1 with an exception. */
int md_dict_keys_same(PyObject *mapping, const MdConst *keys, Py_ssize_t count);
/* py_leaves.check_set_items and check_set_order. */
bool md_set_items_same(PyObject *set, const MdConst *items, Py_ssize_t count);
bool md_set_order_same(PyObject *set, const MdConst *items, Py_ssize_t count);
/* static_access.dict_key: the key at that position (new reference); NULL, perhaps with an exception. */
PyObject *md_dict_key(PyObject *mapping, Py_ssize_t index);
/* Are the objects in the first `own` of `all` registers different from each other and from those of the rest? */
bool md_all_distinct(PyObject *const *values, const Py_ssize_t *registers, Py_ssize_t own, Py_ssize_t all);
/* More comparisons than this are made by way of a table. */
#define MD_DISTINCT_QUADRATIC 2048
/* py_leaves.iterator_len; -1 also for an iterator of another kind. May leave an exception. */
Py_ssize_t md_iterator_len(PyObject *iterator);
/* Imports what the functions above need. -1 with an exception. */
int md_guard_objects_init(void);

#endif
