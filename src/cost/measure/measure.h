// measure.h: compiles one partition with one toolchain, checks it against the reference evaluation and times it. Runs
// in a worker: it may crash or hang.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/measure/partition_buffers.h"
#include "cost/measure/timing.h"
#include "lowering/compiled_store.h"

namespace collage {

/// The loaded kernel of `compiled` with what it refers to.
class LoadedPartition {
 public:
  LoadedPartition(CompiledPartition compiled, int num_threads);
  Kernel& kernel() { return *kernel_; }
  void Bind(const PartitionBuffers& buffers);

 private:
  CompiledPartition compiled_;
  Tensor workspace_;
  std::optional<DeviceBuffer> device_workspace_;
  std::unique_ptr<Kernel> kernel_;
};

/// Compiles with `request.num_threads` threads, unless `store` (or null) has it. A toolchain's refusal is the reason
/// "declined: …"; throws what it throws.
Result<CompiledPartition> CompilePartition(const Toolchain& toolchain, const PartitionRequest& request,
                                           const CompiledStore* store = nullptr);

/// Loads the result of `CompilePartition` for `request`, checks it on inputs of several ranges and times it on those of
/// Draw::kUnit. Returns a record with `ok` false and the reason if a result is wrong in any run, if the kernel wrote
/// outside of its outputs, if memory leaks, or if threads keep running after a run; a fresh worker is then needed.
/// Throws the errors of loading and running. `computed_in`: float32 results need only be as exact as this narrower
/// type.
TuningRecord MeasureCompiled(CompiledPartition compiled, const PartitionRequest& request,
                             const TimingOptions& timing = {}, std::optional<DataType> computed_in = {});

/// Both: compiles, checks, times. A refusal or a wrong result gives a record with `ok` false and the reason.
/// Partitions in `store`, if it is not null, are not compiled again; compiled ones that are right are kept there.
TuningRecord MeasurePartition(const Toolchain& toolchain, const PartitionRequest& request,
                              const TimingOptions& timing = {}, CompiledStore* store = nullptr);

/// Quantiles of `samples` and the interval of the percentile that `timing` asks for, as a record that is ok.
TuningRecord RecordOf(const Samples& samples, const TimingOptions& timing);

/// Times changing the layout of one value, by all steps that this takes (StepsBetween).
Samples MeasureConversion(const Shape& shape, DataType dtype, Layout from, Layout to, int num_threads);

}  // namespace collage
