#include "partition/partition_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

TEST(TargetTest, ReadsOptionsWithTheirTypes) {
  const Target target = Target::Parse("cuda -compiler=acme -use_fp16=true -max_workspace=1024 -ratio=0.5 -arch=sm_90");
  EXPECT_EQ(target.kind(), "cuda");
  EXPECT_EQ(target.device_type(), 2);
  EXPECT_EQ(target.compiler(), "acme");
  EXPECT_EQ(*target.options().Find("use_fp16"), AttrValue(true));
  EXPECT_EQ(*target.options().Find("max_workspace"), AttrValue(1024));
  EXPECT_EQ(*target.options().Find("ratio"), AttrValue(0.5));
  EXPECT_EQ(Target::Parse(target.ToString()), target);
  EXPECT_EQ(Target::Parse("opencl -device_type=2").device_type(), 2) << "a property of the target, not of its kind";
}

/// Takes half precision when it is told to.
class HalfToolchain : public AnyToolchain {
 public:
  explicit HalfToolchain(bool takes_half = false) : AnyToolchain("half"), takes_half_(takes_half) {}
  std::vector<AttrField> Options() const override {
    return {{"use_fp16", AttrKind::kBool, false, "half precision"},
            {"max_workspace", AttrKind::kInt, 1024, "bytes"},
            {"ratio", AttrKind::kDouble, 0.5, "of something"},
            {"mode", AttrKind::kString, "fast", "how"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    return std::make_unique<HalfToolchain>(options.Bool("use_fp16"));
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    const TensorTypeNode* type = AsTensorType(call.checked_type());
    if (type != nullptr && type->dtype() == kFloat16 && !takes_half_) return Reason{"-use_fp16 is off", "half"};
    return {};
  }

 private:
  bool takes_half_;
};

ToolchainRegistry WithHalf() {
  ToolchainRegistry registry;
  registry.Add(std::make_unique<HalfToolchain>());
  return registry;
}

TEST(TargetTest, ToolchainsDeclareTheirOptions) {
  const ToolchainRegistry registry = WithHalf();
  const Target target = Target::Parse("cuda -compiler=half -use_fp16=1 -ratio=2 -mode=16", registry);
  EXPECT_EQ(*target.options().Find("use_fp16"), AttrValue(true));
  EXPECT_EQ(*target.options().Find("ratio"), AttrValue(2.0));
  EXPECT_EQ(*target.options().Find("mode"), AttrValue("16"));
  EXPECT_EQ(Target::Parse(target.ToString(), registry), target);
  const Attrs options = target.OptionsFor(*registry.Find("half"));
  EXPECT_EQ(options.Int("max_workspace"), 1024) << "its default";
  EXPECT_TRUE(options.Bool("use_fp16"));
  const auto refused = [&](const char* text) -> std::string {
    try {
      Target::Parse(text, registry);
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
    return "accepted";
  };
  EXPECT_EQ(refused("cuda -compiler=half -use_fp16=yes"),
            "option 'use_fp16' is true or false, got 'yes', at character 21 of target 'cuda -compiler=half "
            "-use_fp16=yes' | ");
  EXPECT_TRUE(refused("cuda -compiler=half -max_workspace=1.5").starts_with("option 'max_workspace' is an integer"));
  EXPECT_TRUE(refused("cuda -ratio=x -compiler=half").starts_with("option 'ratio' is a number, got 'x'"));
  const std::string unknown = refused("cuda -compiler=half -use_fp61=1");
  EXPECT_TRUE(unknown.starts_with("there is no option 'use_fp61' of 'half', at character 21")) << unknown;
  EXPECT_NE(unknown.find("'half' has use_fp16 (true or false), max_workspace (an integer), ratio (a number), mode (a "
                         "string); every target has compiler"),
            std::string::npos)
      << unknown;
  EXPECT_TRUE(refused("cuda -use_fp16=1").starts_with("there is no option 'use_fp16'")) << "of a compiler only";
}

TEST(TargetTest, OptionsDecideWhatAToolchainTakes) {
  const ToolchainRegistry registry = WithHalf();
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat16));
  const DataflowGraph graph(Typed({x}, MakeCall("abs", {x})));
  const std::vector<PartitionSpec> specs = GatherPartitionSpecs(
      {Target::Parse("cuda -compiler=half", registry), Target::Parse("cuda -compiler=half -use_fp16=true", registry)},
      registry);
  RuleLog log;
  EXPECT_TRUE(specs[0].AllCandidates(graph, log).empty());
  EXPECT_EQ(specs[1].AllCandidates(graph, log).size(), 1u);
  EXPECT_EQ(specs[1].name, "half_1");
  ASSERT_EQ(specs[1].targets.size(), 1u);
  EXPECT_EQ(specs[1].targets[0].ToString(), "cuda -compiler=half -use_fp16=true");
  EXPECT_THROW(GatherPartitionSpecs({Target::Parse("cuda -compiler=half -fp=1")}, registry), Error)
      << "read before the toolchain was there";
}

TEST(TargetTest, RulesTravelInQuotes) {
  const std::string rule = R"({"rule": "OpCallByKind", "name": "it's"})";
  const Target target = Target::Parse(R"(llvm -partition_rule='{"rule": "OpCallByKind", "name": "it\'s"}')");
  EXPECT_EQ(target.partition_rule(), rule);
  EXPECT_EQ(Target::Parse(target.ToString()), target);
}

TEST(TargetTest, MistakesAreNamed) {
  for (const char* text : {"", "lvm", "llvm compiler=x", "llvm -compiler", "llvm -compiler=", "llvm -num_cores=two",
                           "llvm -use_fp16=1", "llvm -mcpu=a -mcpu=b", "llvm -mcpu='a"}) {
    try {
      Target::Parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput);
      EXPECT_NE(error.message().find("at character"), std::string::npos) << error.message();
    }
  }
}

