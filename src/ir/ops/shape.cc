// shape.cc: other shapes for the same elements: reshaping, permuting and repeating dimensions.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

void CopyAll(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  outputs[0] = inputs[0].Reshaped(outputs[0].shape());
}

/// An operator whose result has the same elements in the same order.
OpDef ReshapeLike(std::string name, std::string doc, std::vector<AttrField> attrs,
                  std::function<std::vector<Dim>(const OpCall&)> shape) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data"};
  op.attrs = std::move(attrs);
  op.pattern = OpPatternKind::kInjective;
  op.is_reshape = true;
  op.is_exact = true;
  SetMovesElements(op);
  op.relation = Relation([shape = std::move(shape)](const OpCall& call) {
    const DataType dtype = TensorArg(call, 0).dtype();
    return TensorType(shape(call), dtype);
  });
  op.reference = CopyAll;
  return op;
}

/// `newshape` as it stands: each a size, 0 too.
std::vector<Dim> LiteralDims(const std::vector<Dim>& shape, const V& newshape) {
  Dim before(1), after(1);
  for (const Dim& dim : shape) before = Times(before, dim);
  for (const int64_t size : newshape) {
    if (size < 0) throw RelationFailure{fmt::format("newshape has {}, which is no size with allowzero", size)};
    after = Times(after, size);
  }
  std::vector<Dim> result(newshape.begin(), newshape.end());
  if (!before.is_any() && before != after) {
    throw RelationFailure{
        fmt::format("cannot reshape {} elements to {}", before.ToString(), ToString(TensorType(result, kFloat32)))};
  }
  return result;
}

std::vector<Dim> SqueezedShape(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  std::vector<bool> drop(data.shape().size());
  if (call.attrs.IsNone("axis")) {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = data.shape()[i] == Dim(1);
  } else {
    for (int64_t axis : call.attrs.Ints("axis")) {
      const auto i = static_cast<size_t>(NormalAxis(axis, data.rank()));
      if (data.shape()[i] != Dim(1) && !data.shape()[i].is_any()) {
        throw RelationFailure{fmt::format("cannot squeeze axis {} of {}", axis, ToString(call.args[0]))};
      }
      drop[i] = true;
    }
  }
  std::vector<Dim> shape;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) shape.push_back(data.shape()[i]);
  }
  return shape;
}

std::vector<Dim> ExpandedShape(const OpCall& call) {
  std::vector<Dim> shape = TensorArg(call, 0).shape();
  const int rank = static_cast<int>(shape.size()) + 1;
  constexpr int64_t kMostNewAxes = 1000;
  const int64_t count = call.attrs.Int("num_newaxis");
  if (count < 0 || count > kMostNewAxes) throw RelationFailure{fmt::format("cannot insert {} dimensions", count)};
  shape.insert(shape.begin() + NormalAxis(call.attrs.Int("axis"), rank), static_cast<size_t>(count), Dim(1));
  return shape;
}

std::vector<Dim> FlattenedShape(const OpCall& call) {
  const std::vector<Dim>& shape = TensorArg(call, 0).shape();
  Dim rest(1);
  for (size_t i = 1; i < shape.size(); ++i) {
    rest = rest * shape[i];
  }
  return {shape.empty() ? Dim(1) : shape[0], rest};
}

V TransposeAxes(const Attrs& attrs, int rank) {
  V axes;
  if (attrs.IsNone("axes")) {
    for (int i = rank; i-- > 0;) axes.push_back(i);
    return axes;
  }
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t axis : attrs.Ints("axes")) {
    axes.push_back(NormalAxis(axis, rank));
    seen[axes.back()] = true;
  }
  if (static_cast<int>(axes.size()) != rank || std::find(seen.begin(), seen.end(), false) != seen.end()) {
    throw RelationFailure{fmt::format("axes are no permutation of {} dimensions", rank)};
  }
  return axes;
}

