// depthwise_chain.h: depthwise convolutions and the 1x1 convolutions before and behind them, as the blocks of MobileNet
// and EfficientNet are made.
#pragma once

#include <unordered_map>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/support/result.h"

namespace collage::native {

/// A depthwise convolution of images, with at least one of the other two:
///
///     expansion [N, C, H, W] = nn.conv2d 1x1 of fewer channels     null where there is none
///       → bias, activation: each element made from the one in its place
///     expanded
///       → depthwise [N, C, H', W'] = nn.conv2d of one channel a group
///       → likewise
///     filtered
///       → projection [N, K, H', W'] = nn.conv2d 1x1                null where there is none
struct DepthwiseChain {
  Expr expansion, expanded;
  Expr depthwise, filtered;
  Expr projection;

  /// The result of the last of them.
  const Expr& result() const { return projection == nullptr ? depthwise : projection; }
};

/// Finds chains in an expression. Values between the convolutions may have one use only, since they are never in memory
/// as a whole; the constructor counts the uses of all nodes.
class DepthwiseChainFinder {
 public:
  explicit DepthwiseChainFinder(const Expr& root);

  /// Returns the chain with last convolution `result`, or why there is none.
  Result<DepthwiseChain> Find(const Expr& result) const;

 private:
  Expr ConvolutionUnder(const Expr& root) const;

  std::unordered_map<const ExprNode*, int> uses_;
};

/// Whether this typed call is a convolution of images that makes one channel of each.
bool IsDepthwise(const CallNode& call);

/// The convolution whose elements `root` is made from, each from the one in its place; null where there is none or
/// several.
Expr ConvolutionUnder(const Expr& root);

/// Whether one kernel is expected to be faster than several, or why not: the values between the convolutions must not
/// fit in a core's second-level cache, and the weights must fit in a quarter of it.
Result<void> IsWorthOneKernel(const DepthwiseChain& chain);

}  // namespace collage::native
