// Models of which cuBLASLt computes products on a GPU, and native kernels the rest: found by the search, checked,
// written, and run.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

class CublasTest : public GpuTest {
 protected:
  CublasTest() : GpuTest("cublas") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=cublas"); }
};

TEST_F(CublasTest, ProductsAgree) {
  const std::string w = "meta[relay.Constant][0]",
                    metadata =
                        "\n#[metadata]\n{\"relay.Constant\": [{\"dtype\": \"float32\", \"shape\": [2, 3], \"data\": "
                        "\"AACAPwAAAEAAAEBAAACAQAAAoEAAAMBA\"}, {\"dtype\": \"float32\", \"shape\": [2], \"data\": "
                        "\"AAAAPwAAgL8=\"}]}";
  const std::map<std::string, std::string> models{
      {"dense", "def @main(%x: Tensor[(5, 3), float32]) { nn.dense(%x, " + w + ") }" + metadata},
      {"bias", "def @main(%x: Tensor[(5, 3), float32]) { nn.bias_add(nn.dense(%x, " + w +
                   "), meta[relay.Constant][1]) }" + metadata},
      {"plain", "def @main(%a: Tensor[(7, 4), float32], %b: Tensor[(4, 9), float32]) { nn.matmul(%a, %b) }"},
      {"a_transposed",
       "def @main(%a: Tensor[(4, 7), float32], %b: Tensor[(4, 9), float32]) { nn.matmul(%a, %b, transpose_a=1) }"},
      {"both_transposed",
       "def @main(%a: Tensor[(4, 7), float32], %b: Tensor[(9, 4), float32]) { nn.matmul(%a, %b, "
       "transpose_a=1, transpose_b=1) }"},
      {"batch",
       "def @main(%a: Tensor[(3, 5, 4), float32], %b: Tensor[(3, 6, 4), float32]) { nn.batch_matmul(%a, %b, "
       "transpose_b=1) }"},
      {"batch_of_one_b",
       "def @main(%a: Tensor[(3, 5, 4), float32], %b: Tensor[(1, 6, 4), float32]) { "
       "nn.batch_matmul(%a, %b, transpose_b=1) }"},
      {"batch_of_one_a",
       "def @main(%a: Tensor[(1, 5, 4), float32], %b: Tensor[(3, 4, 6), float32]) { "
       "nn.batch_matmul(%a, %b) }"},
      {"scaled",
       "def @main(%a: Tensor[(2, 5, 4), float32], %b: Tensor[(2, 6, 4), float32]) { "
       "multiply(nn.batch_matmul(%a, %b, transpose_b=1), 0.125f) }"},
      {"bias_relu", "def @main(%x: Tensor[(5, 3), float32]) { nn.relu(nn.bias_add(nn.dense(%x, " + w +
                        "), meta[relay.Constant][1])) }" + metadata},
      {"relu", "def @main(%a: Tensor[(7, 4), float32], %b: Tensor[(4, 9), float32]) { nn.relu(nn.matmul(%a, %b)) }"},
      {"row", "def @main(%a: Tensor[(1, 130), float32], %b: Tensor[(130, 33), float32]) { nn.matmul(%a, %b) }"},
  };
  for (const auto& [name, text] : models) {
    CompileOptions options = Options(name);
    options.partition_for = "cublas";
    const CompileReport report = CompileModule(Module(text), name, options);
    EXPECT_EQ(FailuresOf(report), "") << name;
    ASSERT_EQ(report.contenders.size(), 1u) << name;
    EXPECT_EQ(report.contenders[0].partitions, (std::map<std::string, int>{{"cublas", 1}})) << name;
  }
  for (const auto& [name, text] : models) ExpectAgrees(Module(text), Options(name));
}

TEST_F(CublasTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = Module(
      "def @main(%x: Tensor[(16, 32), float32], %w: Tensor[(24, 32), float32], %v: Tensor[(8, 24), float32]) {\n"
      "  nn.softmax(nn.dense(tanh(nn.dense(nn.relu(%x), %w)), %v))\n"
      "}");
  const CompileReport measured = CompileModule(module, "measured", Options("measured"));
  EXPECT_EQ(FailuresOf(measured), "");
  const Contender* alone = Find(measured, "cublas");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->failure, "");
  EXPECT_EQ(alone->partitions.at("cublas"), 2);
  CompileOptions options = Options("given");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cublas": 1}, "copy": 0.5})";
  const CompileReport given = CompileModule(module, "given", options);
  // By costs both products go to the GPU, and the mix goes by the name of the toolchain's own cover.
  ASSERT_NE(Find(given, "cublas"), nullptr);
  EXPECT_EQ(Find(given, "cublas")->partitions.at("cublas"), 2);
  for (const char* name : {"measured", "given"}) ExpectAgrees(module, Options(name));
}

TEST_F(CublasTest, OperatorsGoWhereAModelSays) {
  const IRModule module = Module(
      "def @main(%x: Tensor[(6, 8), float32], %w: Tensor[(4, 8), float32]) {\n"
      "  nn.relu(on_device(nn.dense(%x, %w), device_type=2))\n"
      "}");
  CompileOptions options = Options("placed");
  const CompileReport report = CompileModule(module, "placed", options);
  for (const Contender& one : report.contenders) {
    if (!one.failure.empty()) continue;
    EXPECT_EQ(one.partitions.at("cublas"), 1) << one.name;
  }
  const Executable executable = Executable::Load(options.output);
  EXPECT_TRUE(std::ranges::any_of(executable.plan().kernels, [](const ExecutionPlan::KernelEntry& kernel) {
    return kernel.toolchain == "cublas";
  }));
  ExpectAgrees(module, options);
}

TEST_F(CublasTest, AlgorithmsAreSchedules) {
  const IRModule module =
      Module("def @main(%x: Tensor[(16, 32), float32], %w: Tensor[(24, 32), float32]) { nn.dense(%x, %w) }");
  CompileOptions options = Options("tuned");
  options.toolchains = {"cublas"};
  options.tuning_trials = 6;
  options.estimator = "measure";
  const CompileReport report = CompileModule(module, "tuned", options);
  EXPECT_GT(report.tuning.trials, 0) << "native kernels have schedules, too";
  ExpectAgrees(module, options);
}

}  // namespace
}  // namespace collage
