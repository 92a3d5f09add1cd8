/* Installing our frame evaluator into the interpreter, under and above other people's (PEP 523). */
#ifndef MD_EVALUATOR_H
#define MD_EVALUATOR_H

#include "thread.h"

/* One more, or one fewer, thread wants the evaluator. Both run no Python code. */
void md_evaluator_acquire(PyThreadState *ts);
void md_evaluator_release(PyThreadState *ts);

/* The evaluator itself (eval_frame.c). */
PyObject *md_eval_frame(PyThreadState *ts, MdFrame *f, int throwflag);

/* Is ours the evaluator that the interpreter calls just now? */
static inline bool md_evaluator_installed(PyThreadState *ts)
{
    return md_evaluator_of(ts) == md_eval_frame;
}

/* True while no thread wants the evaluator although the interpreter still calls it. */
bool md_evaluator_unwanted(void);
/* Removes an unwanted evaluator that somebody else put back. */
void md_evaluator_heal(PyThreadState *ts);

/* After a fork: `users` threads are left that want the evaluator. */
void md_evaluator_reset_users(PyThreadState *ts, int users);

/* How deep in the chain of evaluators the call for frame `f` is; to be handed to md_evaluator_next. `*again` is set if
 * an evaluator above handed us a frame that we have given it ourselves. */
int md_evaluator_level(MdThread *t, MdFrame *f, bool *again);

/* Runs the frame with the evaluator below ours, which is CPython's own unless somebody else has installed one. */
PyObject *md_evaluator_next(PyThreadState *ts, MdThread *t, MdFrame *f, int throwflag, int level);

#endif
