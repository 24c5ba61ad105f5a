// partition_state.h: what the stages of a partition share. A partition is lowered to stages, each a loop nest that
// fills one tensor: an anchor (product, convolution, reduction, normalisation, pool …) with what can be computed in
// place before and behind it, or nothing but such expressions.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/native/compiler/emit/emitter.h"
#include "backends/native/compiler/emit/expressions.h"
#include "backends/native/compiler/stages/schedule_space.h"
#include "backends/native/compiler/stages/target_info.h"
#include "backends/native/description/options.h"
#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// State that stages share while a partition is compiled.
struct PartitionState {
  PartitionState(const TargetInfo& machine, int threads, const NativeOptions& told)
      : target(machine),
        emitter(told.schedule.lanes == 0 ? machine.vector_lanes
                                         : std::min(machine.vector_lanes, static_cast<int>(told.schedule.lanes))),
        expressions(emitter),
        num_threads(threads),
        options(told) {
    space.lanes = emitter.lanes();
    space.num_threads = threads;
    expressions.SetConstantPlacer([this](const Tensor& value) { return AddConstant(value); });
  }

  TargetInfo target;
  Emitter emitter;
  Expressions expressions;
  int num_threads;
  NativeOptions options;  ///< with the request's schedule
  int num_inputs = 0;
  std::vector<Tensor> constants;
  int64_t workspace_bytes = 0;
  int num_stages = 0;
  ScheduleSpace space;  ///< choices of schedules, noted while stages are written
  std::set<int> quads;  ///< constants whose rows are put side by side in fours (contraction/tensor_tile.h)
  int num_narrow = 0;   ///< stages that compute in what `options` asks for in place of float32
  std::vector<InPlaceResult> in_place;            ///< found while stages are written
  std::unordered_set<const ExprNode*> read_once;  ///< parameters that one expression reads
  std::vector<Expr> synthetic;                    ///< expressions made here, kept since their addresses stand for them

  const Schedule& schedule() const { return options.schedule; }
  VectorMath& math() { return expressions.math(); }
  std::string NextStageName() { return fmt::format("stage{}", num_stages++); }
  /// Adds a constant of the kernel.
  Buffer AddConstant(const Tensor& value);
  /// A plain or channels-last tensor in the workspace.
  Buffer AddWorkspace(const Shape& shape, Layout layout, DataType dtype = kFloat32);
  /// The finished module of a kernel with `outputs` outputs.
  std::string Module(int outputs) const;
  /// Whether work of about `flops` is worth a second thread.
  bool IsParallel(double flops) {
    const bool is_worth_it =
        schedule().parallel == 0 ? flops > target.thread_flops : schedule().parallel == Schedule::kYes;
    const bool is_parallel = num_threads > 1 && is_worth_it;
    space.is_parallel = space.is_parallel || is_parallel;
    return is_parallel;
  }
};

/// The output of a stage: `result` is the anchor's own value; `epilogue` is stored, computed from it in
/// registers (the anchor itself when there is none).
struct StageOutput {
  Expr result;
  Expr epilogue;
  Buffer buffer;
};

/// How many elements, about: of those whose sizes are not known yet, many.
inline double NumberOf(const Shape& shape) {
  return HasSymbolic(shape) ? 1e6 : static_cast<double>(NumElements(shape));
}

}  // namespace collage::native
