#include "collage/target/target_kind.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "collage/target/composite_calls.h"
#include "collage/target/target.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

Result<CompiledPartition> SayLevel(const PartitionRequest&, const Attrs& options) {
  return Reason{"level " + std::to_string(options.Int("level")), "woofles"};
}

/// Takes all calls, compiles none.
TargetKind Woofles() {
  return TargetKind("woofles", kDLCPU, "for tests")
      .add_attr_option({"level", AttrKind::kInt, 2, "how hard it tries"})
      .set_attr<FSupportsCall>("SupportsCall",
                               [](const CallNode&, const Attrs&) -> Result<void> { return Result<void>(); })
      .set_attr<FTVMRelayToRuntime>("RelayToRuntime", SayLevel)
      .set_attr<int>("Priority", 7);
}

/// The message and hint of the error that `make` throws.
std::string ErrorOf(const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    return error.message() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "no error";
}

std::vector<CompositeCall> CallAtLevel(const Attrs& options) {
  const std::string level = std::to_string(options.Int("level"));
  return {{{"woofles.relu", "nn.relu(*)", {}}, [level](const PartitionRequest&) -> Result<ExternCall> {
             return Reason{"level " + level, "woofles"};
           }}};
}

class TargetKindTest : public testing::Test {
 protected:
  TargetKindTest() { registry_.Add(MakeToolchain(Woofles()), "1"); }

  ToolchainRegistry registry_;
};

TEST_F(TargetKindTest, TargetsOfAKindNameItsToolchainAndItsOptions) {
  const Target target = Target::Parse("woofles -level=3", registry_);
  EXPECT_EQ(target.kind(), "woofles");
  EXPECT_EQ(target.compiler(), "woofles");
  EXPECT_EQ(target.device_type(), kDLCPU);
  EXPECT_EQ(target.ToString(), "woofles -level=3");
  EXPECT_EQ(Target::Parse("llvm -compiler=woofles", registry_).compiler(), "woofles");
  const ToolchainConfiguration configuration = ToolchainConfiguration::Of(target, registry_);
  EXPECT_EQ(&configuration.registered(), registry_.Find("woofles"));
  const auto made = configuration.Make();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->RelayToRuntime({}).reason().text, "level 3");
  EXPECT_EQ(registry_.Find("woofles")->RelayToRuntime({}).reason().text, "level 2");
  EXPECT_EQ(TargetText(*made), "woofles -level=3");
  EXPECT_EQ(TargetText(*registry_.Find("woofles")), "woofles");
}

TEST_F(TargetKindTest, AttributesAreFunctionsOfTheToolchain) {
  const Toolchain& toolchain = *registry_.Find("woofles");
  EXPECT_EQ(toolchain.priority(), 7);
  EXPECT_EQ(toolchain.Hooks(), std::vector<Hook>{Hook::kRelayToRuntime});
  EXPECT_TRUE(toolchain.Probe().available);
  EXPECT_FALSE(toolchain.UpdateConstants({}, {}).ok());
  EXPECT_EQ(TargetKindOf(toolchain)->doc(), "for tests");
  EXPECT_TRUE(TargetKindOf(toolchain)->HasHook("RelayToRuntime"));
  EXPECT_FALSE(TargetKindOf(toolchain)->HasHook("RelayToTIR"));
}

