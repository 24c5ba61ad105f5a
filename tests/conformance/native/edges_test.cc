// native_edges_test.cc: every operator that native kernels take, where sizes are 0 or 1.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/together.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::NamedFunction;
using conformance::RandomTensor;

/// `type` with other sizes.
Type Resized(const Type& type, const std::map<int64_t, int64_t>& sizes) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields()) fields.push_back(Resized(field, sizes));
    return TupleType(std::move(fields));
  }
  Shape shape = AsTensorType(type)->static_shape();
  for (int64_t& size : shape) {
    if (const auto found = sizes.find(size); found != sizes.end()) size = found->second;
  }
  return TensorType(shape, AsTensorType(type)->dtype());
}

/// Examples like `example`: all sizes 1; each size, wherever it occurs, 0 or 1.
std::vector<OpExample> Edges(const OpExample& example) {
  std::set<int64_t> sizes;
  for (const Type& arg : example.args) {
    for (const Type& leaf : FlattenTensorTypes(arg)) {
      const Shape shape = AsTensorType(leaf)->static_shape();
      sizes.insert(shape.begin(), shape.end());
    }
  }
  std::vector<std::map<int64_t, int64_t>> changes(1);
  for (const int64_t size : sizes) {
    changes[0][size] = 1;
    changes.push_back({{size, 0}});
    if (size != 1) changes.push_back({{size, 1}});
  }
  std::vector<OpExample> made;
  for (const auto& change : changes) {
    OpExample edge = example;
    for (Type& arg : edge.args) arg = Resized(arg, change);
    made.push_back(std::move(edge));
  }
  return made;
}

/// Whether the function has a meaning: its types fit, and the reference evaluation takes its arguments.
bool HasMeaning(const Function& function, const OpExample& example) {
  try {
    InferType(function);
    std::vector<Tensor> inputs;
    for (const Var& param : function->params()) {
      const TensorTypeNode& type = *AsTensorType(param->checked_type());
      inputs.push_back(RandomTensor(type.static_shape(), type.dtype(), example.low, example.high, 1));
    }
    Evaluate(function, inputs);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(NativeEdgesTest, OperatorsAgreeWhereSizesAre0Or1) {
  const Toolchain& native = conformance::BuiltinToolchain("native");
  /// How many are compiled together.
  constexpr size_t kTogether = 16;
  /// By number of threads, and the range that inputs are drawn from.
  std::map<std::tuple<int, double, double>, std::vector<NamedFunction>> waiting;
  const auto try_all = [&](const std::tuple<int, double, double>& how, std::vector<NamedFunction>& functions) {
    const auto& [threads, low, high] = how;
    conformance::ExpectAllAgree(native, functions, {.num_threads = threads, .low = low, .high = high});
    functions.clear();
  };
  int tried = 0;
  for (const Op& op : AllOps()) {
    for (const OpExample& example : op->def().examples) {
      for (const OpExample& edge : Edges(example)) {
        const Function function = ExampleFunction(op->def(), edge);
        if (!HasMeaning(function, edge)) continue;
        if (!native.SupportsCall(*As<CallNode>(function->body())).ok()) continue;
        std::string types;
        for (const Type& arg : edge.args) types += " " + ToString(arg);
        const std::tuple how{1 + tried++ % 2, edge.low, edge.high};
        std::vector<NamedFunction>& together = waiting[how];
        together.push_back({op->name() + types, function});
        if (together.size() == kTogether) try_all(how, together);
      }
    }
  }
  for (auto& [how, functions] : waiting) {
    if (!functions.empty()) try_all(how, functions);
  }
  EXPECT_GE(tried, 1000);
}

/// Buffers of inputs, constants, outputs and the workspace are not mixed up, however many there are.
TEST(NativeEdgesTest, MoreThanAThousandInputsAndAConstant) {
  constexpr int kInputs = 1100;
  std::vector<Var> params;
  std::vector<Expr> sums;
  for (int i = 0; i < kInputs; ++i) {
    params.push_back(conformance::Input("x" + std::to_string(i), {1}));
    sums.push_back(params.back());
  }
  while (sums.size() > 1) {
    std::vector<Expr> next;
    for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(MakeCall("add", {sums[i], sums[i + 1]}));
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums = std::move(next);
  }
  const Expr table = MakeConstant(RandomTensor({4}, kFloat32, -1, 1, 2));
  ExpectAgrees(conformance::BuiltinToolchain("native"), MakeFunction(params, MakeCall("multiply", {sums[0], table})));
}

}  // namespace
}  // namespace collage
