// partition_buffers.h: where a partition that is measured reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/target/toolchain.h"
#include "cost/measure/guarded_block.h"
#include "ir/eval/sample_inputs.h"

namespace collage {

/// Buffers for one partition: 64-byte aligned inputs in the boundary layouts filled with representative values, those
/// of Draw::kUnit at first, and outputs with a margin around each, all in the memories that the layouts say.
class PartitionBuffers {
 public:
  /// `guarded`: the host's memory is between pages that may not be touched, and inputs are read-only; empty: ordinary
  /// memory, as kernels are timed in.
  explicit PartitionBuffers(const PartitionRequest& request, std::optional<BlockPlacement> guarded = {});

  /// Other values in the same places; plain_inputs() are new tensors then.
  void Fill(Draw draw);
  /// Flattened parameters and results in logical, plain order.
  const std::vector<Tensor>& plain_inputs() const { return plain_inputs_; }
  /// The results, converted back from their boundary layouts.
  std::vector<Tensor> PlainOutputs() const;
  /// Fills outputs with a pattern that no right result has, so that what is not written is noticed.
  void PoisonOutputs();

  /// Whether a result that takes memory is as PoisonOutputs left it.
  bool OutputsArePoisoned() const;
  /// The bytes of a result as the last run left them.
  std::vector<std::byte> OutputBytes(size_t index) const;
  size_t num_outputs() const { return outputs_.size(); }

  /// A digest of the bytes of all results, as fast as they can be read.
  uint64_t OutputDigest() const;

  /// Returns a description of stray accesses, "wrote beyond result 0"; empty if there are none.
  std::string FindStrayAccesses() const;

  /// Brings inputs into the caches, as their maker leaves them, and outputs, as memory that was in use a moment ago.
  void ReadThroughBoundary() const;
  /// Inputs that kernels read in the host's memory, as they lie there.
  std::vector<Tensor> HostInputs() const;
  std::vector<void*> InputAddresses() const;
  std::vector<void*> OutputAddresses() const;
  /// Returns the memory that all inputs and results are in; the host's where they are in several.
  Memory CommonMemory() const;
  /// Waits for devices whose memories are among them.
  void Synchronize() const;

 private:
  /// The host's copies of what is in a device's memory: of all outputs, and of inputs.
  void Fetch() const;
  void Send(const std::vector<Tensor>& copies, const std::vector<std::optional<DeviceBuffer>>& buffers) const;

  void AddOutput(const Type& type, Layout layout, std::optional<BlockPlacement> guarded);
  void SetInputsReadOnly(bool are_read_only);
  std::string FindFault() const;

  Function function_;
  BoundaryLayouts layouts_;
  std::vector<Tensor> plain_inputs_;
  std::vector<Tensor> inputs_;           // physical order
  std::vector<Tensor> pristine_inputs_;  // as inputs_ should be
  std::vector<Tensor> outputs_;          // physical order; views into `margins_`
  std::vector<Tensor> margins_;          // bytes: margin, output, margin; a guarded block has its own
  // Null unless guarded.
  std::vector<std::shared_ptr<GuardedBlock>> input_blocks_;
  std::vector<std::shared_ptr<GuardedBlock>> output_blocks_;
  // Buffers of values in another memory than the host's. The tensors above are then the host's copies.
  std::vector<std::optional<DeviceBuffer>> device_inputs_;
  std::vector<std::optional<DeviceBuffer>> device_margins_;
  std::vector<Type> output_types_;
};

}  // namespace collage
