// Host code over device memory: the way in which this device executes anything.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "openreg.h"

namespace c10::openreg {

HostAccess::~HostAccess() {
  for (void* base : bases_) close_block(base);
}

void HostAccess::open(const at::TensorBase& tensor) {
  if (is_protected() && tensor.defined() && tensor.has_storage()) open(tensor.storage().data());
}

void HostAccess::open(const void* address) {
  if (!is_protected() || address == nullptr) return;
  const auto block = find_block(address);
  if (block.kind != MemoryKind::kDevice) return;
  open_block(block.base);
  bases_.push_back(block.base);
}

at::Tensor host_alias(const at::Tensor& tensor, HostAccess& access) {
  access.open(tensor);
  const auto& storage = tensor.storage();
  Storage host(Storage::use_byte_size_t(), storage.nbytes(), DataPtr(const_cast<void*>(storage.data()), Device(kCPU)),
               GetCPUAllocator(), /*resizable=*/true);
  auto impl = make_intrusive<TensorImpl>(std::move(host), DispatchKeySet(DispatchKey::CPU), tensor.dtype());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  return at::Tensor(std::move(impl));
}

at::Tensor copy_to_device(const at::Tensor& host, Device device) {
  if (!host.defined()) return host;
  auto copy = at::empty_strided(host.sizes(), host.strides(), host.options().device(device));
  HostAccess access;
  access.open(copy);
  const auto size = at::detail::computeStorageNbytes(host.sizes(), host.strides(), host.itemsize(), 0);
  if (host.numel() > 0) std::memcpy(const_cast<void*>(copy.storage().data()), host.const_data_ptr(), size);
  if (host.unsafeGetTensorImpl()->is_wrapped_number()) copy.unsafeGetTensorImpl()->set_wrapped_number(true);
  return copy;
}

}  // namespace c10::openreg
