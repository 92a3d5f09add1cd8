// What torch keeps per thread and per process that a graph depends on, as one word.
// Its meaning is that of STATE_FLAGS, AUTOCAST_SHIFT and AUTOCAST_DTYPES of minidynamo/guards/py_leaves.py.
//
// A warm call reads it right after an operator has used up the caches, so each function of torch that is called here
// costs several cache lines. The state itself stays where it is: its places are asked for once per thread.
#pragma once

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace {

// The layout of the members below is part of the headers that this is built against, as that of tensors is. Their names
// are not part of torch's interface: a torch with other ones is asked by its functions.
#define MINIDYNAMO_KNOWS_MEMBERS (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 13)

#if MINIDYNAMO_KNOWS_MEMBERS
// Names of private members may be written in an explicit instantiation, which hands them to a friend of `Name`.
template <typename Name, typename Name::Type Member>
struct Reach {
  friend constexpr typename Name::Type reach(Name) { return Member; }
};
#define MINIDYNAMO_MEMBER(Name, Owner, MemberType, member) \
  struct Name {                                            \
    using Type = MemberType Owner::*;                      \
    friend constexpr Type reach(Name);                     \
  };                                                       \
  template struct Reach<Name, &Owner::member>

MINIDYNAMO_MEMBER(Deterministic, at::Context, bool, _deterministic_algorithms);
MINIDYNAMO_MEMBER(DeterministicWarnOnly, at::Context, bool, _deterministic_algorithms_warn_only);
MINIDYNAMO_MEMBER(DeterministicFill, at::Context, bool, _deterministic_fill_uninitialized_memory);
MINIDYNAMO_MEMBER(FunctionDisabled, at::impl::PythonTorchFunctionTLS, at::impl::TorchFunctionDisabledState,
                  disabled_state_);
MINIDYNAMO_MEMBER(FunctionStack, at::impl::PythonTorchFunctionTLS, std::vector<std::shared_ptr<c10::SafePyObject>>,
                  stack_);
MINIDYNAMO_MEMBER(AutogradPart, c10::TensorImpl, std::unique_ptr<c10::AutogradMetaInterface>, autograd_meta_);

MINIDYNAMO_MEMBER(DtypePart, c10::TensorImpl, caffe2::TypeMeta, data_type_);
MINIDYNAMO_MEMBER(KeysPart, c10::TensorImpl, c10::DispatchKeySet, key_set_);
MINIDYNAMO_MEMBER(LayoutPart, c10::TensorImpl, c10::impl::SizesAndStrides, sizes_and_strides_);

using AutogradMeta = torch::autograd::AutogradMeta;

// What autograd knows of a tensor, nullptr for nothing. Such parts are all of one class.
const AutogradMeta* autograd_of(const c10::TensorImpl& impl) {
  return static_cast<const AutogradMeta*>((impl.*reach(AutogradPart{})).get());
}

// TensorImpl::requires_grad without its two calls.
bool requires_grad(const c10::TensorImpl& impl) {
  const AutogradMeta* part = autograd_of(impl);
  return part != nullptr && part->AutogradMeta::requires_grad();
}
#else
bool requires_grad(const c10::TensorImpl& impl) {
  return impl.requires_grad();
}
#endif

struct TorchState {
  const c10::AutogradState* autograd = nullptr;  // the others are found when this is
  const c10::impl::PODLocalDispatchKeySet* keys = nullptr;
  const at::impl::SavedTensorDefaultHooksTLS* saved_hooks = nullptr;
  const at::impl::PythonTorchFunctionTLS* function = nullptr;
  const at::Context* context = nullptr;

  __attribute__((noinline, cold)) void find() {
    keys = &c10::impl::raw_local_dispatch_key_set;
    saved_hooks = &at::SavedTensorDefaultHooks::get_tls_state();
    function = &at::impl::PythonTorchFunctionTLS::get_state();
    context = &at::globalContext();
    autograd = &c10::AutogradState::get_tls_state();
  }
  uint64_t included() const { return c10::impl::LocalDispatchKeySet(*keys).included_.raw_repr(); }
  uint64_t excluded() const { return c10::impl::LocalDispatchKeySet(*keys).excluded_.raw_repr(); }
#if MINIDYNAMO_KNOWS_MEMBERS
  bool deterministic() const { return context->*reach(Deterministic{}); }
  bool deterministic_warn_only() const { return context->*reach(DeterministicWarnOnly{}); }
  bool deterministic_fill() const { return context->*reach(DeterministicFill{}); }
  at::impl::TorchFunctionDisabledState function_disabled() const { return function->*reach(FunctionDisabled{}); }
  bool has_function_modes() const { return !(function->*reach(FunctionStack{})).empty(); }
#else
  bool deterministic() const { return context->deterministicAlgorithms(); }
  bool deterministic_warn_only() const { return context->deterministicAlgorithmsWarnOnly(); }
  bool deterministic_fill() const { return context->deterministicFillUninitializedMemory(); }
  at::impl::TorchFunctionDisabledState function_disabled() const {
    return at::impl::PythonTorchFunctionTLS::get_disabled_state();
  }
  bool has_function_modes() const { return at::impl::PythonTorchFunctionTLS::stack_len() > 0; }
#endif
};

thread_local __attribute__((tls_model("initial-exec"))) constinit TorchState torch_state_of_thread;

const TorchState& torch_state() {
  TorchState& state = torch_state_of_thread;
  if (state.autograd == nullptr) state.find();
  return state;
}

constexpr int kAutocastShift = 16;
struct Autocast {
  c10::DeviceType device;
  c10::DispatchKey key;  // excluded while autocast is off
};
constexpr std::array kAutocast{Autocast{c10::DeviceType::CPU, c10::DispatchKey::AutocastCPU},
                               Autocast{c10::DeviceType::CUDA, c10::DispatchKey::AutocastCUDA},
                               Autocast{c10::DeviceType::PrivateUse1, c10::DispatchKey::AutocastPrivateUse1}};
constexpr std::array kAutocastDtypes{c10::ScalarType::Half, c10::ScalarType::BFloat16, c10::ScalarType::Float,
                                     c10::ScalarType::Double};
constexpr uint64_t kOtherDtype = 15;

uint64_t autocast_dtype_code(c10::DeviceType device) {
  const c10::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  for (size_t i = 0; i < kAutocastDtypes.size(); ++i)
    if (kAutocastDtypes[i] == dtype) return i + 1;
  return kOtherDtype;
}

uint64_t state_bits(const TorchState& state) {
  using c10::DispatchKey;
  using at::impl::TorchFunctionDisabledState;
  const c10::impl::LocalDispatchKeySet keys(*state.keys);
  int position = 0;
  uint64_t bits = 0;
  const auto flag = [&](bool value) { bits |= static_cast<uint64_t>(value) << position++; };
  flag(state.autograd->get_grad_mode());
  flag(state.autograd->get_inference_mode());
  flag(state.deterministic());
  flag(state.deterministic_warn_only());
  flag(state.deterministic_fill());
  flag(state.function_disabled() == TorchFunctionDisabledState::ENABLED);
  flag(state.function_disabled() == TorchFunctionDisabledState::ALL_DISABLED);
  flag(state.has_function_modes());
  // Dispatch modes include the Python key, functorch its front key, while their stacks are not empty.
  flag(keys.included_.has(DispatchKey::Python));
  flag(keys.included_.has(DispatchKey::FuncTorchDynamicLayerFrontMode));
  flag(!state.saved_hooks->stack.empty());
  uint64_t autocast = 0;
  uint64_t dtypes = 0;
  for (size_t i = 0; i < kAutocast.size(); ++i) {
    if (keys.excluded_.has(kAutocast[i].key)) continue;
    autocast |= uint64_t{1} << i;
    dtypes |= autocast_dtype_code(kAutocast[i].device) << (4 * i);
  }
  flag(autocast != 0 && at::autocast::is_autocast_cache_enabled());
  return bits | autocast << position | dtypes << kAutocastShift;
}

}  // namespace
