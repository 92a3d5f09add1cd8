// What torch.profiler needs to time device work: without these stubs every profiled operator prints a warning.
#include <torch/csrc/profiler/stubs/base.h>

#include "openreg.h"

namespace c10::openreg {
namespace {

using torch::profiler::impl::ProfilerStubs;
using torch::profiler::impl::ProfilerVoidEventStub;

uint64_t tick_of(const ProfilerVoidEventStub* event) {
  return *static_cast<const uint64_t*>(event->get());
}

struct OpenRegProfilerStubs final : ProfilerStubs {
  void record(DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    const auto now = tick();
    if (device != nullptr) *device = static_cast<DeviceIndex>(current_device());
    *event = std::make_shared<uint64_t>(now);
    if (cpu_ns != nullptr) *cpu_ns = static_cast<int64_t>(now);
  }

  float elapsed(const ProfilerVoidEventStub* first,
                const ProfilerVoidEventStub* second) const override {  // microseconds
    return static_cast<float>(static_cast<double>(tick_of(second)) - static_cast<double>(tick_of(first))) / 1e3f;
  }

  void mark(const char* /*name*/) const override {}
  void rangePush(const char* /*name*/) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> call) const override {
    for (int index = 0; index < device_count(); index++) call(index);
  }

  void synchronize() const override {}
};

[[maybe_unused]] const bool profiler_registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new OpenRegProfilerStubs());
  return true;
}();

}  // namespace
}  // namespace c10::openreg
