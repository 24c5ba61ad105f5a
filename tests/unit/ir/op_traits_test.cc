// The traits of op rows, compared with what their reference evaluation does: on the examples of each row and on cases
// that state attributes at their edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/op.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

struct Case {
  const OpDef* op;
  std::vector<Type> args;
  Attrs attrs;
};

Type Floats(Shape shape) { return TensorType(shape, kFloat32); }

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Op& op : AllOps()) {
    for (const OpExample& example : op->def().examples) {
      cases.push_back({&op->def(), example.args, CompleteAttrs(op->def(), example.attrs)});
    }
  }
  const auto add = [&](const char* name, std::vector<Type> args, const Attrs& attrs) {
    const OpDef& op = GetOp(name)->def();
    cases.push_back({&op, std::move(args), CompleteAttrs(op, attrs)});
  };
  for (const int64_t axis : {0, 1, -1, -3}) {
    add("nn.softmax", {Floats({4, 3, 5})}, {{"axis", axis}});
    add("nn.lrn", {Floats({4, 3, 5})}, {{"axis", axis}, {"size", 3}, {"alpha", 1.0}});
    add("nn.l2_normalize", {Floats({4, 3, 5})}, {{"axis", V{axis}}, {"eps", 1e-6}});
    add("sum", {Floats({4, 3, 5})}, {{"axis", V{axis}}, {"exclude", true}});
    add("max", {Floats({4, 3, 5})}, {{"axis", V{axis}}});
    add("concatenate", {TupleType({Floats({4, 3, 5}), Floats({4, 3, 5})})}, {{"axis", axis}});
    add("cumsum", {Floats({4, 3, 5})}, {{"axis", axis}});
  }
  add("nn.layer_norm", {Floats({3, 3}), Floats({3}), Floats({3})}, {{"axis", 0}});
  add("nn.bias_add", {Floats({3, 3}), Floats({3})}, {{"axis", 0}});
  add("nn.prelu", {Floats({3, 3}), Floats({3})}, {{"axis", -1}});
  add("nn.matmul", {Floats({3, 3}), Floats({3, 3})}, {{"transpose_a", true}});
  add("transpose", {Floats({2, 3, 4})}, {});
  add("transpose", {Floats({2, 3, 4})}, {{"axes", V{0, 2, 1}}});
  add("expand_dims", {Floats({2, 3})}, {{"axis", 0}});
  add("squeeze", {Floats({1, 3, 1})}, {{"axis", V{0}}});
  add("strided_slice", {Floats({4, 5})}, {{"begin", V{1}}, {"end", V{3}}, {"axes", V{0}}});
  add("strided_slice", {Floats({4, 5})}, {{"begin", V{1}}, {"end", V{3}}, {"axes", V{1}}});
  add("reshape", {Floats({4, 6})}, {{"newshape", V{-1, 3, 2}}});
  add("reshape", {Floats({4, 6})}, {{"newshape", V{-1, 3}}});
  add("reshape", {Floats({4, 6})}, {{"newshape", V{0, -1}}});
  add("split", {Floats({4, 6})}, {{"indices_or_sections", 2}, {"axis", 1}});
  add("take", {Floats({4, 6}), TensorType(Shape{2, 3}, kInt64)}, {{"axis", 1}});
  add("nn.max_pool1d", {Floats({3, 2, 9})}, {{"pool_size", V{3}}, {"padding", V{1}}});
  add("nn.avg_pool3d", {Floats({2, 2, 4, 4, 5})}, {{"pool_size", V{2, 2, 2}}, {"padding", V{1}}});
  add("nn.max_pool2d", {Floats({2, 6, 6, 3})}, {{"pool_size", V{3, 3}}, {"padding", V{1}}, {"layout", "NHWC"}});
  add("nn.conv2d", {Floats({2, 5, 6, 7}), Floats({4, 5, 3, 3})}, {{"padding", V{1}}});
  add("nn.max_pool2d_indices", {Floats({3, 2, 4, 4})}, {{"pool_size", V{2, 2}}});
  add("nn.batch_norm", {Floats({2, 3, 4}), Floats({3}), Floats({3}), Floats({3}), Floats({3})}, {});
  return cases;
}

