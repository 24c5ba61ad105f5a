// Products that a GPU's tensor cores compute: in each of the types that they multiply, of sizes that fill their blocks
// and of sizes that do not.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "collage/ir/infer_type.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A model, and what its file is called.
using Models = std::map<std::string, std::string>;

std::string Tensor2(const char* name, int64_t rows, int64_t columns, const char* dtype = "float32") {
  return fmt::format("%{}: Tensor[({}, {}), {}]", name, rows, columns, dtype);
}

/// Products of float32 values of many shapes.
Models Products() {
  Models models;
  struct Sizes {
    int64_t rows, columns, depth;
  };
  for (const auto [m, n, k] :
       {Sizes{64, 64, 64}, {5, 33, 34}, {17, 8, 6}, {130, 70, 100}, {16, 100, 2}, {4, 65, 258}}) {
    const std::string name = fmt::format("{}x{}x{}", m, n, k);
    models["dense" + name] = "def @main(" + Tensor2("x", m, k) + ", " + Tensor2("w", n, k) + ") { nn.dense(%x, %w) }";
    models["matmul" + name] = "def @main(" + Tensor2("x", m, k) + ", " + Tensor2("w", k, n) + ") { nn.matmul(%x, %w) }";
  }
  models["epilogue"] = "def @main(" + Tensor2("x", 20, 48) + ", " + Tensor2("w", 40, 48) +
                       ", %b: Tensor[(40), float32], " + Tensor2("r", 20, 40) +
                       ") { nn.relu(add(nn.bias_add(nn.dense(%x, %w), %b), %r)) }";
  models["batch"] =
      "def @main(%a: Tensor[(3, 12, 20), float32], %b: Tensor[(3, 20, 36), float32]) { nn.batch_matmul(%a, %b) }";
  models["one_for_all"] =
      "def @main(%a: Tensor[(3, 12, 20), float32], %b: Tensor[(1, 36, 20), float32]) { nn.batch_matmul(%a, %b, "
      "transpose_b=1) }";
  return models;
}

Models Convolutions() {
  const auto conv = [](const char* data, const char* weight, const char* attrs) {
    return fmt::format(
        "def @main(%x: Tensor[{}, float32], %w: Tensor[{}, float32]) {{ nn.relu(nn.conv2d(%x, %w, {})) }}", data,
        weight, attrs);
  };
  return {
      {"padded", conv("(1, 16, 11, 11)", "(24, 16, 3, 3)", "padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=24")},
      {"strided", conv("(2, 10, 13, 9)", "(34, 10, 3, 3)",
                       "strides=[2, 2], padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=34")},
      {"pointwise", conv("(1, 40, 7, 7)", "(70, 40, 1, 1)", "kernel_size=[1, 1], channels=70")},
      {"groups",
       conv("(1, 64, 8, 8)", "(64, 32, 3, 3)", "padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=64, groups=2")},
      {"dilated", conv("(1, 8, 14, 14)", "(12, 8, 3, 3)", "dilation=[2, 2], kernel_size=[3, 3], channels=12")},
      {"first_layer", conv("(1, 3, 32, 32)", "(16, 3, 7, 7)",
                           "strides=[2, 2], padding=[3, 3, 3, 3], kernel_size=[7, 7], channels=16")},
  };
}

/// Of the largest element, where factors are rounded.
constexpr double kLargestError = 2e-2;

class TensorCoresTest : public GpuTest {
 protected:
  TensorCoresTest() : GpuTest("cuda") {}

  /// Compiles each of `models` for the GPU alone, and runs it. Its results may differ as those in `computed_in` do.
  void ExpectAgree(const Models& models, const std::string& target, std::optional<DataType> computed_in) {
    std::map<std::string, CompileOptions> all;
    for (const auto& [name, text] : models) {
      CompileOptions& options = all.emplace(name, Options(name, target)).first->second;
      options.partition_for = target;
      options.estimator = "analytic";
      if (computed_in) options.max_error = kLargestError;
      const CompileReport report = CompileModule(Module(text), name, options);
      EXPECT_EQ(FailuresOf(report), "") << name << " for " << target;
    }
    for (const auto& [name, text] : models) GpuTest::ExpectAgrees(Module(text), all.at(name), computed_in);
  }

