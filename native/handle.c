/* EntryHandle: how emitted code reaches the compiled graph without owning it. */
#include "entry.h"
#include "thread.h"

static PyObject *handle_dead(void)
{
    PyErr_SetString(PyExc_RuntimeError,
                    "minidynamo: this code belongs to a cache entry that has been dropped, so what it calls is gone; "
                    "call the optimized function again instead of keeping the transformed code");
    return NULL;
}

/* Remembers type and message of the exception for the report of a re-run; the exception stays set. */
static void note_graph_error(MdEntry *entry)
{
    PyObject *exc = md_exc_take();
    md_thread.busy++; /* str(exc) may be the user's code: nothing is captured in it */
    PyObject *text = PyUnicode_FromFormat("%s: %S", Py_TYPE(exc)->tp_name, exc);
    if (text == NULL) {
        PyErr_Clear(); /* it cannot be printed: the type must do */
        text = PyUnicode_FromString(Py_TYPE(exc)->tp_name);
    }
    if (text == NULL) {
        PyErr_Clear(); /* no memory for that either: the report says "Exception" */
    }
    md_thread.busy--;
    Py_XSETREF(entry->graph_error, text);
    md_exc_put(exc);
}

static int check_outputs(PyObject *result, Py_ssize_t outputs)
{
    if (!PyTuple_Check(result) && !PyList_Check(result)) {
        PyErr_Format(PyExc_RuntimeError,
                     "minidynamo: the backend's function returned %.100s, but the graph has %zd output(s): it must "
                     "return a tuple or list of them; return (out,) for a single one",
                     Py_TYPE(result)->tp_name, outputs);
        return -1;
    }
    Py_ssize_t count = PyTuple_Check(result) ? PyTuple_GET_SIZE(result) : PyList_GET_SIZE(result);
    if (count != outputs) {
        PyErr_Format(PyExc_RuntimeError,
                     "minidynamo: the backend's function returned %zd value(s), but the graph has %zd output(s): it "
                     "must return one value for each output, in the graph's order",
                     count, outputs);
        return -1;
    }
    return 0;
}

PyObject *md_graph_result_slow(MdEntry *entry, PyObject *result, Py_ssize_t outputs)
{
    if (result != NULL && check_outputs(result, outputs) < 0) {
        Py_CLEAR(result);
    }
    if (result == NULL && entry != NULL) {
        note_graph_error(entry);
    }
    return result;
}

static PyObject *call_graph(MdHandle *self, PyObject *target, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdThread *t = &md_thread;
    MdEntry *entry = (MdEntry *)Py_XNewRef((PyObject *)self->entry);
    Py_ssize_t outputs = self->outputs;
    PyObject *result = t->active == NULL ? PyObject_Vectorcall(target, args, nargsf, kwnames)
                                         : md_scope_call(PyThreadState_Get(), t, NULL, target, args, nargsf, kwnames);
    result = md_graph_result(entry, result, outputs);
    Py_XDECREF((PyObject *)entry);
    return result;
}

static PyObject *handle_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdHandle *self = (MdHandle *)op;
    PyObject *target = self->target;
    if (target == NULL) {
        return handle_dead();
    }
    Py_INCREF(target);
    PyObject *result = self->outputs >= 0 ? call_graph(self, target, args, nargsf, kwnames)
                                          : PyObject_Vectorcall(target, args, nargsf, kwnames);
    Py_DECREF(target);
    return result;
}

PyObject *md_handle_bind(MdHandle *handle, MdEntry *entry)
{
    if (handle->bound || handle->target == NULL) {
        PyErr_SetString(PyExc_ValueError, "minidynamo: this EntryHandle belongs to a cache entry already");
        return NULL;
    }
    handle->bound = 1;
    handle->entry = entry;
    return handle->target;
}

void md_handle_unbind(MdHandle *handle, MdEntry *entry)
{
    if (handle->entry == entry) {
        handle->entry = NULL;
        handle->target = NULL;
    }
}

static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"target", "n_outputs", NULL};
    PyObject *target;
    Py_ssize_t outputs = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|n:EntryHandle", names, &target, &outputs)) {
        return NULL;
    }
    if (!PyCallable_Check(target)) {
        return PyErr_Format(PyExc_TypeError, "EntryHandle: the target must be callable, not %.100s",
                            Py_TYPE(target)->tp_name);
    }
    MdHandle *self = (MdHandle *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = handle_vectorcall;
        self->target = Py_NewRef(target);
        self->outputs = outputs;
    }
    return (PyObject *)self;
}

static int handle_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdHandle *self = (MdHandle *)op;
    if (!self->bound) {
        Py_VISIT(self->target);
    }
    return 0;
}

static int handle_clear(PyObject *op)
{
    MdHandle *self = (MdHandle *)op;
    if (!self->bound) {
        Py_CLEAR(self->target);
    }
    return 0;
}

static void handle_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    handle_clear(op);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *handle_repr(PyObject *op)
{
    MdHandle *self = (MdHandle *)op;
    if (self->target == NULL) {
        return PyUnicode_FromString("<EntryHandle of a dropped entry>");
    }
    return PyUnicode_FromFormat("<EntryHandle %R>", self->target);
}

static PyObject *handle_get_target(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *target = ((MdHandle *)op)->target;
    return Py_NewRef(target != NULL ? target : Py_None);
}

static PyMemberDef handle_members[] = {
    {"n_outputs", T_PYSSIZET, offsetof(MdHandle, outputs), READONLY, "values that a call must return; -1: any result"},
    {"bound", T_BOOL, offsetof(MdHandle, bound), READONLY, "a cache entry owns the target"},
    {0},
};

static PyGetSetDef handle_getset[] = {
    {"target", handle_get_target, NULL, "what is called; None once the entry is dead", NULL},
    {0},
};

PyTypeObject MdHandle_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.EntryHandle",
    .tp_basicsize = sizeof(MdHandle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "EntryHandle(target, n_outputs=-1)\n\n"
              "A hashable constant for code; calls go to the target. n_outputs >= 0 says that the target is a graph:\n"
              "it runs with capture off and must return a tuple or list of so many values (RuntimeError).",
    .tp_new = handle_new,
    .tp_dealloc = handle_dealloc,
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_repr = handle_repr,
    .tp_vectorcall_offset = offsetof(MdHandle, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = handle_members,
    .tp_getset = handle_getset,
};
