/* Keyed: base of Python classes whose instances are equal when some of their attributes are.
 *
 * Sources, guards and rows are hashed and compared tens of thousands of times in a compilation; the work is done once
 * per object and without a Python call. */
#include "entry.h"

typedef struct {
    PyObject_HEAD
    Py_hash_t hash; /* 0: not worked out yet */
    PyObject *key;  /* the values of the attributes named by `_compared`, or NULL */
    PyObject *memo; /* whatever the subclass works out once, or NULL */
} MdKeyed;

/* The attributes that are compared, as a tuple. Borrowed; NULL with an exception. */
static PyObject *keyed_key(MdKeyed *self)
{
    if (self->key != NULL) {
        return self->key;
    }
    PyObject *names = PyObject_GetAttrString((PyObject *)self, "_compared");
    if (names == NULL || !PyTuple_Check(names)) {
        if (names != NULL) {
            PyErr_SetString(PyExc_TypeError, "_compared must be a tuple of attribute names");
        }
        Py_XDECREF(names);
        return NULL;
    }
    PyObject *key = PyTuple_New(PyTuple_GET_SIZE(names));
    for (Py_ssize_t i = 0; key != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *value = PyObject_GetAttr((PyObject *)self, PyTuple_GET_ITEM(names, i));
        if (value == NULL) {
            Py_CLEAR(key);
        }
        else {
            PyTuple_SET_ITEM(key, i, value);
        }
    }
    Py_DECREF(names);
    if (self->key == NULL) {
        self->key = key;
    }
    else { /* reading an attribute got here first */
        Py_XDECREF(key);
    }
    return self->key;
}

static Py_hash_t keyed_hash(PyObject *op)
{
    MdKeyed *self = (MdKeyed *)op;
    if (self->hash == 0) {
        PyObject *key = keyed_key(self);
        Py_hash_t hash = key != NULL ? PyObject_Hash(key) : -1;
        if (hash == -1) {
            return -1;
        }
        hash ^= (Py_hash_t)((size_t)Py_TYPE(op) >> 4);
        self->hash = hash == 0 || hash == -1 ? 1 : hash;
    }
    return self->hash;
}

static PyObject *keyed_richcompare(PyObject *left, PyObject *right, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(left) != Py_TYPE(right)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    int same = left == right;
    if (!same) {
        Py_hash_t first = keyed_hash(left), second = first != -1 ? keyed_hash(right) : -1;
        if (second == -1) {
            return NULL;
        }
        if (first == second) {
            PyObject *own = keyed_key((MdKeyed *)left), *other = own != NULL ? keyed_key((MdKeyed *)right) : NULL;
            same = other != NULL ? PyObject_RichCompareBool(own, other, Py_EQ) : -1;
            if (same < 0) {
                return NULL;
            }
        }
    }
    return PyBool_FromLong(same == (op == Py_EQ));
}

static int keyed_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(((MdKeyed *)op)->key);
    Py_VISIT(((MdKeyed *)op)->memo);
    return 0;
}

static int keyed_clear(PyObject *op)
{
    Py_CLEAR(((MdKeyed *)op)->key);
    Py_CLEAR(((MdKeyed *)op)->memo);
    return 0;
}

static void keyed_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    (void)keyed_clear(op);
    Py_TYPE(op)->tp_free(op);
}

static PyMemberDef keyed_members[] = {
    {"_memo", T_OBJECT, offsetof(MdKeyed, memo), 0, "whatever the subclass works out once; None before"},
    {0},
};

PyTypeObject MdKeyed_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.Keyed",
    .tp_basicsize = sizeof(MdKeyed),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Keyed(): two instances of one class are equal when the attributes that `_compared` names are.\n\n"
              "Those attributes must not change: they are looked at once.",
    .tp_new = PyType_GenericNew,
    .tp_dealloc = keyed_dealloc,
    .tp_hash = keyed_hash,
    .tp_richcompare = keyed_richcompare,
    .tp_traverse = keyed_traverse,
    .tp_clear = keyed_clear,
    .tp_members = keyed_members,
};
