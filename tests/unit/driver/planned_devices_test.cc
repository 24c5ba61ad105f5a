// A compilation keeps to the devices that a model asks for by on_device.
#include <gtest/gtest.h>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "driver/builtins.h"
#include "support/file.h"

namespace collage {
namespace {

class PlannedDevicesTest : public testing::Test {
 protected:
  PlannedDevicesTest() {
    AddBuiltins();
    options_.output = folder_ / "m.clg";
    options_.database = (folder_ / "tuning.db").string();
    options_.num_threads = 1;
    options_.toolchains = {"native"};
    options_.estimator = R"(mock={"op_cost": {"native": 1, "dnnl": 9}})";
    options_.max_optimality_covers = 0;
  }

  CompileReport Compile(const std::string& body) {
    const std::string params = "%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]";
    return CompileModule(ParseModule("def @main(" + params + ") {\n" + body + "\n}", "m"), "m", options_);
  }

  std::string Refusal(const std::string& body) {
    try {
      Compile(body);
    } catch (const Error& error) {
      return error.message();
    }
    return "compiled";
  }

  const TemporaryFolder folder_;
  CompileOptions options_;
};

TEST_F(PlannedDevicesTest, TheProcessorIsOne) {
  const CompileReport report = Compile("nn.relu(on_device(nn.dense(%x, %w), device_type=1))");
  EXPECT_EQ(report.contenders.front().failure, "");
  const CompileReport copied = Compile(
      "%0 = device_copy(nn.dense(%x, %w), src_device_type=1, dst_device_type=1, "
      "dst_memory_scope=\"fast\");\nnn.relu(%0)");
  EXPECT_EQ(copied.contenders.front().failure, "");
}

TEST_F(PlannedDevicesTest, OthersAreRefusedByName) {
  const std::string refusal = Refusal("nn.relu(on_device(nn.dense(%x, %w), device_type=2))");
  EXPECT_NE(refusal.find("'nn.dense'"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("native: it is planned for cuda"), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find("'nn.relu'"), std::string::npos) << refusal;
}

TEST_F(PlannedDevicesTest, TheFallBackIsForAllThatNothingConstrains) {
  options_.pass_context.SetConfig("relay.fallback_device_type", 2);
  const std::string refusal = Refusal("nn.relu(nn.dense(%x, %w))");
  EXPECT_NE(refusal.find("planned for cuda"), std::string::npos) << refusal;
}

TEST_F(PlannedDevicesTest, ATargetThatIsNamedComputesWhatItIsNamedFor) {
  if (const Availability here = ToolchainRegistry::Global().Find("dnnl")->Probe(); !here.available) {
    GTEST_SKIP() << here.reason;
  }
  options_.toolchains = {"native", "dnnl"};
  options_.num_covers = 1;
  const CompileReport report =
      Compile("nn.relu(on_device(nn.dense(%x, %w), device_type=1, target=\"llvm -compiler=dnnl\"))");
  for (const Contender& contender : report.contenders) {
    EXPECT_EQ(contender.partitions, (std::map<std::string, int>{{"native", 1}, {"dnnl", 1}})) << contender.name;
  }
  options_.toolchains = {"native"};
  const std::string refusal =
      Refusal("nn.relu(on_device(nn.dense(%x, %w), device_type=1, target=\"llvm -compiler=dnnl\"))");
  EXPECT_NE(refusal.find("it is planned for cpu for llvm -compiler=dnnl"), std::string::npos) << refusal;
}

TEST_F(PlannedDevicesTest, RegionsOfProgramsKeepTheirDevices) {
  const std::string refusal = Refusal(
      "let %y = on_device(nn.dense(%x, %w), device_type=2);\nif (True) { nn.relu(%y) } else { on_device(tanh(%y), "
      "device_type=2) }");
  EXPECT_NE(refusal.find("planned for cuda"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace collage
