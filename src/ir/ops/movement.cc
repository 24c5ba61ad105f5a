// movement.cc: operators that repeat, reverse, stack and shuffle elements.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Fills the result element by element: `source(index)` is the offset in the data, or -1 for zero.
template <typename Source>
void Gather(const Tensor& data, const Tensor& output, Source source) {
  const size_t bytes = data.dtype().size_bytes();
  int64_t o = 0;
  ForEachIndex(output.shape(), [&](const V& index) {
    const int64_t from = source(index);
    if (from < 0) {
      std::memset(output.data<char>() + static_cast<size_t>(o) * bytes, 0, bytes);
    } else {
      CopyElement(data, from, output, o);
    }
    ++o;
  });
}

OpDef Stack() {
  OpDef op;
  op.name = "stack";
  op.is_exact = true;
  SetMovesElements(op);
  op.doc = "Joins the tensors of a tuple along a new axis.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "where the new axis is in the result"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TupleTypeNode* tuple = call.args.empty() ? nullptr : AsTupleType(call.args[0]);
    if (tuple == nullptr || tuple->fields().empty()) throw RelationFailure{"expects a tuple of tensors"};
    const TensorTypeNode* first = AsTensorType(tuple->fields()[0]);
    std::vector<Dim> shape = first == nullptr ? std::vector<Dim>{} : first->shape();
    for (const Type& field : tuple->fields()) {
      const TensorTypeNode* tensor = AsTensorType(field);
      bool fits = first != nullptr && tensor != nullptr && tensor->dtype() == first->dtype() &&
                  tensor->shape().size() == shape.size();
      for (size_t d = 0; fits && d < shape.size(); ++d) {
        const Dim dim = tensor->shape()[d];
        if (shape[d].is_any()) shape[d] = dim;
        fits = dim.is_any() || dim == shape[d];
      }
      if (!fits) throw RelationFailure{"expects tensors of one type, got " + ToString(call.args[0])};
    }
    shape.insert(shape.begin() + NormalAxis(call.attrs.Int("axis"), first->rank() + 1),
                 Dim(static_cast<int64_t>(tuple->fields().size())));
    return TensorType(shape, first->dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int axis = NormalAxis(attrs.Int("axis"), outputs[0].rank());
    const V strides = Strides(inputs[0].shape());
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      V rest = index;
      rest.erase(rest.begin() + axis);
      CopyElement(inputs[index[axis]], Offset(rest, strides), outputs[0], o++);
    });
  };
  op.examples = {{{TupleType({F32({3, 5}), F32({3, 5})})}, {{"axis", 1}}}};
  return op;
}

OpDef Repeat() {
  OpDef op;
  op.name = "repeat";
  SetMovesElements(op);
  op.doc = "Every element along an axis several times in a row.";
  op.args = {"data"};
  op.attrs = {{"repeats", AttrKind::kInt, {}, "how often", true}, {"axis", AttrKind::kInt, {}, "the axis", true}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const int64_t repeats = call.attrs.Int("repeats");
    if (repeats < 1) throw RelationFailure{fmt::format("cannot repeat {} times", repeats)};
    std::vector<Dim> shape = data.shape();
    Dim& dim = shape[NormalAxis(call.attrs.Int("axis"), data.rank())];
    dim = Times(dim, repeats);
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const int64_t repeats = attrs.Int("repeats");
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](V index) {
      index[axis] /= repeats;
      return Offset(index, strides);
    });
  };
  op.examples = {{{F32({3, 5})}, {{"repeats", 2}, {"axis", 1}}}};
  return op;
}

OpDef Reverse() {
  OpDef op;
  op.name = "reverse";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = SameShapeDims;
  op.doc = "The elements along an axis in reverse order.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank());
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](V index) {
      index[axis] = inputs[0].shape()[axis] - 1 - index[axis];
      return Offset(index, strides);
    });
  };
  op.examples = {{{F32({3, 7})}, {{"axis", 1}}}};
  return op;
}

