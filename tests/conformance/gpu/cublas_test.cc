// Products that cuBLASLt computes on a GPU: single ones in all types and orders, and models of which native kernels
// compute the rest, found by the search, checked, written, and run.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "conformance/conformance.h"
#include "conformance/gpu/cublas_calls.h"
#include "conformance/gpu/gpu_test.h"
#include "driver/toolchain_selection.h"

namespace collage {
namespace {

using conformance::Input;
using conformance::RowCall;
using testing::HasSubstr;
using testing::IsEmpty;

class CublasTest : public GpuTest {
 protected:
  CublasTest() : GpuTest("cublas") {}
  static const Toolchain& Cublas() { return *ToolchainRegistry::Global().Find("cublas"); }
  static std::unique_ptr<const Toolchain> InPrecision(const std::string& precision) {
    return Cublas().WithOptions({{"inference_precision", precision}});
  }

  static void ExpectAllAgree(const std::vector<RowCall>& calls, const conformance::Options& options = {}) {
    for (const RowCall& call : calls) {
      SCOPED_TRACE(call.row);
      conformance::ExpectPatternAgrees(Cublas(), "cublas." + call.row, call.function, options);
    }
  }

  static Result<CompiledPartition> Compile(const Toolchain& toolchain, const Function& function,
                                           const std::string& schedule = "") {
    InferType(function);
    const auto layouts = In(Memory::kCuda, PlainLayouts(function->params().size(), 1));
    return toolchain.RelayToRuntime({function, layouts, 1, schedule});
  }

  /// Compiles and runs `function`, on addresses that are aligned no more than the runtime promises.
  static Tensor Run(const Toolchain& toolchain, const Function& function, const std::vector<Tensor>& inputs,
                    const std::string& schedule = "") {
    constexpr size_t kAlignment = 64;
    const Result<CompiledPartition> compiled = Compile(toolchain, function, schedule);
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    const auto kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    const TensorTypeNode& type = *AsTensorType(function->body()->checked_type());
    const Tensor result = Tensor::Zeros(type.static_shape(), type.dtype());
    Device& device = GetDevice(Memory::kCuda);
    std::vector<DeviceBuffer> buffers;
    const auto place = [&](const Tensor& tensor) -> void* {
      buffers.emplace_back(Memory::kCuda, kAlignment + tensor.size_bytes());
      void* address = static_cast<std::byte*>(buffers.back().address()) + kAlignment;
      device.CopyIn(address, tensor.raw(), tensor.size_bytes());
      return address;
    };
    std::vector<void*> addresses;
    for (const Tensor& input : inputs) addresses.push_back(place(input));
    const std::vector<void*> results{place(result)};
    kernel->Bind(addresses, results, nullptr);
    kernel->Run();
    device.CopyOut(result.raw(), results[0], result.size_bytes());
    return result;
  }

  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=cublas"); }
};

TEST_F(CublasTest, Float32RowsAgree) { ExpectAllAgree(conformance::CublasCalls(kFloat32)); }
TEST_F(CublasTest, Float16RowsAgree) { ExpectAllAgree(conformance::CublasCalls(kFloat16)); }
TEST_F(CublasTest, BFloat16RowsAgree) { ExpectAllAgree(conformance::CublasCalls(kBFloat16)); }
TEST_F(CublasTest, IntegerRowsAgree) {
  // Sums are exact; a quantised result is a rounded quotient of one.
  ExpectAllAgree(conformance::CublasIntegerCalls(), {.all_bytes = true, .share_one_off = 0.01});
}

TEST_F(CublasTest, EachRowHasACall) {
  std::set<std::string> rows;
  for (const PatternTableEntry& entry : Cublas().PatternTable()) rows.insert(entry.name);
  for (const auto& calls : {conformance::CublasCalls(kFloat32), conformance::CublasIntegerCalls()}) {
    for (const RowCall& call : calls) rows.erase("cublas." + call.row);
  }
  EXPECT_THAT(rows, IsEmpty());
}

/// A product of two inputs with K = 64, in which sums of halves are large and the whole is small: parts of sums that
/// are rounded to float16 show.
Function CancellingProduct() {
  const Var x = Input("x", {4, 64}, kFloat16), w = Input("w", {8, 64}, kFloat16);
  return MakeFunction({x, w}, MakeCall("nn.dense", {x, w}));
}

TEST_F(CublasTest, SumsOfFloat16AreKeptInFloat32) {
  const Tensor x = Tensor::Empty({4, 64}, kFloat16), w = Tensor::Empty({8, 64}, kFloat16);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, 1);
  for (int64_t i = 0; i < w.num_elements(); ++i) w.Set(i, i % 64 < 16 ? 100.0625 : i % 64 < 32 ? 100 : -100);
  const Tensor result = Run(Cublas(), CancellingProduct(), {x, w});
  for (int64_t i = 0; i < result.num_elements(); ++i) EXPECT_EQ(result.At(i), 1) << "3201 is no float16";
}

TEST_F(CublasTest, FactorsAreRoundedWhereThatIsAllowed) {
  const Var x = Input("x", {1, 4}), w = Input("w", {4, 4});
  const Function product = MakeFunction({x, w}, MakeCall("nn.dense", {x, w}));
  InferType(product);
  const Tensor row = Tensor::Zeros({1, 4}, kFloat32), ones = Tensor::Zeros({4, 4}, kFloat32);
  const std::vector<double> values{1 + std::ldexp(1, -20), 1 + std::ldexp(1, -10), 1 + std::ldexp(1, -7), 1};
  for (int64_t i = 0; i < 4; ++i) {
    row.Set(i, values[static_cast<size_t>(i)]);
    ones.Set(i * 5, 1);  // on the diagonal
  }
  const Tensor expected = Evaluate(product, std::vector<Tensor>{row, ones}).at(0);
  // Bits behind the point that a factor keeps: 23, 10, 7, 10.
  const std::map<std::string, int> kept{{"f32", 4}, {"tf32", 3}, {"bf16", 2}, {"f16", 3}};
  for (const auto& [precision, count] : kept) {
    const Tensor result = Run(*InPrecision(precision), product, {row, ones});
    int exact = 0;
    for (int64_t i = 0; i < 4; ++i) exact += result.At(i) == expected.At(i) ? 1 : 0;
    EXPECT_GE(exact, count) << precision;
    // The library may round, the stand-in does.
    if (std::getenv("COLLAGE_TEST_GPU") == nullptr) {
      EXPECT_EQ(exact, count) << precision;
    }
  }
}

TEST_F(CublasTest, LowerPrecisionIsForFloat32AndNamed) {
  for (const char* precision : {"tf32", "bf16", "f16"}) {
    const std::unique_ptr<const Toolchain> lower = InPrecision(precision);
    EXPECT_THAT(lower->Probe().version, testing::EndsWith(std::string(" ") + precision));
    size_t num_narrow = 0;
    for (const RowCall& call : conformance::CublasCalls(kFloat32)) {
      InferType(call.function);
      const std::vector<bool> all(call.function->params().size(), true);
      for (const BoundaryLayouts& layouts : lower->Layouts(call.function, all, {true})) {
        SCOPED_TRACE(call.row + " in " + precision + ", " + std::string(ToString(layouts.outputs[0])));
        num_narrow += KeepsNarrow(layouts) ? 1 : 0;
        conformance::ExpectPatternAgrees(*lower, "cublas." + call.row, call.function,
                                         {.layouts = layouts, .tolerance = 2e-2});
      }
    }
    EXPECT_EQ(num_narrow > 0, precision != std::string("tf32"));
    const auto refused = Compile(*lower, CancellingProduct());
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.reason().text, HasSubstr("multiplies no float32 values"));
  }
  EXPECT_THROW(InPrecision("f64"), Error);
}

