/* Direct entries: the graph is called from C and a recipe makes the result, so that the entry's code need not run. */
#ifndef MD_DIRECT_H
#define MD_DIRECT_H

#include "cache.h"
#include "entry.h"
#include "thread.h"

/* Compiles `spec`, which Python gives as
 *
 *     (handle, inputs, recipe)
 *     recipe = ("output", i) | ("argument", i) | ("constant", object) | ("tuple", (recipe, ...)) | ("list", ...)
 *
 * with one of `handles` (bound, a graph) and inputs and arguments as indexes below `arguments`, the number of flat
 * arguments. Inputs may be None: then the entry's guard program loads them (`loaded` says how many; -1: there is none).
 * Each list of a recipe is a list of its own. NULL with ValueError for anything else, or MemoryError. */
MdDirect *md_direct_new(PyObject *spec, PyObject *handles, Py_ssize_t arguments, Py_ssize_t loaded);
void md_direct_free(MdDirect *self);
int md_direct_traverse(MdDirect *self, visitproc visit, void *arg);
/* Do the guards hand over what the graph takes? `self` may be NULL. */
bool md_direct_takes_inputs(const MdDirect *self);
/* What it was compiled from (borrowed). */
PyObject *md_direct_spec(MdDirect *self);

/* Runs a direct entry on flat arguments, both held by the caller; values[-1] is scratch. Inputs that the guards loaded
 * are released. Returns the result; or RERUN,
 * as the entry's code would, if the graph raised an Exception (noted on the entry); or NULL with what else it raised.
 */
PyObject *md_direct_run(PyThreadState *ts, MdThread *t, MdEntry *entry, PyObject **values, MdInputs *inputs);

#endif
