// attention.cc: attention of com.microsoft, the form that ONNX Runtime's optimisers and generators write.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "frontend/onnx/attention_parts.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaskedKey = -10000;  ///< `mask_filter_value` where a node has none

double ScaleOf(NodeContext& node, const Expr& queries) {
  const double scale = node.Float("scale", 0);
  if (scale != 0) return scale;
  return 1 / std::sqrt(static_cast<double>(node.Known(node.SizesOf(queries).at(3), "the number of features")));
}

/// Bias [.., S, T] with which a query sees no later keys. There are `past` keys before the first query.
Expr CausalBias(NodeContext& node, const SymbolicSize& queries, const SymbolicSize& keys, const SymbolicSize& past,
                DataType dtype) {
  const Expr last = node.Op("add", {Positions(node, queries, 2), node.ComputeScalar(past)});
  return MaskBias(node, node.Op("less_equal", {Positions(node, keys, 3), last}), dtype, -kInfinity);
}

/// Bias of a mask of integers: a number for each key [B, T], each query and key [B, S, T] or [B, 1, M, M], or for each
/// batch the position behind its last key [B], perhaps followed by the positions of the first ones [2 B].
Expr KeyBias(NodeContext& node, const Expr& mask, const Sizes& scores, DataType dtype) {
  const double masked = node.Float("mask_filter_value", kMaskedKey);
  const SymbolicSize &batch = scores[0], &queries = scores[2], &keys = scores[3];
  const auto bias = [&](const Expr& allowed) { return MaskBias(node, allowed, dtype, masked); };
  const auto above_zero = [&](const Expr& x) { return node.Op("greater", {x, node.ScalarLike(0, x)}); };
  const Sizes shape = node.SizesOf(mask);
  if (shape.size() == 2) return bias(above_zero(node.Reshape(mask, {shape[0], 1, 1, shape[1]})));
  if (shape.size() == 3) return bias(above_zero(node.Reshape(mask, {shape[0], 1, shape[1], shape[2]})));
  if (shape.size() == 4) {
    const Expr rows = SliceBetween(node, mask, 2, keys - queries, keys);
    return bias(above_zero(SliceBetween(node, rows, 3, 0, keys)));
  }
  const Expr position = Positions(node, keys, 3);
  if (shape[0] == batch) return bias(node.Op("less", {position, PerBatch(node, mask)}));
  if (!(shape[0] == batch * 2)) {
    node.Unsupported(fmt::format("a mask of {} positions for {} batches", shape[0].ToString(), batch.ToString()));
  }
  const Expr ends = PerBatch(node, SliceBetween(node, mask, 0, 0, batch));
  const Expr begins = PerBatch(node, SliceBetween(node, mask, 0, batch, batch * 2));
  return bias(
      node.Op("logical_and", {node.Op("less", {position, ends}), node.Op("greater_equal", {position, begins})}));
}

/// Weights [B, H, S, T] of queries, which are scaled here, and keys under a bias; null for none.
Expr Weights(NodeContext& node, const Expr& queries, const Expr& keys, const Expr& bias) {
  const Expr scores = AttentionScores(node, Scaled(node, queries, ScaleOf(node, queries)), keys);
  return node.Op("nn.softmax", {SumOf(node, scores, bias)}, {{"axis", -1}});
}

/// Element `index` of the first dimension, which is dropped.
Expr Part(NodeContext& node, const Expr& x, int64_t index) {
  const Sizes shape = node.SizesOf(x);
  return node.Reshape(Slice(node, x, 0, index, index + 1), Sizes(shape.begin() + 1, shape.end()));
}

/// Both tensors under a new first dimension of size 2.
Expr Stacked(NodeContext& node, const Expr& a, const Expr& b) {
  Sizes shape = node.SizesOf(a);
  shape.insert(shape.begin(), 1);
  return Concatenate(node, {node.Reshape(a, shape), node.Reshape(b, shape)}, 0);
}

/// Elements [begin, end) of the last axis.
Expr Columns(NodeContext& node, const Expr& x, int64_t begin, int64_t end) {
  return Slice(node, x, node.Rank(x) - 1, begin, end);
}

