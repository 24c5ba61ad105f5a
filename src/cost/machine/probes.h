// probes.h: what a toolchain is like, told by a few small functions: what any call of it takes, and how fast it is at
// each kind of work. Measured once for each toolchain, kind of machine and number of threads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/measure/timing.h"
#include "lowering/compiled_store.h"

namespace collage {

/// A function that stands for others.
struct Probe {
  const char* name;
  const char* summary;
  /// Typed; operators on tensors so small that the call is what is measured, or so large that it does not matter.
  Function (*make)();
  bool is_whole;  ///< a candidate must hold all of it; else any candidate in it will do
};
std::span<const Probe> Probes();
/// Throws kInput when there is none.
const Probe& ProbeNamed(const std::string& name);

inline constexpr char kSmallestCall[] = "smallest call";
inline constexpr char kMovingProbe[] = "moving";
inline constexpr char kElementsProbe[] = "elements";
inline constexpr char kReductionProbe[] = "reduction";
inline constexpr char kProductProbe[] = "product";
inline constexpr char kConvolutionProbe[] = "strided convolution";
inline constexpr char kGroupedProbe[] = "grouped convolution";

/// Returns the toolchain's candidates in the probe's function, in each of its layouts where the whole is asked for.
std::vector<PartitionRequest> PartitionsOf(const Toolchain& toolchain, const Probe& probe, int num_threads);

/// Times these candidates, compiled here unless `store` (or null) has them, and answers with the quickest. Not ok when
/// there is none. Runs in a worker: it compiles and runs the toolchain's code.
TuningRecord MeasureProbe(const Toolchain& toolchain, const Probe& probe, int num_threads, const TimingOptions& timing,
                          CompiledStore* store = nullptr);

}  // namespace collage