TEST(TargetTest, RefiningNeedsAToolchainOrRuleAndAgreementInAllElse) {
  const Target plain = Target::Parse("cuda -arch=sm_90");
  EXPECT_TRUE(Target::Parse("cuda -arch=sm_90 -compiler=acme -use_fp16=1").Refines(plain));
  EXPECT_TRUE(Target::Parse("cuda -arch=sm_90 -partition_rule={}").Refines(plain));
  EXPECT_FALSE(plain.Refines(plain));
  EXPECT_FALSE(Target::Parse("cuda -compiler=acme").Refines(plain)) << "another arch";
  EXPECT_FALSE(Target::Parse("llvm -compiler=acme").Refines(Target::Parse("cuda")));
  EXPECT_FALSE(Target::Parse("cuda -compiler=a").Refines(Target::Parse("cuda -compiler=b")));
}

std::string OnlyAbs() { return DFPatternRule("", ParsePattern("abs(*)"), {})->ToJson().dump(); }

class SpecTest : public ::testing::Test {
 protected:
  SpecTest() {
    registry_.Add(std::make_unique<AnyToolchain>("native", FusionStyle::kTVMFusion));
    registry_.Add(std::make_unique<AnyToolchain>("acme"));
  }
  ToolchainRegistry registry_;
};

TEST_F(SpecTest, OneForEachWayToUseAToolchain) {
  const std::string with_rule = "llvm -compiler=acme -partition_rule='" + OnlyAbs() + "'";
  const std::vector<PartitionSpec> specs = GatherPartitionSpecs(
      {Target::Parse("llvm"), Target::Parse("llvm -compiler=acme"), Target::Parse(with_rule)}, registry_);
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "native");
  EXPECT_EQ(specs[1].name, "acme");
  EXPECT_EQ(specs[2].name, "acme_1");
  const PartitionSpec host = HostSpec();
  EXPECT_TRUE(host.is_host());
  const DataflowGraph graph(Std());
  RuleLog log;
  EXPECT_EQ(Members(specs[0].AllCandidates(graph, log)), (Sets{{3}, {3, 4}, {3, 4, 5}, {4}, {4, 5}, {5}}));
  const std::vector<CandidatePartition> external = specs[1].AllCandidates(graph, log);
  ASSERT_FALSE(external.empty());
  EXPECT_EQ(external[0].sub_graph.nested.at(0).attrs.StringOr("Compiler", ""), "acme");
  EXPECT_EQ(Members(specs[2].AllCandidates(graph, log)), (Sets{{3}}));
  EXPECT_EQ(Members(host.AllCandidates(graph, log)), (Sets{{0}, {1}, {2}, {6}}));
}

TEST_F(SpecTest, CandidatesAreOfTheirSpecAndDistinct) {
  const std::string twice = R"json({"rule": "Union", "sub_rules": [{"rule": "OpCallByKind"}, {"rule": "OpCallByKind"},
      {"rule": "Composite", "name": "acme.abs", "sub_rule": {"rule": "DFPattern", "pattern": "abs(*)"}}]})json";
  const PartitionSpec spec = SpecOf(*registry_.Find("acme"), {}, twice, "twice");
  const DataflowGraph graph(Std());
  RuleLog log;
  const std::vector<CandidatePartition> candidates = spec.AllCandidates(graph, log);
  EXPECT_EQ(Members(candidates), (Sets{{3}, {3}, {4}, {5}})) << "a bare call and a Composite are two";
  for (const CandidatePartition& candidate : candidates) EXPECT_EQ(candidate.spec, &spec);
}

TEST_F(SpecTest, UnknownToolchainsAreNamed) {
  EXPECT_THROW(GatherPartitionSpecs({Target::Parse("llvm -compiler=acmee")}, registry_), Error);
}

TEST_F(SpecTest, CandidatesFitThePlannedDevices) {
  const Function function = Std();
  const DataflowGraph graph(function);
  graph.node(4).expr->set_virtual_device({.device_type = 1, .target = "llvm"});
  graph.node(5).expr->set_virtual_device({.device_type = 2, .target = "cuda"});
  RuleLog log;
  const auto find = [&](const char* target) {
    return Members(GatherPartitionSpecs({Target::Parse(target)}, registry_)[0].AllCandidates(graph, log));
  };
  EXPECT_EQ(find("llvm -compiler=acme"), (Sets{{3}, {3, 4}, {4}}));
  EXPECT_EQ(find("cuda -compiler=acme"), (Sets{{3}, {5}}));
  const std::vector<PartitionSpec> both =
      GatherPartitionSpecs({Target::Parse("llvm -compiler=acme"), Target::Parse("cuda -compiler=acme")}, registry_);
  ASSERT_EQ(both.size(), 1u) << "one rule, for two devices";
  EXPECT_EQ(both[0].targets.size(), 2u);
  EXPECT_EQ(Members(both[0].AllCandidates(graph, log)), (Sets{{3}, {3, 4}, {4}, {5}})) << "none is on both";
}

}  // namespace
}  // namespace collage
