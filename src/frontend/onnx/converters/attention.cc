// attention.cc: attention, rotary embeddings and gated layers of ONNX, in matrix products and softmax.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "frontend/onnx/attention_parts.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Mask that is added to the products of queries and keys [B, H, S, T]; null if nothing is masked.
class AttentionMask {
 public:
  AttentionMask(NodeContext& node, DataType dtype, const SymbolicSize& queries, SymbolicSize keys)
      : node_(node), dtype_(dtype), keys_(std::move(keys)) {
    Expr offset;  // a query at position i may see keys up to i + offset
    if (node.HasInput(6)) {
      offset = node.Op("subtract", {PerBatch(node, node.Input(6)), node.ComputeScalar(queries)});
    } else {
      offset = node.ComputeScalar(node.HasInput(4) ? node.SizesOf(node.Input(4))[2] : 0);
    }
    if (node.HasInput(3)) bias_ = Given(node.Input(3));
    // distance: key - (query + offset).
    const Expr own = Positions(node, keys_, 3);
    const Expr distance = node.Op("subtract", {own, node.Op("add", {Positions(node, queries, 2), offset})});
    if (node.Int("is_causal", 0) != 0) Limit(distance, 0, /*above=*/true);
    if (node.Int("right_window_size", -1) >= 0) Limit(distance, node.Int("right_window_size", -1), /*above=*/true);
    if (node.Int("left_window_size", -1) >= 0) Limit(distance, -node.Int("left_window_size", -1), /*above=*/false);
    if (node.HasInput(6)) Allow(node.Op("less", {own, PerBatch(node, node.Input(6))}));
  }

  const Expr& bias() const { return bias_; }

 private:
  void Allow(const Expr& condition) { bias_ = SumOf(node_, bias_, MaskBias(node_, condition, dtype_, -kInfinity)); }

  void Limit(const Expr& distance, int64_t bound, bool above) {
    Allow(node_.Op(above ? "less_equal" : "greater_equal",
                   {distance, node_.ScalarLike(static_cast<double>(bound), distance)}));
  }

  /// The mask of the model: bools or numbers to add, possibly for fewer keys than there are.
  Expr Given(Expr mask) {
    const bool is_bool = node_.TypeOf(mask).dtype().is_bool();
    mask = is_bool ? MaskBias(node_, mask, dtype_, -kInfinity) : node_.Cast(mask, dtype_);
    const Sizes shape = node_.SizesOf(mask);
    const SymbolicSize& own = shape.back();
    if (own == 1 || own == keys_ || IsAtMost(keys_, own)) return mask;
    if (!IsAtMost(own, keys_)) {
      node_.NeedsSize(fmt::format("whether a mask for {} keys is one for {}", own.ToString(), keys_.ToString()));
    }
    Sizes after(shape.size(), 0);
    after.back() = keys_ - own;
    return PadBy(node_, mask, Sizes(shape.size(), 0), after, MakeScalar(-kInfinity, dtype_), "constant");
  }

  NodeContext& node_;
  DataType dtype_;
  SymbolicSize keys_;
  Expr bias_;
};

