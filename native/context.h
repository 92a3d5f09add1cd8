/* OptimizeContext: what an optimized object makes active around its calls. */
#ifndef MD_CONTEXT_H
#define MD_CONTEXT_H

#include "entry.h"

typedef struct {
    PyObject_HEAD
    MdKey *key;      /* strong: keeps the entries of this context's key alive */
    char nopython;   /* use only entries without a graph break */
    PyObject *dict;
    PyObject *outer; /* list of (thread, what was active) of each __enter__ that has not been left, or NULL */
    PyObject *weakrefs;
} MdContext;

extern PyTypeObject MdContext_Type;

#endif
