#include "thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include "context.h"
#include "evaluator.h"

MD_TLS MdThread md_thread;

/* ---- room on the C stack ---- */

/* C stack that one unit of the budget of 3.12 and 3.13 may stand for; a Python call under the evaluator takes two
 * units and about 500 bytes, more in builds without optimisation. */
#define MD_STACK_PER_UNIT 512
/* The last part of the stack is left to plain Python, which needs none of it for its calls. */
#define MD_STACK_RESERVE (512 * 1024)
/* The very last part: calls through C are refused there. */
#define MD_STACK_LAST (128 * 1024)

/* The stack of the main thread by its limit: where /proc is not mounted glibc has no other answer. */
static void *limit_of_main(size_t *size)
{
#ifdef __GLIBC__
    extern void *__libc_stack_end;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        *size = (size_t)limit.rlim_cur;
        return (char *)__libc_stack_end - *size;
    }
#else
    (void)size;
#endif
    return NULL;
}

/* Finds the marks on this thread's stack; asked of the system once per thread. Where it has no answer the marks lie at
 * the end of memory, where no stack comes. */
static void find_marks(MdThread *t)
{
    pthread_attr_t attr;
    if (t->stack_floor != NULL) {
        return;
    }
    t->stack_floor = t->stack_last = (char *)1;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        lowest = limit_of_main(&size);
    }
    else {
        if (pthread_attr_getstack(&attr, &lowest, &size) != 0) {
            lowest = NULL;
        }
        pthread_attr_destroy(&attr);
    }
    if (lowest != NULL) {
        t->stack_floor = (char *)lowest + Py_MIN(size / 4, (size_t)MD_STACK_RESERVE);
        t->stack_last = (char *)lowest + Py_MIN(size / 8, (size_t)MD_STACK_LAST);
    }
}

int md_stack_check_slow(MdThread *t)
{
    find_marks(t);
    if (MD_UNLIKELY((char *)__builtin_frame_address(0) < t->stack_last)) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
        return -1;
    }
    return 0;
}

bool md_budget_lend(PyThreadState *ts, MdThread *t)
{
    int *budget = MD_C_BUDGET(ts);
    if (budget == NULL || t->loan != 0) {
        return false;
    }
    find_marks(t);
    Py_ssize_t left = t->stack_floor != (char *)1 ? (char *)__builtin_frame_address(0) - t->stack_floor : 0;
    Py_ssize_t most = left / MD_STACK_PER_UNIT - *budget;
    Py_ssize_t wanted = 2 * (Py_ssize_t)Py_GetRecursionLimit();
    if (wanted > most) {
        wanted = most;
    }
    if (wanted <= 0) {
        return false;
    }
    t->loan = (int)wanted;
    *budget += t->loan;
    return true;
}

void md_budget_collect(PyThreadState *ts, MdThread *t)
{
    int *budget = MD_C_BUDGET(ts);
    if (budget == NULL || t->loan == 0) {
        return;
    }
    int spare = *budget - MD_BUDGET_RESERVE;
    int part = spare < t->loan ? spare : t->loan;
    if (part > 0) {
        *budget -= part;
        t->loan -= part;
    }
}

/* ---- the active context ---- */

PyObject *md_active_swap(PyThreadState *ts, MdThread *t, PyObject *context)
{
    PyObject *before = t->active;
    t->active = context;
    if (context != NULL && before == NULL) {
        find_marks(t);
        md_evaluator_acquire(ts);
        md_budget_lend(ts, t);
    }
    else if (context == NULL && before != NULL) {
        md_evaluator_release(ts);
        if (t->scopes == 0) {
            md_budget_collect(ts, t);
        }
    }
    return before;
}

void md_scope_enter(PyThreadState *ts, MdThread *t, MdScope *scope, PyObject *context)
{
    t->scopes++;
    if (MD_UNLIKELY(md_stack_low(ts, t))) {
        md_budget_lend(ts, t);
    }
    scope->outer = md_active_swap(ts, t, Py_XNewRef(context));
}

void md_scope_leave(PyThreadState *ts, MdThread *t, MdScope *scope)
{
    t->scopes--;
    PyObject *inner = md_active_swap(ts, t, scope->outer);
    if (t->scopes == 0 && t->active == NULL) {
        md_budget_collect(ts, t);
    }
    Py_XDECREF(inner);
}

PyObject *md_scope_call(PyThreadState *ts, MdThread *t, PyObject *context, PyObject *callable, PyObject *const *args,
                        size_t nargsf, PyObject *kwnames)
{
    MdScope scope;
    md_scope_enter(ts, t, &scope, context);
    PyObject *result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
    md_scope_leave(ts, t, &scope);
    return result;
}

/* ---- a thread that ends with a context active ---- */

/* Lives in the thread state's dict and dies with it, in the thread itself (or, after a fork, in another one). */
typedef struct {
    PyObject_HEAD
    pthread_t thread;
} MdThreadWatch;

static void watch_dealloc(PyObject *self)
{
    MdThreadWatch *watch = (MdThreadWatch *)self;
    if (pthread_equal(watch->thread, pthread_self())) {
        MdThread *t = &md_thread;
        t->watched = false;
        Py_XDECREF(md_active_swap(PyThreadState_Get(), t, NULL));
    }
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject MdThreadWatch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.ThreadWatch",
    .tp_basicsize = sizeof(MdThreadWatch),
    .tp_dealloc = watch_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Switches capture off when its thread ends.",
};

static int watch_thread(MdThread *t)
{
    PyObject *dict = PyThreadState_GetDict();
    if (dict == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "minidynamo: this thread has no Python thread state dict");
        return -1;
    }
    MdThreadWatch *watch = PyObject_New(MdThreadWatch, &MdThreadWatch_Type);
    if (watch == NULL) {
        return -1;
    }
    watch->thread = pthread_self();
    t->watched = true;
    int failed = PyDict_SetItemString(dict, "minidynamo.thread_watch", (PyObject *)watch);
    Py_DECREF(watch);
    return failed;
}

/* ---- Python ---- */

PyObject *md_py_swap_active(PyObject *Py_UNUSED(module), PyObject *context)
{
    MdThread *t = &md_thread;
    if (context != Py_None && !PyObject_TypeCheck(context, &MdContext_Type)) {
        return PyErr_Format(PyExc_TypeError, "swap_active: an OptimizeContext or None is needed, not %.100s",
                            Py_TYPE(context)->tp_name);
    }
    if (context != Py_None && !t->watched && watch_thread(t) < 0) {
        return NULL;
    }
    PyObject *before = md_active_swap(PyThreadState_Get(), t, context == Py_None ? NULL : Py_NewRef(context));
    return before != NULL ? before : Py_NewRef(Py_None);
}

PyObject *md_py_active(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *active = md_thread.active;
    return Py_NewRef(active != NULL ? active : Py_None);
}

PyObject *md_py_after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    md_evaluator_reset_users(PyThreadState_Get(), md_thread.active != NULL);
    Py_RETURN_NONE;
}
