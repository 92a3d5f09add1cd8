// Operators that torch sends to this device by name and that have no CPU kernel to fall back to.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <array>

#include "openreg.h"

namespace c10::openreg {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

void check_same_device(const Tensor& first, std::initializer_list<const Tensor*> others) {
  for (const auto* other : others)
    TORCH_CHECK(!other->defined() || other->device() == first.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", first.device(),
                " and ", other->device(), "! (in a convolution)");
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  const Tensor given_bias = is_given(bias) ? *bias : Tensor();
  check_same_device(input, {&weight, &given_bias});
  HostAccess access;
  const auto host_bias = is_given(bias) ? OptionalTensor(host_alias(*bias, access)) : OptionalTensor();
  return copy_to_device(at::convolution(host_alias(input, access), host_alias(weight, access), host_bias, stride,
                                        padding, dilation, transposed, output_padding, groups),
                        input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input,
                                                        const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed,
                                                        IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> wanted) {
  check_same_device(input, {&weight, &gradient});
  HostAccess access;
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  const auto [to_input, to_weight, to_bias] = at::convolution_backward(
      host_alias(gradient, access), host_alias(input, access), host_alias(weight, access), IntArrayRef(channels),
      stride, padding, dilation, transposed, output_padding, groups, wanted);
  const auto device = input.device();
  return {copy_to_device(to_input, device), copy_to_device(to_weight, device), copy_to_device(to_bias, device)};
}

Tensor plus(const Tensor& gates, const OptionalTensor& bias) {
  return is_given(bias) ? gates + *bias : gates;
}

// An LSTM cell: gates in the order input, forget, cell, output; the workspace keeps them after their activation.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cell,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto gates = (plus(input_gates, input_bias) + plus(hidden_gates, hidden_bias)).chunk(4, 1);
  const auto in = gates[0].sigmoid(), forget = gates[1].sigmoid(), fresh = gates[2].tanh(), out = gates[3].sigmoid();
  const auto next = forget * cell + in * fresh;
  return {out * next.tanh(), next, at::cat({in, forget, fresh, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& to_hidden, const OptionalTensor& to_next,
                                                      const Tensor& cell, const Tensor& next, const Tensor& workspace,
                                                      bool has_bias) {
  if (!is_given(to_hidden) && !is_given(to_next)) return {};
  const auto gates = workspace.chunk(4, 1);
  const auto &in = gates[0], &forget = gates[1], &fresh = gates[2], &out = gates[3];
  const auto squashed = next.tanh();
  auto to_cell = is_given(to_next) ? *to_next : at::zeros_like(next);
  auto to_out = at::zeros_like(out);
  if (is_given(to_hidden)) {
    to_out = *to_hidden * squashed;
    to_cell = to_cell + *to_hidden * out * (1 - squashed * squashed);
  }
  const auto to_gates = at::cat({to_cell * fresh * in * (1 - in), to_cell * cell * forget * (1 - forget),
                                 to_cell * in * (1 - fresh * fresh), to_out * out * (1 - out)},
                                1);
  return {to_gates, to_cell * forget, has_bias ? to_gates.sum(0) : Tensor()};
}

// A GRU cell: gates in the order reset, update, new; the workspace keeps them, the old state and the hidden part of "new".
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hidden,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto in = plus(input_gates, input_bias).chunk(3, 1);
  const auto old = plus(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (in[0] + old[0]).sigmoid(), update = (in[1] + old[1]).sigmoid();
  const auto fresh = (in[2] + reset * old[2]).tanh();
  return {fresh + update * (hidden - fresh), at::cat({reset, update, fresh, hidden, old[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& to_hidden, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto kept = workspace.chunk(5, 1);
  const auto &reset = kept[0], &update = kept[1], &fresh = kept[2], &hidden = kept[3], &old = kept[4];
  const auto to_update = to_hidden * (hidden - fresh) * update * (1 - update);
  const auto to_fresh = to_hidden * (1 - update) * (1 - fresh * fresh);
  const auto to_reset = to_fresh * old * reset * (1 - reset);
  const auto to_input = at::cat({to_reset, to_update, to_fresh}, 1);
  const auto to_old = at::cat({to_reset, to_update, to_fresh * reset}, 1);
  return {to_input, to_old, to_hidden * update, has_bias ? to_input.sum(0) : Tensor(),
          has_bias ? to_old.sum(0) : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace c10::openreg
