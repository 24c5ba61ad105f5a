// index.cc: operators that read elements at computed positions.
#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Clipped to [0, length). Throws kInput where nothing is there.
int64_t WrapIndex(int64_t index, int64_t length) {
  if (length == 0) throw Error(ErrorCategory::kInput, "an index is for a dimension without elements");
  if (index < 0) index += length;
  return index < 0 ? 0 : index >= length ? length - 1 : index;
}

void CheckIndices(const OpCall& call, size_t argument) {
  if (TensorArg(call, argument).dtype().is_floating()) {
    throw RelationFailure{"expects integers as indices, got " + ToString(call.args[argument])};
  }
}

void TakeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  // Data [batch][outer][length][inner], indices [batch][count], result [batch][outer][count][inner].
  const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
  const Shape& shape = inputs[0].shape();
  const V indices = inputs[1].ToInts();
  const int64_t inner = Strides(shape)[axis];
  int64_t batches = 1;
  for (int64_t d = 0; d < attrs.Int("batch_dims"); ++d) batches *= shape[d];
  int64_t before = 1;
  for (size_t d = 0; d < axis; ++d) before *= shape[d];
  const int64_t count = static_cast<int64_t>(indices.size()) / std::max<int64_t>(batches, 1);
  for (int64_t o = 0; o < outputs[0].num_elements(); ++o) {
    const int64_t row = o / inner / count;
    const int64_t batch = row / (before / batches);
    const int64_t index = WrapIndex(indices[batch * count + o / inner % count], shape[axis]);
    CopyElement(inputs[0], (row * shape[axis] + index) * inner + o % inner, outputs[0], o);
  }
}

OpDef Take() {
  OpDef op;
  op.name = "take";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = TakeDims;
  op.index_limit = IndicesAlongAxis(1);
  op.doc = "Slices of the data along an axis, at the given indices; negative ones count from the end.";
  op.args = {"data", "indices"};
  // Required: without one, TVM takes from the flattened data, which a reshape before says as well.
  op.attrs = {{"axis", AttrKind::kInt, {}, "the axis", true},
              {"batch_dims", AttrKind::kInt, 0, "leading dimensions that data and indices share"},
              {"mode", AttrKind::kString, "clip", "indices beyond the end are clipped"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    CheckIndices(call, 1);
    const TensorTypeNode& data = TensorArg(call, 0);
    const std::vector<Dim>& indices = TensorArg(call, 1).shape();
    const int axis = NormalAxis(call.attrs.Int("axis"), data.rank());
    const int64_t batch_dims = call.attrs.Int("batch_dims");
    if (batch_dims < 0 || batch_dims > axis || batch_dims > static_cast<int64_t>(indices.size())) {
      throw RelationFailure{fmt::format("cannot share {} dimensions with {}", batch_dims, ToString(call.args[1]))};
    }
    for (size_t d = 0; d < static_cast<size_t>(batch_dims); ++d) {
      if (MayEqual(data.shape()[d], indices[d])) continue;
      throw RelationFailure{fmt::format("{} and {} do not share {} dimensions", ToString(call.args[0]),
                                        ToString(call.args[1]), batch_dims)};
    }
    std::vector<Dim> shape(data.shape().begin(), data.shape().begin() + axis);
    shape.insert(shape.end(), indices.begin() + batch_dims, indices.end());
    shape.insert(shape.end(), data.shape().begin() + axis + 1, data.shape().end());
    return TensorType(shape, data.dtype());
  });
  op.reference = TakeReference;
  op.examples = {{{F32({19, 7}), I64({2, 5})}, {{"axis", 0}}, 0, 18},
                 {{F32({3, 5, 7}), I64({})}, {{"axis", 1}}, 0, 4},
                 {{F32({2, 5, 7}), I64({2, 3})}, {{"axis", 1}, {"batch_dims", 1}}, 0, 4}};
  return op;
}

OpDef Gather() {
  OpDef op;
  op.name = "gather";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = [](const OpCall& call, const Type&, DimEquations& equations) {
    for (int dim = 0; dim < AsTensorType(call.args[1])->rank(); ++dim) {
      equations.Equal({.dim = dim}, {.argument = 1, .dim = dim});
    }
  };
  op.index_limit = IndicesAlongAxis(1);
  op.doc = "Elements of the data at the given indices along an axis; data and indices have equal rank.";
  op.args = {"data", "indices"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    CheckIndices(call, 1);
    const TensorTypeNode& data = TensorArg(call, 0);
    CheckWithin(call, NormalAxis(call.attrs.Int("axis"), data.rank()));
    return TensorType(TensorArg(call, 1).shape(), data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const V strides = Strides(inputs[0].shape());
    const V indices = inputs[1].ToInts();
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      V at = index;
      at[axis] = WrapIndex(indices[o], inputs[0].shape()[axis]);
      CopyElement(inputs[0], Offset(at, strides), outputs[0], o++);
    });
  };
  op.examples = {{{F32({5, 7}), I64({3, 7})}, {}, 0, 4}};
  return op;
}

}  // namespace

void AddIndexOps(std::vector<OpDef>& rows) {
  rows.push_back(Take());
  rows.push_back(Gather());
}

}  // namespace collage
