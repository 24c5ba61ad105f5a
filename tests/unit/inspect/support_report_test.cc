// support_report_test.cc: what of a module toolchains take, and the reasons for the rest.
#include "collage/support_report.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "collage/target/toolchain.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

class TestToolchain : public Toolchain {
 public:
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {false, "", "it is a test", ""}; }
  int priority() const override { return 9; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return Reason{"never", name()}; }
};

class ByPatterns : public TestToolchain {
 public:
  std::string name() const override { return "support_patterns"; }
  std::vector<PatternTableEntry> PatternTable() const override {
    const auto small = [](const Function& composite) -> Result<void> {
      const Shape shape = AsTensorType(composite->body()->checked_type())->static_shape();
      if (shape.back() > 8) return Reason{"takes up to 8 columns", "support_patterns"};
      return {};
    };
    return {{"p.dense_bias", "add(nn.dense(*, const), const)", small},
            {"p.dense", "nn.dense(*, const)", small},
            {"p.relu_abs", "abs(nn.relu(*))", {}},
            {"p.long", "multiply(nn.dense(*, const), exp(sigmoid(*)))", {}}};
  }
};

class ByCalls : public TestToolchain {
 public:
  std::string name() const override { return "support_calls"; }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op()->name == "exp") return Reason{"takes no exponentials", name()};
    if (call.op()->name == "tanh") return Reason{"", name()};
    return {};
  }
};

void AddToolchains() {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("support_calls") != nullptr) return;
  ProbeToolchains();  // the built-in ones first
  registry.Add(std::make_unique<ByPatterns>());
  registry.Add(std::make_unique<ByCalls>());
}

ToolchainSupport SupportOf(const std::string& toolchain, const std::string& text) {
  AddToolchains();
  SupportReport report = DescribeSupport(ParseModule("#[version = \"0.0.5\"]\n" + text, "test.relay"), {toolchain});
  EXPECT_EQ(report.toolchains.size(), 1u);
  return report.toolchains.at(0);
}

const OperatorSupport& Find(const ToolchainSupport& support, const std::string& op) {
  for (const OperatorSupport& one : support.operators) {
    if (one.op == op) return one;
  }
  ADD_FAILURE() << "no '" << op << "'";
  return support.operators.at(0);
}

/// The one reason for which calls are refused.
RefusedCalls OnlyRefusal(const OperatorSupport& op) {
  EXPECT_EQ(op.refused.size(), 1u) << op.op;
  return op.refused.empty() ? RefusedCalls{} : op.refused[0];
}

constexpr const char* kProgram = R"(
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(8, 4), float32]) {
  %0 = nn.dense(%x, meta[relay.Constant][0]);
  %1 = add(%0, meta[relay.Constant][1]);
  %2 = abs(nn.relu(%1));
  %3 = nn.dense(%x, meta[relay.Constant][2]);
  %4 = nn.relu(exp(%3));
  (%2, %4, abs(%4), nn.dense(%x, %w))
}
)";

IRModule WithConstants() {
  ParseOptions options;
  for (const Shape& shape : {Shape{8, 4}, Shape{8}, Shape{9, 4}}) {
    const Tensor tensor = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(i % 5));
    options.constants.push_back(MakeConstant(tensor));
  }
  return ParseModule(std::string("#[version = \"0.0.5\"]\n") + kProgram, "test.relay", options);
}

