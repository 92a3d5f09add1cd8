#include "probes.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_numbers.h>

#include <functional>
#include <map>
#include <string>

#include "fallback.h"
#include "finish.h"
#include "openreg.h"
#include "trace.h"

namespace c10::openreg {
namespace {

using Hooks = at::PrivateUse1HooksInterface;

// Every hook that takes a number (an index, or an address) and gives one, or none.
const std::map<std::string, std::function<PyObject*(const Hooks&, int64_t)>>& callable_hooks() {
  static const auto number = [](int64_t value) { return PyLong_FromLongLong(value); };
  static const std::map<std::string, std::function<PyObject*(const Hooks&, int64_t)>> table = {
      {"isBuilt", [](const Hooks& h, int64_t) { return PyBool_FromLong(h.isBuilt()); }},
      {"isAvailable", [](const Hooks& h, int64_t) { return PyBool_FromLong(h.isAvailable()); }},
      {"deviceCount", [](const Hooks& h, int64_t) { return number(h.deviceCount()); }},
      {"getCurrentDevice", [](const Hooks& h, int64_t) { return number(h.getCurrentDevice()); }},
      {"setCurrentDevice",
       [](const Hooks& h, int64_t index) {
         h.setCurrentDevice(static_cast<DeviceIndex>(index));
         return Py_NewRef(Py_None);
       }},
      {"exchangeDevice",
       [](const Hooks& h, int64_t i) { return number(h.exchangeDevice(static_cast<DeviceIndex>(i))); }},
      {"maybeExchangeDevice",
       [](const Hooks& h, int64_t i) { return number(h.maybeExchangeDevice(static_cast<DeviceIndex>(i))); }},
      {"hasPrimaryContext",
       [](const Hooks& h, int64_t i) { return PyBool_FromLong(h.hasPrimaryContext(static_cast<DeviceIndex>(i))); }},
      {"getDeviceFromPtr",
       [](const Hooks& h, int64_t address) {
         return number(h.getDeviceFromPtr(reinterpret_cast<void*>(address)).index());
       }},
      {"isPinnedPtr",
       [](const Hooks& h, int64_t address) {
         return PyBool_FromLong(h.isPinnedPtr(reinterpret_cast<const void*>(address)));
       }},
  };
  return table;
}

// _call_hook(name, number=0): what the hook answers.
PyObject* call_hook(PyObject* /*self*/, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const char* name = nullptr;
  long long number = 0;
  if (!PyArg_ParseTuple(arguments, "s|L", &name, &number)) return nullptr;
  const auto found = callable_hooks().find(name);
  TORCH_CHECK(found != callable_hooks().end(), "_call_hook: there is no hook named ", name, " to call with a number");
  return found->second(at::detail::getPrivateUse1Hooks(), number);
  END_HANDLE_TH_ERRORS
}

// _wrap_memory(address, count): float32 elements at an address of a device as a tensor, the way an extension in C++ does it. The
// memory must outlive it.
PyObject* wrap_memory(PyObject* /*self*/, PyObject* arguments) {
  HANDLE_TH_ERRORS
  long long address = 0, count = 0;
  if (!PyArg_ParseTuple(arguments, "LL", &address, &count)) return nullptr;
  const auto options = at::TensorOptions().dtype(ScalarType::Float).device(kOpenReg);
  return THPVariable_Wrap(at::from_blob(reinterpret_cast<void*>(address), {count}, options));
  END_HANDLE_TH_ERRORS
}

PyObject* record(PyObject* /*self*/, PyObject* on) {
  const int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  record_steps(wanted == 1);
  Py_RETURN_NONE;
}

// _take_steps(): the steps recorded since the last call, oldest first, as tuples (level, depth, file, line, name, device or None).
PyObject* take_recorded(PyObject* /*self*/, PyObject* /*none*/) {
  const auto steps = take_steps();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(steps.size()));
  if (list == nullptr) return nullptr;
  for (size_t i = 0; i < steps.size(); i++) {
    const auto& step = steps[i];
    PyObject* device = step.device == kNoDevice ? Py_NewRef(Py_None) : PyLong_FromLong(step.device);
    PyObject* row = device == nullptr ? nullptr
                                      : Py_BuildValue("(iisisN)", step.level, step.depth, step.file.c_str(), step.line,
                                                      step.name.c_str(), device);
    if (row == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), row);
  }
  return list;
}

PyObject* finish(PyObject* /*self*/, PyObject* /*none*/) {
  HANDLE_TH_ERRORS {
    const pybind11::gil_scoped_release without_gil;
    finish_autograd();
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* count_fallbacks(PyObject* /*self*/, PyObject* /*none*/) {
  return PyLong_FromLongLong(fallback_calls());
}

PyObject* protection(PyObject* /*self*/, PyObject* /*none*/) {
  return PyBool_FromLong(is_protected());
}

// _memory_kind(address): the kind of memory there, "device", "pinned" or "unknown", and the device or -1.
PyObject* memory_kind(PyObject* /*self*/, PyObject* argument) {
  void* address = PyLong_AsVoidPtr(argument);
  if (address == nullptr && PyErr_Occurred()) return nullptr;
  const auto block = find_block(address);
  const char* kind = block.kind == MemoryKind::kDevice   ? "device"
                     : block.kind == MemoryKind::kPinned ? "pinned"
                                                         : "unknown";
  return Py_BuildValue("(si)", kind, block.device);
}

}  // namespace

PyMethodDef probes[] = {
    {"_call_hook", call_hook, METH_VARARGS, nullptr},
    {"_wrap_memory", wrap_memory, METH_VARARGS, nullptr},
    {"_record_steps", record, METH_O, nullptr},
    {"_take_steps", take_recorded, METH_NOARGS, nullptr},
    {"_finish_autograd", finish, METH_NOARGS, nullptr},
    {"_fallback_calls", count_fallbacks, METH_NOARGS, nullptr},
    {"_is_protected", protection, METH_NOARGS, nullptr},
    {"_memory_kind", memory_kind, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace c10::openreg
