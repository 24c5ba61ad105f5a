// combine_parallel.h: several anchors that read one value, and what follows each of them alike, become one wide anchor.
#pragma once

#include <functional>
#include <vector>

#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {

/// A parallel branch: an anchor, then operators that each are the only user of the one before.
///
///        x                       x
///      /   \                     |
///   conv   conv      →      conv [both weights]
///     |      |                   |
///   relu   relu                relu
///     |      |                 /   \              .
///                          slice   slice
using Branch = std::vector<Expr>;

/// Properties of the anchors that can be combined.
struct ParallelAnchor {
  const char* op;
  /// Whether two anchors, which read the same first argument and have equal attributes, fit.
  std::function<bool(const CallNode& a, const CallNode& b)> fits;
  /// The wide anchor from the rewritten data and the anchors.
  std::function<Expr(const Expr& data, const std::vector<const CallNode*>& anchors)> combine;
  int result_axis;                      ///< along which results lie behind each other, from the front
  std::vector<std::string> free_attrs;  ///< attributes in which they may differ
  /// Result `index` of the wide anchor, where it is no slice along `result_axis`; then what follows is not combined.
  std::function<Expr(const Expr& wide, int64_t index, const ExprNode& origin)> part = nullptr;
};

/// Combines at least `min_branches` of them wherever they read one value, together with as many following operators as
/// are alike in all branches: element-wise ones, and broadcasting ones whose other argument can be concatenated or is
/// the same scalar. Their other inputs must be known in advance: no result of such an anchor, no let variable.
Function CombineParallel(const Function& function, const ParallelAnchor& anchor, int64_t min_branches);

/// Dense layers of one value as one wider layer: weights [N1 + N2 + …, K].
ParallelAnchor WideDense();
/// Batches of products with one left factor as one batch with more columns.
ParallelAnchor WideBatchMatmul();
/// Convolutions of one image as one with more output channels.
ParallelAnchor WideConv2D();

/// Second arguments of `anchors`, concatenated along `axis`.
Expr ConcatenatedWeights(const std::vector<const CallNode*>& anchors, int axis);
/// Whether the second arguments are tensors of one dtype and known shapes, equal but for dimension `axis` (-1: equal).
bool WeightsFit(const CallNode& a, const CallNode& b, int axis);

}  // namespace collage
