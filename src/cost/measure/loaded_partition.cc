// loaded_partition.cc: constants and workspace in guarded blocks.
#include "cost/measure/loaded_partition.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace collage {

LoadedPartition::LoadedPartition(CompiledPartition compiled, int num_threads) : compiled_(std::move(compiled)) {
  if (compiled_.workspace_bytes > 0 && compiled_.workspace_memory != Memory::kHost) {
    device_workspace_.emplace(compiled_.workspace_memory, compiled_.workspace_bytes);
  } else if (compiled_.workspace_bytes > 0) {
    workspace_ = std::make_unique<GuardedBlock>(compiled_.workspace_bytes, BlockPlacement::kLeastAligned);
    workspace_->Poison();
  }
  for (Tensor& constant : compiled_.constants) {
    const auto block = std::make_shared<GuardedBlock>(constant.size_bytes(), BlockPlacement::kLeastAligned);
    if (constant.size_bytes() > 0) std::memcpy(block->data(), constant.raw(), constant.size_bytes());
    block->SetReadOnly(true);
    constant = TensorIn(block, constant.shape(), constant.dtype());
    constants_.push_back(block);
  }
  kernel_ = GetKernelLoader(compiled_.loader).Load({compiled_.blob, compiled_.constants, num_threads});
}

void LoadedPartition::Bind(const PartitionBuffers& buffers) {
  const std::vector<void*> inputs = buffers.InputAddresses();
  const std::vector<void*> outputs = buffers.OutputAddresses();
  void* workspace = workspace_ != nullptr ? workspace_->data() : nullptr;
  if (device_workspace_) workspace = device_workspace_->address();
  kernel_->Bind(inputs, outputs, workspace);
}

void LoadedPartition::PoisonWorkspace() {
  if (workspace_ != nullptr) workspace_->Poison();
}

std::string LoadedPartition::FindStrayAccesses() const {
  if (workspace_ != nullptr && !workspace_->Fault().empty()) return workspace_->Fault() + " its workspace";
  for (size_t i = 0; i < constants_.size(); ++i) {
    const std::string fault = constants_[i]->Fault();
    if (!fault.empty()) return fmt::format("{} constant {}", fault, i);
  }
  return "";
}

}  // namespace collage
