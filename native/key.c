/* CompileKey: what two optimized objects must agree in to share entries; owner of those entries. */
#include "entry.h"

#include "cache.h"

static PyObject *key_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"backend", "dynamic", "options", NULL};
    PyObject *backend;
    PyObject *dynamic = Py_None;
    PyObject *options = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:CompileKey", names, &backend, &dynamic, &options)) {
        return NULL;
    }
    MdKey *self = (MdKey *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->backend = Py_NewRef(backend);
        self->dynamic = Py_NewRef(dynamic);
        self->options = Py_NewRef(options);
    }
    return (PyObject *)self;
}

MdEntry *md_key_release(MdEntry *entry)
{
    MdKey *key = entry->key;
    if (key == NULL) {
        return NULL;
    }
    if (entry->key_prev != NULL) {
        entry->key_prev->key_next = entry->key_next;
    }
    else {
        key->first = entry->key_next;
    }
    if (entry->key_next != NULL) {
        entry->key_next->key_prev = entry->key_prev;
    }
    else {
        key->last = entry->key_prev;
    }
    entry->key = NULL;
    entry->key_next = entry->key_prev = NULL;
    return entry;
}

static int key_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdKey *self = (MdKey *)op;
    Py_VISIT(self->backend);
    Py_VISIT(self->dynamic);
    Py_VISIT(self->options);
    Py_VISIT(self->dict);
    for (MdEntry *entry = self->first; entry != NULL; entry = entry->key_next) {
        Py_VISIT(entry);
    }
    return 0;
}

static int key_clear(PyObject *op)
{
    MdKey *self = (MdKey *)op;
    while (self->first != NULL) {
        md_entry_drop(self->first); /* destructors may change the list: always from its start */
    }
    Py_CLEAR(self->backend);
    Py_CLEAR(self->dynamic);
    Py_CLEAR(self->options);
    Py_CLEAR(self->dict);
    return 0;
}

static void key_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    if (((MdKey *)op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    key_clear(op);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *key_entries(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *list = PyList_New(0);
    for (MdEntry *entry = ((MdKey *)op)->first; list != NULL && entry != NULL; entry = entry->key_next) {
        if (PyList_Append(list, (PyObject *)entry) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *key_repr(PyObject *op)
{
    MdKey *self = (MdKey *)op;
    return PyUnicode_FromFormat("CompileKey(%R, %R, %R)", self->backend, self->dynamic, self->options);
}

static PyMemberDef key_members[] = {
    {"backend", T_OBJECT, offsetof(MdKey, backend), READONLY, NULL},
    {"dynamic", T_OBJECT, offsetof(MdKey, dynamic), READONLY, NULL},
    {"options", T_OBJECT, offsetof(MdKey, options), READONLY, NULL},
    {0},
};

static PyGetSetDef key_getset[] = {
    {"entries", key_entries, NULL, "its entries, oldest first", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

PyTypeObject MdKey_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.CompileKey",
    .tp_basicsize = sizeof(MdKey),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "CompileKey(backend, dynamic=None, options=None)\n\n"
              "Owns the cache entries made for it; compared by identity, so equal keys must be interned by the caller.",
    .tp_new = key_new,
    .tp_dealloc = key_dealloc,
    .tp_traverse = key_traverse,
    .tp_clear = key_clear,
    .tp_repr = key_repr,
    .tp_members = key_members,
    .tp_getset = key_getset,
    .tp_dictoffset = offsetof(MdKey, dict),
    .tp_weaklistoffset = offsetof(MdKey, weakrefs),
};
