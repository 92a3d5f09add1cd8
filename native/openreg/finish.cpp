#include "finish.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <unistd.h>

#include <atomic>

#include "openreg.h"

namespace c10::openreg {
namespace {

std::atomic<pid_t> threads_of{0};  // the process that has autograd threads: a forked child has none

}  // namespace

void note_autograd_thread() noexcept {
  threads_of = getpid();
}

void finish_autograd() {
  if (threads_of != getpid()) return;
  for (int index = 0; index < device_count(); index++) {
    const auto leaf = at::empty({}, at::TensorOptions().device(device_at(index))).set_requires_grad(true);
    leaf.neg().backward();
  }
}

}  // namespace c10::openreg
