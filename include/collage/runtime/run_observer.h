// run_observer.h: who watches a run step by step: a profiler. Runs that nobody watches do nothing for it.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "collage/runtime/tensor.h"

namespace collage {

/// A piece of a run, by its place in the executable or the program.
struct RunStep {
  enum Kind : uint8_t {
    kPlanStep,         ///< step `index` of an execution plan
    kAnySize,          ///< kernel `index` of a program's kernels for dynamic shapes
    kEvaluatedKernel,  ///< such a kernel whose operators are evaluated one by one
    kEvaluation,       ///< operator call `index` of a program, by reference evaluation
  };
  Kind kind = kPlanStep;
  int plan = -1;  ///< the program's kernel whose plan a plan step is in; -1: the executable's own plan
  int index = 0;

  friend auto operator<=>(const RunStep&, const RunStep&) = default;
};

/// Told of each step of a run on the thread that runs it. Steps do not nest.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// `step` begins. `inputs` are its tensors, whose elements nobody looks at; none for steps of a plan, whose shapes
  /// the plan knows.
  virtual void Begin(const RunStep& step, std::span<const Tensor> inputs) = 0;
  /// The step that began last is done, on its device, too. Not called if it fails.
  virtual void End() = 0;
};

}  // namespace collage
