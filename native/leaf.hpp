// A TENSOR_MATCH row that has been read once: what a check compares a tensor with.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tensor_facts.hpp"
#include "tensor_leaf.h"

namespace {

constexpr Py_ssize_t kSpec = 7;  // type id, keyset, dtype, device, requires_grad, sizes, strides

constexpr int64_t kAnyDim = std::numeric_limits<int64_t>::min();

constexpr size_t kInlineDims = 5;

// Of up to two dimensions in one cache line.
struct alignas(64) Leaf {
  const void* type = nullptr;
  uint64_t keyset = 0;
  uint32_t rank = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  bool requires_grad : 1 = false;
  bool any : 1 = false;         // some dimension is free
  bool torchs_own : 1 = false;  // the type is known to be one of tensors
  c10::Device device{c10::DeviceType::CPU};
  std::array<int64_t, 2 * kInlineDims> few{};  // sizes, then strides, where there are not more dimensions
  std::vector<int64_t> many;                   // else
  const int64_t* dims() const { return rank <= kInlineDims ? few.data() : many.data(); }
};

bool read_dims(PyObject* tuple, std::vector<int64_t>& out, bool& any) {
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "sizes and strides of a tensor spec are tuples");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    const int64_t dim = item == Py_None ? kAnyDim : PyLong_AsLongLong(item);
    if (dim == -1 && PyErr_Occurred()) return false;
    any |= dim == kAnyDim;
    out.push_back(dim);
  }
  return true;
}

bool read_layout(Leaf& leaf, PyObject* sizes, PyObject* strides) {
  bool any = false;
  if (!read_dims(sizes, leaf.many, any)) return false;
  leaf.rank = static_cast<uint32_t>(leaf.many.size());
  if (!read_dims(strides, leaf.many, any)) return false;
  leaf.any = any;
  if (leaf.many.size() != 2 * size_t{leaf.rank}) {
    PyErr_SetString(PyExc_ValueError, "a tensor spec has as many strides as sizes");
    return false;
  }
  if (leaf.rank > kInlineDims) return true;
  std::copy(leaf.many.begin(), leaf.many.end(), leaf.few.begin());
  std::vector<int64_t>().swap(leaf.many);
  return true;
}

PyTypeObject* parameter_type = nullptr;

// Types that live as long as the process, so that an object of one is a tensor without looking at its bases.
bool is_torchs_own(const void* type) {
  if (parameter_type == nullptr) {
    PyObject* module = PyImport_ImportModule("torch.nn.parameter");
    if (module != nullptr)
      parameter_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, "Parameter"));
    Py_XDECREF(module);
    PyErr_Clear();  // then there are no parameters
  }
  return type == THPVariableClass || (type == parameter_type && type != nullptr);
}

bool read_dtype(PyObject* name, c10::ScalarType& out) {
  for (size_t i = 0; i < kDtypes; ++i) {
    if (dtype_names[i] != nullptr && same_text(dtype_names[i], name)) {
      out = static_cast<c10::ScalarType>(i);
      return true;
    }
  }
  PyErr_Format(PyExc_ValueError, "a tensor spec names no dtype: %R", name);
  return false;
}

bool read_device(PyObject* name, c10::Device& out) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return false;
  try {
    out = c10::Device(std::string(text));
  } catch (const std::exception&) {
    PyErr_Format(PyExc_ValueError, "a tensor spec names no device: %R", name);
    return false;
  }
  return true;
}

void* leaf_make(PyObject* spec) {
  if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) != kSpec) {
    PyErr_SetString(PyExc_TypeError, "a tensor spec is a tuple of seven literals");
    return nullptr;
  }
  PyObject* const* part = &PyTuple_GET_ITEM(spec, 0);
  auto leaf = std::make_unique<Leaf>();
  leaf->type = PyLong_AsVoidPtr(part[0]);
  leaf->keyset = PyLong_AsUnsignedLongLong(part[1]);
  if (PyErr_Occurred()) return nullptr;
  leaf->requires_grad = part[4] == Py_True;
  const bool read =
      read_dtype(part[2], leaf->dtype) && read_device(part[3], leaf->device) && read_layout(*leaf, part[5], part[6]);
  leaf->torchs_own = is_torchs_own(leaf->type);
  return read ? leaf.release() : nullptr;
}

bool dims_match(const int64_t* expected, c10::IntArrayRef actual, bool any) {
  for (size_t i = 0; i < actual.size(); ++i)
    if (expected[i] != actual[i] && !(any && expected[i] == kAnyDim)) return false;
  return true;
}

int leaf_check(const void* pointer, const TensorTls* tls, PyObject* obj) {
  const Leaf& leaf = *static_cast<const Leaf*>(pointer);
  if (Py_TYPE(obj) != leaf.type) return 0;
  const c10::TensorImpl* impl = nullptr;
  if (leaf.torchs_own) {
    const at::Tensor& tensor = THPVariable_Unpack(obj);
    impl = tensor.defined() ? tensor.unsafeGetTensorImpl() : nullptr;
  } else {
    impl = impl_of(obj);
  }
  if (impl == nullptr || is_unspecific(*impl)) return 0;
  const c10::DispatchKeySet included(c10::DispatchKeySet::RAW, tls->included);
  const c10::DispatchKeySet excluded(c10::DispatchKeySet::RAW, tls->excluded);
  const uint64_t keyset = ((impl->key_set() | included) - excluded).raw_repr();
  const c10::IntArrayRef sizes = impl->sizes();
  return keyset == leaf.keyset && impl->dtype().toScalarType() == leaf.dtype && impl->device() == leaf.device &&
         (tls->grad_mode != 0 && requires_grad(*impl)) == leaf.requires_grad && sizes.size() == leaf.rank &&
         dims_match(leaf.dims(), sizes, leaf.any) && dims_match(leaf.dims() + leaf.rank, impl->strides(), leaf.any);
}

void leaf_free(void* leaf) {
  delete static_cast<Leaf*>(leaf);
}

}  // namespace
