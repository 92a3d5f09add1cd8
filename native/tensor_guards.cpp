// minidynamo._tensor_guards: the guard helpers that need torch's headers, or that are worth having in C.
// Their meaning is that of minidynamo/guards/py_leaves.py and static_access.py; a property test compares the two.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "object_guards.hpp"
#include "tensor_leaf.h"
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

constexpr Py_ssize_t kSpec = 7;  // type id, keyset, dtype, device, requires_grad, sizes, strides

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

// Checks read memory that an operator has pushed out of the caches: that of so many checks ahead is fetched.
constexpr size_t kAhead = 4;
constexpr size_t kLine = 64;

void leaf_foresee(TensorCheck* check) {
  check->soon = impl_of(check->object);
}

int leaf_check_many(const TensorCheck* checks, Py_ssize_t count, const TensorTls* tls) {
  const size_t last = static_cast<size_t>(count);
  for (size_t i = 0; i < last; ++i) {
    const TensorCheck& later = checks[std::min(i + kAhead, last - 1)];
    __builtin_prefetch(later.object);
    __builtin_prefetch(later.leaf);
    for (size_t at = 0; at < sizeof(c10::TensorImpl); at += kLine)
      __builtin_prefetch(static_cast<const char*>(later.soon) + at);
    if (leaf_check(checks[i].leaf, tls, checks[i].object) == 0) return 0;
  }
  return 1;
}

uint64_t api_signature(PyObject* obj) {
  const c10::TensorImpl* impl = impl_of(obj);
  if (impl == nullptr || is_unspecific(*impl)) return 0;
  uint64_t hash = 1 + static_cast<uint64_t>(impl->dtype().toScalarType());
  hash = hash * 31 + static_cast<uint64_t>(impl->device().type());
  for (const int64_t size : impl->sizes()) hash = (hash ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15u + 1;
  return hash | 1;
}

void leaf_free(void* leaf) {
  delete static_cast<Leaf*>(leaf);
}

TensorLeafApi leaf_api{TENSOR_LEAF_VERSION,    leaf_make,    leaf_check,   leaf_free, leaf_check_many, leaf_foresee,
                       api_check_global_state, api_read_tls, api_signature};

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
