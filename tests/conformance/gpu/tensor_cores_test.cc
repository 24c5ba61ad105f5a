// Products that a GPU's tensor cores compute: in each of the types that they multiply, of sizes that fill their blocks
// and of sizes that do not.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collage/target/compiles_elsewhere.h"
#include "conformance/gpu/tensor_cores_cases.h"

namespace collage {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Products of float32 values of many shapes.
Models Products() {
  Models models;
  struct Sizes {
    int64_t rows, columns, depth;
  };
  for (const auto [m, n, k] : {Sizes{64, 64, 64}, {5, 33, 34}, {17, 8, 6}, {70, 70, 100}, {4, 65, 130}}) {
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

/// Convolutions of an even number of channels.
Models ConvolutionsOfPairs() {
  Models models = Convolutions();
  models.erase("first_layer");
  return models;
}

/// A product of bytes, summed exactly.
std::string ProductOfBytes(int64_t rows, int64_t columns, int64_t depth) {
  return "def @main(" + Tensor2("x", rows, depth, "int8") + ", " + Tensor2("w", columns, depth, "int8") +
         ") { nn.dense(cast(%x, dtype=\"int32\"), cast(%w, dtype=\"int32\")) }";
}

TEST_F(TensorCoresTest, InstructionsAreThoseOfTheType) {
  const std::string product = Products().at("dense64x64x64");
  EXPECT_THAT(PtxOf(product, "f32"), Not(HasSubstr("mma.sync")));
  EXPECT_THAT(PtxOf(product, "tf32"), HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
  EXPECT_THAT(PtxOf(product, "bf16"), HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  EXPECT_THAT(PtxOf(product, "f16"), HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT(PtxOf(ProductOfBytes(64, 64, 64), "f32"), HasSubstr("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"));
  EXPECT_THAT(PtxOf(Convolutions().at("padded"), "tf32"), HasSubstr("mma.sync"));
}

TEST_F(TensorCoresTest, LargeTilesAssembleWithoutSpills) {
  const Models models{
      {"product", "def @main(" + Tensor2("x", 2048, 1024) + ", " + Tensor2("w", 2048, 1024) + ") { nn.dense(%x, %w) }"},
      {"convolution",
       "def @main(%x: Tensor[(8, 128, 56, 56), float32], %w: Tensor[(128, 128, 3, 3), float32]) { "
       "nn.relu(nn.conv2d(%x, "
       "%w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=128)) }"},
      {"attention",
       "def @main(%q: Tensor[(12, 128, 64), float32], %k: Tensor[(12, 128, 64), float32], %v: Tensor[(12, 128, 64), "
       "float32]) { nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k, transpose_b=1)), %v) }"}};
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100"}) {
    for (const char* precision : {"tf32", "f16"}) {
      for (const auto& [name, text] : models) {
        const std::string ptx = PtxOf(text, precision, architecture);
        // Attention is one stage of single warps, unless its values have to be put in pairs.
        const bool is_by_blocks = name != "attention" || precision != std::string("tf32");
        for (const char* of_blocks : {"cp.async", "ldmatrix", "bar.sync"}) {
          EXPECT_EQ(ptx.find(of_blocks) != std::string::npos, is_by_blocks) << name << ": " << of_blocks;
        }
        const std::string said = Assemble(ptx, architecture, folder_);
        if (said.empty()) GTEST_SKIP() << "ptxas is not installed";
        // A few bytes are those of the stage that turns the layout of images.
        EXPECT_THAT(said, Not(testing::ContainsRegex("[1-9][0-9][0-9]* bytes spill")))
            << name << " in " << precision << " for " << architecture;
      }
    }
  }
}

TEST_F(TensorCoresTest, ProductsAgreeInTf32) { ExpectAgree(Products(), "tf32", 4e-3); }
TEST_F(TensorCoresTest, ProductsAgreeInBFloat16) { ExpectAgree(Products(), "bf16", 2e-2); }
TEST_F(TensorCoresTest, ProductsAgreeInFloat16) { ExpectAgree(Products(), "f16", 4e-3); }
TEST_F(TensorCoresTest, ConvolutionsAgreeInTf32) { ExpectAgree(Convolutions(), "tf32", 4e-3); }
TEST_F(TensorCoresTest, ConvolutionsAgreeInBFloat16) { ExpectAgree(ConvolutionsOfPairs(), "bf16", 2e-2); }
TEST_F(TensorCoresTest, ConvolutionsAgreeInFloat16) { ExpectAgree(ConvolutionsOfPairs(), "f16", 4e-3); }

TEST_F(TensorCoresTest, Float16ValuesAreMultipliedAsTheyAre) {
  const Models models{
      {"dense", "def @main(" + Tensor2("x", 20, 48, "float16") + ", " + Tensor2("w", 70, 48, "float16") +
                    ") { nn.dense(%x, %w) }"},
      {"odd", "def @main(" + Tensor2("x", 20, 7, "float16") + ", " + Tensor2("w", 70, 7, "float16") +
                  ") { nn.dense(%x, %w) }"},
      {"batch",
       "def @main(%a: Tensor[(3, 12, 20), float16], %b: Tensor[(3, 20, 36), float16]) { nn.batch_matmul(%a, %b) }"},
      {"outputs_without_taps",
       "def @main(%x: Tensor[(3, 8, 3, 16), float16], %w: Tensor[(8, 1, 1, 1), float16], %b: Tensor[(3, 1, 1, 32), "
       "float16]) { add(nn.conv2d_transpose(%x, %w, dilation=[2, 1], groups=2, output_padding=[0, 1], padding=[0, 0, "
       "0, "
       "0], strides=[1, 2], kernel_size=[1, 1], channels=2), %b) }"},
      {"convolution",
       "def @main(%x: Tensor[(1, 16, 11, 11), float16], %w: Tensor[(24, 16, 3, 3), float16]) { "
       "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=24) }"}};
  EXPECT_THAT(PtxOf(models.at("dense"), "f32"), HasSubstr("f32.f16.f16.f32"));
  ExpectAgree(models, "f32", 4e-3);
}

/// Schedules of tiles that differ in all that a schedule of tensor cores has.
constexpr const char* kSchedules[] = {
    "rows=128,width=4,warps=8,stages=3",    "rows=64,width=2,unroll=4,warps=4,stages=2",
    "rows=32,width=4,parts=3,warps=4",      "rows=16,width=2,block=1,parts=2,warps=2,stages=5",
    "rows=128,width=1,parallel=no,warps=4",
};

TEST_F(TensorCoresTest, EachScheduleComputesTheSame) {
  const Models models{
      {"dense", "def @main(" + Tensor2("x", 70, 132) + ", " + Tensor2("w", 150, 132) +
                    ", %b: Tensor[(150), float32]) { nn.relu(nn.bias_add(nn.dense(%x, %w), %b)) }"},
      {"odd", "def @main(" + Tensor2("x", 37, 51) + ", " + Tensor2("w", 41, 51) + ") { nn.dense(%x, %w) }"},
      {"convolution", Convolutions().at("strided")}};
  const std::unique_ptr<const Toolchain> toolchain = In("tf32");
  for (const auto& [name, text] : models) {
    for (const char* schedule : kSchedules) {
      SCOPED_TRACE(name + " by " + schedule);
      conformance::ExpectAgrees(*toolchain, FunctionOf(text), {.schedule = schedule, .tolerance = 4e-3});
      conformance::ExpectAgrees(*toolchain, ParseModule(text, "m.relay").main(),
                                {.schedule = schedule, .tolerance = 4e-3});
    }
  }
}

/// Schedules of groups of four warps.
constexpr const char* kGroupSchedules[] = {
    "algorithm=warpgroups,rows=64,width=2,warps=4,stages=3",
    "algorithm=warpgroups,rows=128,width=4,unroll=4,parts=2,warps=8,stages=2",
    "algorithm=warpgroups,rows=64,width=8,parts=1,warps=4",
};

TEST_F(TensorCoresTest, GroupsOfWarpsComputeTheSame) {
  const std::string of_gpu = std::getenv("COLLAGE_TEST_GPU") == nullptr ? "" : "sm_90a";
  const std::unique_ptr<const Toolchain> needed = In("f16", of_gpu);
  const Availability runner = dynamic_cast<const CompilesElsewhere&>(*needed).ProbeRunner();
  if (!runner.available) GTEST_SKIP() << runner.reason;
  const auto models = [](const char* dtype) {
    return Models{{"dense", "def @main(" + Tensor2("x", 70, 132, dtype) + ", " + Tensor2("w", 150, 132, dtype) +
                                ") { nn.dense(%x, %w) }"},
                  {"odd", "def @main(" + Tensor2("x", 37, 52, dtype) + ", " + Tensor2("w", 41, 52, dtype) +
                              ") { nn.relu(nn.dense(%x, %w)) }"}};
  };
  Models in_tf32 = models("float32");
  in_tf32["convolution"] = Convolutions().at("padded");
  for (const auto& [precision, of_type] :
       {std::pair("tf32", in_tf32), {"bf16", models("float32")}, {"f32", models("float16")}}) {
    const std::unique_ptr<const Toolchain> toolchain = In(precision, of_gpu);
    for (const auto& [name, text] : of_type) {
      for (const char* schedule : kGroupSchedules) {
        SCOPED_TRACE(name + " in " + precision + " by " + schedule);
        conformance::ExpectAgrees(*toolchain, FunctionOf(text), {.schedule = schedule, .tolerance = 2e-2});
      }
    }
  }
  for (const char* schedule : kGroupSchedules) {
    SCOPED_TRACE(schedule);
    conformance::ExpectAgrees(*In("f32", of_gpu), FunctionOf(ProductOfBytes(37, 41, 132)),
                              {.schedule = schedule, .tolerance = 0, .all_bytes = true});
  }
}

TEST_F(TensorCoresTest, GroupsOfWarpsAssembleForHopperWithoutSpills) {
  const std::string product =
      "def @main(" + Tensor2("x", 2048, 1024) + ", " + Tensor2("w", 2048, 1024) + ") { nn.relu(nn.dense(%x, %w)) }";
  const std::map<std::string, const char*> instructions{{"tf32", "k8.f32.tf32.tf32"},
                                                        {"bf16", "k16.f32.bf16.bf16"},
                                                        {"f16", "k16.f32.f16.f16"},
                                                        {"f32", "k32.s32.u8.s8"}};
  for (const auto& [precision, types] : instructions) {
    const std::string text = precision == "f32" ? ProductOfBytes(2048, 2048, 1024) : product;
    const std::string ptx = PtxOf(text, precision, "sm_90a");
    EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n")) << precision;
    EXPECT_THAT(ptx, HasSubstr(types)) << precision;
    EXPECT_THAT(PtxOf(text, precision, "sm_90"), Not(HasSubstr("wgmma"))) << precision;
    EXPECT_THAT(PtxOf(text, precision, "sm_90,sm_90a"), Not(HasSubstr("wgmma"))) << precision;
    const std::string said = Assemble(ptx, "sm_90a", folder_);
    if (said.empty()) GTEST_SKIP() << "ptxas is not installed";
    EXPECT_THAT(said, Not(testing::ContainsRegex("[1-9][0-9]* bytes spill"))) << precision;
    EXPECT_THAT(said, Not(HasSubstr("serialized"))) << precision;
  }
}

TEST_F(TensorCoresTest, BytesAreExact) {
  for (const char* schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    conformance::ExpectAgrees(*In("f32"), FunctionOf(ProductOfBytes(37, 41, 132)),
                              {.schedule = schedule, .tolerance = 0, .all_bytes = true});
  }
}

TEST_F(TensorCoresTest, SchedulesThatAreListedCompile) {
  const std::unique_ptr<const Toolchain> toolchain = In("tf32");
  const Function function =
      FunctionOf("def @main(" + Tensor2("x", 300, 256) + ", " + Tensor2("w", 300, 256) + ") { nn.dense(%x, %w) }");
  InferType(function);
  PartitionRequest request{function, collage::In(Memory::kCuda, PlainLayouts(1, 1)), 1};
  const Result<std::vector<std::string>> schedules = toolchain->Schedules(request);
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  EXPECT_GT(schedules->size(), 6u);
  for (const std::string& schedule : *schedules) {
    request.schedule = schedule;
    const Result<LoweredPartition> lowered = toolchain->RelayToTIR(request);
    EXPECT_TRUE(lowered.ok()) << schedule << ": " << lowered.reason().text;
  }
  for (const char* schedule : {"rows=48", "width=3", "unroll=3", "warps=3", "stages=1", "rows=256,width=8,warps=2"}) {
    request.schedule = schedule;
    EXPECT_FALSE(toolchain->RelayToTIR(request).ok()) << schedule;
  }
}

}  // namespace
}  // namespace collage
