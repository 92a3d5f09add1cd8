// Functions beside the bridge, for the end of the process, tests and the tour: calling a hook directly, the recorded trace.
#pragma once

#include <Python.h>

namespace c10::openreg {

extern PyMethodDef probes[];

}  // namespace c10::openreg