TEST(SupportReportTest, CallsAreTakenAloneOrWithinPatternsOrRefusedInThePredicatesWords) {
  AddToolchains();
  const SupportReport report = DescribeSupport(WithConstants(), {"support_patterns"});
  const ToolchainSupport& support = report.toolchains.at(0);
  EXPECT_EQ(report.num_calls, 9);
  EXPECT_EQ(report.num_outside, 0);
  EXPECT_EQ(support.num_taken, 4);
  EXPECT_FALSE(support.toolchain.available);

  const OperatorSupport& dense = Find(support, "nn.dense");
  EXPECT_EQ(dense.num_calls, 3);
  EXPECT_EQ(dense.num_alone, 1);
  EXPECT_EQ(dense.patterns, (std::map<std::string, int64_t>{{"p.dense", 1}, {"p.dense_bias", 1}}));
  ASSERT_EQ(dense.refused.size(), 2u);
  for (const RefusedCalls& refused : dense.refused) {
    EXPECT_EQ(refused.num_calls, 1);
    if (refused.pattern.empty()) {  // weights that are no constant
      EXPECT_EQ(refused.reason,
                "no pattern holds it here; the smallest with 'nn.dense' is p.dense: nn.dense(*, const)");
    } else {
      EXPECT_EQ(refused.pattern, "p.dense");
      EXPECT_EQ(refused.reason, "takes up to 8 columns");
      EXPECT_EQ(refused.example, "test.relay:7:8");
    }
  }

  const OperatorSupport& add = Find(support, "add");
  EXPECT_EQ(add.num_alone, 0);
  EXPECT_EQ(add.num_in_patterns, 1);

  // One relu feeds only abs; the other's value is a result too.
  const OperatorSupport& relu = Find(support, "nn.relu");
  EXPECT_EQ(relu.num_in_patterns, 1);
  const RefusedCalls exits = OnlyRefusal(relu);
  EXPECT_EQ(exits.reason, "what its pattern matches is no partition: 2 exits, at most 1 are allowed");
  EXPECT_EQ(exits.pattern, "p.relu_abs");

  EXPECT_EQ(
      OnlyRefusal(Find(support, "exp")).reason,
      "no pattern holds it here; the smallest with 'exp' is p.long: multiply(nn.dense(*, const), exp(sigmoid(*)))");
}

TEST(SupportReportTest, OperatorsInNoPatternAreSaidToBe) {
  const ToolchainSupport support =
      SupportOf("support_patterns", "def @main(%x: Tensor[(2), float32]) { sin(cos(cos(%x))) }");
  EXPECT_EQ(support.num_taken, 0);
  const RefusedCalls cosine = OnlyRefusal(Find(support, "cos"));
  EXPECT_EQ(cosine.reason, "no pattern holds 'cos'");
  EXPECT_EQ(cosine.num_calls, 2);
  EXPECT_EQ(cosine.pattern, "");
}

TEST(SupportReportTest, PredicatesOfOperatorsGiveTheReasons) {
  const ToolchainSupport support =
      SupportOf("support_calls", "def @main(%x: Tensor[(2), float32]) { tanh(exp(sin(exp(%x)))) }");
  EXPECT_EQ(support.num_taken, 1);
  EXPECT_EQ(Find(support, "sin").num_alone, 1);
  EXPECT_TRUE(Find(support, "sin").patterns.empty());
  const RefusedCalls exponential = OnlyRefusal(Find(support, "exp"));
  EXPECT_EQ(exponential.reason, "takes no exponentials");
  EXPECT_EQ(exponential.num_calls, 2);
  EXPECT_EQ(OnlyRefusal(Find(support, "tanh")).reason, "its predicate gives no reason");
}

TEST(SupportReportTest, OfProgramsTheRegionsAreCountedAndTheRestIsToldApart) {
  AddToolchains();
  const SupportReport report = DescribeSupport(ParseModule(R"(#[version = "0.0.5"]
def @main(%n: int32, %x: Tensor[(8, 64), float32]) -> Tensor[(8, 64), float32] {
  if (%n < 1) { exp(sin(%x)) } else { @main(%n - 1, cos(%x)) }
}
)",
                                                           "test.relay"),
                                               {"support_calls"});
  EXPECT_EQ(report.num_calls, 4);    // sin and exp; cos and the subtraction beside it
  EXPECT_EQ(report.num_outside, 1);  // the comparison
  EXPECT_EQ(report.toolchains.at(0).num_taken, 3);
}

TEST(SupportReportTest, AllToolchainsAreDescribedAndUnknownOnesRefused) {
  AddToolchains();
  const IRModule module = ParseModule("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { exp(%x) }", "t");
  EXPECT_EQ(DescribeSupport(module).toolchains.size(), ToolchainRegistry::Global().All().size());
  ExpectError([&] { DescribeSupport(module, {"natve"}); }, ErrorCategory::kInput,
              "there is no toolchain 'natve'\nhint: did you mean 'native'?");
}

}  // namespace
}  // namespace collage
