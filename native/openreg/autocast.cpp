// Autocast: which operators run in lower precision, which in float32, which in the widest type of their inputs.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace c10::openreg {

// torch's macros spell these types without a namespace.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

namespace {

Tensor refuse_binary_cross_entropy(const Tensor& /*input*/, const Tensor& /*target*/,
                                   const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "binary_cross_entropy and BCELoss are unsafe to autocast on openreg: a probability of 0 or 1 in lower "
              "precision gives an "
              "infinite loss. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss.");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FLOAT32)
  FLOAT32(dot)  // torch's list for CPU and CUDA has it in the widest type; a sum of products wants more
  AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  WIDEST(addcdiv)
  WIDEST(addcmul)
  WIDEST(atan2)
  WIDEST(bilinear)
  WIDEST(cat)
  WIDEST(cross)
  WIDEST(grid_sampler)
  WIDEST(index_put)
  WIDEST(scatter_add)
  WIDEST(stack)
  WIDEST(tensordot)
  WIDEST(vdot)
  m.impl("binary_cross_entropy", refuse_binary_cross_entropy);
}

}  // namespace c10::openreg
