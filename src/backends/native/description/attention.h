// attention.h: attention as models write it: two batches of matrix products with a softmax between them.
#pragma once

#include <string_view>
#include <unordered_map>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/support/result.h"

namespace collage::native {

/// softmax(q x k) x v for each matrix of a batch:
///
///     scores [B, M, N] = nn.batch_matmul(q, k)
///       → scaled, masked, cast, reshaped: each score made from the one in its place
///     softmax over N
///       → likewise
///     result [B, M, D] = nn.batch_matmul(…, v)
struct Attention {
  Expr scores;
  Expr softmax;
  Expr result;

  const CallNode& of_scores() const { return *As<CallNode>(scores); }
  const CallNode& of_result() const { return *As<CallNode>(result); }
  /// The softmax's argument: `scores`, or a value made of them.
  const Expr& logits() const { return As<CallNode>(softmax)->args()[0]; }
  /// The factor of v: the softmax, or a value made of it.
  const Expr& weights() const { return of_result().args()[0]; }
};

/// Whether something masks scores on their way to the softmax, so that it can be told with any finite number in a
/// score's place whether its logit is minus infinity.
bool MasksKeys(const Attention& attention);

/// Finds attention in an expression. Values between the products may have one use only, since they are never in memory
/// as a whole; the constructor counts the uses of all nodes.
class AttentionFinder {
 public:
  explicit AttentionFinder(const Expr& root);

  /// Returns the attention with result `result`, or why there is none.
  Result<Attention> Find(const Expr& result) const;

 private:
  Expr SourceOf(const Expr& expr, std::string_view op, const Shape& like) const;

  std::unordered_map<const ExprNode*, int> uses_;
};

}  // namespace collage::native
