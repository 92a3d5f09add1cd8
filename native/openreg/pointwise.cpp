// An operator of the device's own, for compilers: a chain of elementwise float32 steps in one pass over memory.
//
// `openreg::pointwise(inputs, program, constants)`: values are numbered, first the inputs, then the constants, then the result of
// every step; a step is three numbers, operation and operands (one operand: twice the same). The result is the last step's. Every
// operation here rounds as torch's own, so the fused chain gives the very numbers of the single operators.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "openreg.h"

#if defined(__GNUC__) && !defined(__clang__)
#define MINIDYNAMO_VECTORIZED __attribute__((optimize("O3", "no-math-errno", "no-trapping-math")))
#else
#define MINIDYNAMO_VECTORIZED
#endif

namespace c10::openreg {
namespace {

constexpr int64_t kLanes = 256;  // elements of every value that are in flight: they fit the first-level cache
constexpr int64_t kGrain = 32768;

using Operation = void (*)(float* result, const float* a, const float* b);

#define OPERATION(name, expression)                                                       \
  MINIDYNAMO_VECTORIZED void name(float* result, const float* left, const float* right) { \
    for (int64_t i = 0; i < kLanes; i++) {                                                \
      const float a = left[i];                                                            \
      [[maybe_unused]] const float b = right[i];                                          \
      result[i] = (expression);                                                           \
    }                                                                                     \
  }

OPERATION(step_add, a + b)
OPERATION(step_sub, a - b)
OPERATION(step_mul, a* b)
OPERATION(step_div, a / b)
OPERATION(step_maximum, a != a ? a : b != b ? b : a > b ? a : b)
OPERATION(step_minimum, a != a ? a : b != b ? b : a < b ? a : b)
OPERATION(step_neg, -a)
OPERATION(step_abs, std::fabs(a))
OPERATION(step_relu, a < 0 ? 0.0f : a)
#undef OPERATION

// The order is the numbering that minidynamo/openreg/fuse.py uses.
constexpr std::array<Operation, 9> kOperations = {step_add,     step_sub, step_mul, step_div, step_maximum,
                                                  step_minimum, step_neg, step_abs, step_relu};

struct Instruction {
  Operation operation;
  size_t left, right;
};

std::vector<Instruction> decode(IntArrayRef program, size_t given) {
  TORCH_CHECK(!program.empty() && program.size() % 3 == 0, "openreg::pointwise: a program is steps of three numbers");
  std::vector<Instruction> steps;
  for (size_t i = 0; i < program.size(); i += 3) {
    const auto known = static_cast<int64_t>(given + steps.size());
    TORCH_CHECK(program[i] >= 0 && program[i] < static_cast<int64_t>(kOperations.size()) && program[i + 1] >= 0 &&
                    program[i + 1] < known && program[i + 2] >= 0 && program[i + 2] < known,
                "openreg::pointwise: step ", i / 3, " has no such operation or operand");
    steps.push_back({kOperations[static_cast<size_t>(program[i])], static_cast<size_t>(program[i + 1]),
                     static_cast<size_t>(program[i + 2])});
  }
  return steps;
}

// Elements [begin, end) of the result.
void run_part(const std::vector<Instruction>& steps, const std::vector<const float*>& inputs,
              ArrayRef<double> constants, float* result, int64_t begin, int64_t end) {
  const size_t given = inputs.size() + constants.size();
  std::vector<float> values((given + steps.size()) * kLanes);
  const auto lanes = [&](size_t value) { return values.data() + value * kLanes; };
  for (size_t i = 0; i < constants.size(); i++)
    std::fill_n(lanes(inputs.size() + i), kLanes, static_cast<float>(constants[i]));
  for (int64_t at = begin; at < end; at += kLanes) {
    const int64_t count = std::min(kLanes, end - at);
    for (size_t i = 0; i < inputs.size(); i++) std::copy_n(inputs[i] + at, count, lanes(i));
    for (size_t i = 0; i < steps.size(); i++)
      steps[i].operation(lanes(given + i), lanes(steps[i].left), lanes(steps[i].right));
    std::copy_n(lanes(given + steps.size() - 1), count, result + at);
  }
}

void check_inputs(at::TensorList inputs) {
  TORCH_CHECK(!inputs.empty(), "openreg::pointwise: there must be an input");
  for (const auto& input : inputs) {
    TORCH_CHECK(input.scalar_type() == ScalarType::Float && input.is_contiguous() && input.sizes() == inputs[0].sizes(),
                "openreg::pointwise: inputs are contiguous float32 tensors of one shape");
    TORCH_CHECK(input.device() == inputs[0].device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", inputs[0].device(),
                " and ", input.device(), "! (in openreg::pointwise)");
  }
}

at::Tensor pointwise(at::TensorList inputs, IntArrayRef program, ArrayRef<double> constants) {
  check_inputs(inputs);
  const auto steps = decode(program, inputs.size() + constants.size());
  auto result = at::empty_like(inputs[0]);
  HostAccess access;
  access.open(result);
  std::vector<const float*> data;
  for (const auto& input : inputs) {
    access.open(input);
    data.push_back(static_cast<const float*>(input.const_data_ptr()));
  }
  auto* const out = static_cast<float*>(result.mutable_data_ptr());
  at::parallel_for(0, result.numel(), kGrain,
                   [&](int64_t begin, int64_t end) { run_part(steps, data, constants, out, begin, end); });
  return result;
}

at::Tensor pointwise_meta(at::TensorList inputs, IntArrayRef program, ArrayRef<double> constants) {
  check_inputs(inputs);
  decode(program, inputs.size() + constants.size());
  return at::empty_like(inputs[0]);
}

}  // namespace

TORCH_LIBRARY(openreg, m) {
  m.def("pointwise(Tensor[] inputs, int[] program, float[] constants) -> Tensor");
}
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("pointwise", pointwise);
}
TORCH_LIBRARY_IMPL(openreg, Meta, m) {
  m.impl("pointwise", pointwise_meta);
}

}  // namespace c10::openreg
