// Tensors that a snapshot knows, in groups of one metadata. What a group is compared with stays in registers while it is
// walked, and every address that is read is known before: the processor has as many of them under way as it can.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "leaf.hpp"
#include "tensor_leaf.h"
#include "torch_state.hpp"

namespace {

struct KnownTensor {
  PyObject* object;
#if MINIDYNAMO_KNOWS_MEMBERS
  const c10::TensorImpl* impl;
  const AutogradMeta* autograd;
#endif
};

// After an operator a check reads memory that is in no cache: that of so many tensors ahead is fetched. The list has as many
// more at its end, which are nothing.
constexpr size_t kAhead = 8;

// Tensors whose check is the same, and (if `alike`) whose words are as they were when the check held.
struct KnownGroup {
  const Leaf* leaf;
  uint64_t keys;  // dispatch keys
  uint64_t flags;  // dtype, device, policies: all that lies before the keys
  size_t end;  // of its tensors
  bool alike;
};

struct KnownTensors {
  uint64_t included, excluded;  // dispatch keys of the thread when the checks held
  std::vector<KnownTensor> tensors;
  std::vector<KnownGroup> groups;
};

#if MINIDYNAMO_KNOWS_MEMBERS

uint64_t keys_of(const c10::TensorImpl& impl) {
  return (impl.*reach(KeysPart{})).raw_repr();
}

const char* flags_at(const c10::TensorImpl& impl) {
  return reinterpret_cast<const char*>(&(impl.*reach(DtypePart{})));
}

uint64_t flags_of(const c10::TensorImpl& impl) {
  uint64_t flags = 0;
  std::memcpy(&flags, flags_at(impl), sizeof(flags));
  return flags;
}

// Does one word hold everything between the dtype and the keys?
bool has_flags_in_a_word(const c10::TensorImpl& impl) {
  return reinterpret_cast<const char*>(&(impl.*reach(KeysPart{}))) - flags_at(impl) == sizeof(uint64_t);
}

// Everything that a leaf says of a tensor, and the words that say it of this one.
using Likeness = std::array<uint64_t, 6 + 2 * kInlineDims>;

Likeness likeness(const Leaf& leaf, const c10::TensorImpl& impl) {
  Likeness all{};
  all[0] = reinterpret_cast<uintptr_t>(leaf.type);
  all[1] = leaf.keyset;
  all[2] = leaf.rank;
  all[3] = leaf.requires_grad;
  all[4] = keys_of(impl);
  all[5] = flags_of(impl);
  std::copy(leaf.few.begin(), leaf.few.end(), all.begin() + 6);
  return all;
}

void get_to_know(KnownTensor& tensor) {
  tensor.impl = THPVariable_Unpack(tensor.object).unsafeGetTensorImpl();
  tensor.autograd = autograd_of(*tensor.impl);
}

// Can it be compared by words? Only a type that lives for ever says that an object is a tensor before it is looked at.
bool can_be_alike(const Leaf& leaf, PyObject* object, const TensorTls* tls) {
  return leaf.torchs_own && !leaf.any && leaf.rank <= kInlineDims && leaf_check(&leaf, tls, object) != 0 &&
         has_flags_in_a_word(*THPVariable_Unpack(object).unsafeGetTensorImpl());
}

constexpr size_t kLine = 64;

void fetch(const KnownTensor& tensor) {
  if (tensor.impl == nullptr) return;
  __builtin_prefetch(tensor.object);
  const char* impl = reinterpret_cast<const char*>(tensor.impl);
  for (size_t at = 0; at < sizeof(c10::TensorImpl); at += kLine) __builtin_prefetch(impl + at);
  if (tensor.autograd != nullptr) __builtin_prefetch(&tensor.autograd->requires_grad_);
}

// The tensors of a group one by one. `grad`: grad mode is on, so that the tensors themselves say whether they require it.
template <size_t Rank>
bool walk(const KnownGroup& group, KnownTensor* tensor, KnownTensor* end, const TensorTls* tls) {
  const Leaf& leaf = *group.leaf;
  const bool grad = tls->grad_mode != 0;
  const bool wants = leaf.requires_grad;
  if (wants && !grad) return false;
  const void* type = leaf.type;
  const uint64_t keys = group.keys;
  const uint64_t flags = group.flags;
  std::array<int64_t, 2 * Rank> dims;
  for (size_t i = 0; i < 2 * Rank; ++i) dims[i] = leaf.few[i];
  const auto as_before = [&](const KnownTensor& known) {
    if (Py_TYPE(known.object) != type || THPVariable_Unpack(known.object).unsafeGetTensorImpl() != known.impl)
      return false;
    const c10::TensorImpl& impl = *known.impl;
    const c10::impl::SizesAndStrides& layout = impl.*reach(LayoutPart{});
    if (layout.size() != Rank || autograd_of(impl) != known.autograd) return false;
    uint64_t other = (keys_of(impl) ^ keys) | (flags_of(impl) ^ flags);
    const int64_t* sizes = layout.sizes_data();
    const int64_t* strides = layout.strides_data();
    for (size_t i = 0; i < Rank; ++i)
      other |= static_cast<uint64_t>((sizes[i] ^ dims[i]) | (strides[i] ^ dims[Rank + i]));
    if (other != 0) return false;
    if (!grad) return true;
    return (known.autograd != nullptr && known.autograd->AutogradMeta::requires_grad()) == wants;
  };
  for (; tensor != end; ++tensor) {
    fetch(tensor[kAhead]);
    if (__builtin_expect(as_before(*tensor), 1)) continue;
    if (leaf_check(&leaf, tls, tensor->object) == 0) return false;
    get_to_know(*tensor);
  }
  return true;
}

bool walk_any(const KnownGroup& group, KnownTensor* begin, KnownTensor* end, const TensorTls* tls) {
  static_assert(kInlineDims == 5, "a case for each");
  switch (group.leaf->rank) {
    case 0:
      return walk<0>(group, begin, end, tls);
    case 1:
      return walk<1>(group, begin, end, tls);
    case 2:
      return walk<2>(group, begin, end, tls);
    case 3:
      return walk<3>(group, begin, end, tls);
    case 4:
      return walk<4>(group, begin, end, tls);
    default:
      return walk<5>(group, begin, end, tls);
  }
}

// Which group each tensor is of, groups in the order of their first tensors.
std::vector<size_t> grouped(KnownTensors& known, const TensorCheck* checks, size_t count, const TensorTls* tls) {
  std::map<Likeness, size_t> alike;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    const Leaf& leaf = *static_cast<const Leaf*>(checks[i].leaf);
    KnownGroup group{&leaf, 0, 0, 0, can_be_alike(leaf, checks[i].object, tls)};
    size_t number = known.groups.size();
    if (group.alike) {
      const c10::TensorImpl& impl = *THPVariable_Unpack(checks[i].object).unsafeGetTensorImpl();
      group.keys = keys_of(impl);
      group.flags = flags_of(impl);
      number = alike.emplace(likeness(leaf, impl), number).first->second;
    }
    if (number == known.groups.size()) known.groups.push_back(group);
    numbers.push_back(number);
  }
  return numbers;
}

