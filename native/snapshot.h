/* What a snapshot consists of: between the file that makes one and the file that runs one. */
#ifndef MD_SNAPSHOT_H
#define MD_SNAPSHOT_H

#include "dict_epoch.h"
#include "dict_watch.h"
#include "guard_run.h"

typedef uint64_t __attribute__((may_alias)) MdBits;

typedef struct {
    const MdBits *at;
    MdBits want;
} MdWord;

/* A root: an instruction whose register must hold the same object as before. */
typedef struct {
    int32_t instruction; /* -1: the globals */
    PyObject *want; /* borrowed: compared only */
} MdRoot;

/* A key of a dict whose other keys come and go; NULL: the dict must not change at all. */
typedef struct {
    Py_ssize_t word; /* the version of the dict */
    PyObject *dict;  /* borrowed, alive when the words before are as they were */
    PyObject *key;   /* borrowed from the program: an exact str */
    PyObject *want;  /* borrowed: compared only */
} MdKeyOf;

#define VECTOR(type) \
    struct { \
        type *items; \
        Py_ssize_t count, room; \
    }

struct MdSnapshot {
    char stale;     /* set by the watcher of a dict */
    bool common;    /* of any objects as those roots that differ from call to call */
    uint32_t served; /* runs that it has answered */
    uint64_t last;  /* the number of the last of them */
    uint64_t epoch; /* of dictionaries, when all words were as they are: see md_dict_epoch; 0: never */
    VECTOR(MdRoot) roots;
    VECTOR(MdWord) words; /* each lies in an object that those before it show to be alive */
    VECTOR(MdWord) fixed; /* those of them that may change though no dict does, in the same order */
    Py_ssize_t tensors;   /* checks of registers that hold the same objects as before */
    void *known;          /* these checks; NULL for none */
    void (*known_free)(void *known);
    VECTOR(int32_t) rest;       /* instructions that are run each time */
    VECTOR(int32_t) late;       /* likewise, when nothing is borrowed any more: they may run Python code */
    PyObject **registers;       /* borrowed values; the rest writes its own there */
    bool late_registers;        /* late ones read or write registers */
    VECTOR(int32_t) borrowed;   /* registers that late ones read */
    VECTOR(MdKeyOf) keys;
    VECTOR(PyObject *) held;    /* constants that are compared by address, kept alive for that; owned */
    VECTOR(MdWatch *) watches;
};

/* Does the program go by single keys of this dict? */
static inline bool md_is_loose(const MdGuards *self, const PyObject *dict)
{
    for (int i = 0; i < MD_LOOSE; i++) {
        if (self->loose[i] == dict) {
            return true;
        }
    }
    return false;
}

#endif
