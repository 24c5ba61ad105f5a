// partition_state.cc: buffers of a partition, and its module.
#include "backends/native/compiler/stages/partition_state.h"

#include "runtime/native_loader.h"

namespace collage::native {

Buffer PartitionState::AddConstant(const Tensor& value) {
  constants.push_back(value);
  return {{BufferRole::kConstant, static_cast<int>(constants.size()) - 1},
          0,
          value.dtype(),
          value.shape(),
          LayoutStrides(value.shape(), Layout::kPlain),
          /*is_constant=*/true};
}

Buffer PartitionState::AddWorkspace(const Shape& shape, Layout layout, DataType dtype) {
  constexpr int64_t kAlignment = 64;
  const Buffer buffer{WorkspaceRef(), workspace_bytes, dtype, shape, LayoutStrides(shape, layout)};
  const int64_t bytes = NumElements(shape) * static_cast<int64_t>(dtype.size_bytes());
  workspace_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return buffer;
}

std::string PartitionState::Module(int outputs) const {
  std::string pairs;
  for (const InPlaceResult& one : in_place) pairs += fmt::format("{} {} ", one.input, one.output);
  if (!pairs.empty())
    pairs = fmt::format("llvm.mlir.global external constant @{}(\"{}\\00\")\n", kObjectInPlace, pairs);
  return pairs + emitter.Module({num_inputs, static_cast<int>(constants.size()), outputs});
}

}  // namespace collage::native
