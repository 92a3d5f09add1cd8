// minidynamo._tensor_guards: the guard helpers that need torch's headers, or that are worth having in C.
// Their meaning is that of minidynamo/guards/py_leaves.py and static_access.py; a property test compares the two.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "known_tensors.hpp"
#include "leaf.hpp"
#include "object_guards.hpp"
#include "tensor_facts.hpp"
#include "tensor_leaf.h"
#include "torch_state.hpp"

namespace {

// -------------------------------------------------------------------------------------------- the tensor check

bool dims_equal(PyObject* expected, c10::IntArrayRef actual) {
  if (!PyTuple_Check(expected) || PyTuple_GET_SIZE(expected) != static_cast<Py_ssize_t>(actual.size())) return false;
  for (size_t i = 0; i < actual.size(); ++i) {
    PyObject* want = PyTuple_GET_ITEM(expected, static_cast<Py_ssize_t>(i));
    if (want == Py_None) continue;
    const Py_ssize_t value = PyLong_AsSsize_t(want);
    if (value != actual[i]) return false;
    if (value == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

bool matches(PyObject* obj, PyObject* const* spec) {
  if (!is_id(spec[0], Py_TYPE(obj))) return false;
  const c10::TensorImpl* impl = impl_of(obj);
  if (impl == nullptr || is_unspecific(*impl)) return false;
  if (!is_word(spec[1], effective_keyset(*impl))) return false;
  PyObject* dtype = dtype_name(impl->dtype().toScalarType());
  if (dtype == nullptr || !same_text(dtype, spec[2])) return false;
  if (!is_device(impl->device(), spec[3])) return false;
  if (records_grad(*impl) != (spec[4] == Py_True)) return false;
  return dims_equal(spec[5], impl->sizes()) && dims_equal(spec[6], impl->strides());
}

PyObject* check_tensors(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("check_tensors", count, kSpec + 1)) return nullptr;
  if (matches(args[0], args + 1)) Py_RETURN_TRUE;
  if (PyErr_Occurred()) return nullptr;  // a literal that is no integer
  Py_RETURN_FALSE;
}

PyObject* dims_tuple(c10::IntArrayRef dims) {
  PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(dims.size()));
  for (size_t i = 0; out != nullptr && i < dims.size(); ++i) {
    PyObject* value = PyLong_FromLongLong(dims[i]);
    if (value == nullptr) Py_CLEAR(out);
    else PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(i), value);
  }
  return out;
}

PyObject* raise_indescribable(const char* why) {
  return PyErr_Format(PyExc_ValueError, "the tensor is %s; guard its type and its parts instead", why);
}

PyObject* tensor_spec(PyObject*, PyObject* obj) {
  const c10::TensorImpl* impl = impl_of(obj);
  if (impl == nullptr)
    return PyErr_Format(PyExc_TypeError, "tensor_spec needs a tensor, not %s", Py_TYPE(obj)->tp_name);
  if (is_unspecific(*impl)) return raise_indescribable(indescribable(*impl));
  PyObject* dtype = dtype_name(impl->dtype().toScalarType());
  if (dtype == nullptr) return raise_indescribable("of a dtype without a Python name");
  return Py_BuildValue("(NKONONN)", PyLong_FromVoidPtr(Py_TYPE(obj)),
                       static_cast<unsigned long long>(effective_keyset(*impl)), dtype, device_name(impl->device()),
                       records_grad(*impl) ? Py_True : Py_False, dims_tuple(impl->sizes()),
                       dims_tuple(impl->strides()));
}

// ------------------------------------------------------------------------------------------- layout as numbers

const c10::TensorImpl* describable(PyObject* obj) {
  const c10::TensorImpl* impl = impl_of(obj);
  if (impl == nullptr) PyErr_Format(PyExc_TypeError, "%s is no tensor", Py_TYPE(obj)->tp_name);
  else if (is_opaque(*impl)) PyErr_Format(PyExc_TypeError, "the tensor is %s", indescribable(*impl));
  else return impl;
  return nullptr;
}

PyObject* dim_at(c10::IntArrayRef dims, PyObject* index) {
  Py_ssize_t i = PyLong_AsSsize_t(index);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  const auto count = static_cast<Py_ssize_t>(dims.size());
  if (i < 0) i += count;
  if (i >= 0 && i < count) return PyLong_FromLongLong(dims[static_cast<size_t>(i)]);
  return PyErr_Format(PyExc_IndexError, "the tensor has %zd dimensions", count);
}

PyObject* tensor_size(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("tensor_size", count, 2)) return nullptr;
  const c10::TensorImpl* impl = describable(args[0]);
  return impl == nullptr ? nullptr : dim_at(impl->sizes(), args[1]);
}