Results ConvertAttention(NodeContext& node) {
  Expr q = node.Input(0);
  Expr k = node.Input(1);
  Expr v = node.Input(2);
  const bool packed = node.Rank(q) == 3;
  if (node.Rank(q) != node.Rank(k) || node.Rank(q) != node.Rank(v) || (!packed && node.Rank(q) != 4)) {
    node.Invalid(fmt::format("queries, keys and values have ranks {}, {} and {}, equal ones are wanted", node.Rank(q),
                             node.Rank(k), node.Rank(v)));
  }
  if (packed) {
    const int64_t kv_heads = node.Int("kv_num_heads", 0);
    q = SplitHeads(node, q, node.Int("q_num_heads", 0));
    k = SplitHeads(node, k, kv_heads);
    v = SplitHeads(node, v, kv_heads);
  }
  const DataType dtype = node.TypeOf(q).dtype();
  if (node.HasInput(4)) k = Concatenate(node, {node.Input(4), k}, 2);
  if (node.HasInput(5)) v = Concatenate(node, {node.Input(5), v}, 2);
  const Expr present_key = k;
  const Expr present_value = v;
  const Sizes q_shape = node.SizesOf(q);
  const AttentionMask mask(node, dtype, q_shape[2], node.SizesOf(k)[2]);
  const Expr scaled = node.HasAttr("scale") ? Scaled(node, q, node.Float("scale", 1)) : ByRootOf(node, q, q_shape[3]);
  Expr scores = AttentionScores(node, scaled, k);
  const int64_t mode = node.Int("qk_matmul_output_mode", 0);
  Expr exposed = scores;
  const double softcap = node.Float("softcap", 0);
  if (softcap > 0) scores = Scaled(node, node.Op("tanh", {Scaled(node, scores, 1 / softcap)}), softcap);
  if (mode == 1) exposed = scores;
  const Expr biased = SumOf(node, scores, mask.bias());
  if (mode == 2) exposed = biased;
  const DataType precision = node.HasAttr("softmax_precision") ? node.DTypeOf(node.Int("softmax_precision", 1)) : dtype;
  if (!precision.is_floating()) node.Invalid("softmax_precision is " + precision.ToString() + ", floats are wanted");
  const Expr weights = node.Cast(MaskedSoftmax(node, node.Cast(biased, precision), mask.bias()), dtype);
  if (mode == 3) exposed = weights;
  Expr result = AttentionResult(node, weights, v);
  if (packed) result = MergeHeads(node, result);
  return {result, present_key, present_value, exposed};
}

/// Attention of heads whose scores and weights a graph each may change.
Results ConvertFlexAttention(NodeContext& node) {
  const Expr q = node.Input(0);
  const DataType dtype = node.TypeOf(q).dtype();
  const DataType precision = node.HasAttr("softmax_precision") ? node.DTypeOf(node.Int("softmax_precision", 1))
                             : dtype == kFloat64               ? kFloat64
                                                               : kFloat32;
  if (!precision.is_floating()) node.Invalid("softmax_precision is " + precision.ToString() + ", floats are wanted");
  const auto changed = [&](const char* name, const Expr& x) {
    if (!node.HasAttr(name)) return x;
    const Results results = node.ConvertSubgraph(name, {x});
    if (results.size() != 1)
      node.Invalid(fmt::format("the graph '{}' has {} results, one is wanted", name, results.size()));
    return results[0];
  };
  const Expr product = AttentionScores(node, q, node.Input(1));
  const Expr scaled = node.HasAttr("scale") ? Scaled(node, product, node.Float("scale", 1))
                                            : ByRootOf(node, product, node.SizesOf(q)[3]);
  const Expr scores = changed("score_mod", node.Cast(scaled, precision));
  const Expr weights = changed("prob_mod", node.Op("nn.softmax", {scores}, {{"axis", -1}}));
  return {AttentionResult(node, node.Cast(weights, dtype), node.Input(2))};
}

Results ConvertRotaryEmbedding(NodeContext& node) {
  Expr x = node.Input(0);
  const bool packed = node.Rank(x) == 3;
  if (packed) x = SplitHeads(node, x, node.Int("num_heads", 0));
  const Sizes shape = node.SizesOf(x);  // [B, H, S, D]
  const bool is_known = shape[3].is_known();
  int64_t rotated =
      node.IntWithin("rotary_embedding_dim", 0, 0, is_known ? shape[3].known() : std::numeric_limits<int64_t>::max());
  if (rotated == 0 && is_known) rotated = shape[3].known();
  if (rotated % 2 != 0) node.Invalid(fmt::format("cannot rotate {} of {} features", rotated, shape[3].ToString()));
  SymbolicSize half = rotated / 2;
  if (rotated == 0 && !is_known) {
    // As many as there are angles; a run checks that these are half of the features.
    half = node.SizesOf(node.Input(1)).back();
    x = node.Reshape(x, {shape[0], shape[1], shape[2], 2 * half});
  }
  // The caches [positions, half] at the positions, or [B, S, half] as they are; a head axis added.
  const auto angles = [&](size_t input) {
    Expr cache = node.Input(input);
    if (node.HasInput(3)) cache = node.Op("take", {cache, node.Input(3)}, {{"axis", 0}});
    return node.Reshape(cache, {shape[0], 1, shape[2], half});
  };
  const Expr result = Rotate(node, x, angles(1), angles(2), half, node.Int("interleaved", 0) != 0);
  return {packed ? MergeHeads(node, result) : result};
}

