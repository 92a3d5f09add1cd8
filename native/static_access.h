/* Functions of minidynamo._C for minidynamo.static_access. */
#ifndef MD_STATIC_ACCESS_H
#define MD_STATIC_ACCESS_H

#include <Python.h>

PyObject *md_py_type_lookup(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *md_py_is_subtype(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *md_py_instance_dict(PyObject *module, PyObject *object);

#endif
