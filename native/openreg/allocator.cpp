// The allocators of device memory and of pinned host memory.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

#include "openreg.h"

namespace c10::openreg {
namespace {

void fill(CachingAllocator::Stat& stat, const Counter& counter) {
  stat.current = counter.current;
  stat.peak = counter.peak;
  stat.allocated = counter.added;
  stat.freed = counter.removed;
}

void fill(CachingAllocator::StatArray& stats, const Counter& counter) {
  fill(stats[static_cast<size_t>(CachingAllocator::StatType::AGGREGATE)], counter);
}

// Nothing is cached: a block goes back to the device as soon as its tensor dies.
struct OpenRegDeviceAllocator final : DeviceAllocator {
  DataPtr allocate(size_t size) override {
    const int device = current_device();
    void* base = allocate_device(device, size);
    TORCH_CHECK_WITH(OutOfMemoryError, base != nullptr || size == 0, "openreg:", device,
                     " is out of memory: tried to allocate ", size, " bytes, ", memory_stats(device).bytes.current,
                     " of ", memory_capacity(), " bytes are in use");
    return {base, base, &release, device_at(device)};
  }

  DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t size) const override {
    HostAccess access;
    access.open(to);
    access.open(from);
    std::memcpy(to, from, size);
  }

  bool initialized() override { return is_started(); }

  void emptyCache(MempoolId_t /*pool*/) override {}

  void recordStream(const DataPtr& /*data*/, Stream /*stream*/) override {}

  CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex index) override {
    const auto stats = memory_stats(checked_index(index));
    CachingDeviceAllocator::DeviceStats result;
    for (auto* counts : {&result.allocation, &result.active, &result.segment}) fill(*counts, stats.blocks);
    for (auto* sums : {&result.allocated_bytes, &result.reserved_bytes, &result.active_bytes, &result.requested_bytes})
      fill(*sums, stats.bytes);
    result.num_device_alloc = stats.blocks.added;
    result.num_device_free = stats.blocks.removed;
    result.num_ooms = stats.refused;
    return result;
  }

  void resetAccumulatedStats(DeviceIndex index) override { reset_accumulated_stats(checked_index(index)); }

  void resetPeakStats(DeviceIndex index) override { reset_peak_stats(checked_index(index)); }

  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex index) override {  // free, total
    const auto used = static_cast<size_t>(memory_stats(checked_index(index)).bytes.current);
    return {memory_capacity() - used, memory_capacity()};
  }
};

struct OpenRegHostAllocator final : at::HostAllocator {
  DataPtr allocate(size_t size) override {
    void* base = allocate_pinned(size);
    TORCH_CHECK_WITH(OutOfMemoryError, base != nullptr || size == 0, "openreg: cannot allocate ", size,
                     " bytes of pinned memory");
    return {base, base, &release, DeviceType::CPU};
  }

  DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }

  bool record_event(void* /*data*/, void* /*context*/, Stream /*stream*/) override { return true; }

  void empty_cache() override {}

  at::HostStats get_stats() override {
    const auto stats = memory_stats(kPinned);
    at::HostStats result;
    fill(result.active_requests, stats.blocks);
    fill(result.allocations, stats.blocks);
    fill(result.active_bytes, stats.bytes);
    fill(result.allocated_bytes, stats.bytes);
    result.num_host_alloc = stats.blocks.added;
    result.num_host_free = stats.blocks.removed;
    return result;
  }

  void reset_accumulated_stats() override { openreg::reset_accumulated_stats(kPinned); }

  void reset_peak_stats() override { openreg::reset_peak_stats(kPinned); }
};

OpenRegDeviceAllocator device_allocator;
OpenRegHostAllocator host_allocator;
REGISTER_ALLOCATOR(kOpenReg, &device_allocator)

}  // namespace
}  // namespace c10::openreg

namespace {
const at::HostAllocatorRegistry<at::kPrivateUse1> host_allocator_registered(&c10::openreg::host_allocator);
}  // namespace