std::vector<Type> Leaves(const std::vector<Type>& types) {
  std::vector<Type> leaves;
  for (const Type& type : types) {
    for (const Type& leaf : FlattenTensorTypes(type)) leaves.push_back(leaf);
  }
  return leaves;
}

bool IsStatic(const Type& type) {
  for (const Type& leaf : FlattenTensorTypes(type)) {
    if (!AsTensorType(leaf)->is_static()) return false;
  }
  return true;
}

/// The result's type where it is static; null else, or where the arguments do not fit.
Type StaticResult(const Case& call) {
  const Result<Type> type = call.op->relation({call.args, call.attrs});
  return type.ok() && IsStatic(*type) ? *type : nullptr;
}

/// Random tensors for the flattened arguments: floats are multiples of 1/8 above 0, all different in a small tensor.
std::vector<Tensor> Inputs(const Case& call) {
  std::vector<Tensor> inputs;
  for (const Type& leaf : Leaves(call.args)) {
    const TensorTypeNode& type = *AsTensorType(leaf);
    inputs.push_back(Tensor::Empty(type.static_shape(), type.dtype()));
    FillRandom(inputs.back(), 7 + inputs.size());
    for (int64_t i = 0; type.dtype().is_floating() && i < inputs.back().num_elements(); ++i) {
      inputs.back().Set(i, static_cast<double>((i * 37 + static_cast<int64_t>(inputs.size())) % 101 + 1) / 8);
    }
  }
  return inputs;
}

std::vector<Tensor> Evaluate(const Case& call, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  for (const Type& leaf : FlattenTensorTypes(StaticResult(call))) {
    outputs.push_back(Tensor::Empty(AsTensorType(leaf)->static_shape(), AsTensorType(leaf)->dtype()));
  }
  call.op->reference(inputs, call.attrs, outputs);
  return outputs;
}

/// That type with `size` as its first dimension; null for types without dimensions. All fields of a tuple.
Type WithFirst(const Type& type, const Dim& size) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields()) fields.push_back(WithFirst(field, size));
    return std::ranges::count(fields, nullptr) == 0 ? TupleType(fields) : nullptr;
  }
  std::vector<Dim> shape = AsTensorType(type)->shape();
  if (shape.empty()) return nullptr;
  shape[0] = size;
  return TensorType(shape, AsTensorType(type)->dtype());
}

bool AreEqual(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.size_bytes()) == 0;
}

Tensor RowOf(const Tensor& batch, int64_t row) {
  Shape shape = batch.shape();
  shape[0] = 1;
  const Tensor result = Tensor::Empty(shape, batch.dtype());
  std::memcpy(result.raw(), static_cast<const char*>(batch.raw()) + row * static_cast<int64_t>(result.size_bytes()),
              result.size_bytes());
  return result;
}

/// `call` with arguments of `mask` as batches of `size`; no arguments where one of them has no first dimension.
Case WithBatches(const Case& call, unsigned mask, const Dim& size) {
  Case result = call;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    result.args[i] = WithFirst(call.args[i], size);
    if (result.args[i] == nullptr) return {call.op, {}, call.attrs};
  }
  return result;
}

