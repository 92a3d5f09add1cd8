/* What the evaluator and the optimized objects share: the callbacks into Python and plain re-runs. */
#ifndef MD_EVAL_FRAME_H
#define MD_EVAL_FRAME_H

#include "cache.h"

/* `result` (stolen, may be NULL) of running `entry`: true if it asks for a plain re-run, which is then allowed. With
 * RERUN out of an entry that may not be re-run, *result becomes NULL with RuntimeError. */
bool md_check_rerun(MdEntry *entry, PyObject **result);
static inline bool md_wants_rerun(MdEntry *entry, PyObject **result)
{
    return MD_UNLIKELY(*result == md_rerun) && md_check_rerun(entry, result);
}

/* Tells Python that a plain re-run of the entry's function succeeded with `result` (stolen). Returns `result`, or NULL
 * if the callback raised. */
PyObject *md_report_rerun(PyThreadState *ts, MdThread *t, MdEntry *entry, PyObject *result);

PyObject *md_py_set_convert_frame(PyObject *module, PyObject *callback);
PyObject *md_py_set_rerun_callback(PyObject *module, PyObject *callback);
PyObject *md_py_hook_installed(PyObject *module, PyObject *unused);

#endif
