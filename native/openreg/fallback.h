// What is known of the fallback to the CPU from outside.
#pragma once

#include <cstdint>

namespace c10::openreg {

// How many operators have run by falling back, in all threads.
int64_t fallback_calls() noexcept;

}  // namespace c10::openreg
