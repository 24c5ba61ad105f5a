// second_device.h: a device that is no GPU, with memory of its own that nobody else can read: code of the processor
// that reads it crashes, and the device refuses addresses that are not its own.
#pragma once

#include "collage/runtime/device.h"
#include "collage/target/toolchain.h"

namespace collage {

/// Makes the device (type ext_dev, memories main and global.vtcm) and its kernels' loader known to this process, once.
void AddSecondDevice();

/// How often bytes were copied to, from and within the device since the process began.
struct SecondDeviceCounts {
  int64_t num_copies = 0;
  int64_t num_bytes = 0;
};
SecondDeviceCounts SecondDeviceCopies();

/// A toolchain whose kernels evaluate a partition's Relay text, on the second device or on the processor.
class TextToolchain : public Toolchain {
 public:
  /// Partitions of at most `max_depth` operators one behind the other.
  TextToolchain(std::string name, int device_type, int max_depth = 2)
      : name_(std::move(name)), device_type_(device_type), max_depth_(max_depth) {}

  std::string name() const override { return name_; }
  std::string description() const override { return "evaluates Relay text"; }
  Availability Probe() const override { return {.available = true, .version = "1", .reason = "", .hint = ""}; }
  int priority() const override { return 50; }
  bool is_default() const override { return false; }
  int device_type() const override { return device_type_; }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return max_depth_; }
  Result<void> SupportsCall(const CallNode& call) const override;
  /// On the device, results may also be made in the scratchpad.
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override;
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override;

 private:
  std::string name_;
  int device_type_;
  int max_depth_;
};

}  // namespace collage
