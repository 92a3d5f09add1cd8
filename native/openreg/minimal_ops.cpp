// The operators that a device must have of its own: making tensors, viewing them, copying in and out. Everything else falls back.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "openreg.h"

namespace c10::openreg {
namespace {

using at::Tensor;
template <class T>
using Optional = std::optional<T>;

constexpr DispatchKeySet kKeys(DispatchKey::PrivateUse1);

void check_dense(Optional<Layout> layout, Optional<bool> pinned) {
  TORCH_CHECK(layout_or_default(layout) == kStrided, "openreg tensors are strided; ", layout_or_default(layout),
              " is not supported");
  TORCH_CHECK(!pinned_memory_or_default(pinned), "Only dense CPU tensors can be pinned");
}

// Making tensors.
Tensor empty(IntArrayRef size, Optional<ScalarType> dtype, Optional<Layout> layout, Optional<Device> device,
             Optional<bool> pinned, Optional<MemoryFormat> format) {
  check_dense(layout, pinned);
  const DeviceGuard guard(device_or_default(device));
  return at::detail::empty_generic(size, GetAllocator(kOpenReg), kKeys, dtype_or_default(dtype), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Optional<ScalarType> dtype, Optional<Layout> layout,
                     Optional<Device> device, Optional<bool> pinned) {
  check_dense(layout, pinned);
  const DeviceGuard guard(device_or_default(device));
  return at::detail::empty_strided_generic(size, stride, GetAllocator(kOpenReg), kKeys, dtype_or_default(dtype));
}

// A tensor of zeros without memory, which autograd makes for gradients that are nothing.
Tensor efficientzerotensor(IntArrayRef size, Optional<ScalarType> dtype, Optional<Layout> layout,
                           Optional<Device> device, Optional<bool> pinned) {
  check_dense(layout, pinned);
  auto allocator = at::native::ZeroTensorAllocator(device_at(index_of(device_or_default(device))));
  const auto keys = kKeys | DispatchKeySet(DispatchKey::ZeroTensor);
  return at::detail::empty_generic(size, &allocator, keys, dtype_or_default(dtype), std::nullopt);
}

// Views: torch's own functions do for every device.
Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, Optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

Tensor view(const Tensor& self, IntArrayRef size) {
  return at::native::view(self, size);
}

Tensor reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

Tensor view_as_real(const Tensor& self) {
  return at::native::view_as_real(self);
}

Tensor view_as_complex(const Tensor& self) {
  return at::native::view_as_complex(self);
}

// Another shape or another storage for a tensor that exists.
void enlarge(const Tensor& self) {
  if (self.numel() == 0) return;
  const auto needed =
      at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.itemsize(), self.storage_offset());
  if (needed > self.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), needed);
}

const Tensor& resize_(const Tensor& self, IntArrayRef size, Optional<MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    impl->set_sizes_contiguous(size);
    if (format.has_value() && *format != MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  }
  enlarge(self);
  return self;
}

Tensor& set_storage_at(Tensor& self, Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  at::native::checkSetStorage(self, source, offset, size, stride, /*check_offset_in_bounds=*/false);
  auto* impl = self.unsafeGetTensorImpl();
  if (stride.data() != nullptr && stride.size() == size.size()) {
    impl->set_sizes_and_strides(size, stride, offset);
  } else {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  }
  enlarge(self);
  return self;
}

Tensor& set_storage(Tensor& self, Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage_at(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage_at(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& set_nothing(Tensor& self) {
  const DeviceGuard guard(self.device());
  Storage nothing(Storage::use_byte_size_t(), 0, GetAllocator(kOpenReg), /*resizable=*/true);
  return set_storage_at(self, std::move(nothing), 0, {0}, {});
}

// Copies: between host and device, within a device and between devices.
Tensor copy_from(const Tensor& self, const Tensor& target, bool /*non_blocking*/) {
  HostAccess access;
  const auto on_host = [&](const Tensor& tensor) { return tensor.is_cpu() ? tensor : host_alias(tensor, access); };
  on_host(target).copy_(on_host(self));
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  if (target.sizes() != self.sizes()) target.resize_(self.sizes());
  return copy_from(self, target, false);
}

at::Scalar local_scalar_dense(const Tensor& self) {
  HostAccess access;
  return at::_local_scalar_dense(host_alias(self, access));
}

// Random, but without an argument for the generator: the device's own draws the mask.
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, Optional<bool> train) {
  const auto mask_options = input.options().dtype(at::kBool);
  if (input.numel() == 0) return {input, at::empty_like(input, mask_options)};
  if (!train.value_or(true)) return {input.clone(), at::full_like(input, true, mask_options)};
  const double kept = 1 - p;
  auto mask = at::empty_like(input, mask_options);
  mask.bernoulli_(kept, getDefaultOpenRegGenerator(input.device().index()));
  return {input.mul(mask).mul_(kept == 0 ? 0 : 1 / kept), mask};
}

// Streams are in order and finish at once: memory never waits for one.
void record_stream(Tensor& /*self*/, Stream /*stream*/) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_efficientzerotensor", efficientzerotensor);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("view_as_real", view_as_real);
  m.impl("view_as_complex", view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage_storage_offset", set_storage_at);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("native_dropout", native_dropout);
  m.impl("record_stream", record_stream);
}

// A conjugate or negative view is resolved by cloning it, and the clone ends in _copy_from: it must come through as it is, since
// torch's own handling of these keys would resolve it by cloning again, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace c10::openreg
