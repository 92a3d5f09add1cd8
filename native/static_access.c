/* What minidynamo.static_access asks most: names in the classes of an object, and its own dictionary. */
#include "entry.h"
#include "static_access.h"

static int one_type(PyObject *object, const char *function)
{
    if (!PyType_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s() takes a class, not %.100s", function, Py_TYPE(object)->tp_name);
        return -1;
    }
    return 0;
}

PyObject *md_py_type_lookup(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count < 2 || count > 3) {
        PyErr_Format(PyExc_TypeError, "type_lookup() takes 2 or 3 arguments, not %zd", count);
        return NULL;
    }
    if (one_type(args[0], "type_lookup") < 0) {
        return NULL;
    }
    if (!PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "type_lookup() takes a name as its second argument");
        return NULL;
    }
    PyObject *found = _PyType_Lookup((PyTypeObject *)args[0], args[1]);
    if (found == NULL && PyErr_Occurred()) {
        return NULL;
    }
    return Py_NewRef(found != NULL ? found : count == 3 ? args[2] : Py_None);
}

PyObject *md_py_is_subtype(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "is_subtype() takes 2 arguments, not %zd", count);
        return NULL;
    }
    if (one_type(args[0], "is_subtype") < 0 || one_type(args[1], "is_subtype") < 0) {
        return NULL;
    }
    return PyBool_FromLong(PyType_IsSubtype((PyTypeObject *)args[0], (PyTypeObject *)args[1]));
}

PyObject *md_py_instance_dict(PyObject *Py_UNUSED(module), PyObject *object)
{
    static PyObject *name; /* "__dict__" */
    if (name == NULL && (name = PyUnicode_InternFromString("__dict__")) == NULL) {
        return NULL;
    }
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(object), name);
    if (descriptor == NULL
        || (!Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) && !Py_IS_TYPE(descriptor, &PyMemberDescr_Type))) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NONE;
    }
    PyObject *dict = Py_TYPE(descriptor)->tp_descr_get(descriptor, object, (PyObject *)Py_TYPE(object));
    if (dict == NULL || PyDict_CheckExact(dict)) {
        return dict;
    }
    Py_DECREF(dict);
    Py_RETURN_NONE;
}