PyObject* tensor_stride(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("tensor_stride", count, 2)) return nullptr;
  const c10::TensorImpl* impl = describable(args[0]);
  return impl == nullptr ? nullptr : dim_at(impl->strides(), args[1]);
}

PyObject* tensor_storage_offset(PyObject*, PyObject* obj) {
  const c10::TensorImpl* impl = describable(obj);
  return impl == nullptr ? nullptr : PyLong_FromLongLong(impl->storage_offset());
}

// Where a tensor begins.
struct Place {
  const c10::StorageImpl* storage;
  int64_t start;  // in bytes
};

// The first tensors of different storages have different storages.
bool all_differ(std::vector<Place>& firsts) {
  const auto before = [](const Place& a, const Place& b) { return std::less<>()(a.storage, b.storage); };
  const auto same = [](const Place& a, const Place& b) { return a.storage == b.storage; };
  std::sort(firsts.begin(), firsts.end(), before);
  return std::adjacent_find(firsts.begin(), firsts.end(), same) == firsts.end();
}

PyObject* check_storages(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("check_storages", count, 2)) return nullptr;
  if (!PyTuple_Check(args[0]) || !PyTuple_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "check_storages takes a tuple of tensors and a tuple of pairs");
    return nullptr;
  }
  if (PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1])) return truth(false);
  std::vector<Place> firsts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
    const c10::TensorImpl* impl = describable(PyTuple_GET_ITEM(args[0], i));
    if (impl == nullptr) return nullptr;
    if (!impl->has_storage()) return truth(false);
    const auto size = static_cast<int64_t>(impl->itemsize());
    const Place here{impl->storage().unsafeGetStorageImpl(), impl->storage_offset() * size};
    Py_ssize_t number = 0;
    long long distance = 0;
    PyObject* pair = PyTuple_GET_ITEM(args[1], i);
    if (!PyTuple_Check(pair)) {
      PyErr_Format(PyExc_TypeError, "a storage layout has a pair for each tensor, not %R", pair);
      return nullptr;
    }
    if (!PyArg_ParseTuple(pair, "nL", &number, &distance)) return nullptr;
    if (number < 0 || static_cast<size_t>(number) > firsts.size()) return truth(false);
    if (static_cast<size_t>(number) == firsts.size()) firsts.push_back(here);
    const Place& first = firsts[static_cast<size_t>(number)];
    if (first.storage != here.storage || here.start - first.start != distance) return truth(false);
  }
  return truth(all_differ(firsts));
}

// ------------------------------------------------------------------------------------------------ global state

PyObject* default_dtype_name() {
  return dtype_name(c10::get_default_dtype_as_scalartype());
}

int api_check_global_state(const TensorTls*, uint64_t bits, PyObject* default_dtype) {
  return state_bits(torch_state()) == bits && same_text(default_dtype_name(), default_dtype);
}

void api_read_tls(TensorTls* tls) {
  const TorchState& state = torch_state();
  *tls = {state.included(), state.excluded(), state.autograd->get_grad_mode()};
}

PyObject* check_global_state(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("check_global_state", count, 2)) return nullptr;
  return truth(is_word(args[0], state_bits(torch_state())) && same_text(default_dtype_name(), args[1]));
}

PyObject* global_state(PyObject*, PyObject*) {
  return Py_BuildValue("(KO)", static_cast<unsigned long long>(state_bits(torch_state())), default_dtype_name());
}

