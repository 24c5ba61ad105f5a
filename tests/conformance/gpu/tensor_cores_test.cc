// Products that a GPU's tensor cores compute: in each of the types that they multiply, of sizes that fill their blocks
// and of sizes that do not.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/kernel.h"
#include "conformance/conformance.h"
#include "conformance/gpu/gpu_test.h"
#include "conformance/on_device.h"

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

/// `text`'s function. Its parameters called w are constants.
Function FunctionOf(const std::string& text) {
  const Function function = ParseModule(text, "m.relay").main();
  std::unordered_map<const ExprNode*, Expr> constants;
  std::vector<Var> params;
  for (const Var& param : function->params()) {
    if (param->name() != "w") {
      params.push_back(param);
      continue;
    }
    const TensorTypeNode& type = *AsTensorType(param->type_annotation());
    constants[param.get()] =
        MakeConstant(conformance::RandomTensor(type.static_shape(), type.dtype(), -1, 1, /*seed=*/7));
  }
  return MakeFunction(params, Substitute(function->body(), constants));
}

class TensorCoresTest : public GpuTest {
 protected:
  TensorCoresTest() : GpuTest("cuda") {}

  static std::unique_ptr<const Toolchain> In(const std::string& precision, const std::string& architecture = "") {
    Attrs options;
    options.Set("arch", architecture);
    options.Set("inference_precision", precision);
    return ToolchainRegistry::Global().Find("cuda")->WithOptions(options);
  }

  /// Computes each of `models` on the GPU. Weights are constants, and then parameters.
  static void ExpectAgree(const Models& models, const std::string& precision, double tolerance) {
    const std::unique_ptr<const Toolchain> toolchain = In(precision);
    for (const auto& [name, text] : models) {
      SCOPED_TRACE(name + " in " + precision);
      conformance::ExpectAgrees(*toolchain, FunctionOf(text), {.tolerance = tolerance});
      conformance::ExpectAgrees(*toolchain, ParseModule(text, "m.relay").main(), {.tolerance = tolerance});
    }
  }

  static Result<LoweredPartition> Lowered(const Toolchain& toolchain, const Function& function) {
    InferType(function);
    return toolchain.RelayToTIR({function, collage::In(Memory::kCuda, PlainLayouts(function->params().size(), 1)), 1});
  }

  /// PTX of `text`.
  static std::string PtxOf(const std::string& text, const std::string& precision,
                           const std::string& architecture = "sm_80") {
    const std::unique_ptr<const Toolchain> toolchain = In(precision, architecture);
    const Result<LoweredPartition> lowered = Lowered(*toolchain, FunctionOf(text));
    EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
    const Result<CompiledPartition> compiled = toolchain->TIRToRuntime(*lowered);
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

/// Kernels whose loops were written right, and then changed.
class TensorCoresDeathTest : public TensorCoresTest {
 protected:
  using Change = std::function<void(std::string& loops)>;
  static constexpr const char* kBarrier = "func.call @collage_synchronise_block() : () -> ()";

  void SetUp() override {
    TensorCoresTest::SetUp();
    if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "of the driver without a GPU";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    setenv("STANDIN_CUDA_RACES", "1", 1);
  }
  void TearDown() override { unsetenv("STANDIN_CUDA_RACES"); }

  /// Whether a product agrees with the reference, computed by loops that `change` has changed: two tiles by blocks of
  /// four warps, each block one of them, or one block both.
  static bool Agrees(const Change& change, bool is_one_block) {
    constexpr int64_t kRows = 40, kDepth = 80;
    const std::unique_ptr<const Toolchain> toolchain = In("tf32", "emulated");
    const Function function = FunctionOf("def @main(" + Tensor2("x", kRows, kDepth) + ", " +
                                         Tensor2("w", kRows, kDepth) + ") { nn.dense(%x, %w) }");
    InferType(function);
    PartitionRequest request{function, collage::In(Memory::kCuda, PlainLayouts(1, 1)), 1};
    request.schedule = "rows=32,width=2,parts=1,warps=4,stages=3";
    if (is_one_block) request.schedule += ",parallel=no";
    Result<LoweredPartition> lowered = toolchain->RelayToTIR(request);
    COLLAGE_CHECK(lowered.ok()) << lowered.reason().text;
    change(lowered->mlir);
    const Result<CompiledPartition> compiled = toolchain->TIRToRuntime(*lowered);
    COLLAGE_CHECK(compiled.ok()) << compiled.reason().text;
    const std::unique_ptr<Kernel> kernel =
        GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    const std::vector<Tensor> data{conformance::RandomTensor({kRows, kDepth}, kFloat32, -1, 1, /*seed=*/3)};
    const Tensor expected = Evaluate(function, data).at(0);
    const Tensor result = Tensor::Zeros(expected.shape(), kFloat32);
    const Tensor memory = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 1}, kUInt8);
    conformance::OnDevice device(Memory::kCuda);
    void* workspace = device.Place(memory.raw(), memory.size_bytes());
    const std::vector<void*> inputs{device.Place(data[0].raw(), data[0].size_bytes())};
    const std::vector<void*> outputs{device.Place(result.raw(), result.size_bytes())};
    kernel->Bind(inputs, outputs, workspace);
    kernel->Run();
    device.Fetch(result.raw(), outputs[0], result.size_bytes());
    return Compare(result, expected, ToleranceFor(expected, kBFloat16)).agrees;
  }

