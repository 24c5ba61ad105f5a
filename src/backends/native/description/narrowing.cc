// narrowing.cc: what instructions for pairs can do for a product.
#include "backends/native/description/narrowing.h"

#include <algorithm>
#include <vector>

#include "backends/native/description/winograd_model.h"
#include "backends/native/operators.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::native {
namespace {

// Pairs are multiplied in vectors of so many.
constexpr int64_t kLanes = 16;
// Up to so many channels, transforms cost what the products gain: tiles of 2 took 1.09 times as long as float32's of 4
// for 17 channels, as long for 31 and 33, and 0.98 times for 65 (3x3 taps to 64 channels, 56x56 pixels, Zen 4).
constexpr int64_t kFewChannels = 32;

bool Is(DataType dtype, const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  return type != nullptr && type->dtype() == dtype;
}

/// Whether both factors of `call` are of `dtype`.
bool IsOf(DataType dtype, const CallNode& call) { return Is(dtype, call.args()[0]) && Is(dtype, call.args()[1]); }

/// Whether the values are as narrow as the factors of products.
bool IsNarrow(const CallNode& call, const NativeOptions& options) {
  return options.is_for_gpu() && IsOf(kFloat16, call);
}

Shape ShapeOf(const Expr& expr) { return AsTensorType(expr->checked_type())->static_shape(); }

bool IsDequantised(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == "qnn.dequantize";
}

bool IsKnown(const Expr& expr) {
  bool is_known = true;
  PostOrder(expr, [&](const Expr& node) { is_known = is_known && node->kind() != ExprKind::kVar; });
  return is_known;
}

Narrowing OfPairs(int64_t depth) { return depth % 2 == 0 ? Narrowing::kPairs : Narrowing::kNone; }

/// Whether a convolution of an odd number of channels is transformed.
bool IsTransformed(const CallNode& call, const NativeOptions& options) {
  const auto are_ones = [&](const char* name) {
    return std::ranges::all_of(call.attrs().Ints(name), [](int64_t value) { return value == 1; });
  };
  const Shape weight = ShapeOf(call.args()[1]);
  const size_t rank = weight.size() - 2;
  if (options.is_exact || rank > kAxes || call.attrs().Int("groups") != 1 || !are_ones("strides") ||
      !are_ones("dilation"))
    return false;
  if (!options.schedule.MayBeWinograd() || !IsKnown(call.args()[1])) return false;
  PlainConvolution conv;
  conv.in_bfloat16 = true;
  conv.taps = {1, 1, 1};
  std::copy(weight.begin() + 2, weight.end(), conv.taps.end() - static_cast<std::ptrdiff_t>(rank));
  if (!HasWinograd(conv)) return false;
  const int64_t told = ToldSides(options);
  if (told != 0) return IsWithinBounds(conv, TilesTold(conv, told));
  return weight[1] > kFewChannels && !PossibleTiles(conv).empty();
}

}  // namespace

bool HasSmallGroups(int64_t groups, int64_t channels_in, int64_t channels_out, int64_t lanes) {
  const int64_t size = channels_in / groups;
  return groups > 1 && channels_in == channels_out && (size == 1 || (size < lanes && lanes % size == 0));
}

Narrowing NarrowingOf(const CallNode& call, const NativeOptions& options) {
  const std::string& name = call.op()->name;
  if (options.rounds_data) return name == "qnn.matmul_nbits" ? Narrowing::kBytes : Narrowing::kNone;
  const bool is_convolution = IsConvolution(name);
  if (!is_convolution && name != "nn.dense" && name != "nn.matmul" && name != "nn.batch_matmul") {
    return Narrowing::kNone;
  }
  const Expr& data = call.args()[0];
  const Expr& weight = call.args()[1];
  const bool is_narrowed = options.narrows_factors() && IsOf(kFloat32, call);
  if (!IsNarrow(call, options) && !is_narrowed) return Narrowing::kNone;
  if (IsDequantised(data) && IsDequantised(weight)) return Narrowing::kNone;
  if (!is_convolution) {
    // Down the columns of a left matrix, pairs do not lie together.
    const bool is_transposed = name != "nn.dense" && call.attrs().Bool("transpose_a");
    return is_transposed ? Narrowing::kNone : OfPairs(ShapeOf(data).back());
  }
  const int64_t groups = call.attrs().Int("groups");
  const int64_t channels = ShapeOf(data)[1];
  const bool is_transposed = name.ends_with("_transpose");
  if (!is_transposed && HasSmallGroups(groups, channels, ShapeOf(weight)[0], kLanes)) return Narrowing::kNone;
  if (OfPairs(channels / groups) == Narrowing::kPairs) return Narrowing::kPairs;
  return !is_transposed && IsTransformed(call, options) ? Narrowing::kTransformed : Narrowing::kNone;
}

DataType FactorType(const CallNode& call, const NativeOptions& options) {
  return IsNarrow(call, options) ? kFloat16 : options.factors;
}

}  // namespace collage::native
