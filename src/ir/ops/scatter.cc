// scatter.cc: operators that read or write at tuples of indices.
#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

void CheckIntegers(const OpCall& call, size_t argument) {
  if (!TensorArg(call, argument).dtype().is_integer()) {
    throw RelationFailure{"expects integers as indices, got " + ToString(call.args[argument])};
  }
}

/// `index` counted from the front. Indices come with the data, so a wrong one is the input's fault.
int64_t CheckedIndex(const char* op, int64_t index, int64_t length) {
  if (index < -length || index >= length) {
    throw Error(ErrorCategory::kInput, fmt::format("'{}' gets index {} for a dimension of {}", op, index, length));
  }
  return index < 0 ? index + length : index;
}

/// Stores `update` over, or combined with, element `at`.
void Combine(const Tensor& target, int64_t at, const Tensor& updates, int64_t from, const std::string& how) {
  if (how == "update") return CopyElement(updates, from, target, at);
  const double old = target.At(at);
  const double value = updates.At(from);
  target.Set(at, how == "add"   ? old + value
                 : how == "mul" ? old * value
                 : how == "min" ? std::min(old, value)
                                : std::max(old, value));
}

void CheckReduction(const std::string& how) {
  for (const char* known : {"update", "add", "mul", "min", "max"}) {
    if (how == known) return;
  }
  throw RelationFailure{"combines by update, add, mul, min or max, not by '" + how + "'"};
}

void CheckUpdates(const OpCall& call, const std::vector<Dim>& shape) {
  const TensorTypeNode& updates = TensorArg(call, 2);
  bool fits = updates.shape().size() == shape.size() && updates.dtype() == TensorArg(call, 0).dtype();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = shape[d] == updates.shape()[d] || shape[d].is_any() || updates.shape()[d].is_any();
  }
  if (!fits) {
    throw RelationFailure{fmt::format("expects {} as updates, got {}",
                                      ToString(TensorType(shape, TensorArg(call, 0).dtype())), ToString(call.args[2]))};
  }
}