TEST_F(CublasTest, AnyPrecisionAddsAllThatThereAre) {
  const std::vector<std::string> lower{"tf32", "bf16", "f16"};
  const std::vector<ToolchainConfiguration> variants = VariantsOf(ToolchainConfiguration(Cublas()), lower);
  ASSERT_EQ(variants.size(), lower.size());
  for (size_t i = 0; i < lower.size(); ++i) {
    EXPECT_EQ(variants[i].ToString(), "cublas -inference_precision=" + lower[i]);
  }
}

TEST_F(CublasTest, RefusalsSayWhy) {
  const std::map<std::string, std::string> reasons{
      {"%a: Tensor[(4, 8), float64], %b: Tensor[(4, 8), float64]) { nn.dense(%a, %b) }",
       "multiplies float32, float16, bfloat16 and int8, got float64"},
      {"%a: Tensor[(4, 8), int8], %b: Tensor[(4, 8), int8]) { nn.dense(%a, %b) }",
       "adds up 8-bit integers as int32 only, got int8"},
      {"%a: Tensor[(4, 8), uint8], %b: Tensor[(4, 8), uint8]) { nn.dense(cast(%a, dtype=\"int32\"), cast(%b, "
       "dtype=\"int32\")) }",
       "multiplies signed 8-bit integers, got uint8"},
      {"%a: Tensor[(4, 8), int8], %b: Tensor[(6, 8), int8]) { nn.dense(%a, %b, out_dtype=\"int32\") }",
       "where columns and depth are multiples of 4, got 6 and 8"},
      {"%a: Tensor[(4, 8), int8], %b: Tensor[(8, 4), int8]) { nn.matmul(%a, %b, out_dtype=\"int32\") }",
       "the left matrix is [M, K] and the right one [N, K]"},
      {"%a: Tensor[(4, 8), int8], %b: Tensor[(4, 8), int8]) { nn.relu(nn.dense(%a, %b, out_dtype=\"int32\")) }",
       "computes nothing behind a product of 8-bit integers"},
      {"%a: Tensor[(4, 8), float16], %b: Tensor[(4, 8), float16]) { nn.dense(%a, %b, out_dtype=\"float64\") }",
       "adds up float16 as that or as float32"},
      {"%a: Tensor[(4, 8), float32], %b: Tensor[(4, 8), float32]) { tanh(nn.dense(%a, %b)) }",
       "ends with relu and GELU only"},
      {"%a: Tensor[(4, 8), float32], %b: Tensor[(4, 8), float32], %c: Tensor[(4, 4), float32]) { multiply(nn.dense(%a, "
       "%b), %c) }",
       "scales by a number only"},
      {"%a: Tensor[(4, 8), float32], %b: Tensor[(4, 8), float32], %c: Tensor[(4, 1), float32]) { add(nn.dense(%a, "
       "%b), %c) }",
       "adds a constant number for each row only"},
  };
  for (const auto& [text, reason] : reasons) {
    const auto refused = Compile(Cublas(), Module("def @main(" + text).main());
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_THAT(refused.reason().text, HasSubstr(reason)) << text;
  }
}

