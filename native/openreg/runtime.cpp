#include "runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

namespace c10::openreg {
namespace {

// The number in an environment variable, cut to [low, high]; `fallback` when it is unset or no number.
int64_t setting(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const int64_t value = std::strtoll(text, &end, 10);
  if (*end != '\0') return fallback;
  return value < low ? low : value > high ? high : value;
}

struct Mapping {
  Block block;
  size_t mapped = 0;  // bytes taken with mmap; 0 for what malloc gave
  int openings = 0;
};

struct Memory {
  std::mutex mutex;
  std::map<uintptr_t, Mapping> mappings;  // by address
  MemoryStats stats[kMaxDevices + 1];     // the last one: pinned memory

  MemoryStats& stats_of(int device) { return stats[device == kPinned ? kMaxDevices : device]; }
};

// Never destroyed: tensors may outlive static objects.
Memory& memory() {
  static auto* const instance = new Memory;
  return *instance;
}

thread_local int this_device = 0;
thread_local int64_t this_stream[kMaxDevices] = {};
std::atomic<int64_t> last_stream[kMaxDevices];
std::atomic<uint64_t> last_tick{0};
std::atomic<bool> started{false};

void* take(size_t size, bool guarded, size_t* mapped) {
  if (!guarded) {
    void* base = nullptr;
    return posix_memalign(&base, 64, size) == 0 ? base : nullptr;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  *mapped = (size + page - 1) / page * page;
  void* base = mmap(nullptr, *mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

void* allocate(MemoryKind kind, int device, size_t size, size_t capacity) {
  if (size == 0) return nullptr;
  auto& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  auto& stats = m.stats_of(device);
  Mapping mapping;
  void* base = nullptr;
  if (size <= capacity - static_cast<size_t>(stats.bytes.current))
    base = take(size, kind == MemoryKind::kDevice && is_protected(), &mapping.mapped);
  if (base == nullptr) {
    stats.refused++;
    return nullptr;
  }
  mapping.block = {kind, device, base, size};
  m.mappings.emplace(reinterpret_cast<uintptr_t>(base), mapping);
  stats.bytes.add(static_cast<int64_t>(size));
  stats.blocks.add(1);
  return base;
}

void change_openings(void* base, int change) {
  if (!is_protected()) return;
  auto& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const auto found = m.mappings.find(reinterpret_cast<uintptr_t>(base));
  if (found == m.mappings.end() || found->second.mapped == 0) return;
  auto& mapping = found->second;
  const bool was_open = mapping.openings > 0;
  mapping.openings += change;
  const bool is_open = mapping.openings > 0;
  if (was_open != is_open) mprotect(base, mapping.mapped, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace

int device_count() noexcept {
  static const auto count = static_cast<int>(setting("OPENREG_DEVICE_COUNT", 2, 0, kMaxDevices));
  return count;
}

bool is_device(int device) noexcept {
  return device >= 0 && device < device_count();
}

int current_device() noexcept {
  return this_device;
}

void set_current_device(int device) noexcept {
  this_device = device;
}

bool is_started() noexcept {
  return started;
}

void start() noexcept {
  started = true;
}

size_t memory_capacity() noexcept {
  static const auto megabytes = static_cast<size_t>(setting("OPENREG_MEMORY_MB", 4096, 1, int64_t{1} << 30));
  return megabytes << 20;
}

void* allocate_device(int device, size_t size) {
  return allocate(MemoryKind::kDevice, device, size, memory_capacity());
}

void* allocate_pinned(size_t size) {
  return allocate(MemoryKind::kPinned, kPinned, size, SIZE_MAX);
}

void release(void* base) {
  if (base == nullptr) return;
  auto& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const auto found = m.mappings.find(reinterpret_cast<uintptr_t>(base));
  if (found == m.mappings.end()) return;
  const auto& mapping = found->second;
  auto& stats = m.stats_of(mapping.block.device);
  stats.bytes.remove(static_cast<int64_t>(mapping.block.size));
  stats.blocks.remove(1);
  if (mapping.mapped != 0) munmap(base, mapping.mapped);
  else std::free(base);
  m.mappings.erase(found);
}

Block find_block(const void* address) {
  auto& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  auto next = m.mappings.upper_bound(wanted);
  if (next == m.mappings.begin()) return {};
  const auto& block = std::prev(next)->second.block;
  return wanted < reinterpret_cast<uintptr_t>(block.base) + block.size ? block : Block{};
}

MemoryStats memory_stats(int device) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().stats_of(device);
}

void reset_peak_stats(int device) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  auto& stats = memory().stats_of(device);
  stats.bytes.reset_peak();
  stats.blocks.reset_peak();
}

void reset_accumulated_stats(int device) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  auto& stats = memory().stats_of(device);
  stats.bytes.reset_accumulated();
  stats.blocks.reset_accumulated();
  stats.refused = 0;
}

bool is_protected() noexcept {
  static const bool on = setting("OPENREG_PROTECT", 0, 0, 1) != 0;
  return on;
}

void open_block(void* base) {
  change_openings(base, 1);
}

void close_block(void* base) {
  change_openings(base, -1);
}

int64_t new_stream(int device) noexcept {
  return ++last_stream[device];
}

int64_t current_stream(int device) noexcept {
  return this_stream[device];
}

int64_t exchange_stream(int device, int64_t stream) noexcept {
  return std::exchange(this_stream[device], stream);
}

uint64_t tick() noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  auto now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  uint64_t before = last_tick;
  do {
    if (now <= before) now = before + 1;
  } while (!last_tick.compare_exchange_weak(before, now));
  return now;
}

}  // namespace c10::openreg
