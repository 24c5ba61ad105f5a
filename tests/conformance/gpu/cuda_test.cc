// Native kernels on a GPU: models as a whole, and code for GPUs that are not here. Single operators are in the suites
// of the native toolchain, which run on the GPU, too.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda_driver/gpu_kernel.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

using testing::HasSubstr;

class CudaTest : public GpuTest {
 protected:
  CudaTest() : GpuTest("cuda") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda"); }

  /// The toolchain for GPUs of `architecture`.
  static std::unique_ptr<const Toolchain> For(const std::string& architecture) {
    Attrs options;
    options.Set("arch", architecture);
    return ToolchainRegistry::Global().Find("cuda")->WithOptions(options);
  }

  static CompiledPartition Compile(const Toolchain& toolchain, const std::string& text) {
    const Function function = Module(text).main();
    InferType(function);
    const auto layouts = In(Memory::kCuda, PlainLayouts(function->params().size(), 1));
    const Result<CompiledPartition> compiled = toolchain.RelayToRuntime({function, layouts, 1});
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    return compiled.ok() ? *compiled : CompiledPartition();
  }
};

/// Partitions of the kinds that take most of a model's time.
const std::map<std::string, std::string>& HeavyPartitions() {
  static const std::map<std::string, std::string> partitions{
      {"product",
       "def @main(%a: Tensor[(128, 256), float32], %b: Tensor[(192, 256), float32], %c: Tensor[(192), float32]) "
       "{ nn.relu(nn.bias_add(nn.dense(%a, %b), %c)) }"},
      {"convolution",
       "def @main(%x: Tensor[(1, 64, 28, 28), float32], %w: Tensor[(64, 64, 3, 3), float32]) "
       "{ nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=64)) }"},
      {"depthwise",
       "def @main(%x: Tensor[(1, 96, 28, 28), float32], %w: Tensor[(96, 1, 3, 3), float32]) "
       "{ nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=96, groups=96) }"},
      {"attention",
       "def @main(%q: Tensor[(12, 128, 64), float32], %k: Tensor[(12, 128, 64), float32], %v: Tensor[(12, 128, 64), "
       "float32]) { nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k, transpose_b=1)), %v) }"},
      {"norm",
       "def @main(%x: Tensor[(128, 768), float32], %g: Tensor[(768), float32], %b: Tensor[(768), float32]) "
       "{ nn.layer_norm(%x, %g, %b) }"}};
  return partitions;
}

TEST_F(CudaTest, ModelsAgree) {
  const std::map<std::string, std::string> models{
      {"chain", "def @main(%x: Tensor[(5, 77), float32]) { nn.softmax(tanh(nn.relu(%x))) }"},
      {"convolution",
       "def @main(%x: Tensor[(1, 6, 9, 9), float32], %w: Tensor[(8, 6, 3, 3), float32]) {\n"
       "  nn.global_avg_pool2d(nn.max_pool2d(nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], "
       "channels=8)), pool_size=[2, 2], strides=[2, 2]))\n}"},
      {"mixed_types",
       "def @main(%x: Tensor[(33), float32], %i: Tensor[(7), int64]) { cast(take(%x, %i, axis=0), dtype=\"float64\") "
       "}"},
      {"empty", "def @main(%x: Tensor[(0, 5), float32]) { nn.relu(%x) }"}};
  for (const auto& [name, text] : models) {
    CompileOptions options = Options(name);
    options.partition_for = "cuda";
    const CompileReport report = CompileModule(Module(text), name, options);
    EXPECT_EQ(FailuresOf(report), "") << name;
    ASSERT_EQ(report.contenders.size(), 1u) << name;
    EXPECT_EQ(report.contenders[0].partitions.count("native"), 0u) << name;
  }
  for (const auto& [name, text] : models) ExpectAgrees(Module(text), Options(name));
}

TEST_F(CudaTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = Module(
      "def @main(%x: Tensor[(16, 32), float32], %w: Tensor[(24, 32), float32], %v: Tensor[(8, 24), float32]) {\n"
      "  nn.softmax(nn.dense(tanh(nn.dense(nn.relu(%x), %w)), %v))\n"
      "}");
  const CompileReport measured = CompileModule(module, "measured", Options("measured"));
  EXPECT_EQ(FailuresOf(measured), "");
  EXPECT_NE(Find(measured, "cuda"), nullptr);
  CompileOptions options = Options("given");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 1}, "copy": 0.5})";
  const CompileReport given = CompileModule(module, "given", options);
  ASSERT_NE(Find(given, "cuda"), nullptr);
  EXPECT_EQ(Find(given, "cuda")->partitions.count("native"), 0u) << "by these costs all of it goes to the GPU";
  for (const char* name : {"measured", "given"}) ExpectAgrees(module, Options(name));
}

