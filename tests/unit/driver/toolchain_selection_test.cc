#include "driver/toolchain_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "collage/support/error.h"
#include "support/machine.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using Names = std::vector<std::string>;

/// Has the options that mean the same in every toolchain, and one of its own. It takes nothing: it is here to be
/// chosen.
class Adjustable : public testing_graphs::AnyToolchain {
 public:
  Adjustable() : AnyToolchain("adjustable") {}
  bool is_default() const override { return false; }
  Result<void> SupportsCall(const CallNode&) const override { return Reason{"nothing", name()}; }
  std::vector<AttrField> Options() const override {
    return {{"accuracy", AttrKind::kString, "standard", "exact or standard"},
            {"inference_precision", AttrKind::kString, "f32", "f32 or bf16"},
            {"level", AttrKind::kInt, 0, "of effort"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& precision = options.String("inference_precision");
    if (precision != "f32" && precision != "bf16") {
      throw Error(ErrorCategory::kInput, "option 'inference_precision' of 'adjustable' is f32 or bf16");
    }
    return std::make_unique<Adjustable>();
  }
};

class ToolchainSelectionTest : public ::testing::Test {
 protected:
  ToolchainSelectionTest() : probed_(Probed()) {}

  Names NamesOf(const CompileOptions& options) const {
    Names names;
    const ToolchainSelection selection(options, probed_);
    for (const Toolchain* toolchain : selection.toolchains()) names.push_back(toolchain->name());
    return names;
  }
  std::string Refusal(const CompileOptions& options) const {
    try {
      const ToolchainSelection selection(options, probed_);
    } catch (const Error& error) {
      return error.where() + "|" + error.message();
    }
    return "accepted";
  }

  std::vector<ToolchainReport> probed_;

 private:
  /// The native toolchain and this test's: which others are here is the machine's business.
  static std::vector<ToolchainReport> Probed() {
    ProbeToolchains();  // registers the built-in ones
    static std::once_flag once;
    std::call_once(once, [] { ToolchainRegistry::Global().Add(std::make_unique<Adjustable>()); });
    std::vector<ToolchainReport> all = ProbeToolchains();
    std::erase_if(all, [](const ToolchainReport& one) { return one.name != "native" && one.name != "adjustable"; });
    return all;
  }
};

CompileOptions WithTargets(Names targets) {
  CompileOptions options;
  options.targets = std::move(targets);
  return options;
}

bool HasOption(const Toolchain& toolchain, const std::string& name) {
  const std::vector<AttrField> options = toolchain.Options();
  return std::any_of(options.begin(), options.end(), [&](const AttrField& one) { return one.name == name; });
}

/// What the native toolchain is called under this accuracy, if it knows any.
std::string NativeWith(const std::string& accuracy) {
  const Toolchain& native = *ToolchainRegistry::Global().Native();
  if (!HasOption(native, "accuracy")) return native.name();
  return ToolchainConfiguration(native).With("accuracy", accuracy).ToString();
}

TEST_F(ToolchainSelectionTest, TargetsSayWhoAndHow) {
  EXPECT_EQ(NamesOf({}), (Names{"native"})) << "the other waits until it is named";
  EXPECT_EQ(NamesOf(WithTargets({"llvm"})), (Names{"native"}));
  EXPECT_EQ(NamesOf(WithTargets({"llvm -compiler=adjustable"})), (Names{"native", "adjustable"}))
      << "the native one always joins";
  EXPECT_EQ(NamesOf(WithTargets({"llvm -compiler=adjustable -level=2", "llvm"})),
            (Names{"native", "adjustable -level=2"}));
  EXPECT_EQ(NamesOf(WithTargets({"llvm -compiler=adjustable -level=2", "llvm -compiler=adjustable",
                                 "llvm -compiler=adjustable -level=2 -num_cores=4"})),
            (Names{"native", "adjustable -level=2", "adjustable"}))
      << "each configuration once";
  CompileOptions both = WithTargets({"llvm"});
  both.toolchains = {"adjustable"};
  EXPECT_EQ(NamesOf(both), (Names{"native", "adjustable"}));
  both.targets = {"llvm -compiler=adjustable -level=2"};
  EXPECT_EQ(NamesOf(both), (Names{"native", "adjustable -level=2"})) << "the target says how";
}

TEST_F(ToolchainSelectionTest, OneAloneMayHaveOptions) {
  CompileOptions options;
  options.partition_for = "adjustable -level=3";
  EXPECT_EQ(NamesOf(options), (Names{"native", "adjustable -level=3"}));
  options.partition_for = "adjustable";
  EXPECT_EQ(NamesOf(options), (Names{"native", "adjustable"}));
  options.targets = {"llvm -compiler=adjustable -level=3"};
  EXPECT_EQ(NamesOf(options), (Names{"native", "adjustable -level=3"}));
  options.targets.clear();
  options.partition_for = "native";
  EXPECT_EQ(NamesOf(options), (Names{"native"}));
  options.partition_for = NativeWith("exact");
  EXPECT_EQ(NamesOf(options), (Names{"native", NativeWith("exact")})) << "the rest is plain kernels'";
}

TEST_F(ToolchainSelectionTest, OneAloneAndOthersAreAContradiction) {
  CompileOptions options;
  options.partition_for = "adjustable -level=3";
  options.toolchains = {"native", "adjustable"};
  EXPECT_EQ(Refusal(options), "accepted");
  options.toolchains = {"native"};
  EXPECT_EQ(Refusal(options),
            "--partition-for adjustable -level=3|'adjustable' is not among the toolchains that are to "
            "take part: native");
  options.toolchains.clear();
  options.require = {"native", "adjustable"};
  EXPECT_EQ(Refusal(options), "accepted");
  options.partition_for = "native";
  EXPECT_EQ(Refusal(options), "--partition-for native|'adjustable' is required, and takes no part beside 'native'");
  options.require.clear();
  options.targets = {"llvm", "llvm -compiler=adjustable -level=2"};
  EXPECT_EQ(Refusal(options),
            "--partition-for native|a target names 'adjustable', which takes no part beside 'native'");
}

TEST_F(ToolchainSelectionTest, AccuracyIsForAllThatHaveTheOption) {
  CompileOptions options;
  options.toolchains = {"adjustable"};
  options.accuracy = "exact";
  EXPECT_EQ(NamesOf(options), (Names{NativeWith("exact"), "adjustable -accuracy=exact"}));
  options.accuracy = "standard";
  EXPECT_EQ(NamesOf(options), (Names{NativeWith("standard"), "adjustable"})) << "what is the default changes no key";
  options.accuracy = "exact";
  options.targets = {"llvm -compiler=adjustable -accuracy=exact -level=1"};
  EXPECT_EQ(NamesOf(options), (Names{NativeWith("exact"), "adjustable -accuracy=exact -level=1"}));
  options.targets = {"llvm -compiler=adjustable -accuracy=standard"};
  EXPECT_EQ(
      Refusal(options),
      "|target 'llvm -compiler=adjustable -accuracy=standard' has another accuracy than 'exact', which all are to "
      "have");
  options.targets.clear();
  options.accuracy = "exact";
  options.precision = "any";
  EXPECT_EQ(Refusal(options), "|precision 'any' rounds more than accuracy 'exact' allows");
}

TEST_F(ToolchainSelectionTest, LowerPrecisionsAreThoseThatTheProcessorHas) {
  EXPECT_EQ(LowerPrecisions({}), Names{});
  EXPECT_EQ(LowerPrecisions(Names{"avx2", "avx512f", "f16c"}), Names{}) << "conversions are no arithmetic";
  EXPECT_EQ(ConvertedPrecisions(Names{"avx2", "avx512f", "f16c"}), Names{"f16"});
  EXPECT_EQ(ConvertedPrecisions(Names{"avx2"}), Names{});
  EXPECT_EQ(PackedPrecisions(Names{"avx", "f16c"}), Names{});
  EXPECT_EQ(PackedPrecisions(Names{"avx2"}), Names{"int8"});
  EXPECT_EQ(PackedPrecisions(Names{"avx512_vnni"}), Names{"int8"});
  EXPECT_EQ(LowerPrecisions(Names{"avx512_bf16"}), Names{"bf16"});
  EXPECT_EQ(LowerPrecisions(Names{"amx_bf16", "amx_tile", "avx512_fp16"}), (Names{"bf16", "f16"}));
  const ToolchainConfiguration plain(*ToolchainRegistry::Global().Find("adjustable"));
  const auto variants = [](const ToolchainConfiguration& of, const Names& precisions) {
    Names names;
    for (const ToolchainConfiguration& variant : VariantsOf(of, precisions)) names.push_back(variant.ToString());
    return names;
  };
  EXPECT_EQ(variants(plain, {"bf16", "f16"}), Names{"adjustable -inference_precision=bf16"})
      << "it refuses the other value";
  EXPECT_EQ(variants(plain.With("level", 2), {"bf16"}), Names{"adjustable -inference_precision=bf16 -level=2"});
  EXPECT_EQ(variants(plain.With("inference_precision", "bf16"), {"bf16"}), Names{}) << "it is told one already";
  EXPECT_EQ(variants(plain, {}), Names{});
}

TEST_F(ToolchainSelectionTest, WhatOnlyKeepsValuesWaitsForOthersToBeOffByTooMuch) {
  const std::vector<std::string>& features = ThisMachine().features;
  const std::string keeps = "native -inference_precision=f16";
  if (ConvertedPrecisions(features).empty()) GTEST_SKIP() << "this processor converts no narrower type";
  CompileOptions options;
  options.toolchains = {"native"};
  options.precision = "any";
  for (const bool is_bounded : {false, true}) {
    if (is_bounded) options.max_error = 0.01;
    const ToolchainSelection selection(options, probed_);
    const auto it = std::ranges::find(selection.toolchains(), keeps, &Toolchain::name);
    const Names computed = LowerPrecisions(features);
    const bool is_alone = computed.empty();
    const bool computes = std::ranges::find(computed, "f16") != computed.end();
    EXPECT_EQ(it != selection.toolchains().end(), computes || is_alone || is_bounded);
    if (it == selection.toolchains().end()) continue;
    EXPECT_EQ(selection.IsDeferred(**it), !computes && !is_alone);
    EXPECT_FALSE(selection.IsDeferred(*selection.native()));
  }
  options.targets = {"llvm -inference_precision=f16", "llvm"};
  const ToolchainSelection asked(options, probed_);
  for (const Toolchain* one : asked.toolchains()) EXPECT_FALSE(asked.IsDeferred(*one)) << "targets say so";
}

TEST_F(ToolchainSelectionTest, AnyPrecisionIsNeverSilent) {
  CompileOptions options;
  options.toolchains = {"adjustable"};
  options.precision = "any";
  const ToolchainSelection selection(options, probed_);
  EXPECT_NE(selection.variants().empty(), selection.no_variants().empty());
  for (const std::string& name : selection.variants()) {
    const auto is_it = [&](const Toolchain* toolchain) { return toolchain->name() == name; };
    EXPECT_TRUE(std::ranges::any_of(selection.toolchains(), is_it)) << name;
  }
  options.precision = "standard";
  EXPECT_TRUE(ToolchainSelection(options, probed_).no_variants().empty()) << "nobody asked";
}

TEST_F(ToolchainSelectionTest, TargetsSayAgainWhatTheyWereGiven) {
  const std::string rule = R"({"rule": "OpCallByKind"})";
  const ToolchainSelection selection(
      WithTargets({"llvm -partition_rule='" + rule + "'", "llvm -compiler=adjustable -level=2"}), probed_);
  ASSERT_EQ(selection.toolchains().size(), 2u);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(selection.TargetsOf(*selection.toolchains()[0]), Texts{"llvm -partition_rule='" + rule + "'"});
  EXPECT_EQ(selection.TargetsOf(*selection.toolchains()[1]), Texts{"llvm -compiler=adjustable -level=2"});
  EXPECT_EQ(selection.native(), selection.toolchains()[0]);
  const auto rules_of = [](const ToolchainSelection& of) {
    std::vector<std::string> kinds;
    for (const PartitionSpec& spec : of.Specs()) kinds.push_back(spec.rule->ToJson().at("rule"));
    return kinds;
  };
  EXPECT_EQ(rules_of(selection), (std::vector<std::string>{"OpCallByKind", "Primitive"})) << "its own behind it";
  CompileOptions by_name = WithTargets({"llvm -compiler=adjustable -level=2"});
  by_name.partition_rules["adjustable"] = rule;
  EXPECT_EQ(rules_of(ToolchainSelection(by_name, probed_)), (std::vector<std::string>{"TrimFreeEnds", "OpCallByKind"}))
      << "a name means it under any options";
}

TEST_F(ToolchainSelectionTest, EachRuleOfAToolchainHasASpec) {
  const std::string rule = R"({"rule": "OpCallByKind"})", with_rule = "llvm -partition_rule='" + rule + "'";
  CompileOptions options = WithTargets({"llvm", with_rule, "llvm", with_rule});
  options.partition_rules["native"] = R"({"rule": "FuseOps"})";
  const ToolchainSelection selection(options, probed_);
  ASSERT_EQ(selection.toolchains().size(), 1u);
  std::vector<std::string> kinds;
  for (const PartitionSpec& spec : selection.Specs()) {
    EXPECT_EQ(spec.toolchain, selection.toolchains()[0]);
    EXPECT_EQ(spec.name, "native");
    kinds.push_back(spec.rule->ToJson().at("rule"));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"FuseOps", "OpCallByKind"})) << "a target's own rule comes first";
  EXPECT_EQ(selection.TargetsOf(*selection.toolchains()[0]), (std::vector<std::string>{"llvm", with_rule}));
}

