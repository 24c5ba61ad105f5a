// typical_rules_test.cc: RFC 0.81's typical combinations of rules, each as the `partition_rule` of each toolchain: a
// model is compiled by it, run, and compared with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/executable.h"
#include "conformance/conformance.h"
#include "ir/eval/evaluate.h"
#include "runtime/compare.h"
#include "support/file.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point

const std::vector<std::string> kToolchains{"native", "dnnl", "openvino", "xnnpack", "onnxruntime"};

// A layer of convolutions, a pool, and a dense layer behind a reshape: three matches.
const std::vector<std::string> kPatterns{"nn.relu(add(nn.conv2d(*, const), const))", "nn.max_pool2d(*)",
                                         "add(nn.dense(*, const), const)"};

Function Network() {
  const Var x = Input("x", {1, 8, 12, 12});
  const Expr convolution = MakeCall(
      "nn.conv2d", {x, RandomConstant({16, 8, 3, 3}, 1)},
      {{"padding", std::vector<int64_t>{1, 1, 1, 1}}, {"channels", 16}, {"kernel_size", std::vector<int64_t>{3, 3}}});
  const Expr layer = MakeCall("nn.relu", {MakeCall("add", {convolution, RandomConstant({16, 1, 1}, 2)})});
  const Expr pooled = MakeCall("nn.max_pool2d", {layer},
                               {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const Expr flat = MakeCall("reshape", {pooled}, {{"newshape", std::vector<int64_t>{1, 576}}});
  const Expr product = MakeCall("nn.dense", {flat, RandomConstant({10, 576}, 3)});
  const Function function = MakeFunction({x}, MakeCall("add", {product, RandomConstant({10}, 4)}));
  InferType(function);
  return function;
}

// ---- rules as JSON ----

std::string Primitive(const std::string& rule) {
  return fmt::format(R"({{"rule": "Primitive", "sub_rule": {}}})", rule);
}

std::string OnlyValid(const std::string& rule) {
  return fmt::format(R"({{"rule": "OnlyValid", "config": {{"max_exits": 1, "max_depth": 8}}, "sub_rule": {}}})", rule);
}

std::string Union(const std::vector<std::string>& rules) {
  return fmt::format(R"({{"rule": "Union", "sub_rules": [{}]}})", fmt::join(rules, ", "));
}

std::string Combine(const std::string& combiners, const std::string& rule) {
  return fmt::format(R"({{"rule": "Combine", "combiner_rules": [{}], "sub_rule": {}}})", combiners, rule);
}

const std::string kJoinAnything = R"({"combiner": "JoinAnything"})";
const std::string kAsFuseOps =
    R"({"combiner": "AllSimple", "kinds": ["A->B", "B->R", "I->I"]}, {"combiner": "TupleArg"}, {"combiner": "TupleProj"})";
const std::string kByKind = R"({"rule": "OpCallByKind"})";

/// A rule for each pattern; Composites named after `toolchain` if it is given.
std::vector<std::string> Matches(const std::string& toolchain) {
  std::vector<std::string> rules;
  for (const std::string& pattern : kPatterns) {
    std::string rule = fmt::format(R"({{"rule": "DFPattern", "pattern": "{}"}})", pattern);
    if (!toolchain.empty()) {
      rule = fmt::format(R"({{"rule": "Composite", "name": "{}.match{}", "sub_rule": {}}})", toolchain, rules.size(),
                         rule);
    }
    rules.push_back(rule);
  }
  return rules;
}

std::string BehindOperators(std::vector<std::string> rules) {
  rules.insert(rules.begin(), kByKind);
  return Union(rules);
}

struct Case {
  std::string name, toolchain, rule;
  /// Least and most partitions of the toolchain in the cover that takes its largest candidates first.
  int least = 1, most = 7;

  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.rule; }
};

/// Kernel libraries take one match a partition: "holds one composite only". Joined ones are refused.
bool TakesSeveralMatches(const std::string& toolchain) {
  return toolchain == "native" || toolchain == "openvino" || toolchain == "onnxruntime";
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string& toolchain : kToolchains) {
    const bool joins = TakesSeveralMatches(toolchain);
    const std::vector<std::string> composites = Matches(toolchain);
    const std::string joined = Primitive(OnlyValid(Combine(kJoinAnything, Union(composites))));
    const int num_matches = static_cast<int>(kPatterns.size());
    // XNNPACK reads images channels-last only, which the input of a model is not: it leaves the convolution to others,
    // and may take its epilogue.
    // A partition of OpenVINO was seen to drop out on a busy machine: native kernels then take its part.
    const int slack = toolchain == "xnnpack" || toolchain == "openvino" ? 1 : 0;
    const int least = joins ? 1 : num_matches - slack, most = joins ? num_matches - 1 : num_matches;
    // Libraries with pattern tables have no predicate of operators.
    cases.push_back({"OperatorPredicates", toolchain,
                     Primitive(OnlyValid(Combine(kJoinAnything, R"({"rule": "OpPredicate"})"))), joins ? 1 : 0,
                     joins ? 7 : 0});
    cases.push_back({"PatternsJoined", toolchain, joined, least, most});
    cases.push_back({"PatternsJoinedAndHost", toolchain, Union({joined, R"({"rule": "Host"})"}), least, most});
    cases.push_back({"LibraryForSubExpressions", toolchain, OnlyValid(Combine(kAsFuseOps, BehindOperators(composites))),
                     num_matches - slack, num_matches + slack});
    cases.push_back({"AsFuseOps", toolchain, Primitive(OnlyValid(Combine(kAsFuseOps, kByKind))), num_matches - slack,
                     num_matches + slack});
    cases.push_back(
        {"JustWhatIsTold", toolchain, Primitive(OnlyValid(Union(Matches("")))), num_matches - slack, num_matches});
  }
  return cases;
}

