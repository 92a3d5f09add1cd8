// Level 3: the bridge from Python. Seven functions, all that the Python side of a device needs.
#include <ATen/Context.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/python_numbers.h>

#include "openreg.h"
#include "probes.h"
#include "trace.h"

namespace {

using c10::openreg::kBridge;
using c10::openreg::kOpenReg;
using c10::openreg::TracePoint;

// The device index that Python passed to `function`. RuntimeError for anything but an int that fits.
c10::DeviceIndex index_argument(const char* function, PyObject* argument) {
  TORCH_CHECK(THPUtils_checkLong(argument), function, " expects an int, but got ", THPUtils_typename(argument));
  int overflow = 0;
  const long index = PyLong_AsLongAndOverflow(argument, &overflow);
  TORCH_CHECK(overflow == 0 && index >= -1 && index <= INT8_MAX, function, ": the device index ",
              overflow == 0 ? std::to_string(index) : "given", " is out of range; it must be in [0, ",
              c10::openreg::device_count(), "), or -1 for the current device");
  return static_cast<c10::DeviceIndex>(index);
}

PyObject* _initExtension(PyObject* /*self*/, PyObject* /*none*/) {
  HANDLE_TH_ERRORS
  const TracePoint point(kBridge);
  torch::utils::register_fork_handler_for_device_init(kOpenReg);
  at::globalContext().lazyInitDevice(kOpenReg);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* _isInBadFork(PyObject* /*self*/, PyObject* /*none*/) {
  HANDLE_TH_ERRORS
  const TracePoint point(kBridge);
  return PyBool_FromLong(torch::utils::is_device_in_bad_fork(kOpenReg));
  END_HANDLE_TH_ERRORS
}

PyObject* _getDefaultGenerator(PyObject* /*self*/, PyObject* argument) {
  HANDLE_TH_ERRORS
  const auto index = index_argument("_get_default_generator", argument);
  const TracePoint point(kBridge, index);
  torch::utils::register_fork_handler_for_device_init(kOpenReg);
  // Level 4: the context asks the hooks.
  return THPGenerator_initDefaultGenerator(at::globalContext().defaultGenerator(c10::Device(kOpenReg, index)));
  END_HANDLE_TH_ERRORS
}

PyObject* _getDevice(PyObject* /*self*/, PyObject* /*none*/) {
  HANDLE_TH_ERRORS
  const TracePoint point(kBridge);
  return THPUtils_packInt32(c10::openreg::current_device());
  END_HANDLE_TH_ERRORS
}

PyObject* _setDevice(PyObject* /*self*/, PyObject* argument) {
  HANDLE_TH_ERRORS
  const auto index = index_argument("_set_device", argument);
  const TracePoint point(kBridge, index);
  torch::utils::device_lazy_init(kOpenReg);
  c10::openreg::set_current_device(c10::openreg::checked_index(index));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// Returns the index from before; a negative one changes nothing and gives -1.
PyObject* _exchangeDevice(PyObject* /*self*/, PyObject* argument) {
  HANDLE_TH_ERRORS
  const auto index = index_argument("_exchangeDevice", argument);
  const TracePoint point(kBridge, index);
  if (index < 0) return THPUtils_packInt32(-1);
  torch::utils::device_lazy_init(kOpenReg);
  const int before = c10::openreg::current_device();
  c10::openreg::set_current_device(c10::openreg::checked_index(index));
  return THPUtils_packInt32(before);
  END_HANDLE_TH_ERRORS
}

PyObject* _getDeviceCount(PyObject* /*self*/, PyObject* /*none*/) {
  HANDLE_TH_ERRORS
  const TracePoint point(kBridge);
  torch::utils::register_fork_handler_for_device_init(kOpenReg);
  return THPUtils_packInt32(c10::openreg::device_count());
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"_init", _initExtension, METH_NOARGS, nullptr},
    {"_isInBadFork", _isInBadFork, METH_NOARGS, nullptr},
    {"_get_default_generator", _getDefaultGenerator, METH_O, nullptr},
    {"_get_device", _getDevice, METH_NOARGS, nullptr},
    {"_set_device", _setDevice, METH_O, nullptr},
    {"_exchangeDevice", _exchangeDevice, METH_O, nullptr},
    {"_get_device_count", _getDeviceCount, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Read from the file before it is loaded (minidynamo/openreg/load.py).
constexpr char kBuiltFor[] = "minidynamo.openreg for torch " MINIDYNAMO_TORCH_VERSION;

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "minidynamo.openreg._C",
                          "The native side of the simulated accelerator.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  if (PyModule_AddFunctions(module, c10::openreg::probes) < 0 ||
      PyModule_AddStringConstant(module, "built_for", kBuiltFor) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