Results ConvertSwiGlu(NodeContext& node) {
  return {node.Op("multiply", {Swish(node, node.Input(0), node.Float("alpha", 1)), node.Input(1)})};
}

/// A depthwise convolution over the past and the present of a sequence [B, C, L].
Results ConvertCausalConv(NodeContext& node) {
  const Expr weight = node.Input(1);
  const Sizes shape = node.SizesOf(node.Input(0));
  const Sizes kernel = node.SizesOf(weight);
  const int64_t channels = node.Known(shape[1].is_known() ? shape[1] : kernel[0], "the number of channels");
  const int64_t width = node.Known(kernel[2], "the size of the kernel");
  if (width < 1) node.Invalid("a kernel of size 0");
  const int64_t past = width - 1;
  const Expr x = node.WithSizes(node.Input(0), {shape[0], channels, shape[2]});
  const Expr zero = MakeScalar(0, node.TypeOf(x).dtype());
  const Expr before = node.HasInput(3) ? node.Input(3) : node.Full(zero, {shape[0], channels, past});
  const Expr padded = past == 0 ? x : Concatenate(node, {before, x}, 2);
  Expr y =
      node.Op("nn.conv1d", {padded, weight}, {{"groups", channels}, {"channels", channels}, {"kernel_size", V{width}}});
  if (node.HasInput(2)) y = node.Op("add", {y, node.Reshape(node.Input(2), {channels, 1})});
  const std::string activation = node.String("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = Swish(node, y, 1);
  } else if (activation != "none") {
    node.Invalid("there is no activation '" + activation + "'");
  }
  return {y, SliceBetween(node, padded, 2, shape[2], shape[2] + past)};
}

// Unrolling stops being a help when the program gets this long.
constexpr int64_t kMostSteps = 1024;

struct UpdateRule {
  bool gates;     ///< the state decays
  bool corrects;  ///< an update is what the state does not hold yet
};

UpdateRule ReadUpdateRule(NodeContext& node) {
  const std::string rule = node.String("update_rule", "gated_delta");
  const bool gates = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  if (!gates && !corrects && rule != "linear") node.Invalid("there is no update rule '" + rule + "'");
  if (gates != node.HasInput(4) || corrects != node.HasInput(5))
    node.Invalid("decay or beta do not fit the update rule '" + rule + "'");
  return {gates, corrects};
}

/// Throws kInput where an input [B, T, …] is known to have other batches or steps than the keys.
void CheckSteps(NodeContext& node) {
  constexpr std::array<std::pair<size_t, const char*>, 4> kInputs{
      {{0, "queries"}, {2, "values"}, {4, "decay"}, {5, "beta"}}};
  const Sizes keys = node.SizesOf(node.Input(1));
  for (const auto& [input, name] : kInputs) {
    if (!node.HasInput(input)) continue;
    const Sizes own = node.SizesOf(node.Input(input));
    for (size_t axis = 0; axis < 2; ++axis) {
      if (!own[axis].is_known() || !keys[axis].is_known() || own[axis].known() == keys[axis].known()) continue;
      node.Invalid(fmt::format("{} of {} {}, keys of {}", name, own[axis].known(), axis == 0 ? "batches" : "steps",
                               keys[axis].known()));
    }
  }
}

