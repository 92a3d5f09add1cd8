/* Validity, and the RERUN sentinel. */
#include "entry.h"

static PyObject *validity_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Validity", names)) {
        return NULL;
    }
    MdValidity *self = (MdValidity *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->valid = 1;
    }
    return (PyObject *)self;
}

static void validity_dealloc(PyObject *op)
{
    if (((MdValidity *)op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    Py_TYPE(op)->tp_free(op);
}

static PyObject *validity_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<Validity valid=%s>", ((MdValidity *)op)->valid ? "True" : "False");
}

static PyObject *validity_invalidate(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    ((MdValidity *)op)->valid = 0;
    Py_RETURN_NONE;
}

static PyMethodDef validity_methods[] = {
    {"invalidate", (PyCFunction)(void (*)(void))validity_invalidate, METH_FASTCALL,
     "invalidate(*ignored): set valid to False; takes any arguments, so that it can be a weakref callback"},
    {0},
};

static PyMemberDef validity_members[] = {
    {"valid", T_BOOL, offsetof(MdValidity, valid), 0, "False: the entry must not be used"},
    {"hits", T_ULONGLONG, offsetof(MdValidity, hits), READONLY, "how often its entry ran, the first run not counted"},
    {0},
};

PyTypeObject MdValidity_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.Validity",
    .tp_basicsize = sizeof(MdValidity),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Validity(): one flag that says whether a cache entry may be used, and how often it was.",
    .tp_new = validity_new,
    .tp_dealloc = validity_dealloc,
    .tp_repr = validity_repr,
    .tp_methods = validity_methods,
    .tp_members = validity_members,
    .tp_weaklistoffset = offsetof(MdValidity, weakrefs),
};

/* ---- sentinels ---- */

typedef struct {
    PyObject_HEAD
    const char *name;
} MdSentinel;

PyObject *md_rerun;

static PyObject *sentinel_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<minidynamo %s>", ((MdSentinel *)op)->name);
}

static PyObject *sentinel_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyUnicode_FromString(((MdSentinel *)op)->name);
}

static PyMethodDef sentinel_methods[] = {
    {"__reduce__", sentinel_reduce, METH_NOARGS, "pickled by name"},
    {0},
};

PyTypeObject MdSentinel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.Sentinel",
    .tp_basicsize = sizeof(MdSentinel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A value that is nothing but itself.",
    .tp_repr = sentinel_repr,
    .tp_methods = sentinel_methods,
};

PyObject *md_sentinel_new(const char *name)
{
    MdSentinel *self = PyObject_New(MdSentinel, &MdSentinel_Type);
    if (self != NULL) {
        self->name = name;
    }
    return (PyObject *)self;
}
