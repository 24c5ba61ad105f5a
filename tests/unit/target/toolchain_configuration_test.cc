#include "target/toolchain_configuration.h"

#include <gtest/gtest.h>

#include <memory>

#include "collage/support/error.h"

namespace collage {
namespace {

/// Declines everything, and says under which options.
class Tuned : public Toolchain {
 public:
  explicit Tuned(int64_t level = 0, std::string mode = "fast") : level_(level), mode_(std::move(mode)) {}
  std::string name() const override { return "tuned"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 7; }
  FusionStyle fusion_style() const override { return FusionStyle::kTVMFusion; }
  Result<void> SupportsDynamicShapes(const CallNode&) const override { return {}; }
  std::vector<Incompatibility> Incompatible() const override { return {{"other", "they clash"}}; }
  std::vector<AttrField> Options() const override {
    return {{"inference_precision", AttrKind::kString, "f32", "f32, bf16 or f16"},
            {"level", AttrKind::kInt, 0, "how hard it tries"},
            {"mode", AttrKind::kString, "fast", "how"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    if (options.Int("level") > 9) throw Error(ErrorCategory::kInput, "option 'level' of 'tuned' is up to 9");
    return std::make_unique<Tuned>(options.Int("level"), options.String("mode"));
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"level " + std::to_string(level_) + ", mode " + mode_, "tuned"};
  }

 private:
  int64_t level_;
  std::string mode_;
};

class Plain : public Toolchain {
 public:
  explicit Plain(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  bool is_native() const override { return name_ == "native"; }
  std::vector<AttrField> Options() const override {
    if (!is_native()) return {};
    return {{"accuracy", AttrKind::kString, "standard", "how exact"}};
  }

 private:
  std::string name_;
};

/// Computes on NVIDIA's GPUs, and goes by the name of their kind of targets.
class OnGpus : public Tuned {
 public:
  std::string name() const override { return "cuda"; }
  int device_type() const override { return 2; }
};

class ConfigurationTest : public ::testing::Test {
 protected:
  ConfigurationTest() {
    registry_.Add(std::make_unique<Plain>("native"));
    registry_.Add(std::make_unique<Plain>("other"));
    registry_.Add(std::make_unique<Tuned>());
  }

