// What a tensor is, to guards: its TensorImpl without running Python code, its dtype and device by name.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>

#include <array>

#include "object_guards.hpp"
#include "torch_state.hpp"

namespace {

// --------------------------------------------------------------------------------- names of dtypes and devices

constexpr size_t kDtypes = static_cast<size_t>(c10::ScalarType::NumOptions);
std::array<PyObject*, kDtypes> dtype_names{};  // interned; nullptr where torch has no Python dtype

bool fill_dtype_names() {
  for (size_t i = 0; i < kDtypes; ++i) {
    THPDtype* dtype = nullptr;
    try {
      dtype = torch::getTHPDtype(static_cast<c10::ScalarType>(i));
    } catch (const std::exception&) {
      continue;  // a scalar type without a Python dtype: no tensor a guard can describe has it
    }
    dtype_names[i] = PyUnicode_InternFromString(dtype->name);
    if (dtype_names[i] == nullptr) return false;
  }
  return true;
}

PyObject* dtype_name(c10::ScalarType type) {
  return dtype_names[static_cast<size_t>(type)];
}

constexpr int kCachedIndexes = 16;
using DeviceRow = std::array<PyObject*, kCachedIndexes + 1>;
std::array<DeviceRow, c10::COMPILE_TIME_MAX_DEVICE_TYPES> device_names{};

// The text of a device as str(torch.device) gives it, borrowed from the cache; nullptr when it is not cached:
// high indexes, and PrivateUse1, which may still be renamed.
PyObject* cached_device_name(c10::Device device) {
  const int slot = device.index() + 1;
  if (slot > kCachedIndexes || device.type() == c10::DeviceType::PrivateUse1) return nullptr;
  PyObject*& name = device_names[static_cast<size_t>(device.type())][static_cast<size_t>(slot)];
  if (name == nullptr) name = PyUnicode_InternFromString(device.str().c_str());
  return name;
}

PyObject* device_name(c10::Device device) {
  PyObject* cached = cached_device_name(device);
  if (cached != nullptr) return Py_NewRef(cached);
  PyErr_Clear();
  return PyUnicode_FromString(device.str().c_str());
}

bool is_device(c10::Device device, PyObject* text) {
  PyObject* cached = cached_device_name(device);
  if (cached != nullptr) return same_text(cached, text);
  PyErr_Clear();
  return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, device.str().c_str()) == 0;
}

// ------------------------------------------------------------------------------------------- what a tensor is

// The policy that says whether sizes and strides are plain arrays is protected; naming it through a derived class is
// the sanctioned way to it.
struct Policy : c10::TensorImpl {
  static bool custom(const c10::TensorImpl& impl) {
    return (impl.*(&Policy::matches_policy))(SizesStridesPolicy::CustomStrides);
  }
};

// The TensorImpl of a tensor object, nullptr for anything else. No Python code runs.
c10::TensorImpl* impl_of(PyObject* obj) {
  if (!PyObject_TypeCheck(obj, reinterpret_cast<PyTypeObject*>(THPVariableClass))) return nullptr;
  const at::Tensor& tensor = THPVariable_Unpack(obj);
  return tensor.defined() ? tensor.unsafeGetTensorImpl() : nullptr;
}

constexpr c10::DispatchKeySet kDispatchSubclass(c10::DispatchKey::Python);
constexpr c10::DispatchKeySet kFunctorchWrapper({c10::DispatchKey::FuncTorchBatched,
                                                 c10::DispatchKey::FuncTorchGradWrapper,
                                                 c10::DispatchKey::Functionalize});

constexpr c10::DispatchKeySet kOpaque = kDispatchSubclass | kFunctorchWrapper;

// Symbolic sizes imply the custom policy.
bool is_opaque(const c10::TensorImpl& impl) {
  return impl.key_set().has_any(kOpaque) || Policy::custom(impl);
}

// Whether a spec cannot say what the tensor is. A wrapper of other tensors has metadata of its own, and no memory.
bool is_unspecific(const c10::TensorImpl& impl) {
  return impl.key_set().has_any(kFunctorchWrapper) || Policy::custom(impl);
}

// Why the metadata of a tensor cannot be stated, nullptr when it can.
const char* indescribable(const c10::TensorImpl& impl) {
  if (!is_opaque(impl)) return nullptr;
  const c10::DispatchKeySet keys = impl.key_set();
  if (keys.has_any(kDispatchSubclass)) return "a tensor subclass with __torch_dispatch__";
  if (keys.has_any(kFunctorchWrapper)) return "a functorch wrapper";
  if (impl.has_symbolic_sizes_strides()) return "symbolic sizes";
  return "a nested tensor or a layout which has no strides";
}

uint64_t effective_keyset(const c10::TensorImpl& impl) {
  const c10::impl::LocalDispatchKeySet local = c10::impl::tls_local_dispatch_key_set();
  return ((impl.key_set() | local.included_) - local.excluded_).raw_repr();
}

// requires_grad as tracing sees it; grad mode is asked only where it matters.
bool records_grad(const c10::TensorImpl& impl) {
  return requires_grad(impl) && torch_state().autograd->get_grad_mode();
}

}  // namespace
