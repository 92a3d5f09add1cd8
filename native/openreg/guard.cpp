// The device guard: through it torch changes and restores the current device and handles streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "openreg.h"

namespace c10::openreg {
namespace {

struct Event {
  uint64_t tick;
};

const Event& recorded(const void* event) {
  TORCH_CHECK(event != nullptr, "Both events must be recorded before calculating elapsed time.");
  return *static_cast<const Event*>(event);
}

Stream stream_at(DeviceIndex index, int64_t id) {
  return Stream(Stream::UNSAFE, device_at(index), id);
}

struct OpenRegGuardImpl final : impl::DeviceGuardImplInterface {
  DeviceType type() const override { return kOpenReg; }

  // Devices. One without an index means the current one.
  Device exchangeDevice(Device device) const override {
    const auto before = current_device();
    set_current_device(index_of(device));
    return device_at(before);
  }

  Device getDevice() const override { return device_at(current_device()); }

  void setDevice(Device device) const override { set_current_device(index_of(device)); }

  void uncheckedSetDevice(Device device) const noexcept override {
    if (is_device(device.index())) set_current_device(device.index());
  }

  DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(device_count()); }

  DeviceCapability getDeviceCapability(Device device) const override {
    index_of(device);
    return {};  // every type
  }

  void synchronizeDevice(DeviceIndex index) const override { checked_index(index); }

  // Streams.
  Stream getStream(Device device) const override {
    const auto index = index_of(device);
    return stream_at(index, current_stream(index));
  }

  Stream getDefaultStream(Device device) const override { return Stream(Stream::DEFAULT, device_at(index_of(device))); }

  Stream getStreamFromGlobalPool(Device device, bool /*high_priority*/) const override {
    return getNewStream(device, 0);
  }

  Stream getNewStream(Device device, int /*priority*/) const override {
    const auto index = index_of(device);
    return stream_at(index, new_stream(index));
  }

  Stream exchangeStream(Stream stream) const override {
    const auto index = checked_index(stream.device_index());
    return stream_at(index, exchange_stream(index, stream.id()));
  }

  void* getStreamNativeHandle(const Stream stream) const override { return reinterpret_cast<void*>(stream.id()); }

  bool queryStream(const Stream& /*stream*/) const override { return true; }

  void synchronizeStream(const Stream& /*stream*/) const override {}

  void recordDataPtrOnStream(const DataPtr& /*data*/, const Stream& /*stream*/) const override {}

  // Events. Work is done when the call that asked for it returns, so a recorded event has happened.
  void record(void** event, const Stream& stream, const DeviceIndex index, const EventFlag /*flag*/) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "An event of openreg:", static_cast<int>(index),
                " cannot be recorded on a stream of ", stream.device());
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->tick = tick();
  }

  void block(void* /*event*/, const Stream& /*stream*/) const override {}

  bool queryEvent(void* /*event*/) const override { return true; }

  void synchronizeEvent(void* /*event*/) const override {}

  double elapsedTime(void* first, void* second, const DeviceIndex /*index*/) const override {  // milliseconds
    return (static_cast<double>(recorded(second).tick) - static_cast<double>(recorded(first).tick)) / 1e6;
  }

  void destroyEvent(void* event, const DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, OpenRegGuardImpl)

}  // namespace
}  // namespace c10::openreg