/// Whether the operator claims that it keeps rows where the arguments of `mask` are batches; if so, and if it takes
/// single rows, compares the rows of a whole with what is computed of each row alone.
bool CheckRows(const Case& call, unsigned mask) {
  constexpr int64_t kRows = 3;
  const Case dynamic = WithBatches(call, mask, Dim::Any());
  const Case whole = WithBatches(call, mask, kRows), single = WithBatches(call, mask, 1);
  if (dynamic.args.empty()) return false;
  const Result<Type> type = call.op->relation({dynamic.args, call.attrs});
  if (!type.ok() || AsTensorType(*type) == nullptr || !IsBatch(*type)) return false;
  if (!call.op->keeps_rows({dynamic.args, call.attrs}, *type)) return false;
  if (StaticResult(whole) == nullptr || StaticResult(single) == nullptr) return false;
  const std::vector<Tensor> inputs = Inputs(whole);
  const Tensor expected = Evaluate(whole, inputs)[0];
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<Tensor> own;
    for (size_t i = 0; i < call.args.size(); ++i) {
      for (size_t field = 0; field < FlattenTensorTypes(call.args[i]).size(); ++field) {
        const Tensor& input = inputs[own.size()];
        own.push_back((mask >> i & 1) != 0 ? RowOf(input, row) : input);
      }
    }
    EXPECT_TRUE(AreEqual(Evaluate(single, own)[0], RowOf(expected, row)))
        << call.op->name << " of " << ToString(call.args[0]) << ", row " << row << " of arguments " << mask;
  }
  return true;
}

TEST(OpTraitsTest, RowsOfBatchesAreComputedApart) {
  std::map<const OpDef*, int> checked;
  for (const Case& call : AllCases()) {
    if (!call.op->keeps_rows) continue;
    checked.try_emplace(call.op, 0);
    for (unsigned mask = 1; mask < 1u << call.args.size(); ++mask) checked[call.op] += CheckRows(call, mask) ? 1 : 0;
  }
  EXPECT_GT(checked.size(), 80u);
  // No batch among the arguments, or a type relation that takes static shapes only.
  const std::set<std::string> without{"full", "zeros", "ones", "nn.depth_to_space", "nn.space_to_depth"};
  for (const auto& [op, count] : checked) EXPECT_EQ(count > 0, !without.contains(op->name)) << op->name;
}

/// Compares what a row states with a call's static types.
class StaticDims final : public DimEquations {
 public:
  StaticDims(const Case& call, Type result) : call_(call), result_(std::move(result)) {}

  void Equal(const DimRef& a, const DimRef& b) override {
    EXPECT_EQ(SizeAt(a), SizeAt(b)) << call_.op->name << " of " << ToString(call_.args[0]);
    ++num_equations;
  }
  void Broadcast(const DimRef& result, const std::vector<DimRef>& operands) override {
    for (const DimRef& operand : operands) Equal(result, operand);
  }

  int num_equations = 0;

 private:
  int64_t SizeAt(const DimRef& ref) const {
    const Type& type = ref.argument == DimRef::kResult ? result_ : call_.args.at(static_cast<size_t>(ref.argument));
    const Type leaf = FlattenTensorTypes(type).at(static_cast<size_t>(ref.field));
    return AsTensorType(leaf)->shape().at(static_cast<size_t>(ref.dim)).size();
  }

  const Case& call_;
  Type result_;
};

TEST(OpTraitsTest, EqualDimensionsAreEqual) {
  std::set<const OpDef*> checked;
  for (const Case& call : AllCases()) {
    const Type result = StaticResult(call);
    if (!call.op->equal_dims || result == nullptr) continue;
    StaticDims dims(call, result);
    call.op->equal_dims({call.args, call.attrs}, result, dims);
    if (dims.num_equations > 0) checked.insert(call.op);
  }
  EXPECT_GT(checked.size(), 30u);
}

/// `type` as one row of as many elements as `result` has, and `tensor` broadcast to it.
Tensor Spread(const Tensor& tensor, const Shape& shape) {
  const OpDef& op = GetOp("broadcast_to")->def();
  const Case call{&op, {TensorType(tensor.shape(), tensor.dtype())}, CompleteAttrs(op, {{"shape", shape}})};
  return Evaluate(call, {tensor})[0].Reshaped({NumElements(shape)});
}