OpDef ReverseSequence() {
  OpDef op;
  op.name = "reverse_sequence";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = SameShapeDims;
  op.index_limit = [](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument != 1) return std::nullopt;
    return KnownSize(call, 0, call.attrs.IntOr("seq_axis", 1)) + 1;
  };
  op.doc = "The first elements along an axis, as many as a length per batch says, in reverse order.";
  op.args = {"data", "seq_lengths"};
  op.attrs = {{"seq_axis", AttrKind::kInt, 1, "the axis along which sequences go"},
              {"batch_axis", AttrKind::kInt, 0, "the axis that has one length per index"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const int sequence = NormalAxis(call.attrs.Int("seq_axis"), data.rank());
    const int batch = NormalAxis(call.attrs.Int("batch_axis"), data.rank());
    if (sequence == batch) throw RelationFailure{"expects different axes for batches and sequences"};
    const TensorTypeNode& lengths = TensorArg(call, 1, 1);
    const Dim wanted = data.shape()[batch];
    if (!lengths.dtype().is_integer() ||
        (lengths.shape()[0] != wanted && !wanted.is_any() && !lengths.shape()[0].is_any())) {
      throw RelationFailure{
          fmt::format("expects {} integers as lengths, got {}", wanted.ToString(), ToString(call.args[1]))};
    }
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto sequence = static_cast<size_t>(NormalAxis(attrs.Int("seq_axis"), inputs[0].rank()));
    const auto batch = static_cast<size_t>(NormalAxis(attrs.Int("batch_axis"), inputs[0].rank()));
    const V lengths = inputs[1].ToInts();
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](V index) {
      const int64_t length = std::min(lengths[index[batch]], inputs[0].shape()[sequence]);
      if (index[sequence] < length) index[sequence] = length - 1 - index[sequence];
      return Offset(index, strides);
    });
  };
  op.examples = {{{F32({3, 5, 2}), I64({3})}, {}, 1, 4}};
  return op;
}

OpDef Trilu() {
  OpDef op;
  op.name = "trilu";
  op.is_exact = true;
  op.equal_dims = SameShapeDims;
  op.doc = "The upper or lower triangle of matrices, zeros elsewhere; the diagonal is shifted by k.";
  op.args = {"data", "k"};
  op.attrs = {{"upper", AttrKind::kBool, true, "which triangle is kept"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    if (TensorArg(call, 0).rank() < 2) throw RelationFailure{"expects matrices, got " + ToString(call.args[0])};
    if (!TensorArg(call, 1, 0).dtype().is_integer())
      throw RelationFailure{"expects an integer as k, got " + ToString(call.args[1])};
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t k = inputs[1].ToInts()[0];
    const bool upper = attrs.Bool("upper");
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](const V& index) -> int64_t {
      const int64_t distance = index.back() - index[index.size() - 2];
      return (upper ? distance >= k : distance <= k) ? Offset(index, strides) : -1;
    });
  };
  op.examples = {{{F32({2, 5, 7}), I64({})}, {}, 0, 2}, {{F32({5, 4}), I64({})}, {{"upper", false}}, -1, 1}};
  return op;
}

// ---- between depth and space ----

void CheckNchw(const OpCall& call) {
  if (call.attrs.String("layout") != "NCHW")
    throw RelationFailure{"supports layout NCHW only, got " + call.attrs.String("layout")};
  constexpr int64_t kLargestBlock = 1 << 15;  // squares of larger ones may not fit
  const int64_t size = call.attrs.Int("block_size");
  if (size < 1 || size > kLargestBlock)
    throw RelationFailure{fmt::format("expects a block_size from 1 to {}, got {}", kLargestBlock, size)};
}

