/* OptimizedFunction: what @optimize returns. ResumeFunction: the rest of a function after a graph break. */
#ifndef MD_OPTIMIZED_H
#define MD_OPTIMIZED_H

#include "cache.h"

/* Functions made to run entries behind this object, by serial of the entry. Kept here and not on the entry, because
 * they hold the wrapped function's closure, which must not outlive this object. */
#define MD_RUNNERS 2
typedef struct {
    uint64_t serial;
    PyFunctionObject *func;
} MdRunner;

typedef struct MdOptimized {
    PyObject_HEAD
    vectorcallfunc vectorcall; /* the stance's: see stance.h */
    struct MdOptimized *next, **link; /* all objects, for a change of stance */
    PyObject *fn;
    MdContext *context; /* NULL: capture off (what `disable` makes) */
    uint64_t last_hit;  /* serial of the entry that fitted last */
    bool hides_frame;   /* the frame of `fn` stands in for another callable: it shows in no traceback */
    MdRunner runners[MD_RUNNERS];
    PyObject *dict;
    PyObject *weakrefs;
} MdOptimized;

extern PyTypeObject MdOptimized_Type;         /* wraps a Python function: binds like one */
extern PyTypeObject MdOptimizedCallable_Type; /* wraps any other callable: binds as that does */
extern PyTypeObject MdResume_Type;

/* The call (optimized.c) and the upkeep of runners. */
PyObject *md_optimized_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
void md_optimized_drop_runners(MdOptimized *self);
/* The call while everything is to run as plain Python. */
PyObject *md_optimized_call_plain(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
