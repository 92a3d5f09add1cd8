// The boxed fallback: every operator without a kernel of the device runs its CPU kernel in place, on aliases of the device memory.
//
// Arguments are turned (device tensors to aliases, device generators to the CPU generators inside them, devices to the CPU), the CPU
// kernel is called, what it wrote or resized is put back, results are turned back: an argument itself, a view of an argument, or a
// copy on the device. torch's own cpu_fallback copies every argument and drops generators, so that seeds would have no effect.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>

#include "fallback.h"
#include "openreg.h"

namespace c10::openreg {
namespace {

using at::Tensor;

std::atomic<int64_t> calls{0};

// Operators that take host tensors with dimensions beside device tensors on every accelerator: indices, lengths, batch sizes.
constexpr std::string_view kTakesHostTensors[] = {
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
    "aten::_unsafe_index_put",
    "aten::_unsafe_masked_index",
    "aten::_unsafe_masked_index_put_accumulate",
    "aten::_pack_padded_sequence",
    "aten::_pack_padded_sequence_backward",
    "aten::_ctc_loss",
    "aten::_ctc_loss_backward",
    "aten::repeat_interleave",
};

bool takes_host_tensors(const OperatorHandle& op) {
  const std::string_view name = op.operator_name().name;
  return std::find(std::begin(kTakesHostTensors), std::end(kTakesHostTensors), name) != std::end(kTakesHostTensors);
}

bool is_optional_generator(const Argument& argument) {
  const auto* optional = argument.type()->castRaw<OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == TypeKind::GeneratorType;
}

bool is_random(const OperatorHandle& op) {
  const auto tags = op.getTags();
  return std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
}

// While it lives the CPU's default generator continues the numbers of a device: for random operators that take no generator.
class BorrowedCPUGenerator {
 public:
  explicit BorrowedCPUGenerator(DeviceIndex index)
      : device_(host_generator(getDefaultOpenRegGenerator(index), index)), cpu_(at::detail::getDefaultCPUGenerator()) {
    kept_ = state(cpu_);
    set_state(cpu_, state(device_));
  }
  ~BorrowedCPUGenerator() {
    set_state(device_, state(cpu_));
    set_state(cpu_, kept_);
  }
  BorrowedCPUGenerator(const BorrowedCPUGenerator&) = delete;
  BorrowedCPUGenerator& operator=(const BorrowedCPUGenerator&) = delete;

 private:
  static Tensor state(at::Generator& generator) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return Tensor(generator.unsafeGetGeneratorImpl()->get_state());
  }
  static void set_state(at::Generator& generator, const Tensor& state) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.unsafeGetGeneratorImpl()->set_state(*state.unsafeGetTensorImpl());
  }

  at::Generator device_, cpu_;
  Tensor kept_;
};

// One call: which device it is on, and which alias stands for which tensor.
class Call {
 public:
  explicit Call(const OperatorHandle& op) : op_(op) {}

  void run(torch::jit::Stack* stack) {
    const auto& schema = op_.schema();
    const size_t begin = stack->size() - schema.arguments().size();
    for (size_t i = 0; i < schema.arguments().size(); i++)
      turn_argument((*stack)[begin + i], schema.arguments()[i], begin + i);
    settle_device();
    for (const size_t position : generators_) turn_generator((*stack)[position]);
    if (generators_.empty() && is_random(op_)) {
      const BorrowedCPUGenerator borrowed(index_);
      op_.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
    } else {
      op_.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
    }
    for (const auto& pair : pairs_)
      if (pair.written) write_back(pair);
    const size_t results = schema.returns().size();
    for (size_t i = 0; i < results; i++) turn_result((*stack)[stack->size() - results + i]);
  }

 private:
  struct Pair {
    Tensor device, host;
    bool written;
  };

  void turn_argument(IValue& value, const Argument& argument, size_t position) {
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (value.isTensor()) {
      value = alias(value.toTensor(), written);
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (auto& tensor : tensors) tensor = alias(tensor, written);
      value = List<Tensor>(tensors);
    } else if (value.isOptionalTensorList()) {
      List<std::optional<Tensor>> tensors;
      for (const auto& tensor : value.toOptionalTensorVector())
        tensors.push_back(tensor.has_value() ? std::optional<Tensor>(alias(*tensor, written)) : tensor);
      value = std::move(tensors);
    } else if (value.isDevice()) {
      const auto device = value.toDevice();
      if (device.is_privateuseone() && index_ == kNone) index_ = index_of(device);
      value = Device(kCPU);
    } else if (value.isGenerator() || (value.isNone() && is_optional_generator(argument))) {
      generators_.push_back(position);
    }
  }