  std::string TextOf(const std::string& target) const {
    return ToolchainConfiguration::Of(Target::Parse(target, registry_), registry_).ToString();
  }
  std::string Refusal(const std::string& text) const {
    try {
      ToolchainConfiguration::Parse(text, registry_).Make();
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  }

  ToolchainRegistry registry_;
};

TEST_F(ConfigurationTest, DefaultsLeaveTheNameAsItIs) {
  EXPECT_EQ(TextOf("llvm -compiler=tuned"), "tuned");
  EXPECT_EQ(TextOf("llvm -compiler=tuned -level=0 -mode=fast -mcpu=x86-64"), "tuned");
  EXPECT_EQ(TextOf("llvm"), "native");
  const ToolchainConfiguration plain(*registry_.Find("tuned"));
  EXPECT_TRUE(plain.IsDefault());
  EXPECT_EQ(plain.Make(), nullptr);
  EXPECT_EQ(plain.options().Int("level"), 0) << "options are complete";
}

TEST_F(ConfigurationTest, IsReadAsItIsWritten) {
  EXPECT_EQ(TextOf("llvm -mode='as it likes' -level=3 -compiler=tuned"), "tuned -level=3 -mode='as it likes'");
  for (const char* text : {"tuned", "tuned -level=3", "tuned -level=3 -mode='as it likes'", "native -accuracy=exact"}) {
    const ToolchainConfiguration configuration = ToolchainConfiguration::Parse(text, registry_);
    EXPECT_EQ(configuration.ToString(), text);
    EXPECT_EQ(ToolchainConfiguration::Parse(configuration.ToString(), registry_), configuration);
  }
  const ToolchainConfiguration plain(*registry_.Find("tuned"));
  EXPECT_EQ(plain.With("level", 4).ToString(), "tuned -level=4");
  EXPECT_EQ(plain.With("level", 4).With("level", 0), plain);
}

TEST_F(ConfigurationTest, NativeCodeHasOptionsWithoutACompiler) {
  EXPECT_EQ(TextOf("llvm -accuracy=exact"), "native -accuracy=exact");
  EXPECT_EQ(TextOf("llvm -compiler=native -accuracy=exact"), "native -accuracy=exact");
  EXPECT_THROW(Target::Parse("opencl -accuracy=exact", registry_), Error) << "native code is for the processor";
}

TEST_F(ConfigurationTest, TargetsWithoutACompilerAreOfTheToolchainThatTheirKindNames) {
  EXPECT_THROW(Target::Parse("cuda -level=2", registry_), Error) << "there is none";
  registry_.Add(std::make_unique<OnGpus>());
  EXPECT_EQ(TextOf("cuda -level=2"), "cuda -level=2");
  EXPECT_EQ(TextOf("cuda -compiler=cuda"), "cuda");
  EXPECT_EQ(TargetText(*registry_.Find("cuda")), "cuda");
  EXPECT_EQ(TextOf("cuda -compiler=tuned -level=1"), "tuned -level=1");
  EXPECT_EQ(TextOf("llvm -accuracy=exact"), "native -accuracy=exact");
}

TEST_F(ConfigurationTest, TheConfiguredToolchainIsTheSameUnderAnotherName) {
  const auto made = ToolchainConfiguration::Parse("tuned -level=3", registry_).Make();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->name(), "tuned -level=3");
  EXPECT_EQ(made->priority(), 7);
  EXPECT_EQ(made->fusion_style(), FusionStyle::kTVMFusion);
  const Expr x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const Expr call = MakeCall("exp", {x});
  EXPECT_TRUE(made->SupportsDynamicShapes(static_cast<const CallNode&>(*call)).ok());
  EXPECT_EQ(made->RelayToRuntime({}).reason().text, "level 3, mode fast");
  EXPECT_EQ(WhyIncompatible(*made, *registry_.Find("other")), "they clash");
  EXPECT_EQ(TargetText(*made), "llvm -compiler=tuned -level=3");
  EXPECT_EQ(TargetText(*registry_.Find("native")), "llvm");
  EXPECT_EQ(TargetText(*ToolchainConfiguration::Parse("native -accuracy=exact", registry_).Make()),
            "llvm -accuracy=exact");
}

TEST_F(ConfigurationTest, AreFoundByTheirTextAndMadeOnce) {
  ConfiguredToolchains toolchains(registry_);
  EXPECT_EQ(toolchains.Find("tuned"), registry_.Find("tuned"));
  EXPECT_EQ(toolchains.Find("tuned -level=0"), registry_.Find("tuned"));
  EXPECT_EQ(toolchains.Find("nobody"), nullptr);
  EXPECT_EQ(toolchains.Find("nobody -level=1"), nullptr);
  const Toolchain* made = toolchains.Find("tuned -level=3");
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->name(), "tuned -level=3");
  EXPECT_EQ(toolchains.Find("tuned -level=3"), made);
  EXPECT_EQ(toolchains.Find("tuned -mode=fast -level=3"), made);
  EXPECT_EQ(RegisteredName(made->name()), "tuned");
  EXPECT_TRUE(IsConfigured(made->name()));
  EXPECT_FALSE(IsConfigured("tuned"));
}

TEST_F(ConfigurationTest, ThePrecisionIsWhatItIsTold) {
  const auto of = [&](const char* text) {
    return InferencePrecisionOf(*ToolchainConfiguration::Parse(text, registry_).Make());
  };
  EXPECT_EQ(of("tuned -inference_precision=bf16"), kBFloat16);
  EXPECT_EQ(of("tuned -level=1 -inference_precision=f16"), kFloat16);
  EXPECT_EQ(of("tuned -level=1"), std::nullopt);
  EXPECT_EQ(of("native -accuracy=exact"), std::nullopt);
  EXPECT_EQ(InferencePrecisionOf(*registry_.Find("tuned")), std::nullopt);
}

TEST_F(ConfigurationTest, WhatIsNotThereIsRefused) {
  EXPECT_EQ(Refusal("nobody"), "there is no toolchain 'nobody' for target 'llvm -compiler=nobody'");
  EXPECT_EQ(Refusal("tuned -levle=3"),
            "there is no option 'levle' of 'tuned', at character 22 of target 'llvm -compiler=tuned -levle=3'");
  EXPECT_EQ(Refusal("tuned -level=high"),
            "option 'level' is an integer, got 'high', at character 22 of target 'llvm -compiler=tuned -level=high'");
  EXPECT_EQ(Refusal("tuned -level=10"), "option 'level' of 'tuned' is up to 9");
  EXPECT_EQ(Refusal("other -level=1"),
            "there is no option 'level' of 'other', at character 22 of target 'llvm -compiler=other -level=1'");
}

}  // namespace
}  // namespace collage
