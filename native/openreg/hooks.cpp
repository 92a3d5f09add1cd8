// Level 5: the hooks through which libtorch asks about the device.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Storage.h>

#include <algorithm>

#include "finish.h"
#include "openreg.h"
#include "trace.h"

namespace c10::openreg {
namespace {

struct OpenRegHooksInterface final : at::PrivateUse1HooksInterface {
  // High priority: without them a part of torch does not work.
  void init() const override {
    const TracePoint point(kHook);
    start();
  }

  bool hasPrimaryContext(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    checked_index(index);
    note_autograd_thread();  // autograd asks this of every device when it starts a thread
    return is_started();
  }

  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    return getDefaultOpenRegGenerator(index);
  }

  at::Generator getNewGenerator(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    return make_openreg_generator(index);
  }

  Device getDeviceFromPtr(void* data) const override {
    const TracePoint point(kHook);
    const auto block = find_block(data);
    TORCH_CHECK(block.kind == MemoryKind::kDevice, "openreg: the pointer ", data, " is not in the memory of a device");
    return device_at(block.device);
  }

  Allocator* getPinnedMemoryAllocator() const override {
    const TracePoint point(kHook);
    return at::getHostAllocator(kOpenReg);
  }

  bool isPinnedPtr(const void* data) const override {
    const TracePoint point(kHook);
    return find_block(data).kind == MemoryKind::kPinned;
  }

  // Low priority: torch has another way to each answer, or asks on request only.
  bool isBuilt() const override {
    const TracePoint point(kHook);
    return true;
  }

  bool isAvailable() const override {  // must not throw
    const TracePoint point(kHook);
    return device_count() > 0;
  }

  DeviceIndex deviceCount() const override {
    const TracePoint point(kHook);
    return static_cast<DeviceIndex>(device_count());
  }

  void setCurrentDevice(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    set_current_device(checked_index(index));
  }

  DeviceIndex getCurrentDevice() const override {
    const TracePoint point(kHook);
    return static_cast<DeviceIndex>(current_device());
  }

  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    const auto before = static_cast<DeviceIndex>(current_device());
    set_current_device(checked_index(index));
    return before;
  }

  // Like exchangeDevice; an index that is no device changes nothing.
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    const TracePoint point(kHook, index);
    const auto before = static_cast<DeviceIndex>(current_device());
    if (is_device(index)) set_current_device(index);
    return before;
  }

  // Not in the documented tables: UntypedStorage.resize_ and the operators that enlarge their output need it.
  void resizePrivateUse1Bytes(const Storage& storage, size_t size) const override {
    const TracePoint point(kHook, storage.device().index());
    auto* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    const DeviceGuard guard(storage.device());
    DataPtr fresh = impl->allocator()->allocate(size);
    const size_t kept = std::min(size, impl->nbytes());
    if (kept > 0) impl->allocator()->copy_data(fresh.get(), impl->data(), kept);
    impl->set_data_ptr_noswap(std::move(fresh));
    impl->set_nbytes(size);
  }
};

// Once, when the library is loaded. `minidynamo/openreg/load.py` has seen to it that nobody else has the key.
[[maybe_unused]] const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new OpenRegHooksInterface());
  return true;
}();

}  // namespace
}  // namespace c10::openreg
