// What the files that know torch share: checks, the generator, host access to device memory.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/TensorBase.h>
#include <c10/core/Device.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include "runtime.h"

namespace at {
class Tensor;
}

namespace c10::openreg {

constexpr auto kOpenReg = DeviceType::PrivateUse1;

inline Device device_at(int index) {
  return {kOpenReg, static_cast<DeviceIndex>(index)};
}

// The index itself, or the current device for -1. RuntimeError when there is no such device.
inline DeviceIndex checked_index(int index) {
  if (index == -1) index = current_device();
  TORCH_CHECK(is_device(index), "openreg:", index, " does not exist: the device index must be in [0, ", device_count(),
              ")");
  return static_cast<DeviceIndex>(index);
}

inline DeviceIndex index_of(Device device) {
  return checked_index(device.has_index() ? device.index() : -1);
}

// Random numbers of one device. It lives on the device for all that torch can see and draws from a CPU generator inside: a seed
// gives the CPU's numbers, which makes the CPU the oracle of every random operator.
class OpenRegGeneratorImpl final : public GeneratorImpl {
 public:
  explicit OpenRegGeneratorImpl(DeviceIndex index);
  OpenRegGeneratorImpl(DeviceIndex index, at::Generator host);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const TensorImpl& state) override;
  intrusive_ptr<TensorImpl> get_state() const override;
  void graphsafe_set_state(const intrusive_ptr<GeneratorImpl>& state) override;
  intrusive_ptr<GeneratorImpl> graphsafe_get_state() const override;

  static DeviceType device_type() { return kOpenReg; }
  const at::Generator& host() const { return host_; }

 private:
  OpenRegGeneratorImpl* clone_impl() const override;

  mutable at::Generator host_;  // torch locks a generator through a reference that is not const
};

// The generator that a device is born with, made and seeded at the first call. -1 is the current device.
const at::Generator& getDefaultOpenRegGenerator(DeviceIndex index);
// A new generator with torch's default seed.
at::Generator make_openreg_generator(DeviceIndex index);
// The CPU generator inside `generator`, which must be one of device `index` (RuntimeError otherwise).
at::Generator host_generator(const at::Generator& generator, DeviceIndex index);

// Opens blocks of device memory to host code until it goes out of scope (see `is_protected`).
class HostAccess {
 public:
  HostAccess() = default;
  ~HostAccess();
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

  void open(const at::TensorBase& tensor);
  void open(const void* address);

 private:
  SmallVector<void*, 8> bases_;
};

// A CPU tensor over the memory of a device tensor, good while `access` and the tensor live.
at::Tensor host_alias(const at::Tensor& tensor, HostAccess& access);
// A copy of a CPU tensor on a device, with the same sizes and strides.
at::Tensor copy_to_device(const at::Tensor& host, Device device);

}  // namespace c10::openreg
