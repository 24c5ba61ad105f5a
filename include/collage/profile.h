// profile.h: where the time of an executable's runs goes: steps timed inside of real runs, what the machine did
// meanwhile, and how far each step is from what the machine can do. docs/profile.md says how to read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"

namespace collage {

/// Percentiles over runs, in seconds.
struct RunSeconds {
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
};

/// A step of a run: a kernel, a change of layout, an operator that is evaluated. Times are those of all its calls in a
/// run.
struct StepProfile {
  std::string kind;  ///< "kernel", "layout change", "copy", "any size", "evaluated kernel", "evaluation"
  std::string plan;  ///< the kernel of a program that it is, or is a step of; else empty
  std::optional<int64_t> plan_step;   ///< its number in the plan
  std::optional<int64_t> partition;   ///< its kernel's number in the plan, as `collage info` has it
  std::string toolchain;              ///< "host" for what no toolchain does
  std::string operators;              ///< joined by '+'
  std::vector<std::string> nodes;     ///< names of the model's nodes
  std::vector<double> node_products;  ///< products of each node; empty if there are none or they are not known
  int64_t calls = 0;                  ///< in a run
  RunSeconds seconds;
  double share = 0;                         ///< its part of the sum of all steps' medians
  std::optional<double> first_seconds;      ///< in the first run
  std::optional<double> cold_seconds;       ///< median of runs before which all caches were evicted
  std::optional<double> estimated_seconds;  ///< by the costs of the search
  // Its work in a run (partition/work.h), where it is known.
  std::optional<double> products;  ///< added up, each counted as one
  std::optional<double> bytes;     ///< weights, inputs and outputs
  std::optional<double> weight_bytes;
  std::optional<double> roof_seconds;  ///< the least that this machine takes for it, by the cost bounds
  std::string bound;                   ///< "arithmetic" or "memory", whatever bounds it
  std::map<std::string, double> counters;
  std::vector<double> thread_seconds;  ///< by thread: shares of parallel regions in the run of the timeline
};

/// A span of time on a thread.
struct TimelineSpan {
  int thread = 0;            ///< 0: the thread that runs the model
  int step = 0;              ///< its number in `Profile::steps`
  bool is_region = false;    ///< a thread's share of a parallel region in the step; else the whole step, on thread 0
  double begin_seconds = 0;  ///< since the run began
  double end_seconds = 0;
};

/// A hardware or system counter.
struct CounterProfile {
  std::string name;
  std::string reason;             ///< why it is not available; empty if it is
  std::optional<double> per_run;  ///< median
};

/// A value, or a kernel's workspace, in an arena.
struct ArenaValue {
  std::optional<int64_t> value;  ///< its number in the plan; nothing: a workspace, or a value of a program
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t first_step = 0;  ///< step of the plan
  int64_t last_step = 0;
  std::string type;  ///< "float32[1, 64, 56, 56]"; "workspace"
};

/// The working memory of a plan.
struct ArenaMap {
  std::string plan;    ///< the kernel of a program; else empty
  std::string memory;  ///< "host", "cuda"
  int64_t bytes = 0;
  int64_t used_bytes = 0;  ///< the most that lives in it at one step
  std::vector<ArenaValue> values;
};

struct MemoryProfile {
  std::optional<int64_t> peak_bytes;      ///< the process had at most, so far
  std::optional<int64_t> resident_bytes;  ///< the process has after the runs
  int64_t weight_bytes = 0;               ///< constants of the executable, equal ones once
  int64_t code_bytes = 0;
};

/// Rates that the machine reaches at most (cost/machine/roofline.h).
struct RoofProfile {
  double multiply_adds_per_second = 0;
  double near_bytes_per_second = 0;
  double shared_bytes_per_second = 0;
  double memory_bytes_per_second = 0;
};

struct Profile {
  std::string executable;
  std::string machine;
  int num_threads = 1;
  int64_t runs = 0;          ///< timed step by step; as many were timed as a whole, in turns with them
  RunSeconds seconds;        ///< runs that nobody watches
  RunSeconds timed;          ///< runs whose steps are timed
  double overhead = 0;       ///< how much longer the latter take, as a fraction of the median
  double between_steps = 0;  ///< median of what a timed run takes outside of its steps
  std::optional<double> load_seconds;
  double first_run_seconds = 0;
  std::optional<double> cold_seconds;
  std::optional<RoofProfile> roof;
  std::vector<StepProfile> steps;  ///< in the order in which a run begins them
  std::vector<CounterProfile> counters;
  MemoryProfile memory;
  std::vector<ArenaMap> arenas;
  std::vector<TimelineSpan> timeline;  ///< one timed run
};

struct ProfileOptions {
  double seconds = 5;      ///< approximately, of runs
  bool counts = true;      ///< read counters, in runs of their own
  bool evicts = true;      ///< also run with caches evicted
  bool finds_roof = true;  ///< measure what the machine can do at most, about half a second
};

/// Values or sizes for the inputs of runs.
struct RunInputs {
  std::map<std::string, Tensor> tensors;  ///< by name; random ones for those that are not given
  std::map<std::string, Shape> shapes;    ///< shapes of random inputs that have dynamic ones
  std::map<std::string, int64_t> sizes;   ///< sizes of dynamic dimensions, by name
};

/// Runs a model again and again and tells how long each step took. Throws kInput for inputs that do not fit, and where
/// the size of one is not known.
Profile ProfileExecutable(const Executable& executable, const RunInputs& inputs, const ProfileOptions& options = {});
/// Runs @main of a program likewise.
Profile ProfileProgram(const vm::Executable& program, const RunInputs& inputs, const ProfileOptions& options = {});
/// Loads `file`, of either kind, and tells how long that took, too.
Profile ProfileFile(const std::string& file, const RunInputs& inputs, const ProfileOptions& options = {});

}  // namespace collage
