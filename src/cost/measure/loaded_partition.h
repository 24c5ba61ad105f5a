// loaded_partition.h: a compiled partition's kernel in this process, with the memory that it uses beside its boundary.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"
#include "cost/measure/guarded_block.h"
#include "cost/measure/partition_buffers.h"

namespace collage {

/// The loaded kernel of `compiled` with what it refers to. Constants are read-only and, as the host's workspace,
/// between pages that may not be touched.
class LoadedPartition {
 public:
  LoadedPartition(CompiledPartition compiled, int num_threads);
  Kernel& kernel() { return *kernel_; }
  void Bind(const PartitionBuffers& buffers);

  /// Leaves nothing in the workspace that a run before may have left there.
  void PoisonWorkspace();
  /// "wrote beyond its workspace", "wrote to constant 0"; empty if nothing was noticed.
  std::string FindStrayAccesses() const;

 private:
  CompiledPartition compiled_;
  std::vector<std::shared_ptr<GuardedBlock>> constants_;
  std::unique_ptr<GuardedBlock> workspace_;
  std::optional<DeviceBuffer> device_workspace_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace collage