TEST_F(ToolchainSelectionTest, VariantsHaveAllRulesOfTheirToolchain) {
  const std::string adjustable = "llvm -compiler=adjustable";
  CompileOptions options = WithTargets({adjustable, adjustable + R"( -partition_rule='{"rule": "OpCallByKind"}')"});
  options.precision = "any";
  const ToolchainSelection selection(options, probed_);
  std::map<std::string, int> num_specs;
  for (const PartitionSpec& spec : selection.Specs()) ++num_specs[spec.name];
  EXPECT_EQ(num_specs["adjustable"], 2);
  for (const std::string& variant : selection.variants()) {
    if (!variant.starts_with("adjustable")) continue;
    EXPECT_EQ(num_specs[variant], 2) << variant;
  }
}

TEST_F(ToolchainSelectionTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(Refusal(WithTargets({"llvm -compiler=nobody"})),
            "|there is no toolchain 'nobody' for target 'llvm -compiler=nobody'");
  EXPECT_EQ(Refusal(WithTargets({"llvm -compiler=adjustable -levle=2"})),
            "|there is no option 'levle' of 'adjustable', at character 27 of target 'llvm -compiler=adjustable "
            "-levle=2'");
  EXPECT_EQ(
      Refusal(WithTargets({"llvm -compiler=adjustable -inference_precision=f64"})),
      "target 'llvm -compiler=adjustable -inference_precision=f64'|option 'inference_precision' of 'adjustable' is "
      "f32 or bf16");
  EXPECT_EQ(Refusal(WithTargets({"rocm"})),
            "|target 'rocm' is for AMD's graphics processors, which this build cannot use");
}

}  // namespace
}  // namespace collage
