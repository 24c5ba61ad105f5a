// packed_weights.cc: one reorder for floats; bytes are brought around 0, or to floats, before they are packed.
#include "backends/dnnl/primitive/packed_weights.h"

#include <algorithm>

#include "backends/dnnl/primitive/parts.h"
#include "runtime/weight_memory.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::memory;

void Reorder(memory& from, memory& to, const dnnl::primitive_attr& attributes = {},
             std::unordered_map<int, memory> arguments = {}) {
  arguments[DNNL_ARG_FROM] = from;
  arguments[DNNL_ARG_TO] = to;
  dnnl::reorder(dnnl::reorder::primitive_desc(from, to, attributes)).execute(Stream(), arguments);
  Stream().wait();
}

/// `source`, integers of `operand`'s quantisation, as the wanted dtype in the order of `given`: minus the zero point,
/// for floats times the scale.
memory Converted(memory& source, const Binding& binding, const Tensor* scales) {
  const Desc& given = binding.given;
  const DType wanted = binding.wanted.get_data_type();
  const Operand& operand = binding.operand;
  memory result({given.get_dims(), wanted, given.get_strides()}, Engine());
  dnnl::primitive_attr attributes;
  Built numbers;
  if (operand.zero != 0) {
    attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
    memory zero({{1}, DType::s32, memory::dims{1}}, Engine());
    *static_cast<int32_t*>(zero.get_data_handle()) = static_cast<int32_t>(operand.zero);
    numbers.numbers.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, zero);
  }
  if (wanted != DType::s8 && (scales != nullptr || operand.scale != 1)) {
    attributes.set_scales_mask(DNNL_ARG_SRC, scales == nullptr ? 0 : binding.scale_mask);
    const int64_t count = scales == nullptr ? 1 : scales->num_elements();
    memory factors({{count}, DType::f32, memory::dims{1}}, Engine());
    auto* values = static_cast<float*>(factors.get_data_handle());
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(scales == nullptr ? operand.scale : scales->At(i));
    numbers.numbers.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, factors);
  }
  Reorder(source, result, attributes, {numbers.numbers.begin(), numbers.numbers.end()});
  return result;
}

}  // namespace

std::shared_ptr<memory> PackedWeights::Get(const Binding& binding, std::span<const Tensor> constants) {
  const Operand& operand = binding.operand;
  const Tensor& tensor = constants[static_cast<size_t>(operand.constant)];
  const Tensor* scales = operand.scales >= 0 ? &constants[static_cast<size_t>(operand.scales)] : nullptr;
  const void* scales_address = scales == nullptr ? nullptr : scales->raw();
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = entries_.equal_range(tensor.raw());
  for (auto it = begin; it != end; ++it) {
    const Entry& entry = it->second;
    const bool is_same = entry.binding.given == binding.given && entry.binding.wanted == binding.wanted &&
                         entry.binding.operand.zero == operand.zero && entry.binding.operand.scale == operand.scale &&
                         entry.scales == scales_address;
    if (!is_same) continue;
    if (auto packed = entry.packed.lock()) return packed;
  }
  memory source(binding.given, Engine(), tensor.raw());
  std::shared_ptr<void> storage = AllocateWeights(binding.wanted.get_size());
  std::shared_ptr<memory> packed(new memory(binding.wanted, Engine(), storage.get()), [storage](memory* last) mutable {
    delete last;
    storage.reset();  // not when the entry goes that remembers it
  });
  const DType from = binding.given.get_data_type();
  const bool is_integer = from == DType::u8 || from == DType::s8 || from == DType::s32;
  const bool converts = is_integer && (from != binding.wanted.get_data_type() || operand.zero != 0);
  if (converts) {
    memory converted = Converted(source, binding, scales);
    Reorder(converted, *packed);
  } else {
    Reorder(source, *packed);
  }
  std::erase_if(entries_, [](const auto& entry) { return entry.second.packed.expired(); });
  entries_.emplace(tensor.raw(), Entry{binding, scales_address, packed});
  return packed;
}

PackedWeights& PackedWeights::OfProcess() {
  static PackedWeights weights;
  return weights;
}

}  // namespace collage::dnnl_toolchain
