// measure.h: compiles one partition with one toolchain, checks it against the reference evaluation and times it. Runs
// in a worker: it may crash or hang.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/measure/kernel_trial.h"
#include "cost/measure/timing.h"
#include "lowering/compiled_store.h"

namespace collage {

/// Compiles with `request.num_threads` threads, unless `store` (or null) has it. A toolchain's refusal is the reason
/// "declined: …"; throws what it throws.
Result<CompiledPartition> CompilePartition(const Toolchain& toolchain, const PartitionRequest& request,
                                           const CompiledStore* store = nullptr);

/// Loads the result of `CompilePartition` for `request`, tries it (TryKernel) and times it on inputs of Draw::kUnit.
/// Returns a record with `ok` false and the reason if a result is wrong in any run, if the kernel touched memory that
/// is not its own, if memory leaks, or if threads keep running after a run; a fresh worker is then needed. Throws the
/// errors of loading and running.
TuningRecord MeasureCompiled(CompiledPartition compiled, const PartitionRequest& request,
                             const TimingOptions& timing = {}, const TrialOptions& trying = {});

/// Both: compiles, checks, times. A refusal or a wrong result gives a record with `ok` false and the reason.
/// Partitions in `store`, if it is not null, are not compiled again; compiled ones that are right are kept there.
TuningRecord MeasurePartition(const Toolchain& toolchain, const PartitionRequest& request,
                              const TimingOptions& timing = {}, CompiledStore* store = nullptr);

/// Quantiles of `samples` and the interval of the percentile that `timing` asks for, as a record that is ok.
TuningRecord RecordOf(const Samples& samples, const TimingOptions& timing);

/// Times changing the layout of one value, by all steps that this takes (StepsBetween).
Samples MeasureConversion(const Shape& shape, DataType dtype, Layout from, Layout to, int num_threads);

}  // namespace collage
