// Level 6: the random number generators, one a device.
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <utility>
#include <vector>

#include "openreg.h"
#include "trace.h"

namespace c10::openreg {

OpenRegGeneratorImpl::OpenRegGeneratorImpl(DeviceIndex index)
    : OpenRegGeneratorImpl(index, at::detail::createCPUGenerator()) {}

OpenRegGeneratorImpl::OpenRegGeneratorImpl(DeviceIndex index, at::Generator host)
    : GeneratorImpl(device_at(index), DispatchKeySet(DispatchKey::PrivateUse1)), host_(std::move(host)) {}

// torch holds the mutex of this generator around these calls; kernels hold the one of the generator inside.
void OpenRegGeneratorImpl::set_current_seed(uint64_t seed) {
  const TracePoint point(kDevice, device().index(), "OpenRegGeneratorImpl::set_current_seed");
  const std::lock_guard<std::mutex> lock(host_.mutex());
  host_.unsafeGetGeneratorImpl()->set_current_seed(seed);
}

uint64_t OpenRegGeneratorImpl::current_seed() const {
  return host_.unsafeGetGeneratorImpl()->current_seed();
}

uint64_t OpenRegGeneratorImpl::seed() {
  const std::lock_guard<std::mutex> lock(host_.mutex());
  return host_.unsafeGetGeneratorImpl()->seed();
}

// A Mersenne twister has no offset, but torch keeps one with the seed and the state when it pickles a generator.
void OpenRegGeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset == 0, "openreg: the generator is a Mersenne twister and has no offset to set");
}

uint64_t OpenRegGeneratorImpl::get_offset() const {
  return 0;
}

void OpenRegGeneratorImpl::set_state(const TensorImpl& state) {
  const std::lock_guard<std::mutex> lock(host_.mutex());
  host_.unsafeGetGeneratorImpl()->set_state(state);
}

intrusive_ptr<TensorImpl> OpenRegGeneratorImpl::get_state() const {
  const std::lock_guard<std::mutex> lock(host_.mutex());
  return host_.unsafeGetGeneratorImpl()->get_state();
}

// Shares the numbers with the generator that it came from, as on other devices.
intrusive_ptr<GeneratorImpl> OpenRegGeneratorImpl::graphsafe_get_state() const {
  return make_intrusive<OpenRegGeneratorImpl>(device().index(), host_);
}

void OpenRegGeneratorImpl::graphsafe_set_state(const intrusive_ptr<GeneratorImpl>& state) {
  const auto* other = dynamic_cast<const OpenRegGeneratorImpl*>(state.get());
  TORCH_CHECK(other != nullptr, "openreg: graphsafe_set_state takes a generator of an openreg device");
  host_ = other->host_;
}

OpenRegGeneratorImpl* OpenRegGeneratorImpl::clone_impl() const {
  const std::lock_guard<std::mutex> lock(host_.mutex());
  return new OpenRegGeneratorImpl(device().index(), host_.clone());
}

const at::Generator& getDefaultOpenRegGenerator(DeviceIndex index) {
  const TracePoint point(kDevice, index);
  static const auto* const generators = [] {
    auto* made = new std::vector<at::Generator>;
    for (int i = 0; i < device_count(); i++) {
      made->push_back(at::make_generator<OpenRegGeneratorImpl>(static_cast<DeviceIndex>(i)));
      made->back().seed();
    }
    return made;
  }();
  return (*generators)[static_cast<size_t>(checked_index(index))];
}

at::Generator make_openreg_generator(DeviceIndex index) {
  const TracePoint point(kDevice, index);
  return at::make_generator<OpenRegGeneratorImpl>(checked_index(index));
}

at::Generator host_generator(const at::Generator& generator, DeviceIndex index) {
  const auto* impl = dynamic_cast<const OpenRegGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(impl != nullptr, "Expected a 'openreg' device type for generator but found '", generator.device().type(),
              "'");
  TORCH_CHECK(impl->device().index() == index, "Expected a generator of openreg:", static_cast<int>(index),
              " but found one of ", generator.device());
  return impl->host();
}

}  // namespace c10::openreg
