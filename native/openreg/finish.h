// Ending a process in which gradients were computed on a device.
#pragma once

namespace c10::openreg {

// An autograd thread has been started for the devices.
void note_autograd_thread() noexcept;

// Returns when the autograd threads of the devices hold nothing of the program any more; to be called without the GIL.
//
// The thread that runs a device's backward lets go of the last graph after it has answered. That may free Python objects, for which
// it takes the GIL; while the interpreter ends this kills the process ("terminate called without an active exception"). So one more
// backward, made of nothing that Python knows, goes through every thread: a thread begins it only after it is done with what was
// before.
void finish_autograd();

}  // namespace c10::openreg
