// stages.h: the parts of a kernel. A partition is lowered to stages, each a loop nest that fills one tensor: an anchor
// (product, convolution, reduction, normalisation, pool …) with what can be computed in place before and behind it, or
// nothing but such expressions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/native/compiler/driver/codegen.h"
#include "backends/native/compiler/emit/emitter.h"
#include "backends/native/compiler/emit/expressions.h"
#include "backends/native/compiler/emit/schedule_space.h"
#include "backends/native/description/options.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// What stages share while a partition is compiled.
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
  ScheduleSpace space;          ///< what is noted of schedules while stages are written
  int num_narrow = 0;           ///< stages that compute in what `options` asks for in place of float32
  std::vector<Expr> synthetic;  ///< expressions made here, kept since their addresses stand for them

  const Schedule& schedule() const { return options.schedule; }
  VectorMath& math() { return expressions.math(); }
  std::string NextStageName() { return fmt::format("stage{}", num_stages++); }
  /// Adds a constant; its buffer's number is assigned once all are known, see `kFirstConstant`.
  Buffer AddConstant(const Tensor& value);
  /// A plain or channels-last tensor in the workspace.
  Buffer AddWorkspace(const Shape& shape, Layout layout, DataType dtype = kFloat32);
  /// Whether work of about `flops` is worth a second thread.
  bool IsParallel(double flops) {
    const bool is_worth_it = schedule().parallel == 0 ? flops > 100e3 : schedule().parallel == Schedule::kYes;
    const bool is_parallel = num_threads > 1 && is_worth_it;
    space.is_parallel = space.is_parallel || is_parallel;
    return is_parallel;
  }
};

// Buffers are numbered in the order of the kernel's array: inputs, constants, outputs, workspace. Until the number of
// constants is known, they stand for themselves by these offsets.
inline constexpr int kFirstConstant = 1000;
inline constexpr int kFirstOutput = 100000;
inline constexpr int kWorkspace = 200000;

/// The module of `state`, whose buffers have their final numbers: inputs, constants, `outputs` outputs, workspace.
std::string NumberBuffers(const PartitionState& state, int outputs);

/// Where a stage's result goes: `result` is the anchor's own value; `epilogue` what is stored, computed from it in
/// registers (the anchor itself when there is none).
struct StageOutput {
  Expr result;
  Expr epilogue;
  Buffer buffer;
};

/// How many elements, about: of those whose sizes are not known yet, many.
inline double NumberOf(const Shape& shape) { return HasUnknown(shape) ? 1e6 : static_cast<double>(NumElements(shape)); }

/// Whether the value at `root` is made from that of `anchor` by operators that take each element from the same
/// element, and what else it reads does not need the anchor.
bool IsEpilogue(const Expr& root, const Expr& anchor);

/// As EmitMatrixProduct, EmitConvolution and EmitPool, where sizes are not known.
void EmitUnknownProduct(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitUnknownConvolution(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitUnknownPool(PartitionState& state, const CallNode& call, const StageOutput& output);

/// Fills `buffer` with an expression computed in place.
void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer);
/// Fills `buffer` with `value(indices)`.
void EmitElements(PartitionState& state, const Buffer& buffer, const std::function<Value(const Indices&)>& value);
/// Stores, at `indices` of the result, the epilogue of the anchor's `value`.
void StoreResult(PartitionState& state, const StageOutput& output, const Indices& indices, const Value& value);

/// Whether the `axes` of a result, innermost last, may be walked as one while its epilogue is computed from the
/// anchor's value: `stride` elements from one place to the next in all that is read and written along them.
bool CanMerge(PartitionState& state, const StageOutput& output, const std::vector<int>& axes, int64_t stride);

void EmitConcatenate(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitReduction(PartitionState& state, const CallNode& call, const StageOutput& output);
/// Reduces rows of floats and fills `output` with its epilogue, of the rows' shape, while they are in the nearest
/// cache. False, with nothing emitted, where vectors do not run along rows.
bool EmitOverRows(PartitionState& state, const CallNode& reduction, const StageOutput& output);
void EmitArgReduction(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitCumulativeSum(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitNormalisation(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitMatrixProduct(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitScatter(PartitionState& state, const CallNode& call, const StageOutput& output);

void EmitSort(PartitionState& state, const CallNode& call, const StageOutput& output);

/// Operators of several results; `outputs` are the buffers of their fields.
void EmitRecurrent(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);
void EmitTopK(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);

/// A buffer that holds `expr`: its own, or a new one that is filled now. `layout` is that of a new one. Its own may
/// keep the elements in another type, as a layout of the boundary says.
Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout);
/// What its elements are kept as: those of its own buffer where it has one, else what its type says.
DataType KeptType(const PartitionState& state, const Expr& expr);

/// As Materialise, row-major without gaps and of the type of `expr`: a copy when the value lies otherwise.
Buffer MaterialisePlain(PartitionState& state, const Expr& expr);

/// A stage in which `slots` workers, each with memory of its own, share `units` pieces of work evenly: `body` computes
/// `unit`, `first` being the first one of that slot's.
void EmitShares(
    PartitionState& state, int64_t slots, int64_t units,
    const std::function<void(const std::string& slot, const std::string& unit, const std::string& first)>& body);

/// Splits flat position `flat` over `sizes` (outermost first) into one i64 value each.
std::vector<std::string> Delinearise(Emitter& e, const std::string& flat, const std::vector<int64_t>& sizes);

/// Logical axes in memory order, outermost first; dimensions of one element come before all others.
std::vector<int> MemoryOrder(const Buffer& buffer);

}  // namespace collage::native