void RefuseSharedBuffer(NodeContext& node) {
  if (node.Int("past_present_share_buffer", 0) != 0) node.Unsupported("past and present in one buffer");
  if (node.Int("do_rotary", 0) != 0) node.Unsupported("rotary embedding within this operator");
}

/// Inputs of an attention whose queries, keys and values were projected together.
struct AttentionInputs {
  size_t mask, past;
  std::optional<size_t> bias;
};

/// Attention over `projected` [B, S, query features + key features + value features].
Results AttentionOfProjected(NodeContext& node, const Expr& projected, const V& sizes, const AttentionInputs& inputs) {
  RefuseSharedBuffer(node);
  const int64_t heads = node.PositiveInt("num_heads", 0);
  const DataType dtype = node.TypeOf(projected).dtype();
  const Expr q = SplitHeads(node, Columns(node, projected, 0, sizes[0]), heads);
  Expr k = SplitHeads(node, Columns(node, projected, sizes[0], sizes[0] + sizes[1]), heads);
  Expr v = SplitHeads(node, Columns(node, projected, sizes[0] + sizes[1], sizes[0] + sizes[1] + sizes[2]), heads);
  SymbolicSize past = 0;
  if (node.HasInput(inputs.past)) {
    const Expr kept = node.Input(inputs.past);
    past = node.SizesOf(kept)[3];
    k = Concatenate(node, {Part(node, kept, 0), k}, 2);
    v = Concatenate(node, {Part(node, kept, 1), v}, 2);
  }
  const Sizes shape = node.SizesOf(q);
  const SymbolicSize keys = node.SizesOf(k)[2];
  Expr bias;
  if (node.HasInput(inputs.mask))
    bias = KeyBias(node, node.Input(inputs.mask), {shape[0], heads, shape[2], keys}, dtype);
  if (node.Int("unidirectional", 0) != 0) bias = SumOf(node, bias, CausalBias(node, shape[2], keys, past, dtype));
  if (inputs.bias && node.HasInput(*inputs.bias)) bias = SumOf(node, bias, node.Input(*inputs.bias));
  const Expr result = AttentionResult(node, Weights(node, q, k, bias), v);
  Results results{MergeHeads(node, result)};
  if (node.HasOutput(1)) results.push_back(Stacked(node, k, v));
  return results;
}

/// The numbers of features of queries, keys and values among `total`.
V ProjectedSizes(NodeContext& node, int64_t total) {
  V sizes = node.Ints("qkv_hidden_sizes", V(3, total / 3));
  if (sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] + sizes[1] + sizes[2] == total) return sizes;
  node.Invalid(fmt::format("{} features are not those of queries, keys and values", total));
}

int64_t ColumnsOf(NodeContext& node, const Expr& x) {
  return node.Known(node.SizesOf(x).back(), "the number of features");
}

Results ConvertAttention(NodeContext& node) {
  Expr projected = MultiplyMatrices(node, node.Input(0), node.Input(1));
  if (node.HasInput(2)) projected = node.Op("add", {projected, node.Input(2)});
  return AttentionOfProjected(node, projected, ProjectedSizes(node, ColumnsOf(node, projected)), {3, 4, 5});
}

/// input, weight, bias, scales of input and weight, mask, zero points of input and weight, past.
Results ConvertQAttention(NodeContext& node) {
  const Expr product =
      node.ConvertAs("MatMulInteger", {node.Input(0), node.Input(1), node.InputOrNull(6), node.InputOrNull(7)})[0];
  const Expr scale = node.Op("multiply", {node.Reshape(node.Input(3), {}), node.Input(4)});
  const Expr projected = node.Op("add", {node.Op("multiply", {node.Cast(product, kFloat32), scale}), node.Input(2)});
  return AttentionOfProjected(node, projected, ProjectedSizes(node, ColumnsOf(node, projected)), {5, 8, std::nullopt});
}

/// Queries, keys and values of a MultiHeadAttention as [B, H, S, D], the bias of the projection added.
struct Heads {
  Expr q, k, v;
};

/// Field `index` of `count` that are packed as [B, S, H, count, D], as [B, H, S, D].
Expr Unpacked(NodeContext& node, const Expr& packed, int64_t index) {
  const Sizes shape = node.SizesOf(packed);
  const Expr field = Slice(node, packed, 3, index, index + 1);
  return Transpose(node, node.Reshape(field, {shape[0], shape[1], shape[2], shape[4]}), {0, 2, 1, 3});
}