OpDef ScatterElements() {
  OpDef op;
  op.name = "scatter_elements";
  op.equal_dims = SameShapeDims;
  op.index_limit = IndicesAlongAxis(1);
  op.doc = "The data with updates written at the given indices along an axis.";
  op.args = {"data", "indices", "updates"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"},
              {"reduction", AttrKind::kString, "update", "update, add, mul, min or max"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    CheckIntegers(call, 1);
    CheckReduction(call.attrs.String("reduction"));
    const TensorTypeNode& data = TensorArg(call, 0);
    CheckWithin(call, NormalAxis(call.attrs.Int("axis"), data.rank()));
    CheckUpdates(call, TensorArg(call, 1).shape());
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const V indices = inputs[1].ToInts();
    const V strides = Strides(inputs[0].shape());
    outputs[0] = inputs[0].Clone();
    int64_t from = 0;
    ForEachIndex(inputs[1].shape(), [&](V index) {
      index[axis] = CheckedIndex("scatter_elements", indices[from], inputs[0].shape()[axis]);
      Combine(outputs[0], Offset(index, strides), inputs[2], from++, attrs.String("reduction"));
    });
  };
  op.examples = {{{F32({5, 7}), I64({2, 7}), F32({2, 7})}, {{"reduction", "add"}}, 0, 4}};
  return op;
}

// Index tuples lie along the first axis of the indices: [M, Y_0, …], as in Relay (ONNX has them along the last).

/// The dimensions behind index tuples of length M: those of the data from `skip` + M on.
std::vector<Dim> SlicedShape(const OpCall& call, int64_t skip) {
  CheckIntegers(call, 1);
  const TensorTypeNode& data = TensorArg(call, 0);
  const TensorTypeNode& indices = TensorArg(call, 1);
  if (indices.rank() < 1 || indices.shape()[0].is_any()) throw RelationFailure{"expects index tuples of known length"};
  const int64_t length = indices.shape()[0].size() + skip;
  if (length > data.rank()) {
    throw RelationFailure{
        fmt::format("cannot index {} with tuples of {}", ToString(call.args[0]), indices.shape()[0].size())};
  }
  std::vector<Dim> shape(indices.shape().begin() + 1, indices.shape().end());
  shape.insert(shape.end(), data.shape().begin() + length, data.shape().end());
  return shape;
}

/// Calls `visit(offset in the data, offset of the slice)` for each index tuple; a slice has `inner` elements.
void ForEachTuple(const char* op, const Tensor& data, const Tensor& indices, int64_t batch_dims,
                  const std::function<void(int64_t at, int64_t slice)>& visit) {
  const V values = indices.ToInts();
  const V strides = Strides(data.shape());
  const Shape places(indices.shape().begin() + 1, indices.shape().end());
  const int64_t count = NumElements(places);
  int64_t place = 0;
  ForEachIndex(places, [&](const V& index) {
    int64_t at = 0;
    for (int64_t d = 0; d < batch_dims; ++d) at += index[d] * strides[d];
    for (int64_t m = 0; m < indices.shape()[0]; ++m) {
      const auto d = static_cast<size_t>(m + batch_dims);
      at += CheckedIndex(op, values[m * count + place], data.shape()[d]) * strides[d];
    }
    visit(at, place++);
  });
}

int64_t SliceSize(const Tensor& data, int64_t first) {
  return NumElements(Shape(data.shape().begin() + first, data.shape().end()));
}

OpDef GatherNd() {
  OpDef op;
  op.name = "gather_nd";
  op.is_exact = true;
  SetMovesElements(op);
  op.index_limit = IndexTuples;
  op.doc = "Slices of the data at tuples of indices, which lie along the first axis of the indices.";
  op.args = {"data", "indices"};
  op.attrs = {{"batch_dims", AttrKind::kInt, 0, "leading dimensions that data and indices share"},
              {"index_rank", AttrKind::kInt, {}, "length of the tuples where their size is not static"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const int64_t batch_dims = call.attrs.Int("batch_dims");
    if (batch_dims < 0 || batch_dims >= TensorArg(call, 1).rank()) {
      throw RelationFailure{fmt::format("cannot share {} dimensions with {}", batch_dims, ToString(call.args[1]))};
    }
    std::vector<Dim> shape = SlicedShape(call, batch_dims);
    const TensorTypeNode& data = TensorArg(call, 0);
    for (size_t d = 0; d < static_cast<size_t>(batch_dims); ++d) {
      if (MayEqual(data.shape()[d], TensorArg(call, 1).shape()[d + 1])) continue;
      throw RelationFailure{fmt::format("{} and {} do not share {} dimensions", ToString(call.args[0]),
                                        ToString(call.args[1]), batch_dims)};
    }
    return TensorType(std::move(shape), data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t inner = SliceSize(inputs[0], attrs.Int("batch_dims") + inputs[1].shape()[0]);
    ForEachTuple("gather_nd", inputs[0], inputs[1], attrs.Int("batch_dims"), [&](int64_t at, int64_t slice) {
      for (int64_t i = 0; i < inner; ++i) CopyElement(inputs[0], at + i, outputs[0], slice * inner + i);
    });
  };
  op.examples = {{{F32({5, 6, 3}), I64({2, 4})}, {}, 0, 4}};
  return op;
}

OpDef ScatterNd() {
  OpDef op;
  op.name = "scatter_nd";
  op.equal_dims = SameShapeDims;
  op.is_exact = true;
  op.index_limit = IndexTuples;
  op.doc = "The data with slices written at tuples of indices, which lie along the first axis of the indices.";
  op.args = {"data", "indices", "updates"};
  op.attrs = {{"mode", AttrKind::kString, "update", "update, add, mul, min or max"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    CheckReduction(call.attrs.String("mode"));
    CheckUpdates(call, SlicedShape(call, 0));
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    outputs[0] = inputs[0].Clone();
    const int64_t inner = SliceSize(inputs[0], inputs[1].shape()[0]);
    ForEachTuple("scatter_nd", inputs[0], inputs[1], 0, [&](int64_t at, int64_t slice) {
      for (int64_t i = 0; i < inner; ++i)
        Combine(outputs[0], at + i, inputs[2], slice * inner + i, attrs.String("mode"));
    });
  };
  op.examples = {{{F32({5, 6, 3}), I64({2, 4}), F32({4, 3})}, {{"mode", "add"}}, 0, 4}};
  return op;
}

OpDef ArgWhere() {
  OpDef op;
  op.name = "argwhere";
  op.doc = "The indices of the elements that are not zero, one row each; how many is known at run time only.";
  op.args = {"condition"};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    return TensorType(std::vector<Dim>{Dim::Any(), Dim(TensorArg(call, 0).rank())}, kInt32);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    std::vector<int32_t> rows;
    int64_t count = 0;
    int64_t from = 0;
    ForEachIndex(inputs[0].shape(), [&](const V& index) {
      if (inputs[0].At(from++) == 0) return;
      ++count;
      for (int64_t i : index) rows.push_back(static_cast<int32_t>(i));
    });
    outputs[0] = Tensor::Of<int32_t>({count, inputs[0].rank()}, kInt32, rows);
  };
  return op;
}

}  // namespace

void AddScatterOps(std::vector<OpDef>& rows) {
  rows.push_back(ScatterElements());
  rows.push_back(GatherNd());
  rows.push_back(ScatterNd());
  rows.push_back(ArgWhere());
}

}  // namespace collage
