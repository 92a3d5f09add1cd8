/* Tail: a call of a resume function that its caller's runner makes, after the caller has gone.
 *
 * An entry's code ends, at a graph break, with `return resume(...)`. Made there, the call would nest: a C call and a Python
 * frame for each break, so that a loop with a break would grow the stack, a traceback would show the function once for each
 * part, and whatever a finished part still holds would live on. Instead the call returns a Tail, and whoever runs the entry
 * makes the call when the entry's frame is gone, again and again until something else is returned. */
#ifndef MD_TAIL_H
#define MD_TAIL_H

#include "thread.h"

extern PyTypeObject MdTail_Type;

/* The call of `code`, a continuation of the Python function `caller`, with arguments that the Tail will hold. */
PyObject *md_tail_new(PyFunctionObject *caller, PyCodeObject *code, PyObject *const *args, Py_ssize_t count);

/* Makes the call of `tail` (stolen), and those that it ends with, in the scope of the caller. `ended` is the frame that has
 * returned the Tail, if it is the evaluator who asks: an entry of the continuation needs no function and no call then, its
 * frame is made where that one was; and a Tail may be returned, because somebody holds the frame. NULL: all calls are made. */
PyObject *md_tail_run(PyThreadState *ts, MdThread *t, PyObject *tail, MdFrame *ended);

/* Calls a ResumeFunction (resume.c), which needs not be held meanwhile. */
PyObject *md_resume_call(PyObject *resume, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Is `result` (may be NULL) of running an entry's code a call to be made? */
static inline bool md_is_tail(PyObject *result)
{
    return MD_UNLIKELY(result != NULL && Py_IS_TYPE(result, &MdTail_Type));
}

/* A frame of `func` begins, holding its arguments: if a Tail has just called it, the Tail lets go of them. Returns whether
 * one has. */
bool md_tail_arrived_slow(MdThread *t, PyFunctionObject *func);
static inline bool md_tail_arrived(MdThread *t, PyFunctionObject *func)
{
    return MD_UNLIKELY(t->tail != NULL) && md_tail_arrived_slow(t, func);
}

#endif
