// dynamic.cc: one row per dynamic operator; types know the rank only, evaluation reads the values and does what the
// static operator does.
#include "ir/ops/dynamic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "ir/tensor_types.h"

namespace collage {
namespace {

/// The rank of the result: that of the data, or as many as a value has elements, or something between.
int ResultRank(const OpCall& call, const DynamicOp& op) {
  const auto count = [&] {
    const TensorTypeNode& value = TensorArg(call, op.first_value, 1);
    if (value.shape()[0].is_any())
      throw RelationFailure{fmt::format("needs to know how many elements its {} has", op.attrs[0])};
    return static_cast<int>(value.shape()[0].size());
  };
  if (op.attrs[0] == "newshape" || op.attrs[0] == "shape") return count();
  const int rank = TensorArg(call, 0).rank();
  if (op.static_name == "tile") return std::max(rank, count());
  if (op.static_name == "one_hot") return rank + 1;
  if (op.static_name == "expand_dims") return rank + static_cast<int>(call.attrs.Int("num_newaxis"));
  if (op.static_name != "squeeze") return rank;
  if (count() > rank) throw RelationFailure{fmt::format("cannot remove {} of {} dimensions", count(), rank)};
  return rank - count();
}

/// Values are integers: one, a list of them, or a pair for each dimension.
void CheckValues(const OpCall& call, const DynamicOp& op) {
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const TensorTypeNode& value = TensorArg(call, op.first_value + i);
    const bool is_pairs = op.attrs[i] == "pad_width";
    if (!value.dtype().is_integer() || (is_pairs ? value.rank() != 2 : value.rank() > 1)) {
      throw RelationFailure{fmt::format("expects {} as its {}, got {}", is_pairs ? "pairs of integers" : "integers",
                                        op.attrs[i], ToString(call.args[op.first_value + i]))};
    }
  }
}

Type DynamicType(const OpCall& call, const DynamicOp& op, const OpDef& static_op) {
  CheckValues(call, op);
  const std::vector<Dim> shape(static_cast<size_t>(ResultRank(call, op)), Dim::Any());
  if (op.static_name == "topk") {
    const std::string kind = call.attrs.StringOr("ret_type", "both");
    const Type values = TensorType(shape, TensorArg(call, 0).dtype());
    const Type indices = TensorType(shape, call.attrs.Type("dtype"));
    return kind == "both" ? TupleType({values, indices}) : kind == "values" ? values : indices;
  }
  const AttrField* dtype = static_op.FindAttr("dtype");
  if (dtype != nullptr && !call.attrs.String("dtype").empty()) return TensorType(shape, call.attrs.Type("dtype"));
  // The second argument is the value, the first one its positions.
  return TensorType(shape, TensorArg(call, op.static_name == "one_hot" ? 1 : 0).dtype());
}

OpDef Dynamic(const DynamicOp& op, const OpDef& static_op) {
  OpDef row;
  row.name = op.name;
  row.doc = fmt::format("{} whose {} is computed.", op.static_name, op.attrs[0]);
  row.args = static_op.args;
  row.args.insert(row.args.begin() + static_cast<int64_t>(op.first_value), op.attrs.begin(), op.attrs.end());
  for (const AttrField& field : static_op.attrs) {
    if (std::find(op.attrs.begin(), op.attrs.end(), field.name) == op.attrs.end()) row.attrs.push_back(field);
  }
  row.pattern = OpPatternKind::kOpaque;
  row.value_sources = static_op.value_sources;
  row.index_limit = SizesFrom(1);
  row.relation = Relation([op, static_op](const OpCall& call) { return DynamicType(call, op, static_op); });
  row.reference = [op, static_op](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Attrs all = StaticAttrs(op, attrs, ValuesOf(op, inputs));
    const std::vector<Tensor> data = DataOf(op, inputs);
    std::vector<Type> types;
    for (const Tensor& input : data) types.push_back(TensorType(input.shape(), input.dtype()));
    const Result<Type> type = static_op.relation({types, all});
    if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", op.name, type.reason().text));
    const TensorTypeNode* tensor = AsTensorType(*type);
    const bool repeats_nothing = static_op.name == "broadcast_to" && tensor->static_shape() == data[0].shape();
    if (static_op.is_reshape || repeats_nothing) {
      outputs[0] = data[0].Reshaped(tensor->static_shape());
      return;
    }
    size_t next = 0;
    for (const Type& leaf : FlattenTensorTypes(*type)) {
      const TensorTypeNode* result = AsTensorType(leaf);
      outputs[next++] = Tensor::Empty(result->static_shape(), result->dtype());
    }
    static_op.reference(data, all, outputs);
  };
  return row;
}

}  // namespace

std::span<const DynamicOp> AllDynamicOps() {
  static const std::array ops{
      DynamicOp{"dyn.broadcast_to", "broadcast_to", 1, {"shape"}},
      DynamicOp{"dyn.expand_dims", "expand_dims", 1, {"axis"}},
      DynamicOp{"dyn.full", "full", 1, {"shape"}},
      DynamicOp{"dyn.image.resize2d", "image.resize2d", 1, {"size"}},
      DynamicOp{"dyn.nn.pad", "nn.pad", 1, {"pad_width"}},
      DynamicOp{"dyn.one_hot", "one_hot", 3, {"depth"}},
      DynamicOp{"dyn.ones", "ones", 0, {"shape"}},
      DynamicOp{"dyn.reshape", "reshape", 1, {"newshape"}},
      DynamicOp{"dyn.squeeze", "squeeze", 1, {"axis"}},
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
  const OpDef& static_op = GetOp(op.static_name)->def();
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const std::vector<int64_t> numbers = values[i].ToInts();
    const AttrKind kind = static_op.FindAttr(op.attrs[i])->kind;
    if (kind == AttrKind::kInt) {
      if (numbers.size() != 1)
        throw Error(ErrorCategory::kInput,
                    fmt::format("'{}' wants one {}, got {}", op.name, op.attrs[i], numbers.size()));
      attrs.Set(op.attrs[i], numbers[0]);
    } else if (values[i].rank() == 2) {
      AttrValue::List rows;
      const auto length = static_cast<size_t>(values[i].shape()[1]);
      for (size_t at = 0; length > 0 && at < numbers.size(); at += length) {
        rows.emplace_back(std::vector<int64_t>(numbers.begin() + static_cast<int64_t>(at),
                                               numbers.begin() + static_cast<int64_t>(at + length)));
      }
      attrs.Set(op.attrs[i], std::move(rows));
    } else {
      attrs.Set(op.attrs[i], numbers);
    }
  }
  return CompleteAttrs(static_op, std::move(attrs));
}

bool MakesSizesOfValues(const CallNode& call) {
  const auto is_static = [](const Expr& arg) { return HasStaticTensorsOnly(arg->checked_type()); };
  return !HasStaticTensorsOnly(call.checked_type()) && std::ranges::all_of(call.args(), is_static);
}

bool IsSizedByValues(const OpDef& op) { return op.name == "arange"; }

bool ReadsShapeAlone(const OpDef& op) { return op.name == "shape_of" || op.name == "ndarray_size"; }

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
