// The simulated hardware: devices, memory, streams. No torch header is needed here, as for a vendor's driver.
//
// Devices are indices [0, device_count()). Every device has a memory of its own, which in truth is the host's. Streams are in
// order and finish at once, so what is left of them is their identity; the current device and stream belong to a thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10::openreg {

constexpr int kMaxDevices = 16;

// Devices. OPENREG_DEVICE_COUNT (default 2) is read once.
int device_count() noexcept;
bool is_device(int device) noexcept;
int current_device() noexcept;
void set_current_device(int device) noexcept;  // the caller has checked the index

// True from the first use of a device on. Nothing is set up before that, so that a process may fork.
bool is_started() noexcept;
void start() noexcept;

// Memory.
enum class MemoryKind { kUnknown, kDevice, kPinned };

struct Block {
  MemoryKind kind = MemoryKind::kUnknown;
  int device = -1;
  void* base = nullptr;
  size_t size = 0;
};

struct Counter {
  int64_t current = 0, peak = 0, added = 0, removed = 0;

  void add(int64_t amount) noexcept {
    current += amount, added += amount;
    if (current > peak) peak = current;
  }
  void remove(int64_t amount) noexcept { current -= amount, removed += amount; }
  void reset_peak() noexcept { peak = current; }
  void reset_accumulated() noexcept { added = removed = 0; }
};

struct MemoryStats {
  Counter bytes, blocks;
  int64_t refused = 0;  // allocations that did not fit
};

// The bytes of one device: OPENREG_MEMORY_MB (default 4096), read once.
size_t memory_capacity() noexcept;
// Null when `size` is 0 or does not fit. Every block is freed with `release`.
void* allocate_device(int device, size_t size);
void* allocate_pinned(size_t size);
void release(void* base);
// The block that `address` lies in, of kind kUnknown when there is none.
Block find_block(const void* address);

constexpr int kPinned = -1;  // in place of a device index: the pinned memory of the host
MemoryStats memory_stats(int device);
void reset_peak_stats(int device);
void reset_accumulated_stats(int device);

// OPENREG_PROTECT=1: device memory cannot be reached by host code, as on real hardware; a stray access faults. `open_block` and
// `close_block` nest and let host code in between; without protection they do nothing.
bool is_protected() noexcept;
void open_block(void* base);
void close_block(void* base);

// Streams: 0 is the default one of its device.
int64_t new_stream(int device) noexcept;
int64_t current_stream(int device) noexcept;
int64_t exchange_stream(int device, int64_t stream) noexcept;
// Nanoseconds that grow with every call, for events.
uint64_t tick() noexcept;

}  // namespace c10::openreg