TEST_F(CublasTest, QuantisedValuesLieAroundZero) {
  const Var x = Input("x", {4, 8}, kInt8), w = Input("w", {4, 8}, kInt8);
  const auto product = [&](int64_t zero) {
    const Expr left = conformance::Dequantize(x, 0.1, zero, kInt8);
    return MakeCall("nn.dense", {left, conformance::Dequantize(w, 0.1, 0, kInt8)});
  };
  const auto refused = Compile(Cublas(), MakeFunction({x, w}, product(3)));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.reason().text, HasSubstr("around a zero point of 0 only"));
  const auto unsigned_result =
      Compile(Cublas(), MakeFunction({x, w}, conformance::Quantize(product(0), 0.1, 0, kUInt8)));
  ASSERT_FALSE(unsigned_result.ok());
  EXPECT_THAT(unsigned_result.reason().text, HasSubstr("to int8 only"));
}

TEST_F(CublasTest, GeluByErfIsRefused) {
  const Var x = Input("x", {4, 8}), w = Input("w", {4, 8});
  const Expr product = MakeCall("nn.dense", {x, w});
  for (const conformance::Activation& activation : conformance::Activations()) {
    if (activation.suffix != std::string("_gelu")) continue;
    const auto refused = Compile(Cublas(), MakeFunction({x, w}, activation.apply(product)));
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.reason().text, HasSubstr("approximates GELU by tanh, and has none by erf"));
  }
}

/// A function with two constants: equal layers of a model differ in these.
Function Layer(uint32_t seed, double scale) {
  const Var x = Input("x", {5, 8});
  const Expr product = MakeCall("nn.matmul", {x, conformance::RandomConstant({8, 16}, seed)});
  const Expr scaled = MakeCall("multiply", {product, MakeScalar(scale, kFloat32)});
  const Function layer = MakeFunction({x}, MakeCall("add", {scaled, conformance::RandomConstant({16}, seed + 1)}));
  InferType(layer);
  return layer;
}

TEST_F(CublasTest, EqualLayersAreCompiledOnce) {
  const auto first = Compile(Cublas(), Layer(1, 0.5)), second = Compile(Cublas(), Layer(3, 0.5));
  ASSERT_TRUE(first.ok() && second.ok());
  const BoundaryLayouts layouts = In(Memory::kCuda, PlainLayouts(1, 1));
  const auto updated = Cublas().UpdateConstants({Layer(3, 0.5), layouts, 1}, *first);
  ASSERT_TRUE(updated.ok()) << updated.reason().text;
  ASSERT_EQ(updated->size(), second->constants.size());
  for (size_t i = 0; i < updated->size(); ++i) EXPECT_TRUE(BitEqual((*updated)[i], second->constants[i])) << i;
  const auto other = Cublas().UpdateConstants({Layer(3, 0.25), layouts, 1}, *first);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.reason().text, HasSubstr("depends on the values of constants"));
}

