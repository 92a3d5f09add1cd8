#include "context.h"

#include "thread.h"

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *key = NULL;
    PyObject *nopython = NULL;
    if (PyTuple_GET_SIZE(args) > 2) {
        PyErr_SetString(PyExc_TypeError, "OptimizeContext(key, nopython=False, **attributes)");
        return NULL;
    }
    if (PyTuple_GET_SIZE(args) > 0) {
        key = PyTuple_GET_ITEM(args, 0);
    }
    if (PyTuple_GET_SIZE(args) > 1) {
        nopython = PyTuple_GET_ITEM(args, 1);
    }
    PyObject *dict = kwargs != NULL ? PyDict_Copy(kwargs) : PyDict_New();
    if (dict == NULL) {
        return NULL;
    }
    MdContext *self = NULL;
    PyObject *named_key = PyDict_GetItemString(dict, "key");
    PyObject *named_nopython = PyDict_GetItemString(dict, "nopython");
    if ((key != NULL && named_key != NULL) || (nopython != NULL && named_nopython != NULL)) {
        PyErr_SetString(PyExc_TypeError, "OptimizeContext: key or nopython was given twice");
        goto done;
    }
    key = key != NULL ? key : named_key;
    nopython = nopython != NULL ? nopython : named_nopython;
    if (key == NULL || !PyObject_TypeCheck(key, &MdKey_Type)) {
        PyErr_SetString(PyExc_TypeError, "OptimizeContext: key must be a CompileKey");
        goto done;
    }
    int strict = nopython != NULL ? PyObject_IsTrue(nopython) : 0;
    if (strict < 0) {
        goto done;
    }
    self = (MdContext *)type->tp_alloc(type, 0);
    if (self == NULL) {
        goto done;
    }
    self->key = (MdKey *)Py_NewRef(key);
    self->nopython = (char)strict;
    if ((named_key != NULL && PyDict_DelItemString(dict, "key") < 0)
        || (named_nopython != NULL && PyDict_DelItemString(dict, "nopython") < 0)) {
        Py_CLEAR(self);
        goto done;
    }
    self->dict = Py_NewRef(dict);
done:
    Py_DECREF(dict);
    return (PyObject *)self;
}

static int context_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdContext *self = (MdContext *)op;
    Py_VISIT(self->key);
    Py_VISIT(self->dict);
    Py_VISIT(self->outer);
    return 0;
}

static int context_clear(PyObject *op)
{
    MdContext *self = (MdContext *)op;
    Py_CLEAR(self->key);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->outer);
    return 0;
}

static void context_dealloc(PyObject *op)
{
    MdContext *self = (MdContext *)op;
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    context_clear(op);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *context_repr(PyObject *op)
{
    MdContext *self = (MdContext *)op;
    return PyUnicode_FromFormat("<OptimizeContext key=%R nopython=%s>", self->key, self->nopython ? "True" : "False");
}

/* `with ctx:` in C, so that no Python frame of ours runs while the context is being switched on or off. What was active
 * before lies in `outer`, as pairs (thread, context | None): several threads may be inside at once. */
static PyObject *context_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    MdContext *self = (MdContext *)op;
    if (self->outer == NULL && (self->outer = PyList_New(0)) == NULL) {
        return NULL;
    }
    PyObject *active = md_thread.active;
    PyObject *pair = Py_BuildValue("kO", PyThread_get_thread_ident(), active != NULL ? active : Py_None);
    if (pair == NULL || PyList_Append(self->outer, pair) < 0) {
        Py_XDECREF(pair);
        return NULL;
    }
    Py_DECREF(pair);
    PyObject *before = md_py_swap_active(NULL, op);
    if (before == NULL) {
        PyObject *exc = md_exc_take();
        Py_ssize_t depth = PyList_GET_SIZE(self->outer);
        if (PyList_SetSlice(self->outer, depth - 1, depth, NULL) < 0) {
            PyErr_Clear(); /* removing the last item allocates nothing, so this does not happen */
        }
        md_exc_put(exc);
        return NULL;
    }
    Py_DECREF(before);
    return Py_NewRef(op);
}

static PyObject *context_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    MdContext *self = (MdContext *)op;
    Py_ssize_t i = self->outer != NULL ? PyList_GET_SIZE(self->outer) : 0;
    unsigned long thread = PyThread_get_thread_ident();
    while (--i >= 0) {
        PyObject *pair = PyList_GET_ITEM(self->outer, i);
        if (PyLong_AsUnsignedLong(PyTuple_GET_ITEM(pair, 0)) == thread) {
            break;
        }
    }
    if (i < 0) {
        PyErr_SetString(PyExc_RuntimeError, "minidynamo: the context is left more often than it was entered");
        return NULL;
    }
    PyObject *before = Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(self->outer, i), 1));
    int failed = PyList_SetSlice(self->outer, i, i + 1, NULL);
    PyObject *inner = failed < 0 ? NULL : md_py_swap_active(NULL, before);
    Py_DECREF(before);
    if (inner == NULL) {
        return NULL;
    }
    Py_DECREF(inner);
    Py_RETURN_NONE;
}

static PyMethodDef context_methods[] = {
    {"__enter__", context_enter, METH_NOARGS, "make this context active in this thread"},
    {"__exit__", (PyCFunction)(void (*)(void))context_exit, METH_FASTCALL, "make the one before active again"},
    {0},
};

static PyMemberDef context_members[] = {
    {"key", T_OBJECT_EX, offsetof(MdContext, key), READONLY, "the CompileKey whose entries are used and made"},
    {"nopython", T_BOOL, offsetof(MdContext, nopython), READONLY, "only entries without a graph break are used"},
    {0},
};

static PyGetSetDef context_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

PyTypeObject MdContext_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.OptimizeContext",
    .tp_basicsize = sizeof(MdContext),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "OptimizeContext(key, nopython=False, **attributes)\n\n"
              "What is active while an optimized object runs. Further keywords become attributes.",
    .tp_new = context_new,
    .tp_dealloc = context_dealloc,
    .tp_traverse = context_traverse,
    .tp_clear = context_clear,
    .tp_repr = context_repr,
    .tp_methods = context_methods,
    .tp_members = context_members,
    .tp_getset = context_getset,
    .tp_dictoffset = offsetof(MdContext, dict),
    .tp_weaklistoffset = offsetof(MdContext, weakrefs),
};
