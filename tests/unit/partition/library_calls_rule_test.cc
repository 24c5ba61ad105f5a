// library_calls_rule_test.cc: what native kernels may call a library for.
#include "partition/rules/library_calls_rule.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "collage/support/error.h"
#include "collage/target/composite_calls.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Result<void> IsOfSixColumns(const Function& composite) {
  const Shape shape = AsTensorType(composite->body()->checked_type())->static_shape();
  if (shape.back() == 6) return {};
  return Reason{"has other than six columns", "called"};
}

class Called : public AnyToolchain, public HasCompositeCalls {
 public:
  Called() : AnyToolchain("called") {}
  std::vector<CompositeCall> CompositeCalls() const override {
    const auto none = [](const PartitionRequest&) -> Result<ExternCall> { return Reason{"none", "called"}; };
    return {{{"called.dense", "nn.dense(*, *)", {}}, none},
            {{"called.product", "nn.dense(*, *)", {}}, none},
            {{"called.dense_relu", "nn.relu(nn.dense(*, *))", IsOfSixColumns}, none}};
  }
};

class Caller : public AnyToolchain, public CallsLibraries {
 public:
  explicit Caller(std::vector<const Toolchain*> called)
      : AnyToolchain("native", FusionStyle::kTVMFusion, /*max_depth=*/8), called_(std::move(called)) {}
  std::vector<const Toolchain*> CalledLibraries() const override { return called_; }

 private:
  std::vector<const Toolchain*> called_;
};

/// "nn.dense+nn.relu+tanh of called.dense_relu": the operators of a candidate, and its Composites.
std::vector<std::string> Texts(const DataflowGraph& graph, const PartitionRule& rule, const Toolchain& toolchain,
                               std::vector<std::string>* refused = nullptr) {
  RuleLog log;
  log.on_refusal = [&](const std::string& label, const Reason& reason) {
    if (refused != nullptr) refused->push_back(label + ": " + reason.text);
  };
  std::vector<std::string> texts;
  for (const CandidatePartition& one : rule.AllCandidates(graph, toolchain, log)) {
    std::string text = one.sub_graph.OperatorLabel(graph);
    for (const NestedSubGraph& nested : one.sub_graph.nested) text += " of " + nested.attrs.String("Composite");
    texts.push_back(std::move(text));
  }
  return texts;
}

/// tanh(relu(x w1)), and relu(y w2), which no row takes whole.
DataflowGraph TwoLayers() {
  const Var x = Param("x", {4, 5});
  const Expr wide = MakeCall("tanh", {MakeCall("nn.relu", {MakeCall("nn.dense", {x, Weights({6, 5})})})});
  const Expr narrow = MakeCall("nn.relu", {MakeCall("nn.dense", {x, Weights({3, 5})})});
  return DataflowGraph(Typed({x}, MakeTuple({wide, narrow})));
}

TEST(LibraryCallsRuleTest, LargestMatchesAreComposites) {
  const DataflowGraph graph = TwoLayers();
  std::vector<std::string> refused;
  EXPECT_THAT(Texts(graph, *LibraryCallsRule(Called()), AnyToolchain(), &refused),
              UnorderedElementsAre("nn.dense+nn.relu of called.dense_relu", "nn.dense of called.dense"));
  EXPECT_THAT(refused, UnorderedElementsAre("nn.dense+nn.relu: has other than six columns"));
}

TEST(LibraryCallsRuleTest, NativeKernelsMayCallAndMayNot) {
  const DataflowGraph graph = TwoLayers();
  const Called called;
  const Caller caller({&called}), alone({});
  std::vector<std::string> wanted = Texts(graph, *GatherPartitionRule(alone), alone);
  for (const char* more : {"nn.dense+nn.relu of called.dense_relu", "nn.dense+nn.relu+tanh of called.dense_relu",
                           "nn.dense of called.dense", "nn.dense+nn.relu of called.dense"}) {
    wanted.emplace_back(more);
  }
  EXPECT_THAT(Texts(graph, *GatherPartitionRule(caller), caller), testing::UnorderedElementsAreArray(wanted));
}

TEST(LibraryCallsRuleTest, RulesNameRegisteredLibraries) {
  EXPECT_EQ(LibraryCallsRule(Called())->ToJson().dump(), R"({"rule":"LibraryCalls","library":"called"})");
  try {
    ParseRule(R"({"rule": "LibraryCalls", "library": "nobody"})");
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("there is no toolchain 'nobody'"));
  }
  EXPECT_TRUE(Texts(TwoLayers(), *LibraryCallsRule(AnyToolchain()), AnyToolchain()).empty()) << "it has no table";
}

}  // namespace
}  // namespace collage