TEST(TargetKindAttributesTest, FunctionsOfCandidatesGetTheOptions) {
  const Var x = MakeVar("x", TensorType(Shape{2, 3}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall("nn.relu", {x}));
  const auto toolchain = MakeToolchain(
      Woofles()
          .set_attr<FSupportsDynamicShapes>("SupportsDynamicShapes",
                                            [](const CallNode& call, const Attrs& options) -> Result<void> {
                                              return Reason{call.op()->name + std::to_string(options.Int("level")), ""};
                                            })
          .set_attr<FLayouts>("Layouts",
                              [](const Function&, const std::vector<bool>& inputs, const std::vector<bool>& outputs,
                                 const Attrs& options) {
                                return std::vector<BoundaryLayouts>(static_cast<size_t>(options.Int("level")),
                                                                    ChannelsLastLayouts(inputs, outputs));
                              })
          .set_attr<FSchedules>("Schedules",
                                [](const PartitionRequest& request, const Attrs& options) {
                                  return Result<std::vector<std::string>>(std::vector<std::string>{
                                      request.schedule + "+" + std::to_string(options.Int("level"))});
                                })
          .set_attr<FProposals>("Proposals",
                                [](const Function& of, const Attrs& options) {
                                  return std::vector<std::vector<Expr>>(static_cast<size_t>(options.Int("level")),
                                                                        {of->body()});
                                })
          .set_attr<FusionStyle>("FusionStyle", FusionStyle::kTVMFusion)
          .set_attr<bool>("WantsMaximal", true));
  EXPECT_EQ(toolchain->SupportsDynamicShapes(*As<CallNode>(function->body())).reason().text, "nn.relu2");
  EXPECT_EQ(toolchain->Layouts(function, {true}, {false}),
            std::vector<BoundaryLayouts>(2, {{Layout::kChannelsLast}, {Layout::kPlain}}));
  EXPECT_TRUE(toolchain->has_schedules());
  EXPECT_EQ(*toolchain->Schedules({.function = function, .schedule = "a"}), std::vector<std::string>{"a+2"});
  EXPECT_TRUE(toolchain->proposes());
  EXPECT_EQ(toolchain->Proposals(function), (std::vector<std::vector<Expr>>{{function->body()}, {function->body()}}));
  EXPECT_TRUE(toolchain->wants_maximal());
  EXPECT_EQ(toolchain->WithOptions({{"level", 1}})->Proposals(function).size(), 1);
}

TEST(TargetKindAttributesTest, WhatIsNotSetIsAsToolchainsHaveIt) {
  const Var x = MakeVar("x", TensorType(Shape{2, 3}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall("nn.relu", {x}));
  const auto toolchain = MakeToolchain(Woofles());
  EXPECT_FALSE(toolchain->SupportsDynamicShapes(*As<CallNode>(function->body())).ok());
  EXPECT_EQ(toolchain->Layouts(function, {true}, {true}), std::vector<BoundaryLayouts>{PlainLayouts(1, 1)});
  EXPECT_FALSE(toolchain->has_schedules());
  EXPECT_FALSE(toolchain->proposes());
  EXPECT_FALSE(toolchain->wants_maximal());
}

TEST_F(TargetKindTest, UnknownKindsAreToldWhichThereAre) {
  EXPECT_EQ(
      ErrorOf([&] { Target::Parse("wofles", registry_); }),
      "there is no kind of target 'wofles', at character 1 of target 'wofles'; did you mean 'woofles'? there are: "
      "llvm, c, cuda, opencl, vulkan, metal, rocm, ext_dev, woofles");
  const ToolchainRegistry none;
  EXPECT_NE(ErrorOf([&] { Target::Parse("woofles", none); }), "no error") << "kinds are a registry's";
  EXPECT_EQ(FindTargetKind("woofles", none), nullptr);
}

TEST_F(TargetKindTest, OptionsThatAKindHasNotAreRefused) {
  EXPECT_TRUE(ErrorOf([&] {
                Target::Parse("woofles -levle=1", registry_);
              }).starts_with("there is no option 'levle' of 'woofles', at character 9"));
  EXPECT_EQ(ErrorOf([&] { Target::Parse("woofles -compiler=other", registry_); }),
            "kind 'woofles' is its own compiler, at character 9 of target 'woofles -compiler=other'");
}

TEST_F(TargetKindTest, OptionsThatChangeNothingAreKnown) {
  const Target target = Target::Parse("woofles -level=1 -host=llvm -device_type=1 -mcpu=v8", registry_);
  EXPECT_EQ(target.IdleOptions(*registry_.Find("woofles")), (std::vector<std::string>{"host", "mcpu"}));
}

TEST_F(TargetKindTest, AKindRefinesTargetsForItsDevice) {
  const Target target = Target::Parse("woofles -level=1", registry_);
  EXPECT_TRUE(target.Refines(Target::Parse("llvm", registry_)));
  EXPECT_FALSE(target.Refines(Target::Parse("cuda", registry_)));
  EXPECT_FALSE(target.Refines(Target::Parse("woofles", registry_)));
  EXPECT_FALSE(Target::Parse("llvm", registry_).Refines(target));
}

TEST(TargetKindErrorTest, NamesAndAttributesAreChecked) {
  EXPECT_TRUE(ErrorOf([] { TargetKind("my kind", kDLCPU, ""); }).starts_with("target kind 'my kind' has no name"));
  EXPECT_TRUE(
      ErrorOf([] { TargetKind("woofles", kDLCPU, "").set_attr<int>("RelayToTir", 1); })
          .starts_with("target kind 'woofles' is given 'RelayToTir', which is no attribute of kinds; there are: "
                       "RelayToTIR, TIRToRuntime, RelayToRuntime, UpdateConstants"));
  EXPECT_EQ(ErrorOf([] { Woofles().set_attr<int>("MaxDepth", 1).set_attr<int>("MaxDepth", 2); }),
            "target kind 'woofles' is given 'MaxDepth' twice");
  EXPECT_EQ(ErrorOf([] { TargetKind("woofles", kDLCPU, "").set_attr<std::string>("MaxDepth", "2"); }),
            "target kind 'woofles' needs a value of type int for 'MaxDepth'");
  EXPECT_EQ(ErrorOf([] { TargetKind("woofles", kDLCPU, "").set_attr<FTVMRelayToTIR>("RelayToTIR", nullptr); }),
            "target kind 'woofles' needs a value of type FTVMRelayToTIR for 'RelayToTIR'");
  EXPECT_EQ(ErrorOf([] {
              Woofles().add_attr_option({"level", AttrKind::kInt, 0, ""});
            }),
            "target kind 'woofles' has two options 'level'");
}

TEST(TargetKindCallsTest, AKindMayBeATableOfCallsAlone) {
  const auto kind = [] {
    return TargetKind("woofles", kDLCPU, "for tests")
        .add_attr_option({"level", AttrKind::kInt, 2, "how hard it tries"});
  };
  const auto alone = MakeToolchain(kind().set_attr<FCompositeCalls>("CompositeCalls", CallAtLevel));
  const std::vector<CompositeCall> rows = CompositeCallsOf(*alone);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].match.name, "woofles.relu");
  EXPECT_EQ(rows[0].call({}).reason().text, "level 2");
  EXPECT_TRUE(alone->Hooks().empty());
  EXPECT_FALSE(alone->is_default()) << "it would take part, and take nothing";
  EXPECT_FALSE(alone->RelayToRuntime({}).ok());
  const auto both = MakeToolchain(Woofles().set_attr<FCompositeCalls>("CompositeCalls", CallAtLevel));
  EXPECT_EQ(CompositeCallsOf(*both).size(), 1U);
  EXPECT_TRUE(both->is_default());
  EXPECT_TRUE(CompositeCallsOf(*MakeToolchain(Woofles())).empty());
  EXPECT_EQ(ErrorOf([&] {
              MakeToolchain(kind()
                                .set_attr<FCompositeCalls>("CompositeCalls", CallAtLevel)
                                .set_attr<FSupportsCall>("SupportsCall",
                                                         [](const CallNode&, const Attrs&) { return Result<void>(); }));
            }),
            "target kind 'woofles' has no hook that compiles: set RelayToTIR or RelayToRuntime");
}