#else

void get_to_know(KnownTensor&) {}

bool walk_any(const KnownGroup&, KnownTensor*, KnownTensor*, const TensorTls*) {
  return false;
}

// None is compared by words: a group each.
std::vector<size_t> grouped(KnownTensors& known, const TensorCheck* checks, size_t count, const TensorTls*) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    known.groups.push_back({static_cast<const Leaf*>(checks[i].leaf), 0, 0, 0, false});
    numbers.push_back(i);
  }
  return numbers;
}

#endif

// Puts the tensors of each group together, those of a group in their order.
void place(KnownTensors& known, const TensorCheck* checks, const std::vector<size_t>& numbers) {
  for (const size_t number : numbers) known.groups[number].end++;
  size_t begin = 0;
  for (KnownGroup& group : known.groups) {
    const size_t count = group.end;
    group.end = begin;  // where its next tensor goes
    begin += count;
  }
  known.tensors.resize(numbers.size() + kAhead);
  for (size_t i = 0; i < numbers.size(); ++i) {
    KnownGroup& group = known.groups[numbers[i]];
    KnownTensor& tensor = known.tensors[group.end++];
    tensor = {};
    tensor.object = checks[i].object;
    if (group.alike) get_to_know(tensor);
  }
}

void* known_make(const TensorCheck* checks, Py_ssize_t count, const TensorTls* tls) {
  try {
    auto known = std::make_unique<KnownTensors>();
    known->included = tls->included;
    known->excluded = tls->excluded;
    place(*known, checks, grouped(*known, checks, static_cast<size_t>(count), tls));
    return known.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int known_check(void* pointer, const TensorTls* tls) {
  auto& known = *static_cast<KnownTensors*>(pointer);
  const bool by_words = tls->included == known.included && tls->excluded == known.excluded;
  KnownTensor* tensor = known.tensors.data();
  for (const KnownGroup& group : known.groups) {
    KnownTensor* end = known.tensors.data() + group.end;
    if (group.alike && by_words) {
      if (!walk_any(group, tensor, end, tls)) return 0;
      tensor = end;
      continue;
    }
    for (; tensor != end; ++tensor)
      if (leaf_check(group.leaf, tls, tensor->object) == 0) return 0;
  }
  return 1;
}

void known_free(void* known) {
  delete static_cast<KnownTensors*>(known);
}

}  // namespace