/// `heads` [B, H, S, D] plus the part of `bias` from feature `begin` on.
Expr Biased(NodeContext& node, const Expr& heads, const Expr& bias, int64_t begin) {
  const Sizes shape = node.SizesOf(heads);
  const int64_t count = node.Known(shape[1] * shape[3], "the number of features");
  const Expr part = node.Reshape(Slice(node, bias, 0, begin, begin + count), {shape[1], 1, shape[3]});
  return node.Op("add", {heads, part});
}

Heads ReadHeads(NodeContext& node) {
  const int64_t heads = node.PositiveInt("num_heads", 0);
  const Expr query = node.Input(0);
  const bool has_key = node.HasInput(1), has_value = node.HasInput(2);
  Heads all;
  if (node.Rank(query) == 5) {
    all = {Unpacked(node, query, 0), Unpacked(node, query, 1), Unpacked(node, query, 2)};
  } else if (has_key && node.Rank(node.Input(1)) == 5) {
    all = {SplitHeads(node, query, heads), Unpacked(node, node.Input(1), 0), Unpacked(node, node.Input(1), 1)};
  } else if (has_key && has_value) {
    const auto split = [&](const Expr& x) { return node.Rank(x) == 4 ? x : SplitHeads(node, x, heads); };
    all = {SplitHeads(node, query, heads), split(node.Input(1)), split(node.Input(2))};
  } else {
    node.Invalid("keys or values are missing");
  }
  if (!node.HasInput(3)) return all;
  const int64_t features = node.Known(node.SizesOf(all.q)[1] * node.SizesOf(all.q)[3], "the number of features");
  const bool is_projected = !has_key || node.Rank(node.Input(1)) != 4;  // what another run kept has its bias
  all.q = Biased(node, all.q, node.Input(3), 0);
  if (!is_projected) return all;
  all.k = Biased(node, all.k, node.Input(3), features);
  all.v = Biased(node, all.v, node.Input(3), 2 * features);
  return all;
}

Results ConvertMultiHeadAttention(NodeContext& node) {
  if (node.HasInput(8) || node.HasInput(9)) node.Unsupported("past and present in one buffer");
  auto [q, k, v] = ReadHeads(node);
  const DataType dtype = node.TypeOf(q).dtype();
  const SymbolicSize past = node.HasInput(6) ? node.SizesOf(node.Input(6))[2] : 0;
  if (node.HasInput(6)) k = Concatenate(node, {node.Input(6), k}, 2);
  if (node.HasInput(7)) v = Concatenate(node, {node.Input(7), v}, 2);
  Sizes scores = node.SizesOf(q);
  scores[3] = node.SizesOf(k)[2];
  Expr bias;
  if (node.HasInput(4)) bias = KeyBias(node, node.Input(4), scores, dtype);
  if (node.Int("unidirectional", 0) != 0) bias = SumOf(node, bias, CausalBias(node, scores[2], scores[3], past, dtype));
  if (node.HasInput(5)) bias = SumOf(node, bias, node.Input(5));
  const Expr weights = Weights(node, q, k, bias);
  return {MergeHeads(node, AttentionResult(node, weights, v)), k, v, weights};
}

/// Cosines or sines [B, 1, S, half] of positions [B, S] from a table [positions, half].
Expr AnglesAt(NodeContext& node, const Expr& table, const Expr& positions) {
  const Sizes shape = node.SizesOf(positions);
  const int64_t half = ColumnsOf(node, table);
  return node.Reshape(node.Op("take", {table, positions}, {{"axis", 0}}), {shape[0], 1, shape[1], half});
}

