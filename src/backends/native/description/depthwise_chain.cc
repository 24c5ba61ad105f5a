// depthwise_chain.cc: from the last convolution up through what is computed element by element to the first.
#include "backends/native/description/depthwise_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "backends/native/operators.h"
#include "collage/ir/visitor.h"
#include "support/machine.h"

namespace collage::native {
namespace {

Reason No(std::string text) { return {std::move(text), "native"}; }

const CallNode* AsConvolution(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == "nn.conv2d" ? call : nullptr;
}

/// Returns the shape of a float32 tensor of known size with elements; empty for others.
Shape ShapeOfFloats(const Expr& expr) {
  const TensorTypeNode* tensor = AsTensorType(expr->checked_type());
  const bool fits = tensor != nullptr && tensor->is_static() && tensor->dtype() == kFloat32;
  if (!fits || NumElements(tensor->static_shape()) == 0) return {};
  return tensor->static_shape();
}

bool HasKnownFloats(const Expr& convolution) {
  const CallNode& call = *AsConvolution(convolution);
  return !ShapeOfFloats(convolution).empty() && !ShapeOfFloats(call.args()[0]).empty() &&
         !ShapeOfFloats(call.args()[1]).empty();
}

/// Whether each of its results is made of the channels of the pixel in its place.
bool IsOfPixels(const Expr& convolution) {
  const CallNode& call = *AsConvolution(convolution);
  const auto all_are = [&](const char* name, int64_t wanted) {
    const std::vector<int64_t>& values = call.attrs().Ints(name);
    return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  const Shape weight = ShapeOfFloats(call.args()[1]);
  return call.attrs().Int("groups") == 1 && weight[2] == 1 && weight[3] == 1 && all_are("strides", 1) &&
         all_are("padding", 0);
}

/// Below `root`, what is made from `anchor`, and that itself.
std::unordered_set<const ExprNode*> Above(const Expr& root, const Expr& anchor) {
  std::unordered_set<const ExprNode*> above{anchor.get()};
  PostOrder(root, [&](const Expr& expr) {
    for (const Expr& child : Children(expr)) {
      if (child != nullptr && above.contains(child.get())) above.insert(expr.get());
    }
  });
  return above;
}

bool IsDepthwiseCall(const Expr& convolution) { return IsDepthwise(*As<CallNode>(convolution)); }

int64_t BytesOf(const Expr& expr) { return NumElements(ShapeOfFloats(expr)) * static_cast<int64_t>(sizeof(float)); }

}  // namespace

bool IsDepthwise(const CallNode& call) {
  if (call.op() == nullptr || call.op()->name != "nn.conv2d") return false;
  const TensorTypeNode* data = AsTensorType(call.args()[0]->checked_type());
  const TensorTypeNode* result = AsTensorType(call.checked_type());
  if (data == nullptr || result == nullptr || !data->is_static() || !result->is_static()) return false;
  const int64_t channels = data->static_shape()[1];
  return channels > 1 && call.attrs().Int("groups") == channels && result->static_shape()[1] == channels;
}

Expr ConvolutionUnder(const Expr& root) {
  const Shape shape = ShapeOfFloats(root);
  if (shape.empty()) return nullptr;
  // Down the arguments of the same shape, as far as places are kept; all ways must end in the same convolution, or in
  // what has none.
  std::unordered_map<const ExprNode*, Expr> known;
  bool is_one = true;
  const std::function<Expr(const Expr&)> find = [&](const Expr& expr) -> Expr {
    const auto [it, is_new] = known.emplace(expr.get(), nullptr);
    const CallNode* call = As<CallNode>(expr);
    if (!is_new || call == nullptr || call->op() == nullptr || ShapeOfFloats(expr) != shape) return it->second;
    Expr found;
    if (AsConvolution(expr) != nullptr) {
      found = expr;
    } else if (KeepsPlaces(*call->op())) {
      for (const Expr& arg : call->args()) {
        const Expr below = find(arg);
        if (below != nullptr && found != nullptr && below != found) is_one = false;
        if (below != nullptr) found = below;
      }
    }
    return known[expr.get()] = found;
  };
  const Expr found = find(root);
  return is_one ? found : nullptr;
}

DepthwiseChainFinder::DepthwiseChainFinder(const Expr& root) {
  ++uses_[root.get()];
  PostOrder(root, [&](const Expr& expr) {
    for (const Expr& child : Children(expr)) {
      if (child != nullptr) ++uses_[child.get()];
    }
  });
}

/// As above, where nobody else reads it or what is made of it, and `root` is read once.
Expr DepthwiseChainFinder::ConvolutionUnder(const Expr& root) const {
  const Expr found = native::ConvolutionUnder(root);
  if (found == nullptr || !HasKnownFloats(found) || uses_.at(root.get()) != 1) return nullptr;
  const Shape shape = ShapeOfFloats(root);
  const std::unordered_set<const ExprNode*> above = Above(root, found);
  std::unordered_map<const ExprNode*, int> uses_here{{root.get(), 1}};
  bool keeps_places = true;
  PostOrder(root, [&](const Expr& expr) {
    if (!above.contains(expr.get()) || expr == found) return;
    const CallNode* call = As<CallNode>(expr);
    keeps_places = keeps_places && call != nullptr && call->op() != nullptr && KeepsPlaces(*call->op()) &&
                   ShapeOfFloats(expr) == shape;
    for (const Expr& child : Children(expr)) {
      if (child != nullptr && above.contains(child.get())) ++uses_here[child.get()];
    }
  });
  if (!keeps_places) return nullptr;
  return std::ranges::all_of(uses_here, [&](const auto& use) { return uses_.at(use.first) == use.second; }) ? found
                                                                                                            : nullptr;
}

Result<DepthwiseChain> DepthwiseChainFinder::Find(const Expr& result) const {
  if (AsConvolution(result) == nullptr || !HasKnownFloats(result)) return No("is no convolution of float32 images");
  DepthwiseChain chain;
  if (IsDepthwiseCall(result)) {
    chain.depthwise = chain.filtered = result;
  } else {
    if (!IsOfPixels(result)) return No("its last convolution is neither depthwise nor 1x1");
    chain.projection = result;
    chain.filtered = AsConvolution(result)->args()[0];
    chain.depthwise = ConvolutionUnder(chain.filtered);
    if (chain.depthwise == nullptr || !IsDepthwiseCall(chain.depthwise)) {
      return No("its last convolution is of no depthwise one that nobody else reads");
    }
  }
  const Expr& data = AsConvolution(chain.depthwise)->args()[0];
  const Expr expansion = ConvolutionUnder(data);
  if (expansion != nullptr && !IsDepthwiseCall(expansion) && IsOfPixels(expansion)) {
    chain.expansion = expansion;
    chain.expanded = data;
  }
  if (chain.expansion == nullptr && chain.projection == nullptr) return No("has one convolution");
  return chain;
}

Result<void> IsWorthOneKernel(const DepthwiseChain& chain) {
  static const int64_t near = CacheSize(2, int64_t{1} << 20);
  int64_t between = 0;
  int64_t weights = 0;
  if (chain.expansion != nullptr) {
    between += BytesOf(chain.expanded);
    weights += BytesOf(AsConvolution(chain.expansion)->args()[1]);
  }
  if (chain.projection != nullptr) {
    between += BytesOf(chain.filtered);
    weights += BytesOf(AsConvolution(chain.projection)->args()[1]);
  }
  if (between < near) return No(fmt::format("the {} bytes between its convolutions stay in the cache", between));
  if (weights > near / 4) return No(fmt::format("its {} bytes of weights do not stay in the cache", weights));
  return {};
}

}  // namespace collage::native
