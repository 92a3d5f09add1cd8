/* The stance "force_eager": everything runs as plain Python, entries that exist included. It costs calls nothing while it is
 * off: a change of stance writes another function into every OptimizedFunction of the process. */
#ifndef MD_STANCE_H
#define MD_STANCE_H

#include <stdbool.h>

#include "optimized.h"

/* The evaluator and tail calls ask; optimized objects need not. */
extern bool md_stance_eager;

/* A new object (with `vectorcall` not set yet), and one that goes. */
void md_stance_join(MdOptimized *self);
void md_stance_leave(MdOptimized *self);

/* force_eager(flag) -> the flag before; of the whole process */
PyObject *md_py_force_eager(PyObject *module, PyObject *flag);

#endif