/// Positions are given for each token [B, S], or for the first one [1].
Results ConvertRotaryEmbedding(NodeContext& node) {
  if (node.Int("is_packed_batching", 0) != 0) node.Unsupported("batches of several lengths in one tensor");
  Expr x = node.Input(0);
  const bool packed = node.Rank(x) == 3;
  const int64_t half = ColumnsOf(node, node.Input(2));
  const int64_t rotated = node.IntWithin("rotary_embedding_dim", 0, 0, std::numeric_limits<int32_t>::max());
  if (rotated != 0 && rotated != 2 * half) {
    node.Invalid(fmt::format("{} features are rotated by a table for {}", rotated, 2 * half));
  }
  if (packed) {
    const int64_t features = ColumnsOf(node, x);
    int64_t heads = node.Int("num_heads", 0);
    if (heads == 0) heads = features / std::max<int64_t>(2 * half, 1);
    x = SplitHeads(node, x, heads);
  }
  const Sizes shape = node.SizesOf(x);
  if (ColumnsOf(node, x) < 2 * half) node.Invalid("a table of more angles than there are features");
  Expr positions = node.Input(1);
  if (node.Rank(positions) == 1) {
    const Expr first = node.Reshape(node.Cast(positions, kInt64), {1, 1});
    positions = node.BroadcastTo(node.Op("add", {Positions(node, shape[2], 1, 2), first}), {shape[0], shape[2]});
  }
  const Expr cosines = AnglesAt(node, node.Input(2), positions), sines = AnglesAt(node, node.Input(3), positions);
  Expr result = Rotate(node, x, cosines, sines, half, node.Int("interleaved", 0) != 0);
  if (node.Float("scale", 1) != 1) result = Scaled(node, result, node.Float("scale", 1));
  return {packed ? MergeHeads(node, result) : result};
}

/// A GroupQueryAttention: keys and values of earlier tokens lie at the front of a buffer, those of batch b up to
/// `before` [B, 1, 1, 1], and the new ones come behind them.
class GroupQuery {
 public:
  explicit GroupQuery(NodeContext& node) : node_(node) {
    RefuseOptions();
    heads_ = node.PositiveInt("num_heads", 0);
    key_heads_ = node.PositiveInt("kv_num_heads", 0);
    ReadHeads();
    queries_ = node.SizesOf(q_)[2];
    // Tokens of a batch so far, the new ones included, less one.
    const Expr lengths = Shifted(node, PerBatch(node, node.Input(5)), 1);
    const std::optional<Sizes> total = node.KnownInts(6);
    if (!total || total->size() != 1) node.Unsupported("a total length that is computed of data");
    total_ = (*total)[0];
    const Expr earlier = node.Op("subtract", {lengths, node.ComputeScalar(queries_)});
    // All tokens are new in the first run, whatever their number.
    before_ = total_ == queries_ ? node.Op("multiply", {earlier, node.ScalarLike(0, earlier)})
                                 : node.Op("maximum", {earlier, node.ScalarLike(0, earlier)});
    if (!(total_ == queries_) && !(IsAtMost(queries_ + 1, total_))) {
      const Expr is_first = node.Op("equal", {node.ComputeScalar(total_), node.ComputeScalar(queries_)});
      before_ = node.Op("where", {is_first, node.ScalarLike(0, before_), before_});
    }
  }

  Results Convert() {
    if (node_.Int("do_rotary", 0) != 0) RotateBoth();
    const Expr keys = Kept(3, k_), values = Kept(4, v_);
    Expr scores = AttentionScores(node_, Scaled(node_, q_, ScaleOf(node_, q_)), keys);
    const double softcap = node_.Float("softcap", 0);
    if (softcap > 0) scores = Scaled(node_, node_.Op("tanh", {Scaled(node_, scores, 1 / softcap)}), softcap);
    scores = SumOf(node_, scores, Bias(node_.SizesOf(keys)[2]));
    const Expr weights = Softmax(scores);
    return {MergeHeads(node_, AttentionResult(node_, weights, values)), keys, values};
  }

 private:
  void RefuseOptions() {
    for (const char* name : {"k_quant_type", "v_quant_type"}) {
      if (node_.String(name, "NONE") != "NONE") node_.Unsupported("keys and values that are kept quantised");
    }
    if (node_.Int("sliding_window_cache", 0) != 0) node_.Unsupported("a buffer of the size of a window");
    if (node_.HasInput(14) || node_.HasInput(15)) node_.Unsupported("norms of queries and keys within this operator");
    if (node_.Int("qk_output", 0) != 0) node_.Unsupported("products of queries and keys as a result");
  }

