// stages.h: the parts of a kernel. A partition is lowered to stages, each a loop nest that fills one tensor: an anchor
// (product, convolution, reduction, normalisation, pool) with what can be computed in place before and behind it, or
// nothing but such expressions.
#pragma once

#include <string>
#include <vector>

#include "backends/native/compiler/emitter.h"
#include "backends/native/compiler/expressions.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// What stages share while a partition is compiled.
struct PartitionState {
  PartitionState(int lanes, int threads) : emitter(lanes), expressions(emitter), num_threads(threads) {}

  Emitter emitter;
  Expressions expressions;
  int num_threads;
  int num_inputs = 0;
  std::vector<Tensor> constants;
  std::unordered_map<const ExprNode*, int> constant_numbers;
  int64_t workspace_bytes = 0;
  int num_stages = 0;

  std::string NextStageName() { return fmt::format("stage{}", num_stages++); }
  /// Adds a constant; its buffer's number is assigned once all are known, see `kFirstConstant`.
  Buffer AddConstant(const Tensor& value);
  /// A plain or channels-last tensor in the workspace.
  Buffer AddWorkspace(const Shape& shape, Layout layout);
  /// Whether work of about `flops` is worth a second thread.
  bool IsParallel(double flops) const { return num_threads > 1 && flops > 100e3; }
};

// Buffers are numbered in the order of the kernel's array: inputs, constants, outputs, workspace. Until the number of
// constants is known, they stand for themselves by these offsets.
inline constexpr int kFirstConstant = 1000;
inline constexpr int kFirstOutput = 100000;
inline constexpr int kWorkspace = 200000;

/// Where a stage's result goes: `result` is the anchor's own value; `epilogue` what is stored, computed from it in
/// registers (the anchor itself when there is none).
struct StageOutput {
  Expr result;
  Expr epilogue;
  Buffer buffer;
};

/// Fills `buffer` with an expression computed in place.
void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer);
/// Fills `buffer` with `expr` read at the indices that `source` makes of the buffer's.
void EmitPointwiseFrom(PartitionState& state, const Expr& expr, const Buffer& buffer,
                       const std::function<Indices(const Indices&)>& source);
/// sum, mean, max, min, prod and global pools.
void EmitReduction(PartitionState& state, const CallNode& call, const StageOutput& output);
/// softmax, log_softmax, layer_norm over the innermost dimension.
void EmitRowNormalisation(PartitionState& state, const CallNode& call, const StageOutput& output);
/// max_pool2d, avg_pool2d.
void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output);
/// take with any indices.
void EmitTake(PartitionState& state, const CallNode& call, const Buffer& buffer);
/// image.resize2d, nearest and linear.
void EmitResize(PartitionState& state, const CallNode& call, const Buffer& buffer);
/// conv2d (dense and depthwise), dense, batch_matmul.
void EmitContraction(PartitionState& state, const CallNode& call, const StageOutput& output);
/// Why a contraction cannot be compiled with these layouts; empty when it can.
std::string WhyNotContraction(const CallNode& call);

/// A buffer that holds `expr`: its own, or a new one that is filled now.
Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout);

/// Splits flat position `flat` over `sizes` (outermost first) into one i64 value each.
std::vector<std::string> Delinearise(Emitter& e, const std::string& flat, const std::vector<int64_t>& sizes);

inline Shape ShapeOf(const Expr& expr) { return AsTensorType(expr->checked_type())->static_shape(); }

}  // namespace collage::native
