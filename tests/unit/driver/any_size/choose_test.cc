// Programs for any size compete: each is checked, and one that is wrong, crashes or declines is out with the reason.
#include "driver/any_size/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bytecode/bytecode.h"
#include "collage/compile.h"
#include "collage/ir/text.h"
#include "driver/any_size/build.h"
#include "driver/any_size/timing.h"
#include "support/file.h"
#include "unit/driver/any_size/fake_symbolic.h"
#include "unit/driver/listener.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using testing_symbolic::Symbolic;

const std::string kOpen = "def @main(%x: Tensor[(?, 3), float32]) { tanh(nn.relu(%x)) }";

class AnySizeTest : public testing::Test {
 protected:
  AnySizeTest() {
    ProbeToolchains();
    for (const char* name : {"any_relu", "any_relu_wrong", "any_relu_crash", "any_relu_declines"}) Symbolic(name);
  }
  void SetUp() override {
    const Availability native = ToolchainRegistry::Global().Native()->Probe();
    if (!native.available) GTEST_SKIP() << native.reason;
  }

  CompileReport Compile(CompileOptions options, const std::string& text = kOpen) {
    options.output = output();
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.progress = &listener_;
    return CompileModule(ParseModule(text, "m.relay"), "m", options);
  }

  std::filesystem::path output() const { return folder_ / "model.clg"; }

  static ToolchainPart PartOf(const CompileReport& report, const std::string& toolchain) {
    const auto part = std::ranges::find(report.parts, toolchain, &ToolchainPart::toolchain);
    return part == report.parts.end() ? ToolchainPart() : *part;
  }

  TemporaryFolder folder_;
  Listener listener_;
};

TEST_F(AnySizeTest, AToolchainAloneComputesWhatItTakes) {
  const CompileReport report = Compile({.partition_for = "any_relu"});
  EXPECT_EQ(PartOf(report, "any_relu").any_size_kernels, 1);
  EXPECT_EQ(PartOf(report, "native").any_size_kernels, 1);
  vm::Machine machine(vm::Executable::Load(output()));
  for (const int64_t rows : {1, 5, 123}) {
    const Tensor x = Tensor::Empty({rows, 3}, kFloat32);
    std::fill_n(x.data<float>(), x.num_elements(), -1.0F);
    x.data<float>()[1] = 0.5F;
    for (int run = 0; run < 3; ++run) {  // the second run has the sizes planned
      const Tensor y = machine.Invoke("main", {x}).tensor();
      EXPECT_EQ(y.shape(), x.shape());
      EXPECT_NEAR(y.data<float>()[1], 0.46211716F, 1e-6);
      EXPECT_EQ(y.data<float>()[0], 0);
    }
  }
}

TEST_F(AnySizeTest, WrongOnesAreOut) {
  const CompileReport report = Compile({.toolchains = {"native", "any_relu_wrong"}});
  EXPECT_EQ(PartOf(report, "native").any_size_kernels, 1);
  EXPECT_NE(PartOf(report, "any_relu_wrong").not_at_any_size.find("is wrong at"), std::string::npos)
      << PartOf(report, "any_relu_wrong").not_at_any_size;
}

TEST_F(AnySizeTest, CrashesAndRefusalsHarmNobody) {
  const CompileReport report = Compile({.toolchains = {"native", "any_relu_crash", "any_relu_declines"}});
  EXPECT_EQ(PartOf(report, "native").any_size_kernels, 1);
  EXPECT_NE(PartOf(report, "any_relu_crash").not_at_any_size.find("crashed"), std::string::npos)
      << PartOf(report, "any_relu_crash").not_at_any_size;
  EXPECT_NE(PartOf(report, "any_relu_declines").not_at_any_size.find("it is tired"), std::string::npos)
      << PartOf(report, "any_relu_declines").not_at_any_size;
}

TEST_F(AnySizeTest, OneThatIsAloneAndFailsIsAnError) {
  ExpectError([&] { Compile({.partition_for = "any_relu_declines"}); }, ErrorCategory::kUnsupported, "it is tired");
  ExpectError([&] { Compile({.partition_for = "any_relu_wrong"}); }, ErrorCategory::kInternal, "is wrong at");
}

TEST_F(AnySizeTest, LosersSayTheTimes) {
  const CompileReport report = Compile({.toolchains = {"native", "any_relu"}});
  const std::string native = PartOf(report, "native").not_at_any_size;
  const std::string other = PartOf(report, "any_relu").not_at_any_size;
  EXPECT_TRUE(other.empty() || other.starts_with("'native' takes ")) << other;
  EXPECT_TRUE(native.empty()) << native;  // it computes tanh in either
}

TEST_F(AnySizeTest, ARequiredOneMustBeRight) {
  Compile({.toolchains = {"native", "any_relu"}, .require = {"any_relu"}});
  ExpectError(
      [&] {
        Compile({.toolchains = {"native", "any_relu_wrong"}, .require = {"any_relu_wrong"}});
      },
      ErrorCategory::kUnavailable, "none of its kernels runs a part of the model");
}

TEST_F(AnySizeTest, ABudgetThatIsSpentLeavesNativeKernels) {
  CompileOptions options{.toolchains = {"native", "any_relu"}};
  options.budget_seconds = 0;
  const CompileReport report = Compile(options);
  EXPECT_EQ(PartOf(report, "any_relu").not_at_any_size,
            "the budget was spent before its program for any size was compiled");
}

TEST_F(AnySizeTest, OneThatTakesNothingIsRefusedByName) {
  const std::string other = "def @main(%x: Tensor[(?, 3), float32]) { tanh(%x) }";
  ExpectError([&] { Compile({.partition_for = "any_relu"}, other); }, ErrorCategory::kUnsupported, "--partition-for");
  const CompileReport report = Compile({.toolchains = {"native", "any_relu"}}, other);
  EXPECT_EQ(PartOf(report, "any_relu").not_at_any_size, "only nn.relu of any size");
}

TEST_F(AnySizeTest, PlansArePutAside) {
  CompileOptions options{.toolchains = {"native"}};
  options.tune_at = {{"x[0]", {40}}};
  Compile(options);
  const vm::Executable program = vm::Executable::Load(output());
  const auto plans = [](const vm::Executable& one) {
    return std::ranges::count_if(one.program().functions, [](const auto& f) { return !f.specialises.empty(); });
  };
  EXPECT_EQ(plans(program), 1);
  EXPECT_EQ(plans(WithoutPlans(program)), 0);
}

TEST(GeometricMeanTest, CountsSizesAlike) {
  EXPECT_DOUBLE_EQ(GeometricMean({0.25}), 0.25);
  EXPECT_NEAR(GeometricMean({1e-6, 1e-2}), 1e-4, 1e-12);
}

}  // namespace
}  // namespace collage