OpDef DepthToSpace() {
  OpDef op;
  op.name = "nn.depth_to_space";
  op.is_exact = true;
  op.keeps_rows = RowsOfFirst;
  op.doc = "Channels become blocks of pixels.";
  op.args = {"data"};
  op.attrs = {{"block_size", AttrKind::kInt, {}, "height and width of a block", true},
              {"layout", AttrKind::kString, "NCHW", "order of dimensions"},
              {"mode", AttrKind::kString, "DCR", "whether the channels' outer (DCR) or inner (CRD) part is the block"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    CheckNchw(call);
    const TensorTypeNode& data = TensorArg(call, 0, 4);
    if (!data.is_static()) throw RelationFailure{"expects a static shape, got " + ToString(call.args[0])};
    const Shape s = data.static_shape();
    const int64_t b = call.attrs.Int("block_size");
    if (s[1] % (b * b) != 0) throw RelationFailure{fmt::format("{} channels are no blocks of {} by {}", s[1], b, b)};
    return TensorType(std::vector<Dim>{s[0], s[1] / (b * b), Times(s[2], b), Times(s[3], b)}, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t b = attrs.Int("block_size");
    const int64_t channels = outputs[0].shape()[1];
    const bool crd = attrs.String("mode") == "CRD";
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](const V& i) {
      const int64_t block = i[2] % b * b + i[3] % b;
      return Offset({i[0], crd ? i[1] * b * b + block : block * channels + i[1], i[2] / b, i[3] / b}, strides);
    });
  };
  op.examples = {{{F32({1, 8, 3, 5})}, {{"block_size", 2}}},
                 {{F32({1, 8, 3, 5})}, {{"block_size", 2}, {"mode", "CRD"}}}};
  return op;
}

OpDef SpaceToDepth() {
  OpDef op;
  op.name = "nn.space_to_depth";
  op.is_exact = true;
  op.keeps_rows = RowsOfFirst;
  op.doc = "Blocks of pixels become channels.";
  op.args = {"data"};
  op.attrs = {{"block_size", AttrKind::kInt, {}, "height and width of a block", true},
              {"layout", AttrKind::kString, "NCHW", "order of dimensions"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    CheckNchw(call);
    const TensorTypeNode& data = TensorArg(call, 0, 4);
    if (!data.is_static()) throw RelationFailure{"expects a static shape, got " + ToString(call.args[0])};
    const Shape s = data.static_shape();
    const int64_t b = call.attrs.Int("block_size");
    if (s[2] % b != 0 || s[3] % b != 0)
      throw RelationFailure{fmt::format("{} by {} pixels are no blocks of {}", s[2], s[3], b)};
    return TensorType(std::vector<Dim>{s[0], Times(s[1], b * b), s[2] / b, s[3] / b}, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t b = attrs.Int("block_size");
    const int64_t channels = inputs[0].shape()[1];
    const V strides = Strides(inputs[0].shape());
    Gather(inputs[0], outputs[0], [&](const V& i) {
      const int64_t block = i[1] / channels;
      return Offset({i[0], i[1] % channels, i[2] * b + block / b, i[3] * b + block % b}, strides);
    });
  };
  op.examples = {{{F32({1, 3, 4, 6})}, {{"block_size", 2}}}};
  return op;
}

OpDef Reinterpret() {
  OpDef op;
  op.name = "reinterpret";
  op.doc = "The same bits as elements of another dtype of equal width.";
  op.args = {"data"};
  op.attrs = {{"dtype", AttrKind::kDType, {}, "the dtype of the result", true}};
  op.pattern = OpPatternKind::kElemWise;
  op.layout_agnostic = true;
  SetElementwise(op);
  op.relation = Relation([](const OpCall& call) {
    const DataType dtype = call.attrs.Type("dtype");
    if (dtype.size_bytes() != TensorArg(call, 0).dtype().size_bytes()) {
      throw RelationFailure{
          fmt::format("expects elements as wide as {}, got {}", dtype.ToString(), ToString(call.args[0]))};
    }
    return TensorType(TensorArg(call, 0).shape(), dtype);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    if (outputs[0].num_elements() > 0) std::memcpy(outputs[0].raw(), inputs[0].raw(), inputs[0].size_bytes());
  };
  op.examples = {{{F32({3, 5})}, {{"dtype", "int32"}}}};
  return op;
}

}  // namespace

void AddMovementOps(std::vector<OpDef>& rows) {
  rows.push_back(Stack());
  rows.push_back(Repeat());
  rows.push_back(Reverse());
  rows.push_back(ReverseSequence());
  rows.push_back(Trilu());
  rows.push_back(DepthToSpace());
  rows.push_back(SpaceToDepth());
  rows.push_back(Reinterpret());
}

}  // namespace collage