TEST_F(CublasTest, EachAlgorithmOfTheRankingComputesTheSame) {
  const Function layer = Layer(1, 0.5);
  const Result<std::vector<std::string>> schedules =
      Cublas().Schedules({layer, In(Memory::kCuda, PlainLayouts(1, 1)), 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  ASSERT_GT(schedules->size(), 2u);
  const Tensor input = conformance::RandomTensor({5, 8}, kFloat32, -1, 1, 9);
  const Tensor expected = Evaluate(layer, std::vector<Tensor>{input}).at(0);
  for (const std::string& schedule : {std::string(), (*schedules)[0], (*schedules)[1]}) {
    const Tensor result = Run(Cublas(), layer, {input}, schedule);
    EXPECT_TRUE(Compare(result, expected, ToleranceFor(expected, std::nullopt)).agrees) << schedule;
  }
  // The library of the machine that loads the kernel ranks algorithms: whether there are so many is not known before.
  const auto compiled = Compile(Cublas(), layer, "algorithm=900");
  ASSERT_TRUE(compiled.ok());
  try {
    GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_THAT(error.message(), HasSubstr("number 901 is wanted"));
  }
}

TEST_F(CublasTest, CorruptProductsAreRefused) {
  const auto compiled = Compile(Cublas(), Layer(1, 0.5));
  ASSERT_TRUE(compiled.ok());
  const auto expect_corrupt = [&](const std::vector<std::byte>& blob, const std::vector<Tensor>& constants,
                                  const std::string& what) {
    try {
      GetKernelLoader(compiled->loader).Load({blob, constants, 1});
      ADD_FAILURE() << what << " was loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << what << ": " << error.message();
      EXPECT_THAT(error.message(), HasSubstr("a kernel's product cannot be read")) << what;
    }
  };
  std::vector<std::byte> shortened = compiled->blob;
  shortened.pop_back();
  expect_corrupt(shortened, compiled->constants, "less than a product");
  expect_corrupt({}, compiled->constants, "nothing");
  expect_corrupt(compiled->blob, {compiled->constants[0]}, "a product without its bias");
  // A number that is changed is loaded or refused by name, and never read out of bounds.
  for (size_t i = 0; i < compiled->blob.size(); i += sizeof(int64_t)) {
    for (const uint8_t flipped : {0x80, 0x01}) {
      std::vector<std::byte> changed = compiled->blob;
      changed[i + (flipped == 0x80 ? 7 : 0)] ^= std::byte{flipped};
      try {
        GetKernelLoader(compiled->loader).Load({changed, compiled->constants, 1});
      } catch (const Error& error) {
        EXPECT_TRUE(error.category() == ErrorCategory::kCorrupt || error.category() == ErrorCategory::kUnsupported)
            << "byte " << i << ": " << error.message();
      }
    }
  }
}

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

/// Two layers of a transformer, with GELU between them and the data added behind them.
IRModule FeedForward(DataType dtype) {
  const Var x = Input("x", {6, 16}, dtype);
  const auto constants = [&](const Shape& shape, uint32_t seed) {
    return MakeConstant(conformance::RandomTensor(shape, dtype, -0.5, 0.5, seed));
  };
  const auto number = [&](double value) { return MakeScalar(value, dtype); };
  const auto layer = [&](const Expr& data, int64_t columns, uint32_t seed) {
    const int64_t depth = AsTensorType(InferType(data))->static_shape().back();
    return conformance::Plus(MakeCall("nn.dense", {data, constants({columns, depth}, seed)}),
                             constants({columns}, seed + 1));
  };
  using conformance::Mul, conformance::Plus;
  const Expr wide = layer(x, 32, 1);
  const Expr cube = Mul(MakeCall("power", {wide, number(3)}), number(0.044715));
  const Expr tanh = MakeCall("tanh", {Mul(Plus(wide, cube), number(std::sqrt(2 / M_PI)))});
  const Expr gelu = Mul(Mul(wide, number(0.5)), Plus(tanh, number(1)));
  return IRModule::FromFunction(MakeFunction({x}, Plus(layer(gelu, 16, 3), x)));
}

TEST_F(CublasTest, LayersOfATransformerAreAProductEach) {
  const std::map<std::string, DataType> types{{"feed_forward", kFloat32}, {"feed_forward_f16", kFloat16}};
  for (const auto& [name, dtype] : types) {
    CompileOptions options = Options(name);
    options.partition_for = "cublas";
    const CompileReport report = CompileModule(FeedForward(dtype), name, options);
    EXPECT_EQ(FailuresOf(report), "") << name;
    ASSERT_EQ(report.contenders.size(), 1u) << name;
    EXPECT_EQ(report.contenders[0].partitions, (std::map<std::string, int>{{"cublas", 2}})) << name;
  }
  for (const auto& [name, dtype] : types) ExpectAgrees(FeedForward(dtype), Options(name));
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