  void ReadHeads() {
    const Expr query = node_.Input(0);
    if (node_.HasInput(1) != node_.HasInput(2)) node_.Invalid("keys or values are missing");
    if (node_.HasInput(1)) {
      q_ = SplitHeads(node_, query, heads_);
      k_ = SplitHeads(node_, node_.Input(1), key_heads_);
      v_ = SplitHeads(node_, node_.Input(2), key_heads_);
      return;
    }
    const Expr all = SplitHeads(node_, query, heads_ + 2 * key_heads_);
    q_ = Slice(node_, all, 1, 0, heads_);
    k_ = Slice(node_, all, 1, heads_, heads_ + key_heads_);
    v_ = Slice(node_, all, 1, heads_ + key_heads_, heads_ + 2 * key_heads_);
  }

  void RotateBoth() {
    const SymbolicSize batch = node_.SizesOf(q_)[0];
    Expr positions;
    if (node_.HasInput(9)) {
      positions = node_.Input(9);
    } else {
      const Expr first = node_.Reshape(before_, {batch, 1});
      positions = node_.Op("add", {Positions(node_, queries_, 1, 2), first});
    }
    const int64_t half = ColumnsOf(node_, node_.Input(7));
    const Expr cosines = AnglesAt(node_, node_.Input(7), positions), sines = AnglesAt(node_, node_.Input(8), positions);
    const bool interleaved = node_.Int("rotary_interleaved", 0) != 0;
    q_ = Rotate(node_, q_, cosines, sines, half, interleaved);
    k_ = Rotate(node_, k_, cosines, sines, half, interleaved);
  }

  /// The buffer of input `past` with `added` [B, K, S, D] behind what each batch has. Behind that are zeros, or, if the
  /// buffer has room for all tokens, what was there.
  Expr Kept(size_t past, const Expr& added) {
    if (!node_.HasInput(past)) return added;
    Expr buffer = node_.Input(past);
    const SymbolicSize features = node_.SizesOf(added)[3];
    // Files of GenAI's builder leave it open.
    if (!node_.SizesOf(buffer)[3].is_known() && features.is_known())
      buffer = node_.WithSizeAlong(buffer, node_.SizesOf(buffer), 3, features);
    const Sizes shape = node_.SizesOf(buffer);
    if (shape[2] == total_) {
      const Expr rows = node_.Op("add", {Positions(node_, queries_, 2), before_});
      return node_.Op("scatter_elements", {buffer, node_.BroadcastTo(rows, node_.SizesOf(added)), added},
                      {{"axis", 2}});
    }
    const SymbolicSize length = SymbolicSize::Maximum(total_, shape[2]);
    const Sizes zero_shape{shape[0], shape[1], 1, shape[3]};
    const Expr zeros = node_.Full(MakeScalar(0, node_.TypeOf(buffer).dtype()), zero_shape);
    const Expr all = Concatenate(node_, {buffer, added, zeros}, 2);
    // Row j of the result is row j of the buffer, row j - before of what is added, or the zeros.
    const SymbolicSize rows = node_.SizesOf(all)[2];
    const Expr j = Positions(node_, length, 3);
    const Expr behind = node_.Op("subtract", {j, before_});
    const Expr is_old = node_.Op("less", {j, before_});
    const Expr is_new = node_.Op("less", {behind, node_.ComputeScalar(queries_)});
    const Expr from_new = node_.Op("add", {behind, node_.ComputeScalar(shape[2])});
    const Expr row =
        node_.Op("where", {is_old, j, node_.Op("where", {is_new, from_new, node_.ComputeScalar(rows - 1)})});
    const Expr batch_and_head =
        node_.Op("add", {node_.Op("multiply", {Positions(node_, shape[0], 0), node_.ComputeScalar(shape[1])}),
                         Positions(node_, shape[1], 1)});
    const Expr index = node_.Op("add", {node_.Op("multiply", {batch_and_head, node_.ComputeScalar(rows)}), row});
    const Expr flat = node_.Reshape(all, {shape[0] * shape[1] * rows, shape[3]});
    const Expr indices = node_.Reshape(index, {shape[0], shape[1], length});
    return node_.Op("take", {flat, indices}, {{"axis", 0}});
  }

