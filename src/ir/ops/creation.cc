// creation.cc: operators that make tensors out of sizes and scalars.
#include <fmt/format.h>

#include <cmath>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

std::vector<Dim> WantedShape(const Attrs& attrs) {
  const V sizes = attrs.Ints("shape");
  for (int64_t size : sizes) {
    if (size < 0) throw RelationFailure{fmt::format("cannot make a tensor with a dimension of {}", size)};
  }
  return {sizes.begin(), sizes.end()};
}

void Fill(const Tensor& output, const Tensor& value) {
  for (int64_t i = 0; i < output.num_elements(); ++i) CopyElement(value, 0, output, i);
}

OpDef Full() {
  OpDef op;
  op.name = "full";
  op.index_limit = SizesFrom(0);
  op.doc = "A tensor of equal elements.";
  op.args = {"fill_value"};
  op.attrs = {{"shape", AttrKind::kInts, {}, "the result's shape", true},
              {"dtype", AttrKind::kDType, "", "dtype of the result; empty: the value's"}};
  op.pattern = OpPatternKind::kElemWise;
  SetElementwise(op);
  op.relation = Relation([](const OpCall& call) {
    const std::string& name = call.attrs.String("dtype");
    const DataType dtype = TensorArg(call, 0, 0).dtype();
    return TensorType(WantedShape(call.attrs), name.empty() ? dtype : DataType::FromString(name));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    Fill(outputs[0], inputs[0].Cast(outputs[0].dtype()));
  };
  op.examples = {{{F32({})}, {{"shape", V{3, 7}}}}};
  return op;
}

OpDef Filled(std::string name, std::string doc, double value) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.attrs = {{"shape", AttrKind::kInts, {}, "the result's shape", true},
              {"dtype", AttrKind::kDType, "float32", "dtype of the result"}};
  op.pattern = OpPatternKind::kElemWise;
  SetElementwise(op);
  op.relation =
      Relation([](const OpCall& call) { return TensorType(WantedShape(call.attrs), call.attrs.Type("dtype")); });
  op.reference = [value](std::span<const Tensor>, const Attrs&, std::span<Tensor> outputs) {
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) outputs[0].Set(i, value);
  };
  op.examples = {{{}, {{"shape", V{3, 7}}}}};
  return op;
}

OpDef Arange() {
  OpDef op;
  op.name = "arange";
  op.index_limit = SizesFrom(0);
  op.doc = "start, start + step, … up to, without, stop.";
  op.args = {"start", "stop", "step"};
  op.attrs = {{"dtype", AttrKind::kDType, "", "dtype of the result; empty: the start's"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    for (size_t i = 0; i < 3; ++i) TensorArg(call, i, 0);
    const std::string& name = call.attrs.String("dtype");
    const DataType dtype = TensorArg(call, 0).dtype();
    return TensorType(std::vector<Dim>{Dim::Any()}, name.empty() ? dtype : DataType::FromString(name));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const double start = inputs[0].At(0);
    const double step = inputs[2].At(0);
    const double count = std::ceil((inputs[1].At(0) - start) / step);
    // A range that would not fit in memory, or that a step of 0 would never end.
    if (std::isnan(count) || count > 1e10)
      throw Error(ErrorCategory::kInput, fmt::format("'arange' has no end with a step of {}", step));
    const std::string& name = attrs.String("dtype");
    const DataType dtype = name.empty() ? inputs[0].dtype() : DataType::FromString(name);
    outputs[0] = Tensor::Empty({std::max<int64_t>(0, static_cast<int64_t>(count))}, dtype);
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) outputs[0].Set(i, start + static_cast<double>(i) * step);
  };
  return op;
}

OpDef ShapeOf() {
  OpDef op;
  op.name = "shape_of";
  op.doc = "The sizes of the data's dimensions.";
  op.args = {"data"};
  op.attrs = {{"dtype", AttrKind::kDType, "int32", "dtype of the result"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    return TensorType(std::vector<Dim>{Dim(TensorArg(call, 0).rank())}, call.attrs.Type("dtype"));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    for (int d = 0; d < inputs[0].rank(); ++d) outputs[0].Set(d, static_cast<double>(inputs[0].shape()[d]));
  };
  op.examples = {{{F32({3, 5})}, {}}};
  return op;
}

OpDef NdarraySize() {
  OpDef op = ShapeOf();
  op.name = "ndarray_size";
  op.doc = "The number of elements.";
  op.relation = Relation([](const OpCall& call) {
    TensorArg(call, 0);
    return TensorType(std::vector<Dim>{}, call.attrs.Type("dtype"));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    outputs[0].Set(0, static_cast<double>(inputs[0].num_elements()));
  };
  return op;
}

OpDef OneHot() {
  OpDef op;
  op.name = "one_hot";
  op.is_exact = true;
  op.index_limit = [](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument != 0) return std::nullopt;
    return call.attrs.IntOr("depth", 0);
  };
  op.doc = "on_value where the position along a new axis equals the index, off_value elsewhere.";
  op.args = {"indices", "on_value", "off_value"};
  op.attrs = {{"depth", AttrKind::kInt, {}, "size of the new axis", true},
              {"axis", AttrKind::kInt, -1, "where the new axis is in the result"},
              {"dtype", AttrKind::kDType, "", "dtype of the result; empty: on_value's"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& indices = TensorArg(call, 0);
    if (!indices.dtype().is_integer())
      throw RelationFailure{"expects integers as indices, got " + ToString(call.args[0])};
    TensorArg(call, 1, 0);
    TensorArg(call, 2, 0);
    if (call.attrs.Int("depth") < 0) throw RelationFailure{fmt::format("has no depth of {}", call.attrs.Int("depth"))};
    std::vector<Dim> shape = indices.shape();
    shape.insert(shape.begin() + NormalAxis(call.attrs.Int("axis"), indices.rank() + 1), Dim(call.attrs.Int("depth")));
    const std::string& name = call.attrs.String("dtype");
    return TensorType(shape, name.empty() ? TensorArg(call, 1).dtype() : DataType::FromString(name));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), outputs[0].rank()));
    const Tensor on = inputs[1].Cast(outputs[0].dtype());
    const Tensor off = inputs[2].Cast(outputs[0].dtype());
    const V indices = inputs[0].ToInts();
    const V strides = Strides(inputs[0].shape());
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      V rest = index;
      rest.erase(rest.begin() + static_cast<int64_t>(axis));
      const bool is_hot = indices[Offset(rest, strides)] == index[axis];
      CopyElement(is_hot ? on : off, 0, outputs[0], o++);
    });
  };
  op.examples = {{{I64({3, 4}), F32({}), F32({})}, {{"depth", 5}}, 0, 4},
                 {{I64({7}), F32({}), F32({})}, {{"depth", 3}, {"axis", 0}}, 0, 4}};
  return op;
}

}  // namespace

void AddCreationOps(std::vector<OpDef>& rows) {
  rows.push_back(Full());
  rows.push_back(Filled("zeros", "Zeros.", 0));
  rows.push_back(Filled("ones", "Ones.", 1));
  rows.push_back(Arange());
  rows.push_back(ShapeOf());
  rows.push_back(NdarraySize());
  rows.push_back(OneHot());
}

}  // namespace collage