TEST(TargetKindErrorTest, HooksThatDoNotBelongTogetherAreRefused) {
  const FTVMRelayToTIR to_loops = [](const PartitionRequest&, const Attrs&) -> Result<LoweredPartition> {
    return Reason{"no", ""};
  };
  const FTVMTIRToRuntime from_loops = [](const LoweredPartition&, const Attrs&) -> Result<CompiledPartition> {
    return Reason{"no", ""};
  };
  EXPECT_EQ(ErrorOf([&] { MakeToolchain(Woofles().set_attr("RelayToTIR", to_loops)); }),
            "target kind 'woofles' has both RelayToTIR and RelayToRuntime: one of them compiles");
  EXPECT_EQ(ErrorOf([&] { MakeToolchain(Woofles().set_attr("TIRToRuntime", from_loops)); }),
            "target kind 'woofles' has TIRToRuntime, but no RelayToTIR that makes loops");
  EXPECT_EQ(ErrorOf([] { MakeToolchain(TargetKind("woofles", kDLCPU, "")); }),
            "target kind 'woofles' has no hook that compiles: set RelayToTIR or RelayToRuntime");
  EXPECT_EQ(ErrorOf([&] { MakeToolchain(TargetKind("woofles", kDLCPU, "").set_attr("RelayToTIR", to_loops)); }),
            "target kind 'woofles' takes nothing: set PatternTable or SupportsCall");
  EXPECT_EQ(ErrorOf([&] { MakeToolchain(TargetKind("llvm", kDLCPU, "").set_attr("RelayToTIR", to_loops)); }),
            "target kind 'llvm' is built in");
  const FProposals proposals = [](const Function&, const Attrs&) { return std::vector<std::vector<Expr>>(); };
  EXPECT_EQ(ErrorOf([&] { MakeToolchain(Woofles().set_attr("Proposals", proposals)); }),
            "target kind 'woofles' has Proposals, which nobody asks for with FusionStyle kNoFusion; set kTVMFusion or "
            "kArbitrary");
}

}  // namespace
}  // namespace collage