class TypicalRulesTest : public testing::TestWithParam<Case> {};

TEST_P(TypicalRulesTest, CompilesRunsAndAgrees) {
  const Case& now = GetParam();
  const Toolchain& toolchain = BuiltinToolchain(now.toolchain);
  if (const Availability here = toolchain.Probe(); !here.available) GTEST_SKIP() << here.reason;
  const TemporaryFolder folder;
  CompileOptions options;
  options.output = folder / "model.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.toolchains = {now.toolchain};
  options.partition_for = now.toolchain;
  options.partition_rules = {{now.toolchain, now.rule}};
  const Function network = Network();
  const CompileReport report = CompileModule(IRModule::FromFunction(network), "network", options);
  ASSERT_EQ(report.contenders.size(), 1U);
  EXPECT_EQ(report.contenders[0].failure, "");
  const auto own = report.contenders[0].partitions.find(now.toolchain);
  const int num_own = own == report.contenders[0].partitions.end() ? 0 : own->second;
  std::string failures;
  for (const auto& [kind, failure] : report.failures) failures += kind + ": " + failure.second + "\n";
  EXPECT_GE(num_own, now.least) << failures;
  EXPECT_LE(num_own, now.most) << failures;

  const Executable executable = Executable::Load(options.output);
  ExecutionInstance instance(executable);
  const Tensor input = RandomTensor({1, 8, 12, 12}, kFloat32, -1, 1, 9);
  const Tensor expected = Evaluate(network, std::vector<Tensor>{input}).at(0);
  instance.SetInput(0, input);
  instance.Run();
  const Comparison comparison = Compare(instance.Output(0), expected, ShareOfLargest(expected, 1e-4));
  EXPECT_TRUE(comparison.agrees) << comparison.difference;
}

INSTANTIATE_TEST_SUITE_P(Rules, TypicalRulesTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name + "_" + info.param.toolchain; });

}  // namespace
}  // namespace collage