// ------------------------------------------------------------------------------------- the leaf for the C core

uint64_t api_signature(PyObject* obj) {
  const c10::TensorImpl* impl = impl_of(obj);
  if (impl == nullptr || is_unspecific(*impl)) return 0;
  uint64_t hash = 1 + static_cast<uint64_t>(impl->dtype().toScalarType());
  hash = hash * 31 + static_cast<uint64_t>(impl->device().type());
  for (const int64_t size : impl->sizes()) hash = (hash ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15u + 1;
  return hash | 1;
}

TensorLeafApi leaf_api{TENSOR_LEAF_VERSION, leaf_make,    leaf_check, leaf_free,
                       known_make,          known_check,  known_free, api_check_global_state,
                       api_read_tls,        api_signature};

// leaf_check(spec, obj): one check through the C interface.
PyObject* check_leaf(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!arity("leaf_check", count, 2)) return nullptr;
  void* leaf = leaf_make(args[0]);
  if (leaf == nullptr) return nullptr;
  TensorTls tls;
  api_read_tls(&tls);
  const int equal = leaf_check(leaf, &tls, args[1]);
  leaf_free(leaf);
  return truth(equal != 0);
}

// ------------------------------------------------------------------------------------------------------ module

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

PyCFunction fast(Fast function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

std::array<PyMethodDef, 16> methods{{
    {"check_type_id", fast(check_type_id), METH_FASTCALL, "check_type_id(obj, id): type(obj) is that type"},
    {"check_obj_id", fast(check_obj_id), METH_FASTCALL, "check_obj_id(obj, id): obj is that object"},
    {"check_code_id", fast(check_code_id), METH_FASTCALL, "check_code_id(fn, id): a function with that code object"},
    {"check_tensors", fast(check_tensors), METH_FASTCALL, "check_tensors(obj, *spec): exactly this metadata"},
    {"tensor_spec", tensor_spec, METH_O, "tensor_spec(tensor): the literals of check_tensors"},
    {"check_global_state", fast(check_global_state), METH_FASTCALL, "check_global_state(bits, default dtype)"},
    {"global_state", global_state, METH_NOARGS, "global_state(): (bits, default dtype)"},
    {"leaf_check", fast(check_leaf), METH_FASTCALL, "leaf_check(spec, obj): check_tensors through the C interface"},
    {"static_attr", fast(static_attr), METH_FASTCALL, "static_attr(obj, name): the attribute, no user code run"},
    {"has_static_attr", fast(has_static_attr), METH_FASTCALL, "has_static_attr(obj, name): whether there is one"},
    {"static_len", static_len, METH_O, "static_len(obj): elements of a builtin container, no override run"},
    {"tensor_size", fast(tensor_size), METH_FASTCALL, "tensor_size(tensor, dim)"},
    {"tensor_stride", fast(tensor_stride), METH_FASTCALL, "tensor_stride(tensor, dim): in elements"},
    {"tensor_storage_offset", tensor_storage_offset, METH_O, "tensor_storage_offset(tensor): in elements"},
    {"check_storages", fast(check_storages), METH_FASTCALL, "check_storages(tensors, layout): they share storages so"},
    {nullptr, nullptr, 0, nullptr},
}};

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "_tensor_guards",
                       "Guard helpers in C++.",
                       -1,
                       methods.data(),
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__tensor_guards() {
  if (!prepare_object_guards() || !fill_dtype_names()) return nullptr;
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  PyObject* capsule = PyCapsule_New(&leaf_api, TENSOR_LEAF_CAPSULE, nullptr);
  // The headers of another torch describe other objects: `leaves` compares before it uses anything from here.
  if (capsule == nullptr || PyModule_AddObjectRef(module, "_leaf", capsule) < 0 ||
      PyModule_AddStringConstant(module, "torch_version", MINIDYNAMO_TORCH_VERSION) < 0)
    Py_CLEAR(module);
  Py_XDECREF(capsule);
  return module;
}
