// kernel_trial.h: whether a kernel computes what its function means, whatever its inputs are and whatever ran before.
// One implementation for candidates that are measured and for partitions that reach an executable without that.
//
// A kernel runs on inputs of several ranges (DrawsForPartition), then on the first ones again, twice, in memory between
// pages that may not be touched. Before each run, results and workspace are filled with a pattern. Checked are:
//
//     results     against the reference, each draw under its tolerance; that they follow the inputs
//     state       results of the first inputs again, after others
//     repetition  equal bytes from equal inputs, unless the toolchain says that its results vary (HasVaryingResults)
//     memory      no access beyond inputs, results, workspace and constants, no write to inputs and constants, at the
//                 least alignment that is promised
//     return      no write after Kernel::Run has returned
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/tensor.h"
#include "collage/target/toolchain.h"
#include "cost/measure/loaded_partition.h"
#include "ir/eval/reference.h"
#include "ir/eval/sample_inputs.h"

namespace collage {

struct TrialOptions {
  /// Results of float32 need only be as exact as this narrower type.
  std::optional<DataType> computed_in = {};
  /// Whether the toolchain was told to be exact: NaN and denormal numbers must not get lost.
  bool is_exact = false;
  /// Whether runs on equal inputs may differ, within the tolerance.
  bool results_vary = false;
  /// False: the reference is not evaluated, because it takes too long. All else is checked.
  bool has_reference = true;
  /// Whether the function may refuse inputs of Draw::kUnit: all else is then checked.
  bool may_be_refused = false;
};
/// How kernels of `toolchain` are tried.
TrialOptions TrialOptionsFor(const Toolchain& toolchain);

/// The reference of `request`'s function on `inputs`, which are those of `draw` as the layouts round them. Results of
/// functions that were wanted lately are kept. Throws what evaluation throws.
Reference ReferenceFor(const PartitionRequest& request, const std::vector<Tensor>& inputs, Draw draw);

/// Tries the kernel of `partition`, which was compiled for `request`. Empty when all is right, else the first fault:
/// "wrong result 0 on large random inputs, element 3 of 256: got 5, wanted 7". `max_error` becomes no less than the
/// largest error of a result relative to its largest element, on inputs of usual size. Throws the errors of running,
/// and those of the reference on inputs of Draw::kUnit; other draws that the function refuses are left out. The kernel
/// must be bound again before it runs elsewhere.
std::string TryKernel(LoadedPartition& partition, const PartitionRequest& request, const TrialOptions& options,
                      double& max_error);

}  // namespace collage
