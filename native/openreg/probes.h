// Functions beside the bridge, for tests and the tour: calling a hook directly, the recorded trace, counters.
#pragma once

#include <Python.h>

namespace c10::openreg {

extern PyMethodDef probes[];

}  // namespace c10::openreg