TEST(OpTraitsTest, ElementwiseOperatorsSeeNoOtherElements) {
  std::set<const OpDef*> checked;
  for (const Case& call : AllCases()) {
    if (!call.op->elementwise || call.op->FindAttr("shape") != nullptr) continue;
    EXPECT_FALSE(call.op->equal_dims) << call.op->name;
    EXPECT_LE(call.op->pattern, OpPatternKind::kBroadcast) << call.op->name;
    const Shape shape = AsTensorType(StaticResult(call))->static_shape();
    const std::vector<Tensor> inputs = Inputs(call);
    std::vector<Tensor> spread;
    Case flat{call.op, {}, call.attrs};
    for (const Tensor& input : inputs) {
      spread.push_back(Spread(input, shape));
      flat.args.push_back(TensorType(spread.back().shape(), input.dtype()));
    }
    const Tensor expected = Evaluate(call, inputs)[0].Reshaped({NumElements(shape)});
    EXPECT_TRUE(AreEqual(Evaluate(flat, spread)[0], expected)) << call.op->name;
    checked.insert(call.op);
  }
  EXPECT_GT(checked.size(), 50u);
}

TEST(OpTraitsTest, ResultsHoldElementsOfTheirSources) {
  std::set<const OpDef*> checked;
  for (const Case& call : AllCases()) {
    // What limits or casts elements gives others, too.
    const bool changes = call.op->FindAttr("a_min") != nullptr || call.op->FindAttr("dtype") != nullptr;
    if (call.op->value_sources.empty() || changes || StaticResult(call) == nullptr) continue;
    if (call.op->moves_elements) {
      EXPECT_EQ(call.op->value_sources, std::vector<size_t>{0}) << call.op->name;
    }
    const std::vector<Tensor> inputs = Inputs(call);
    std::set<double> sources;
    size_t next = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool is_source = std::ranges::count(call.op->value_sources, i) > 0;
      for (size_t field = 0; field < FlattenTensorTypes(call.args[i]).size(); ++field, ++next) {
        for (int64_t e = 0; is_source && e < inputs[next].num_elements(); ++e) sources.insert(inputs[next].At(e));
      }
    }
    for (const Tensor& output : Evaluate(call, inputs)) {
      for (int64_t e = 0; e < output.num_elements(); ++e) EXPECT_TRUE(sources.contains(output.At(e))) << call.op->name;
    }
    checked.insert(call.op);
  }
  EXPECT_GT(checked.size(), 18u);
}

TEST(OpTraitsTest, ExactOperatorsKeepMultiplesOfAnEighth) {
  std::set<const OpDef*> checked;
  for (const Case& call : AllCases()) {
    if (!call.op->is_exact || StaticResult(call) == nullptr) continue;
    for (const Tensor& output : Evaluate(call, Inputs(call))) {
      for (int64_t e = 0; e < output.num_elements(); ++e) {
        EXPECT_EQ(output.At(e) * 8, std::trunc(output.At(e) * 8)) << call.op->name;
      }
    }
    checked.insert(call.op);
  }
  EXPECT_GT(checked.size(), 35u);
}

TEST(OpTraitsTest, TheLargestIndexBelowALimitIsTaken) {
  int checked = 0;
  for (const Case& call : AllCases()) {
    if (!call.op->index_limit || StaticResult(call) == nullptr) continue;
    const std::vector<Tensor> inputs = Inputs(call);
    for (size_t i = 0; i < call.args.size(); ++i) {
      const std::optional<int64_t> limit = call.op->index_limit({call.args, call.attrs}, i);
      if (!limit || *limit < 1) continue;
      for (int64_t e = 0; e < inputs[i].num_elements(); ++e) inputs[i].Set(e, static_cast<double>(*limit - 1));
      ++checked;
    }
    EXPECT_NO_THROW(Evaluate(call, inputs)) << call.op->name;
  }
  EXPECT_GE(checked, 5);
}

TEST(OpTraitsTest, SpatialOperatorsWorkOnImages) {
  for (const Case& call : AllCases()) {
    if (!call.op->spatial) continue;
    EXPECT_GE(AsTensorType(call.args[0])->rank(), 3) << call.op->name;
  }
}

}  // namespace
}  // namespace collage