  /// PTX of `text` in `precision`.
  static std::string PtxOf(const std::string& text, const std::string& precision,
                           const std::string& architecture = "sm_80") {
    Attrs options;
    options.Set("arch", architecture);
    options.Set("inference_precision", precision);
    const std::unique_ptr<const Toolchain> toolchain = ToolchainRegistry::Global().Find("cuda")->WithOptions(options);
    const Function function = Module(text).main();
    InferType(function);
    const auto layouts = In(Memory::kCuda, PlainLayouts(function->params().size(), 1));
    const Result<CompiledPartition> compiled = toolchain->RelayToRuntime({function, layouts, 1});
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    return compiled.ok() ? toolchain->Listings({}, *compiled).back().text : "";
  }
};

TEST_F(TensorCoresTest, InstructionsAreThoseOfTheType) {
  const std::string product = Products().at("dense64x64x64");
  EXPECT_THAT(PtxOf(product, "f32"), Not(HasSubstr("mma.sync")));
  EXPECT_THAT(PtxOf(product, "tf32"), HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
  EXPECT_THAT(PtxOf(product, "bf16"), HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  EXPECT_THAT(PtxOf(product, "f16"), HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT(PtxOf(Convolutions().at("padded"), "tf32"), HasSubstr("mma.sync"));
}

TEST_F(TensorCoresTest, LargeTilesAssembleWithoutSpills) {
  const Models models{
      {"product", "def @main(" + Tensor2("x", 2048, 1024) + ", " + Tensor2("w", 2048, 1024) + ") { nn.dense(%x, %w) }"},
      {"convolution",
       "def @main(%x: Tensor[(8, 128, 56, 56), float32], %w: Tensor[(128, 128, 3, 3), float32]) { nn.relu(nn.conv2d(%x, "
       "%w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=128)) }"},
      {"attention",
       "def @main(%q: Tensor[(12, 128, 64), float32], %k: Tensor[(12, 128, 64), float32], %v: Tensor[(12, 128, 64), "
       "float32]) { nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k, transpose_b=1)), %v) }"}};
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100"}) {
    for (const char* precision : {"tf32", "f16"}) {
      for (const auto& [name, text] : models) {
        const std::string said = Assemble(PtxOf(text, precision, architecture), architecture, folder_);
        if (said.empty()) GTEST_SKIP() << "ptxas is not installed";
        EXPECT_THAT(said, Not(testing::ContainsRegex("[1-9][0-9]* bytes spill")))
            << name << " in " << precision << " for " << architecture;
      }
    }
  }
}

TEST_F(TensorCoresTest, ProductsAgreeInTf32) { ExpectAgree(Products(), "cuda -inference_precision=tf32", kBFloat16); }
TEST_F(TensorCoresTest, ProductsAgreeInBFloat16) {
  ExpectAgree(Products(), "cuda -inference_precision=bf16", kBFloat16);
}
TEST_F(TensorCoresTest, ProductsAgreeInFloat16) { ExpectAgree(Products(), "cuda -inference_precision=f16", kFloat16); }
TEST_F(TensorCoresTest, ConvolutionsAgreeInTf32) {
  ExpectAgree(Convolutions(), "cuda -inference_precision=tf32", kBFloat16);
}
TEST_F(TensorCoresTest, ConvolutionsAgreeInFloat16) {
  ExpectAgree(Convolutions(), "cuda -inference_precision=f16", kFloat16);
}

TEST_F(TensorCoresTest, Float16ValuesAreMultipliedAsTheyAre) {
  const Models models{
      {"dense", "def @main(" + Tensor2("x", 20, 48, "float16") + ", " + Tensor2("w", 70, 48, "float16") +
                    ") { nn.dense(%x, %w) }"},
      {"odd", "def @main(" + Tensor2("x", 20, 7, "float16") + ", " + Tensor2("w", 70, 7, "float16") +
                  ") { nn.dense(%x, %w) }"},
      {"batch",
       "def @main(%a: Tensor[(3, 12, 20), float16], %b: Tensor[(3, 20, 36), float16]) { nn.batch_matmul(%a, %b) }"},
      {"convolution",
       "def @main(%x: Tensor[(1, 16, 11, 11), float16], %w: Tensor[(24, 16, 3, 3), float16]) { "
       "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=24) }"}};
  EXPECT_THAT(PtxOf(models.at("dense"), "f32"), HasSubstr("f32.f16.f16.f32"));
  ExpectAgree(models, "cuda", std::nullopt);
}

}  // namespace
}  // namespace collage
