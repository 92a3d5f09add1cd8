// Guard helpers on plain Python objects: identity, static attributes, lengths. No torch header is needed here.
// Their meaning is that of minidynamo/static_access.py and minidynamo/guards/py_leaves.py.
#pragma once

#include <Python.h>

#include <cstdint>

namespace {

// ------------------------------------------------------------------------------------------ small conversions

static_assert(sizeof(void*) == sizeof(uint64_t), "ids and dispatch key sets are 64-bit words");

// An integer literal against a 64-bit word. (The ssize_t and size_t readers of an int are its cheapest ones.)
bool is_word(PyObject* literal, uint64_t word) {
  const size_t recorded = PyLong_AsSize_t(literal);
  if (recorded == static_cast<size_t>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return recorded == word;
}

// An id literal against an object. Ids are addresses.
bool is_id(PyObject* id, const void* object) {
  return is_word(id, reinterpret_cast<uintptr_t>(object));
}

PyObject* truth(bool value) {
  return Py_NewRef(value ? Py_True : Py_False);
}

bool same_text(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0);
}

bool arity(const char* name, Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments (%zd given)", name, wanted, given);
  return false;
}

// ------------------------------------------------------------------------------------------- objects and types

PyObject* check_type_id(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return arity("check_type_id", count, 2) ? truth(is_id(args[1], Py_TYPE(args[0]))) : nullptr;
}

PyObject* check_obj_id(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return arity("check_obj_id", count, 2) ? truth(is_id(args[1], args[0])) : nullptr;
}

PyObject* check_code_id(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("check_code_id", count, 2)) return nullptr;
  return truth(PyFunction_Check(args[0]) && is_id(args[1], PyFunction_GET_CODE(args[0])));
}

// ------------------------------------------------------------------------------------------- static attributes

PyObject* dict_string = nullptr;            // "__dict__"
PyObject* torch_function_string = nullptr;  // "__torch_function__"

bool is_slot(PyObject* descriptor) {
  return Py_IS_TYPE(descriptor, &PyMemberDescr_Type) || Py_IS_TYPE(descriptor, &PyGetSetDescr_Type);
}

PyObject* read_slot(PyObject* descriptor, PyObject* obj) {
  PyTypeObject* type = Py_TYPE(obj);
  if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) && PyDescr_NAME(descriptor) != dict_string) {
    PyObject* hook = _PyType_Lookup(type, torch_function_string);
    if (hook != nullptr && hook != Py_None) {
      PyErr_SetString(PyExc_AttributeError, "a getter that dispatches to __torch_function__ is no static attribute");
      return nullptr;
    }
  }
  return Py_TYPE(descriptor)->tp_descr_get(descriptor, obj, reinterpret_cast<PyObject*>(type));
}

// The entry of the real instance dictionary; nullptr without an exception when there is none.
PyObject* instance_item(PyObject* obj, PyObject* name) {
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(obj), dict_string);
  if (descriptor == nullptr || !is_slot(descriptor)) return nullptr;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(obj));
  PyObject* dict = Py_TYPE(descriptor)->tp_descr_get(descriptor, obj, type);
  if (dict == nullptr) return nullptr;
  PyObject* value = PyDict_CheckExact(dict) ? Py_XNewRef(PyDict_GetItemWithError(dict, name)) : nullptr;
  Py_DECREF(dict);
  return value;
}

PyObject* find_static(PyObject* obj, PyObject* name) {
  PyObject* found = _PyType_Lookup(Py_TYPE(obj), name);
  if (found != nullptr && is_slot(found)) return read_slot(found, obj);
  const bool binds = found != nullptr && Py_TYPE(found)->tp_descr_get != nullptr;
  const bool data = found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr;
  if (data) return Py_NewRef(found);
  if (PyType_Check(obj)) {
    PyObject* value = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(obj), name);
    if (value != nullptr) return Py_NewRef(value);
  } else if (!binds) {
    return PyObject_GenericGetAttr(obj, name);  // nothing to bind: the instance dictionary, then the class value
  } else {
    PyObject* value = instance_item(obj, name);
    if (value != nullptr || PyErr_Occurred()) return value;
  }
  if (found != nullptr) return Py_NewRef(found);
  return PyErr_Format(PyExc_AttributeError, "type object has no attribute %R", name);
}

bool attribute_name(const char* helper, PyObject* const* args, Py_ssize_t count) {
  if (!arity(helper, count, 2)) return false;
  if (PyUnicode_CheckExact(args[1])) return true;
  PyErr_SetString(PyExc_TypeError, "an attribute name is a str");
  return false;
}

PyObject* static_attr(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return attribute_name("static_attr", args, count) ? find_static(args[0], args[1]) : nullptr;
}

PyObject* has_static_attr(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!attribute_name("has_static_attr", args, count)) return nullptr;
  PyObject* value = find_static(args[0], args[1]);
  if (value == nullptr && !PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  PyErr_Clear();
  const bool found = value != nullptr;
  Py_XDECREF(value);
  return truth(found);
}

// ---------------------------------------------------------------------------------------------------- lengths

lenfunc deque_length = nullptr;
PyTypeObject* deque_type = nullptr;

bool find_deque() {
  PyObject* collections = PyImport_ImportModule("collections");
  if (collections == nullptr) return false;
  deque_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(collections, "deque"));
  Py_DECREF(collections);
  if (deque_type == nullptr) return false;
  deque_length = deque_type->tp_as_sequence->sq_length;
  return true;
}

PyObject* static_len(PyObject*, PyObject* obj) {
  Py_ssize_t length = -1;
  if (PyList_Check(obj)) length = PyList_GET_SIZE(obj);
  else if (PyTuple_Check(obj)) length = PyTuple_GET_SIZE(obj);
  else if (PyDict_Check(obj)) length = PyDict_Size(obj);
  else if (PyUnicode_Check(obj)) length = PyUnicode_GetLength(obj);
  else if (PyBytes_Check(obj)) length = PyBytes_GET_SIZE(obj);
  else if (PyAnySet_Check(obj)) length = PySet_Size(obj);
  else if (PyByteArray_Check(obj)) length = PyByteArray_Size(obj);
  else if (PyRange_Check(obj)) length = PyObject_Size(obj);
  else if (PyObject_TypeCheck(obj, deque_type)) length = deque_length(obj);
  else PyErr_SetString(PyExc_TypeError, "no builtin length");
  return length < 0 ? nullptr : PyLong_FromSsize_t(length);
}

bool prepare_object_guards() {
  dict_string = PyUnicode_InternFromString("__dict__");
  torch_function_string = PyUnicode_InternFromString("__torch_function__");
  return dict_string != nullptr && torch_function_string != nullptr && find_deque();
}

}  // namespace
