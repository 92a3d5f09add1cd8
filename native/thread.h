/* What belongs to one thread: the active context, scopes around calls, the C recursion loan. */
#ifndef MD_THREAD_H
#define MD_THREAD_H

#include "frame_compat.h"

#define MD_TLS _Thread_local __attribute__((tls_model("initial-exec")))

typedef struct {
    PyObject *active; /* owned OptimizeContext, NULL = capture off; set <=> this thread is a user of the evaluator */
    int busy; /* > 0: inside a guard, or inside the compiler: nothing is looked up or compiled */
    int scopes; /* C calls that have set `active` and will put it back */
    int loan; /* units of C recursion lent to this thread */
    char *stack_floor; /* below it the C stack is too short for more frames under the evaluator; NULL: not asked */
    char *stack_last; /* below it, too short for another call through C */
    uint64_t captures; /* entries made or used by the evaluator in this thread */
    uint64_t additions; /* entries made in this thread */
    PyCodeObject *missed; /* borrowed: the code whose entries an OptimizedFunction has just tried, without a hit */
    MdFrame *chain_frame; /* frame handed to the evaluator below ours, and how deep ours is in the chain there */
    int chain_level;
    struct MdLoaded
        *loaded; /* what guards have loaded for code that runs and has not taken it yet, the innermost first */
    struct MdTail *tail; /* borrowed: it has made a call whose frame has not begun */
    PyObject *chained; /* borrowed: a function whose frame has not begun and makes the calls that it ends with itself */
    bool watched; /* the thread state holds an object that tidies up when the thread ends */
} MdThread;

extern MD_TLS MdThread md_thread;

/* Remembers what was active outside; lives on the C stack. */
typedef struct {
    PyObject *outer;
} MdScope;

/* Makes `context` (stolen, may be NULL) the active one of this thread and returns the one before (owned). Installs or
 * removes the evaluator as needed. Runs no Python code. */
PyObject *md_active_swap(PyThreadState *ts, MdThread *t, PyObject *context);

/* Between enter and leave `context` (borrowed, NULL = capture off) is active, whatever happens in between. An
 * exception that is set survives `leave`. */
void md_scope_enter(PyThreadState *ts, MdThread *t, MdScope *scope, PyObject *context);
void md_scope_leave(PyThreadState *ts, MdThread *t, MdScope *scope);
/* Calls `callable` (vectorcall convention) in such a scope. */
PyObject *md_scope_call(PyThreadState *ts, MdThread *t, PyObject *context, PyObject *callable, PyObject *const *args,
                        size_t nargsf, PyObject *kwnames);

/* Fewer units of C recursion budget than this: calls go on plain, and no more than all but these are collected from a
 * loan. */
#define MD_BUDGET_RESERVE 200

/* Is the C stack, or the C recursion budget, nearly used up? Python calls made plain do not need either. */
static inline bool md_stack_low(PyThreadState *ts, MdThread *t)
{
    const int *budget = MD_C_BUDGET(ts);
    return (budget != NULL && *budget < MD_BUDGET_RESERVE) || (char *)__builtin_frame_address(0) < t->stack_floor;
}

/* Asks where this thread's stack ends, if that is not known, and compares. */
int md_stack_check_slow(MdThread *t);
/* RecursionError (-1) where the C stack ends: 3.11 itself counts no C stack. */
static inline int md_stack_check(MdThread *t)
{
    bool enough = t->stack_last != NULL && (char *)__builtin_frame_address(0) >= t->stack_last;
    return MD_LIKELY(enough) ? 0 : md_stack_check_slow(t);
}
/* Lends C recursion budget to this thread; false if it has a loan already or the version has no such budget. */
bool md_budget_lend(PyThreadState *ts, MdThread *t);
/* Takes it back, as far as the thread can spare it now; the rest stays lent until the next time. */
void md_budget_collect(PyThreadState *ts, MdThread *t);

/* swap_active(context | None) -> the context before | None */
PyObject *md_py_swap_active(PyObject *module, PyObject *context);
/* active() -> the active context of this thread | None */
PyObject *md_py_active(PyObject *module, PyObject *unused);
/* Called in the child after a fork, where no other thread is left. */
PyObject *md_py_after_fork(PyObject *module, PyObject *unused);

extern PyTypeObject MdThreadWatch_Type;

#endif