  Expr Bias(const SymbolicSize& keys) {
    const DataType dtype = node_.TypeOf(q_).dtype();
    const Expr j = Positions(node_, keys, 3);
    Expr bias;
    const auto allow = [&](const Expr& condition) {
      bias = SumOf(node_, bias, MaskBias(node_, condition, dtype, -kInfinity));
    };
    const Expr query = node_.Op("add", {Positions(node_, queries_, 2), before_});
    if (node_.Int("causal", 1) != 0) {
      allow(node_.Op("less_equal", {j, query}));
    } else {
      allow(node_.Op("less", {j, node_.Op("add", {before_, node_.ComputeScalar(queries_)})}));
    }
    const int64_t window = node_.Int("local_window_size", -1);
    if (window > 0) allow(node_.Op("greater", {j, Shifted(node_, query, -static_cast<double>(window))}));
    if (!node_.HasInput(10)) return bias;
    Expr given = node_.Input(10);
    const SymbolicSize own = node_.SizesOf(given).back();
    if (!(own == keys)) {
      Sizes after(4, 0);
      after[3] = keys - own;
      given = PadBy(node_, given, Sizes(4, 0), after, MakeScalar(0, dtype), "constant");
    }
    return SumOf(node_, bias, given);
  }

  /// softmax; each head's sink, or a zero, counts as one more key that has no value.
  Expr Softmax(const Expr& scores) {
    const bool is_smooth = node_.Int("smooth_softmax", -1) > 0;
    if (!node_.HasInput(11) && !is_smooth) return node_.Op("nn.softmax", {scores}, {{"axis", -1}});
    const Sizes shape = node_.SizesOf(scores);
    const Sizes column{shape[0], shape[1], shape[2], 1};
    const DataType dtype = node_.TypeOf(scores).dtype();
    const Expr sink = node_.HasInput(11)
                          ? node_.BroadcastTo(node_.Reshape(node_.Input(11), {1, shape[1], 1, 1}), column)
                          : node_.Full(MakeScalar(0, dtype), column);
    const Expr weights = node_.Op("nn.softmax", {Concatenate(node_, {scores, sink}, 3)}, {{"axis", -1}});
    return SliceBetween(node_, weights, 3, 0, shape[3]);
  }

  NodeContext& node_;
  int64_t heads_ = 0, key_heads_ = 0;
  Expr q_, k_, v_;
  SymbolicSize queries_, total_;
  Expr before_;
};

Results ConvertGroupQueryAttention(NodeContext& node) { return GroupQuery(node).Convert(); }

}  // namespace

void AddMicrosoftAttention(OnnxConverters& converters) {
  converters.Add("com.microsoft.Attention", ConvertAttention,
                 "input: float[3], weights: same[2], bias?: same[1], mask_index?: int[1..4], past?: same[5], "
                 "attention_bias?: same[4], past_sequence_length?: int -> output, present?");
  converters.Add("com.microsoft.QAttention", ConvertQAttention,
                 "input: int[3], weight: int[2], bias: float[1], input_scale: float[0..1], weight_scale: float[0..1], "
                 "mask_index?: int[1..3], input_zero_point?: int[0..1], weight_zero_point?: int[0..1], past?: float[5] "
                 "-> output, present?");
  converters.Add("com.microsoft.MultiHeadAttention", ConvertMultiHeadAttention,
                 "query: float[3..5], key?: same[3..5], value?: same[3..4], bias?: same[1], key_padding_mask?: "
                 "int[1..3], attention_bias?: same[4], past_key?: same[4], past_value?: same[4], "
                 "past_sequence_length?: int, cache_indirection?: int -> output, present_key?, present_value?, qk?");
  converters.Add(
      "com.microsoft.GroupQueryAttention", ConvertGroupQueryAttention,
      "query: float[3], key?: same[3], value?: same[3], past_key?: same[4], past_value?: same[4], seqlens_k: "
      "int[0..2], total_sequence_length: int[0..1], cos_cache?: same[2], sin_cache?: same[2], position_ids?: "
      "int[2], attention_bias?: same[4], head_sink?: same[1], k_scale?, v_scale?, q_norm_weight?, "
      "k_norm_weight? -> output, present_key?, present_value?, output_qk?");
  converters.Add("com.microsoft.RotaryEmbedding", ConvertRotaryEmbedding,
                 "input: float[3..4], position_ids: int[1..2], cos_cache: same[2], sin_cache: same[2] -> output");
}

}  // namespace collage
