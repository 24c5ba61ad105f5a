// openvino_operators_test.cc: every operator of the op table in OpenVINO against the reference: the table's examples,
// the same with random sizes and with other types, and calls of operators that have no examples. Operators without a
// translation are listed with the reason, and skipped.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "backends/openvino/support.h"
#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"
#include "conformance/operators/more_examples.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::MoreExamples;
using conformance::MoreFunctions;
using conformance::Options;
using V = std::vector<int64_t>;

double ToleranceOf(DataType dtype) {
  if (dtype == kFloat16) return 4e-3;
  if (dtype == kBFloat16) return 3e-2;
  return 2e-4;  // large products sum in another order; transcendental functions are polynomials
}

/// The tensors of `example`'s arguments, each one as `change` says.
OpExample WithTensors(OpExample example, const std::function<Type(const TensorTypeNode&)>& change) {
  for (Type& arg : example.args) {
    std::vector<Type> parts;
    for (const Type& part : FlattenTensorTypes(arg)) parts.push_back(change(*AsTensorType(part)));
    arg = AsTupleType(arg) == nullptr ? parts.at(0) : TupleType(parts);
  }
  return example;
}

bool IsCall(const OpDef& op, const OpExample& example) {
  return op.relation({example.args, CompleteAttrs(op, example.attrs)}).ok();
}

/// `example` with other sizes, the same where it has the same ones. Positions stay within the data: where integers are
/// arguments, their sizes stay, and others only grow.
std::optional<OpExample> WithSizes(const OpDef& op, const OpExample& example, std::mt19937& random) {
  std::map<int64_t, int64_t> fixed{{1, 1}};
  WithTensors(example, [&](const TensorTypeNode& tensor) {
    if (tensor.dtype().is_integer()) {
      for (int64_t size : tensor.static_shape()) fixed[size] = size;
      fixed[0] = 0;  // no size, but says that there are integers
    }
    return TensorType(tensor.static_shape(), tensor.dtype());
  });
  for (int attempt = 0; attempt < 40; ++attempt) {
    std::map<int64_t, int64_t> sizes = fixed;
    const OpExample other = WithTensors(example, [&](const TensorTypeNode& tensor) {
      Shape shape = tensor.static_shape();
      for (int64_t& size : shape) {
        std::uniform_int_distribution<int64_t> uniform(fixed.contains(0) ? size : 2, size + 5);
        if (!sizes.contains(size)) sizes[size] = uniform(random);
        size = sizes.at(size);
      }
      return TensorType(shape, tensor.dtype());
    });
    if (IsCall(op, other)) return other;
  }
  return {};
}

/// `example` with `dtype` instead of float32, when it has any and the operator takes that.
std::optional<OpExample> WithType(const OpDef& op, const OpExample& example, DataType dtype) {
  bool changed = false;
  OpExample other = WithTensors(example, [&](const TensorTypeNode& tensor) {
    changed = changed || tensor.dtype() == kFloat32;
    return TensorType(tensor.static_shape(), tensor.dtype() == kFloat32 ? dtype : tensor.dtype());
  });
  if (!changed || !IsCall(op, other)) return {};
  if (dtype.is_integer() && example.high <= 1 && op.name != "prod") {
    other.low = dtype == kUInt8 ? 0 : -9;
    other.high = 9;
  }
  return other;
}

class OpenVinoOp : public testing::TestWithParam<std::string> {
 protected:
  /// Results of narrow floats may be the other neighbour of what was rounded: without instructions for bfloat16
  /// OpenVINO cuts off.
  void Try(const OpDef& op, const OpExample& example, double tolerance = ToleranceOf(kFloat32)) {
    for (size_t constant_from : {size_t{1}, SIZE_MAX}) {
      if (constant_from == 1 && example.args.size() < 2) continue;
      SCOPED_TRACE(constant_from == 1 ? "all but the first argument constant" : "all arguments inputs");
      const Function function = ExampleFunction(op, example, constant_from);
      InferType(function);
      double allowed = tolerance;
      for (const Type& result : FlattenTensorTypes(function->body()->checked_type())) {
        allowed = std::max(allowed, ToleranceOf(AsTensorType(result)->dtype()));
      }
      Run(function, {.tolerance = allowed, .low = example.low, .high = example.high});
    }
  }

  void Run(const Function& function, const Options& options) {
    InferType(function);
    const Toolchain& toolchain = BuiltinToolchain("openvino");
    const Result<void> answer = toolchain.SupportsCall(*As<CallNode>(function->body()));
    if (!answer) {
      declined_.insert(answer.reason().text);
      return;
    }
    ++compiled_;
    ExpectAgrees(toolchain, function, options);
  }

  int compiled_ = 0;
  std::set<std::string> declined_;  ///< reasons
};

TEST_P(OpenVinoOp, AgreesWithReference) {
  const Toolchain& toolchain = BuiltinToolchain("openvino");
  if (!toolchain.Probe().available) GTEST_SKIP() << toolchain.Probe().reason;
  const OpDef& op = GetOp(GetParam())->def();
  for (const openvino::OperatorRow& row : openvino::Operators()) {
    if (row.name == op.name && !row.why_not.empty()) GTEST_SKIP() << row.why_not;
  }
  std::vector<OpExample> examples = op.examples;
  for (OpExample& example : MoreExamples(op.name)) examples.push_back(std::move(example));
  std::mt19937 random(2024);
  for (size_t i = 0; i < examples.size(); ++i) {
    SCOPED_TRACE("example " + std::to_string(i));
    Try(op, examples[i]);
    if (const std::optional<OpExample> other = WithSizes(op, examples[i], random)) {
      SCOPED_TRACE("other sizes, " + ToString(TupleType(other->args)));
      Try(op, *other);
    }
    if (i > 0) continue;
    for (DataType dtype : {kFloat16, kBFloat16, kInt8, kUInt8, kInt32, kInt64, kBool}) {
      const std::optional<OpExample> other =
          WithType(op, WithSizes(op, examples[i], random).value_or(examples[i]), dtype);
      if (!other) continue;
      SCOPED_TRACE(dtype.ToString() + " instead of float32, " + ToString(TupleType(other->args)));
      Try(op, *other, ToleranceOf(dtype));
    }
  }
  for (const auto& [function, options] : MoreFunctions(op.name)) Run(function, options);
  for (const std::string& reason : declined_) std::cout << op.name << ": declined: " << reason << "\n";
  EXPECT_GT(compiled_, 0) << "no call of an operator with a translation was tried";
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const Op& op : AllOps()) names.push_back(op->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, OpenVinoOp, testing::ValuesIn(OpNames()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

TEST(OpenVinoOperators, HasARowForEveryOperator) {
  std::vector<std::string> rows;
  for (const openvino::OperatorRow& row : openvino::Operators()) {
    rows.emplace_back(row.name);
    if (!row.why_not.empty()) std::cout << row.name << ": " << row.why_not << "\n";
  }
  EXPECT_EQ(rows, OpNames());
}

}  // namespace
}  // namespace collage