TEST_F(CudaTest, SeveralToolchainsShareTheGpu) {
  const IRModule module = Module(
      "def @main(%x: Tensor[(16, 32), float32], %w: Tensor[(24, 32), float32]) { nn.softmax(nn.dense(%x, %w)) }");
  CompileOptions options = Options("shared");
  options.targets.emplace_back("cuda -compiler=cublas");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 2, "cublas": 1}, "copy": 0.5})";
  const CompileReport report = CompileModule(module, "shared", options);
  const bool has_both = std::ranges::any_of(report.contenders, [](const Contender& one) {
    return one.failure.empty() && one.partitions == std::map<std::string, int>{{"cublas", 1}, {"cuda", 1}};
  });
  EXPECT_TRUE(has_both);
  ExpectAgrees(module, options);
}

TEST_F(CudaTest, CodeForOtherGpusIsRefusedWhereItCannotRun) {
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "on a GPU, its own code is right";
  const CompiledPartition compiled = Compile(*For("sm_90"), HeavyPartitions().at("norm"));
  try {
    GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, 1});
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("made for sm_90"));
  }
}

TEST_F(CudaTest, CodeForSeveralGpusIsInOneKernel) {
  const CompiledPartition compiled = Compile(*For("sm_90a,sm_86,sm_90a"), HeavyPartitions().at("product"));
  const cuda_driver::GpuKernel kernel = cuda_driver::GpuKernelFrom(compiled.blob);
  std::vector<std::string> kinds;
  for (const cuda_driver::GpuImage& image : kernel.images) kinds.push_back(image.kind);
  EXPECT_EQ(kernel.architecture, "sm_86,sm_90a");
  if (kinds.size() == 1) GTEST_SKIP() << "ptxas is not installed";
  EXPECT_EQ(kinds, (std::vector<std::string>{"sm_90a", "sm_86", "ptx"})) << "the best first";
  const auto of_one = [](const std::string& architecture) {
    return cuda_driver::GpuKernelFrom(Compile(*For(architecture), HeavyPartitions().at("product")).blob).functions;
  };
  EXPECT_EQ(kernel.functions, of_one("sm_86")) << "as much shared memory as all of them have";
  EXPECT_EQ(cuda_driver::GpuKernelFrom(Compile(*For("sm_90a,sm_100"), HeavyPartitions().at("norm")).blob).architecture,
            "sm_90,sm_90a,sm_100")
      << "sm_90a alone is for no other GPU";
  EXPECT_THROW(For("sm_90,emulated"), Error);
}

TEST_F(CudaTest, ArchitecturesThatLlvmDoesNotKnowAreRefused) {
  EXPECT_THROW(For("gfx90a"), Error);
  const Function function = Module(HeavyPartitions().at("norm")).main();
  InferType(function);
  const auto compiled = For("sm_1")->RelayToRuntime({function, In(Memory::kCuda, PlainLayouts(3, 1)), 1});
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.reason().text, HasSubstr("sm_1"));
}

TEST_F(CudaTest, MoreBuffersThanParametersAreRefused) {
  std::string parameters, fields;
  for (int i = 0; i < 600; ++i) {
    parameters += fmt::format("{}%x{}: Tensor[(2), float32]", i == 0 ? "" : ", ", i);
    fields += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
  }
  const Function function = Module("def @main(" + parameters + ") { concatenate((" + fields + "), axis=0) }").main();
  InferType(function);
  const auto compiled = For("sm_90")->RelayToRuntime({function, In(Memory::kCuda, PlainLayouts(600, 1)), 1});
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.reason().text, HasSubstr("at most 500 parameters"));
}

TEST_F(CudaTest, KernelsAssembleForEachGenerationWithoutSpills) {
  for (const char* architecture : {"sm_80", "sm_90", "sm_90a", "sm_100"}) {
    const std::unique_ptr<const Toolchain> toolchain = For(architecture);
    for (const auto& [name, text] : HeavyPartitions()) {
      const CompiledPartition compiled = Compile(*toolchain, text);
      const std::vector<Listing> listings = toolchain->Listings({}, compiled);
      ASSERT_EQ(listings.back().extension, "ptx") << name;
      const std::string said = Assemble(listings.back().text, architecture, folder_);
      if (said.empty()) GTEST_SKIP() << "ptxas is not installed";
      EXPECT_THAT(said, HasSubstr("bytes spill stores")) << name << " for " << architecture;
      if (name == "depthwise" || name == "norm") continue;
      EXPECT_THAT(said, testing::Not(testing::ContainsRegex("[1-9][0-9]* bytes spill"))) << name;
    }
  }
}

TEST_F(CudaTest, ElementaryFunctionsAreThoseOfTheToolkit) {
  if (!std::filesystem::exists(cuda_driver::DeviceLibrary())) GTEST_SKIP() << "libdevice is not installed";
  const std::string text =
      "def @main(%x: Tensor[(40), float64]) { add(erf(%x), add(exp(%x), add(tan(%x), log(abs(%x))))) }";
  const std::vector<Listing> listings = For("sm_90")->Listings({}, Compile(*For("sm_90"), text));
  EXPECT_EQ(listings.back().extension, "ptx");
}

}  // namespace
}  // namespace collage