  /// Ends the process: with 0 where the product is right, with 1 where it is wrong, with 2 where the device complains.
  [[noreturn]] static void Multiply(const Change& change, bool is_one_block = false) {
    try {
      std::_Exit(Agrees(change, is_one_block) ? 0 : 1);
    } catch (const Error&) {
      std::_Exit(2);
    }
  }

  /// The place of `text` in `loops`, behind `from`. Ends the process where there is none.
  static size_t PlaceOf(const std::string& text, const std::string& loops, size_t from = 0) {
    const size_t place = loops.find(text, from);
    if (place == std::string::npos) std::_Exit(3);
    return place;
  }

  /// Erases the barrier number `number` of a tile: before its first copies, before each step, before its sums are
  /// written, before they are read.
  static Change WithoutBarrier(int number) {
    return [number](std::string& loops) {
      size_t place = PlaceOf(kBarrier, loops);
      for (int i = 0; i < number; ++i) place = PlaceOf(kBarrier, loops, place + 1);
      loops.erase(place, std::string(kBarrier).size());
    };
  }
};

testing::ExitedWithCode Is(int code) { return testing::ExitedWithCode(code); }

TEST_F(TensorCoresDeathTest, LoopsAsTheyAreAreRight) {
  for (const bool is_one_block : {false, true}) {
    EXPECT_EXIT(Multiply([](std::string&) {}, is_one_block), Is(0), "");
    setenv("STANDIN_CUDA_REVERSED", "1", 1);
    EXPECT_EXIT(Multiply([](std::string&) {}, is_one_block), Is(0), "");
    unsetenv("STANDIN_CUDA_REVERSED");
  }
}

TEST_F(TensorCoresDeathTest, CopiesOverSumsThatMayStillBeReadAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(0), /*is_one_block=*/true), Is(2), "writes a byte that thread .* in no order");
}

TEST_F(TensorCoresDeathTest, AMissingBarrierBeforeAStepIsFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(1)), Is(2), "a byte that thread .*, in no order");
}

TEST_F(TensorCoresDeathTest, SumsOverWordsThatMayStillBeReadAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(2)), Is(2), "writes a byte that thread .* in no order");
}

TEST_F(TensorCoresDeathTest, SumsThatAreReadBeforeTheyAreThereAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(3)), Is(2), "reads a byte that thread .* writes, in no order");
}

TEST_F(TensorCoresDeathTest, AWaitForTooFewCopiesIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string call = "func.call @collage_await_copies(";
                const size_t begin = PlaceOf(call, loops) + call.size();
                const std::string number = loops.substr(begin, loops.find(')', begin) - begin) + " = arith.constant ";
                loops.insert(PlaceOf(number, loops) + number.size(), "1");  // ten more at least
              }),
              Is(2), "uses shared memory that a copy is on its way to");
}

TEST_F(TensorCoresDeathTest, AWrongFragmentGivesWrongResults) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                // The words of rows g and g + 8 of the first instruction change places.
                const std::string call = "func.call @collage_multiply_tf32(";
                std::vector<size_t> begins{PlaceOf(call, loops) + call.size()};
                while (begins.size() < 7) begins.push_back(PlaceOf(", ", loops, begins.back()) + 2);
                const std::string first = loops.substr(begins[4], begins[5] - begins[4]);
                loops.erase(begins[4], first.size());
                loops.insert(PlaceOf(", ", loops, begins[4]) + 2, first);
              }),
              Is(1), "");
}

TEST_F(TensorCoresDeathTest, MatricesThatAreReadWithoutTheOrderOfTheirPiecesGiveWrongResults) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                // The exclusive or in the place of the first matrix's rows.
                const size_t load = PlaceOf("func.call @collage_load_matrices", loops);
                const std::string op = "arith.xori ";
                const size_t place = loops.rfind(op, load);
                if (place == std::string::npos) std::_Exit(3);
                loops.replace(place, op.size(), "arith.ori ");
              }),
              Is(1), "");
}

TEST_F(TensorCoresDeathTest, ABoundTooFarIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string bound = "arith.cmpi slt, ";
                size_t place = PlaceOf(bound, loops);
                const auto is_of_lanes = [&] {
                  return loops.substr(place, loops.find('\n', place) - place).ends_with("vector<32xi32>");
                };
                while (!is_of_lanes()) place = PlaceOf(bound, loops, place + 1);
                loops.replace(place, bound.size(), "arith.cmpi sle, ");
              }),
              Is(2), "copies 16 bytes from outside of the device's memory");
}

TEST_F(TensorCoresDeathTest, TooLittleSharedMemoryIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string call = "func.call @collage_warp_of_block(";
                const size_t begin = PlaceOf(", ", loops, PlaceOf(call, loops)) + 2;
                const std::string name = loops.substr(begin, loops.find(')', begin) - begin) + " = arith.constant ";
                const size_t number = PlaceOf(name, loops) + name.size();
                loops.replace(number, loops.find(' ', number) - number, "12288");
              }),
              Is(2), "copies to what is no shared memory|shared memory");
}

}  // namespace
}  // namespace collage