  Tensor alias(const Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_privateuseone()) {
      host_tensor_ = true;
      shaped_host_tensor_ |= tensor.dim() > 0;
      return tensor;
    }
    TORCH_CHECK(tensor.layout() == kStrided, "openreg: ", op_.operator_name(), " got a tensor of layout ",
                tensor.layout(), "; only strided tensors fall back to the CPU");
    const auto index = tensor.device().index();
    if (index_ == kNone) index_ = index;
    TORCH_CHECK(index_ == index,
                "Expected all tensors to be on the same device, but found at least two devices, openreg:",
                static_cast<int>(index_), " and openreg:", static_cast<int>(index), "! (in ", op_.operator_name(), ")");
    for (auto& pair : pairs_) {
      if (!pair.device.is_same(tensor)) continue;
      pair.written |= written;
      return pair.host;
    }
    Tensor host = host_alias(tensor, access_);
    // Tensors that share a storage go on sharing one, so that a kernel that resizes it resizes it for all.
    for (const auto& pair : pairs_)
      if (pair.device.storage().is_alias_of(tensor.storage())) {
        host.unsafeGetTensorImpl()->set_storage_keep_dtype(pair.host.storage());
        break;
      }
    pairs_.push_back({tensor, host, written});
    return host;
  }

  void settle_device() {
    if (index_ == kNone) {
      // A generator alone brings an operator here: `cpu_tensor.normal_(generator=g)`.
      TORCH_CHECK(!host_tensor_, "Expected a 'cpu' device type for generator but found 'openreg' (in ",
                  op_.operator_name(), ")");
      index_ = static_cast<DeviceIndex>(current_device());
    }
    TORCH_CHECK(!shaped_host_tensor_ || pairs_.empty() || takes_host_tensors(op_),
                "Expected all tensors to be on the same device, but found at least two devices, openreg:",
                static_cast<int>(index_), " and cpu! (in ", op_.operator_name(), ")");
  }

  void turn_generator(IValue& value) {
    value = host_generator(value.isGenerator() ? value.toGenerator() : getDefaultOpenRegGenerator(index_), index_);
  }

  void write_back(const Pair& pair) {
    const auto& from = pair.host.storage();
    const auto& to = pair.device.storage();
    if (from.data() != to.data()) {  // the kernel enlarged its output
      auto* impl = to.unsafeGetStorageImpl();
      const DeviceGuard guard(pair.device.device());
      auto fresh = impl->allocator()->allocate(from.nbytes());
      access_.open(fresh.get());
      if (from.nbytes() > 0) std::memcpy(fresh.get(), from.data(), from.nbytes());
      impl->set_data_ptr_noswap(std::move(fresh));
      impl->set_nbytes(from.nbytes());
    }
    if (pair.device.sizes() != pair.host.sizes() || pair.device.strides() != pair.host.strides() ||
        pair.device.storage_offset() != pair.host.storage_offset())
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(),
                                                               pair.host.storage_offset());
  }

  void turn_result(IValue& value) {
    if (value.isTensor()) {
      value = on_device(value.toTensor());
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (auto& tensor : tensors) tensor = on_device(tensor);
      value = List<Tensor>(tensors);
    }
  }

  Tensor on_device(const Tensor& result) {
    if (!result.defined()) return result;
    for (const auto& pair : pairs_)
      if (pair.host.is_same(result)) return pair.device;
    TORCH_CHECK(result.layout() == kStrided, "openreg: ", op_.operator_name(), " gives a result of layout ",
                result.layout(), "; only strided tensors are supported");
    if (result.storage().data() != nullptr)
      for (const auto& pair : pairs_)
        if (pair.host.storage().data() == result.storage().data()) return view_of(pair.device, result);
    return copy_to_device(result, device_at(index_));
  }

  static Tensor view_of(const Tensor& device, const Tensor& host) {
    auto impl = make_intrusive<TensorImpl>(TensorImpl::VIEW, Storage(device.storage()), device.key_set(), host.dtype());
    impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    return Tensor(std::move(impl));
  }

  static constexpr DeviceIndex kNone = -1;

  const OperatorHandle& op_;
  HostAccess access_;
  SmallVector<Pair, 6> pairs_;
  SmallVector<size_t, 2> generators_;  // positions on the stack
  DeviceIndex index_ = kNone;
  bool host_tensor_ = false, shaped_host_tensor_ = false;
};

void fallback(const OperatorHandle& op, torch::jit::Stack* stack) {
  calls++;
  Call(op).run(stack);
}

}  // namespace

int64_t fallback_calls() noexcept {
  return calls;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace c10::openreg
