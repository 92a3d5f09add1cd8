#include "evaluator.h"

#include "stats.h"

/* Our evaluator may lie in the interpreter's chain more than once: somebody installs his on top of ours, ours stops
 * being wanted (it cannot be taken out from the middle, so it stays there and passes frames on), and later it is
 * wanted again, on top of his. below[i] is what our i-th place calls; NULL is CPython's own evaluator. */
#define MD_MAX_LEVELS 4

static struct {
    int users;
    int levels;
    _PyFrameEvalFunction below[MD_MAX_LEVELS];
} chain;

static void install(PyThreadState *ts)
{
    _PyFrameEvalFunction top = md_evaluator_of(ts);
    if (top == md_eval_frame) {
        return; /* somebody has put it back for us */
    }
    if (top == _PyEval_EvalFrameDefault) {
        chain.levels = 0; /* whoever lay on top of ours is gone */
    }
    if (chain.levels == MD_MAX_LEVELS) {
        return; /* evaluators piled up without order: run plain rather than grow the pile */
    }
    chain.below[chain.levels++] = top == _PyEval_EvalFrameDefault ? NULL : top;
    _PyInterpreterState_SetEvalFrameFunc(ts->interp, md_eval_frame);
    MD_COUNT(installs);
}

static void remove_top(PyThreadState *ts)
{
    if (md_evaluator_of(ts) != md_eval_frame) {
        return; /* somebody lies on top: stay below him and pass frames on */
    }
    _PyFrameEvalFunction below = chain.levels > 0 ? chain.below[--chain.levels] : NULL;
    _PyInterpreterState_SetEvalFrameFunc(ts->interp, below != NULL ? below : _PyEval_EvalFrameDefault);
    MD_COUNT(removals);
}

void md_evaluator_acquire(PyThreadState *ts)
{
    if (chain.users++ == 0) {
        install(ts);
    }
}

void md_evaluator_release(PyThreadState *ts)
{
    if (--chain.users == 0) {
        remove_top(ts);
    }
}

bool md_evaluator_unwanted(void)
{
    return chain.users == 0;
}

void md_evaluator_heal(PyThreadState *ts)
{
    remove_top(ts);
}

void md_evaluator_reset_users(PyThreadState *ts, int users)
{
    chain.users = users;
    if (users == 0) {
        remove_top(ts);
    }
}

int md_evaluator_level(MdThread *t, MdFrame *f, bool *again)
{
    *again = t->chain_frame == f;
    if (MD_UNLIKELY(*again)) {
        return t->chain_level - 1;
    }
    return chain.levels - 1;
}

PyObject *md_evaluator_next(PyThreadState *ts, MdThread *t, MdFrame *f, int throwflag, int level)
{
    _PyFrameEvalFunction below = level >= 0 ? chain.below[level] : NULL;
    if (MD_LIKELY(below == NULL)) {
        return _PyEval_EvalFrameDefault(ts, f, throwflag);
    }
    MdFrame *outer_frame = t->chain_frame;
    int outer_level = t->chain_level;
    t->chain_frame = f;
    t->chain_level = level;
    PyObject *result = below(ts, f, throwflag);
    t->chain_frame = outer_frame;
    t->chain_level = outer_level;
    return result;
}