/// A state [B, H, K, V] that each step decays, corrects and adds an outer product to.
Results ConvertLinearAttention(NodeContext& node) {
  const int64_t q_heads = node.Int("q_num_heads", 0);
  const int64_t heads = node.Int("kv_num_heads", 0);
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0)
    node.Invalid(fmt::format("{} heads of keys do not divide {} of queries", heads, q_heads));
  const auto [gates, corrects] = ReadUpdateRule(node);
  CheckSteps(node);
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const auto split = [&](size_t input, int64_t count) {
    return SplitHeads(node, node.Cast(node.Input(input), kFloat32), count);
  };
  const Expr k = split(1, heads);
  const Expr v = split(2, heads);
  const Shape shape = node.ShapeOf(k);
  const int64_t batch = shape[0];
  const int64_t steps = shape[2];
  const int64_t d_k = shape[3];
  const int64_t d_v = node.ShapeOf(v)[3];
  if (steps > kMostSteps) node.Unsupported(fmt::format("linear attention over {} steps", steps));
  // A run checks sizes of queries that the model leaves open.
  const Expr q = node.WithSizes(split(0, q_heads), {batch, q_heads, steps, d_k});
  const Expr decay = gates ? node.Op("exp", {split(4, heads)}) : Expr();
  const Expr beta = corrects ? split(5, node.ShapeOf(node.Input(5)).back()) : Expr();
  const DataType state_dtype = node.HasInput(3) ? node.TypeOf(node.Input(3)).dtype() : dtype;
  Expr state = node.HasInput(3) ? node.Cast(node.Input(3), kFloat32) : Filled(0, {batch, heads, d_k, d_v}, kFloat32);
  double scale = node.Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(d_k));
  Results outputs;
  for (int64_t t = 0; t < steps; ++t) {
    const auto now = [&](const Expr& x) { return Slice(node, x, 2, t, t + 1); };  // [B, H, 1, D]
    if (gates) {
      // [B, H, 1, K or 1] → [B, H, K or 1, 1].
      state = node.Op("multiply", {state, Transpose(node, now(decay), {0, 1, 3, 2})});
    }
    Expr update = now(v);
    if (corrects) {
      const Expr retrieved = MultiplyMatrices(node, now(k), state);
      update = node.Op("multiply", {node.Op("subtract", {update, retrieved}), now(beta)});
    }
    state = node.Op("add", {state, node.Op("multiply", {Transpose(node, now(k), {0, 1, 3, 2}), update})});
    Expr seen = state;
    if (q_heads != heads) seen = node.Op("repeat", {seen}, {{"repeats", q_heads / heads}, {"axis", 1}});
    outputs.push_back(MultiplyMatrices(node, Scaled(node, now(q), scale), seen));
  }
  if (outputs.empty()) node.Unsupported("linear attention over no steps");
  const Expr joined = Concatenate(node, std::move(outputs), 2);
  return {node.Cast(MergeHeads(node, joined), dtype), node.Cast(state, state_dtype)};
}

}  // namespace

void AddAttentionConverters(OnnxConverters& converters) {
  converters.Add("Attention", ConvertAttention,
                 "Q: float[3..4], K: same[3..4], V: float[3..4], attn_mask?: [1..4], past_key?: same[4], "
                 "past_value?: float[4], nonpad_kv_seqlen?@24: int[1] -> Y, present_key?, present_value?, "
                 "qk_matmul_output?");
  converters.Add("ai.onnx.preview.FlexAttention", ConvertFlexAttention, "Q: float[4], K: same[4], V: same[4] -> Y");
  converters.Add("RotaryEmbedding", ConvertRotaryEmbedding,
                 "X: float[3..4], cos_cache: same[2..3], sin_cache: same[2..3], position_ids?: int[2] -> Y");
  converters.Add("LinearAttention", ConvertLinearAttention,
                 "query: float[3], key: same[3], value: same[3], past_state?: float[4], decay?: same[3], beta?: "
                 "same[3] -> output, present_state");
  converters.Add("SwiGLU", ConvertSwiGlu, "A: float, B: same -> Y");
  converters.Add("CausalConvWithState", ConvertCausalConv,
                 "input: float[3], weight: same[3], bias?: same[1], past_state?: same[3] -> output, present_state");
}

}  // namespace collage
