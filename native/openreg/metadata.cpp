// Metadata of the device's own that torch.save keeps with a tensor: a set of named flags.
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <string>
#include <unordered_map>

#include "openreg.h"

namespace c10::openreg {
namespace {

using Flags = std::unordered_map<std::string, bool>;

struct OpenRegMeta final : BackendMeta {
  explicit OpenRegMeta(Flags given) : flags(std::move(given)) {}

  intrusive_ptr<BackendMeta> clone(const intrusive_ptr<BackendMeta>& /*self*/) const override {
    return make_intrusive<OpenRegMeta>(flags);
  }

  Flags flags;
};

void save(const at::Tensor& tensor, Flags& flags) {
  const auto meta = tensor.unsafeGetTensorImpl()->get_backend_meta_intrusive_ptr();
  if (const auto* own = dynamic_cast<const OpenRegMeta*>(meta.get())) flags = own->flags;
}

void load(const at::Tensor& tensor, Flags& flags) {
  tensor.unsafeGetTensorImpl()->set_backend_meta(make_intrusive<OpenRegMeta>(flags));
}

[[maybe_unused]] const bool metadata_registered = [] {
  torch::jit::TensorBackendMetaRegistry(kOpenReg, &save, &load);
  return true;
}();

}  // namespace
}  // namespace c10::openreg
