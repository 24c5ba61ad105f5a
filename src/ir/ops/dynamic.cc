// dynamic.cc: one row per dynamic operator; types know the rank only, evaluation reads the values and does what the
// static operator does.
#include "ir/ops/dynamic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

/// The rank of the result, as far as types tell: that of the first argument, or as many as a value has elements.
enum class Rank : uint8_t { kOfData, kOfValue, kLargerOfBoth };

Rank RankOf(const DynamicOp& op) {
  if (op.static_name == "tile") return Rank::kLargerOfBoth;
  return op.attrs[0] == "newshape" || op.attrs[0] == "shape" ? Rank::kOfValue : Rank::kOfData;
}

Type DynamicType(const OpCall& call, const DynamicOp& op, const OpDef& static_op) {
  for (size_t i = op.num_data; i < call.args.size(); ++i) {
    const TensorTypeNode& value = TensorArg(call, i);
    if (!value.dtype().is_integer() || value.rank() > 1) {
      throw RelationFailure{
          fmt::format("expects integers as its {}, got {}", op.attrs[i - op.num_data], ToString(call.args[i]))};
    }
  }
  const auto count = [&] {
    const TensorTypeNode& value = TensorArg(call, op.num_data, 1);
    if (value.shape()[0].is_any())
      throw RelationFailure{fmt::format("needs to know how many elements its {} has", op.attrs[0])};
    return static_cast<int>(value.shape()[0].size());
  };
  int rank = 0;
  switch (RankOf(op)) {
    case Rank::kOfData: rank = TensorArg(call, 0).rank(); break;
    case Rank::kOfValue: rank = count(); break;
    case Rank::kLargerOfBoth: rank = std::max(TensorArg(call, 0).rank(), count()); break;
  }
  const std::vector<Dim> shape(static_cast<size_t>(rank), Dim::Any());
  if (op.static_name == "topk") {
    const std::string kind = call.attrs.StringOr("ret_type", "both");
    const Type values = TensorType(shape, TensorArg(call, 0).dtype());
    const Type indices = TensorType(shape, call.attrs.Type("dtype"));
    return kind == "both" ? TupleType({values, indices}) : kind == "values" ? values : indices;
  }
  const AttrField* dtype = static_op.FindAttr("dtype");
  const bool has_dtype = dtype != nullptr && !call.attrs.String("dtype").empty();
  return TensorType(shape, has_dtype ? call.attrs.Type("dtype") : TensorArg(call, 0).dtype());
}

OpDef Dynamic(const DynamicOp& op, const OpDef& static_op) {
  OpDef row;
  row.name = op.name;
  row.doc = fmt::format("{} whose {} is computed.", op.static_name, op.attrs[0]);
  row.args.assign(static_op.args.begin(), static_op.args.begin() + static_cast<int64_t>(op.num_data));
  row.args.insert(row.args.end(), op.attrs.begin(), op.attrs.end());
  for (const AttrField& field : static_op.attrs) {
    if (std::find(op.attrs.begin(), op.attrs.end(), field.name) == op.attrs.end()) row.attrs.push_back(field);
  }
  row.pattern = OpPatternKind::kOpaque;
  row.relation = Relation([op, static_op](const OpCall& call) { return DynamicType(call, op, static_op); });
  row.reference = [op, static_op](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Attrs all = StaticAttrs(op, attrs, inputs.subspan(op.num_data));
    std::vector<Type> types;
    for (const Tensor& input : inputs.first(op.num_data)) types.push_back(TensorType(input.shape(), input.dtype()));
    const Result<Type> type = static_op.relation({types, all});
    if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", op.name, type.reason().text));
    size_t next = 0;
    for (const Type& leaf : FlattenTensorTypes(*type)) {
      const TensorTypeNode* tensor = AsTensorType(leaf);
      outputs[next++] = Tensor::Empty(tensor->static_shape(), tensor->dtype());
    }
    static_op.reference(inputs.first(op.num_data), all, outputs);
  };
  return row;
}

}  // namespace

std::span<const DynamicOp> AllDynamicOps() {
  static const std::array ops{
      DynamicOp{"dyn.broadcast_to", "broadcast_to", 1, {"shape"}},
      DynamicOp{"dyn.full", "full", 1, {"shape"}},
      DynamicOp{"dyn.image.resize2d", "image.resize2d", 1, {"size"}},
      DynamicOp{"dyn.ones", "ones", 0, {"shape"}},
      DynamicOp{"dyn.reshape", "reshape", 1, {"newshape"}},
      DynamicOp{"dyn.strided_slice", "strided_slice", 1, {"begin", "end", "strides"}},
      DynamicOp{"dyn.tile", "tile", 1, {"reps"}},
      DynamicOp{"dyn.topk", "topk", 1, {"k"}},
      DynamicOp{"dyn.zeros", "zeros", 0, {"shape"}},
  };
  return ops;
}

const DynamicOp* FindDynamicOp(std::string_view name) {
  for (const DynamicOp& op : AllDynamicOps()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

Attrs StaticAttrs(const DynamicOp& op, Attrs attrs, std::span<const Tensor> values) {
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const std::vector<int64_t> numbers = values[i].ToInts();
    if (op.attrs[i] == "k") {
      if (numbers.size() != 1) throw Error(ErrorCategory::kInput, fmt::format("'{}' wants one k", op.name));
      attrs.Set("k", numbers[0]);
    } else {
      attrs.Set(op.attrs[i], numbers);
    }
  }
  const OpDef& static_op = GetOp(op.static_name)->def();
  return CompleteAttrs(static_op, std::move(attrs));
}

void AddDynamicOps(std::vector<OpDef>& rows) {
  std::vector<OpDef> added;
  for (const DynamicOp& op : AllDynamicOps()) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const OpDef& other) { return other.name == op.static_name; });
    COLLAGE_CHECK(row != rows.end()) << "'" << op.name << "' has no static operator";
    added.push_back(Dynamic(op, *row));
  }
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace collage