OpDef TransposeOp() {
  OpDef op;
  op.name = "transpose";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = TransposedDims;
  op.keeps_rows = [](const OpCall& call, const Type&) {
    return !call.attrs.IsNone("axes") && call.attrs.Ints("axes")[0] == 0;
  };
  op.doc = "Permutes the dimensions.";
  op.args = {"data"};
  op.attrs = {{"axes", AttrKind::kInts, {}, "which dimension each of the result's is; None: reversed"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    std::vector<Dim> shape;
    for (int64_t axis : TransposeAxes(call.attrs, data.rank())) shape.push_back(data.shape()[axis]);
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const V axes = TransposeAxes(attrs, inputs[0].rank());
    const V own = Strides(inputs[0].shape());
    V strides;
    for (int64_t axis : axes) strides.push_back(own[axis]);
    CopyStrided(inputs[0], strides, outputs[0]);
  };
  op.examples = {{{F32({3, 17, 9})}, {{"axes", V{0, 2, 1}}}},
                 {{F32({1, 5, 4, 33})}, {{"axes", V{0, 2, 1, 3}}}},
                 {{F32({1, 7, 5, 6})}, {{"axes", V{0, 2, 3, 1}}}},
                 {{F32({12, 19})}, {}}};
  return op;
}

OpDef BroadcastTo() {
  OpDef op;
  op.name = "broadcast_to";
  SetMovesElements(op);
  op.doc = "Repeats dimensions of size 1.";
  op.args = {"data"};
  op.attrs = {{"shape", AttrKind::kInts, {}, "the result's shape", true}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const V wanted = call.attrs.Ints("shape");
    for (int64_t size : wanted) {
      if (size < 0) throw RelationFailure{fmt::format("cannot broadcast to a dimension of {}", size)};
    }
    const std::vector<Dim> shape(wanted.begin(), wanted.end());
    if (BroadcastShapes(TensorArg(call, 0).shape(), shape) != shape) {
      throw RelationFailure{"cannot broadcast " + ToString(call.args[0]) + " to the shape asked for"};
    }
    return TensorType(shape, TensorArg(call, 0).dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const V strides = BroadcastStrides(inputs[0].shape(), outputs[0].shape());
    CopyStrided(inputs[0], strides, outputs[0]);
  };
  op.examples = {{{F32({3, 1, 17})}, {{"shape", V{2, 3, 4, 17}}}}, {{F32({5, 1})}, {{"shape", V{5, 19}}}}};
  return op;
}

OpDef Tile() {
  OpDef op;
  op.name = "tile";
  SetMovesElements(op);
  op.doc = "Repeats the whole tensor along each dimension.";
  op.args = {"data"};
  op.attrs = {{"reps", AttrKind::kInts, {}, "repetitions, one per dimension", true}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const V reps = call.attrs.Ints("reps");
    if (reps.size() != data.shape().size())
      throw RelationFailure{
          fmt::format("expects one repetition for each of {} dimensions, got {}", data.rank(), reps.size())};
    std::vector<Dim> shape;
    for (size_t i = 0; i < reps.size(); ++i) {
      if (reps[i] < 0) throw RelationFailure{fmt::format("cannot repeat {} times", reps[i])};
      shape.push_back(Times(data.shape()[i], reps[i]));
    }
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const V strides = Strides(shape);
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      int64_t from = 0;
      for (size_t d = 0; d < index.size(); ++d) from += index[d] % shape[d] * strides[d];
      CopyElement(inputs[0], from, outputs[0], o++);
    });
  };
  op.examples = {{{F32({2, 5})}, {{"reps", V{2, 3}}}}};
  return op;
}

}  // namespace

void AddShapeOps(std::vector<OpDef>& rows) {
  rows.push_back(ReshapeLike("reshape", "The same elements under another shape.",
                             {{"newshape",
                               AttrKind::kInts,
                               {},
                               "sizes; 0 copies, -1 infers, -2 copies the rest, -3 merges two, -4 splits",
                               true},
                              {"allowzero", AttrKind::kBool, false, "whether 0 is a size of 0"}},
                             [](const OpCall& call) {
                               const V newshape = call.attrs.Ints("newshape");
                               const std::vector<Dim>& shape = TensorArg(call, 0).shape();
                               return call.attrs.Bool("allowzero") ? LiteralDims(shape, newshape)
                                                                   : ReshapedDims(shape, newshape);
                             }));
  rows.back().examples = {{{F32({3, 4, 5})}, {{"newshape", V{12, -1}}}}};
  rows.back().keeps_rows = RowsOfReshape;
  rows.push_back(ReshapeLike(
      "expand_dims", "Inserts dimensions of size 1.",
      {{"axis", AttrKind::kInt, {}, "where", true}, {"num_newaxis", AttrKind::kInt, 1, "how many"}}, ExpandedShape));
  rows.back().pattern = OpPatternKind::kBroadcast;
  rows.back().keeps_rows = [](const OpCall& call, const Type&) { return call.attrs.Int("axis") > 0; };
  rows.back().examples = {{{F32({3, 4})}, {{"axis", 1}}}};
  rows.push_back(ReshapeLike("squeeze", "Removes dimensions of size 1.",
                             {{"axis", AttrKind::kInts, {}, "which; None: all"}}, SqueezedShape));
  rows.back().examples = {{{F32({3, 1, 4})}, {{"axis", V{1}}}}};
  rows.back().keeps_rows = RowsUnlessFirstIn("axis");
  rows.push_back(ReshapeLike("nn.batch_flatten", "Merges all dimensions but the first.", {}, FlattenedShape));
  rows.back().examples = {{{F32({2, 3, 4})}, {}}};
  rows.back().keeps_rows = RowsOfFirst;
  rows.push_back(TransposeOp());
  rows.push_back(BroadcastTo());
  rows.push_back(Tile());
}

}  // namespace collage
