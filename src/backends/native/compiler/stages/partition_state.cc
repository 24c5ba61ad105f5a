// partition_state.cc: buffers of a partition, and its module.
#include "backends/native/compiler/stages/partition_state.h"

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
  return emitter.Module({num_inputs, static_cast<int>(constants.size()), outputs});
}

}  // namespace collage::native
