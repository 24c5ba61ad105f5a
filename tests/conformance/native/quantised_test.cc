// native_quantised_test.cc: native kernels of 8-bit integers against the reference, for processors with and without
// instructions for them: sums of integers, and results whose scales are powers of two, to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "conformance/conformance.h"
#include "conformance/quantised_calls.h"
#include "ir/eval/evaluate.h"
#include "partition/partition_rule.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using V = std::vector<int64_t>;

const Toolchain& Native() { return BuiltinToolchain("native"); }

std::unique_ptr<const Toolchain> NativeFor(const std::string& options) {
  Native();
  return ToolchainConfiguration::Parse("native " + options, ToolchainRegistry::Global()).Make();
}

/// This processor, one without VNNI, one with AVX2 and one with SSE2; those that code can be run for.
std::vector<std::unique_ptr<const Toolchain>> Levels() {
  std::vector<std::unique_ptr<const Toolchain>> levels;
  levels.push_back(NativeFor("-mcpu=native"));
  if (HasInstructionSet("avx512vl") && HasInstructionSet("avx512bw")) levels.push_back(NativeFor("-mcpu=x86-64-v4"));
  if (HasInstructionSet("avx2")) levels.push_back(NativeFor("-mcpu=x86-64-v3"));
  levels.push_back(NativeFor("-mcpu=x86-64"));
  return levels;
}

/// Compiles `function` and compares two runs with the reference, whose results must be the same to the bit. 8-bit
/// inputs are drawn from all of their range.
void ExpectEqual(const Toolchain& toolchain, const Function& function, const BoundaryLayouts& layouts,
                 int num_threads) {
  SetNumThreads(num_threads);
  InferType(function);
  const Result<CompiledPartition> compiled = toolchain.RelayToRuntime({function, layouts, num_threads});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const std::unique_ptr<Kernel> kernel =
      GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, num_threads});
  const auto in_layout = [](const Tensor& tensor, Layout from, Layout to) {
    Tensor result = Tensor::Empty(tensor.shape(), tensor.dtype());
    ConvertLayout(tensor.raw(), from, result.raw(), to, tensor.shape(), tensor.dtype().size_bytes());
    return result;
  };
  for (const uint32_t seed : {1U, 1001U}) {
    std::vector<Tensor> inputs, placed;
    std::vector<void*> from;
    for (size_t i = 0; i < function->params().size(); ++i) {
      const TensorTypeNode& type = *AsTensorType(function->params()[i]->checked_type());
      const double least = type.dtype() == kInt8 ? -128 : 0;
      inputs.push_back(
          RandomTensor(type.static_shape(), type.dtype(), least, least + 255, seed + static_cast<uint32_t>(i)));
      placed.push_back(in_layout(inputs.back(), Layout::kPlain, layouts.inputs[i]));
      from.push_back(placed.back().raw());
    }
    const Tensor want = Evaluate(function, inputs).at(0);
    const Tensor got = Tensor::Empty(want.shape(), want.dtype());
    std::fill_n(got.data<uint8_t>(), got.size_bytes(), uint8_t{0x5a});
    const std::vector<void*> to{got.raw()};
    const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes)}, kUInt8);
    kernel->Bind(from, to, compiled->workspace_bytes == 0 ? nullptr : workspace.raw());
    kernel->Run();
    const Tensor plain = in_layout(got, layouts.outputs[0], Layout::kPlain);
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      ASSERT_EQ(plain.At(i), want.At(i)) << "element " << i << " of " << ToString(want.shape());
    }
  }
}

/// Everything that may be, channels-last.
BoundaryLayouts ChannelsLastOf(const Function& function) {
  const auto layout = [](const Type& type) {
    const int rank = AsTensorType(type)->rank();
    return rank >= 3 && rank <= 5 ? Layout::kChannelsLast : Layout::kPlain;
  };
  InferType(function);
  BoundaryLayouts layouts;
  for (const Var& param : function->params()) layouts.inputs.push_back(layout(param->checked_type()));
  layouts.outputs.push_back(layout(function->body()->checked_type()));
  return layouts;
}

Expr Cast(const Expr& x, DataType dtype) { return MakeCall("cast", {x}, {{"dtype", dtype}}); }

/// How many random functions for each processor; $COLLAGE_QUANTISED_SEEDS says otherwise.
uint32_t NumSeeds() {
  const char* told = std::getenv("COLLAGE_QUANTISED_SEEDS");
  return told == nullptr ? 6 : static_cast<uint32_t>(std::strtoul(told, nullptr, 10));
}

/// Random contractions of bytes.
class RandomProducts {
 public:
  explicit RandomProducts(uint32_t seed) : random_(seed) {}

  int64_t Pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool OneIn(int64_t count) { return Pick(1, count) == 1; }
  uint32_t Seed() { return static_cast<uint32_t>(Pick(1, 1'000'000)); }

  /// A convolution, transposed or not, of `x` as `read` reads it by weights that `make_weights` makes of a shape, along
  /// whose axis the channels are.
  template <typename Read, typename MakeWeights>
  Expr Convolution(Var& x, DataType dtype, const Read& read, const MakeWeights& make_weights) {
    const int rank = OneIn(2) ? 2 : static_cast<int>(Pick(1, 3));
    const bool is_transposed = OneIn(4);
    const int64_t groups = OneIn(4) ? Pick(2, 3) : 1;
    const int64_t in = groups * (OneIn(2) ? Pick(1, 9) : 4 * Pick(1, 5));
    const int64_t out = groups * (OneIn(3) ? Pick(1, 3) : Pick(1, 40));
    Shape data{Pick(1, 2), in};
    Shape weight = is_transposed ? Shape{in, out / groups} : Shape{out, in / groups};
    V strides, dilation, before, after;
    for (int d = 0; d < rank; ++d) {
      const int64_t kernel = OneIn(3) ? 1 : Pick(1, 4);
      weight.push_back(kernel);
      dilation.push_back(OneIn(4) ? 2 : 1);
      strides.push_back(OneIn(2) ? 1 : Pick(1, 3));
      before.push_back(Pick(0, kernel - 1));
      after.push_back(Pick(0, kernel - 1));
      data.push_back((kernel - 1) * dilation.back() + Pick(1, 9));
    }
    before.insert(before.end(), after.begin(), after.end());
    x = Input("x", data, dtype);
    const std::string name = "nn.conv" + std::to_string(rank) + "d" + (is_transposed ? "_transpose" : "");
    const Expr read_data = read(x);
    return MakeCall(name, {read_data, make_weights(weight, is_transposed ? 1 : 0)},
                    {{"groups", groups}, {"strides", strides}, {"dilation", dilation}, {"padding", before}});
  }

  /// The same of a product of matrices.
  template <typename Read, typename MakeWeights>
  Expr Product(Var& x, DataType dtype, const Read& read, const MakeWeights& make_weights) {
    const int64_t m = Pick(1, 30), k = OneIn(2) ? Pick(1, 9) : Pick(1, 90), n = Pick(1, 70);
    const int64_t kind = Pick(0, 2);
    if (kind == 0) {
      x = Input("x", {m, k}, dtype);
      return MakeCall("nn.dense", {read(x), make_weights({n, k}, 0)});
    }
    const bool turn_a = OneIn(3), turn_b = OneIn(2);
    const Attrs attrs{{"transpose_a", turn_a}, {"transpose_b", turn_b}};
    Shape a = turn_a ? Shape{k, m} : Shape{m, k}, b = turn_b ? Shape{n, k} : Shape{k, n};
    if (kind == 2) {
      const int64_t batch = Pick(1, 3);
      a.insert(a.begin(), batch);
      b.insert(b.begin(), OneIn(2) ? batch : 1);
    }
    x = Input("x", a, dtype);
    const auto channels = static_cast<int64_t>(b.size()) - (turn_b ? 2 : 1);
    return MakeCall(kind == 1 ? "nn.matmul" : "nn.batch_matmul", {read(x), make_weights(b, channels)}, attrs);
  }

 private:
  std::mt19937 random_;
};

/// Sums in int32 of bytes less a zero point and weights of 8 or 9 bits.
Function RandomIntegers(uint32_t seed) {
  RandomProducts random(seed);
  const DataType dtype = random.OneIn(2) ? kUInt8 : kInt8;
  const int64_t least = dtype == kInt8 ? -128 : 0;
  const int64_t zero = random.OneIn(3) ? 0 : random.Pick(least, least + 255);
  const bool is_wide = random.OneIn(4);
  const bool is_late = random.OneIn(3);
  std::vector<Var> params(is_late ? 2 : 1);
  Var& x = params[0];
  if (is_late) params[1] = Input("zero", {}, dtype);
  const auto read = [&](const Var& bytes) {
    const Expr wide = Cast(bytes, kInt32);
    if (is_late) return MakeCall("subtract", {wide, Cast(params[1], kInt32)});
    return zero == 0 ? wide : MakeCall("subtract", {wide, MakeScalar(static_cast<double>(zero), kInt32)});
  };
  const auto weights = [&](const Shape& shape, int64_t) {
    return MakeConstant(RandomTensor(shape, kInt32, is_wide ? -255 : -128, is_wide ? 255 : 127, random.Seed()));
  };
  const Expr sums =
      random.OneIn(2) ? random.Convolution(x, dtype, read, weights) : random.Product(x, dtype, read, weights);
  const int64_t ending = random.Pick(0, 2);
  if (ending == 0) return MakeFunction(params, sums);
  if (ending == 1) return MakeFunction(params, MakeCall("multiply", {Cast(sums, kFloat32), Scalar(0.125)}));
  return MakeFunction(params, Cast(MakeCall("clip", {sums}, {{"a_min", -5000.0}, {"a_max", 7000.0}}), kInt8));
}

TEST(NativeQuantised, SumsOfIntegersAreExact) {
  for (const auto& native : Levels()) {
    for (uint32_t seed = 1; seed <= NumSeeds(); ++seed) {
      SCOPED_TRACE(native->Probe().version + ", seed " + std::to_string(seed));
      const Function function = RandomIntegers(seed);
      const bool is_plain = seed % 3 == 0;
      ExpectEqual(*native, function, is_plain ? PlainLayouts(function->params().size(), 1) : ChannelsLastOf(function),
                  1 + static_cast<int>(seed % 2));
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << PrintExpr(function);
    }
  }
}

/// Quantised results whose scales are powers of two: no order of computing rounds but the last step.
Function RandomRequantised(uint32_t seed) {
  RandomProducts random(seed);
  const DataType dtype = random.OneIn(2) ? kUInt8 : kInt8;
  const DataType weight_dtype = random.OneIn(3) ? kUInt8 : kInt8;
  const int64_t least = dtype == kInt8 ? -128 : 0;
  const bool has_channels = random.OneIn(2);
  // Weights less their zero points have 8 bits, but for one case in four.
  const bool is_wide = random.OneIn(4);
  Var x;
  const auto read = [&](const Var& bytes) { return Dequantize(bytes, 0x1p-7, random.Pick(least, least + 255), dtype); };
  const auto weights = [&](const Shape& shape, int64_t axis) -> Expr {
    const bool is_signed = weight_dtype == kInt8;
    const int64_t count = shape[static_cast<size_t>(axis)];
    const Shape of = has_channels ? Shape{count} : Shape{};
    const Tensor scales = Tensor::Empty(of, kFloat32), zeros = Tensor::Empty(of, weight_dtype);
    for (int64_t i = 0; i < scales.num_elements(); ++i) {
      scales.Set(i, std::ldexp(1.0, -static_cast<int>(random.Pick(7, 9))));
      zeros.Set(i, is_wide ? random.Pick(0, 127) : is_signed ? 0 : 128);
    }
    const Tensor values = RandomTensor(shape, weight_dtype, is_signed ? -128 : 0, is_signed ? 127 : 255, random.Seed());
    return MakeCall("qnn.dequantize", {MakeConstant(values), MakeConstant(scales), MakeConstant(zeros)},
                    {{"axis", axis}, {"out_dtype", kFloat32}});
  };
  const bool is_convolution = random.OneIn(2);
  Expr result = is_convolution ? random.Convolution(x, dtype, read, weights) : random.Product(x, dtype, read, weights);
  const Shape shape = AsTensorType(InferType(result))->static_shape();
  if (random.OneIn(2)) {  // eighths
    const size_t axis = is_convolution ? 1 : shape.size() - 1;
    Tensor bias = RandomTensor({shape[axis]}, kFloat32, -20, 20, random.Seed());
    for (int64_t i = 0; i < bias.num_elements(); ++i) bias.Set(i, std::round(bias.At(i) * 8) / 8);
    result = MakeCall("nn.bias_add", {result, MakeConstant(bias)}, {{"axis", static_cast<int64_t>(axis)}});
  }
  if (random.OneIn(2)) result = MakeCall("nn.relu", {result});
  if (random.OneIn(4)) return MakeFunction({x}, result);
  const DataType to = random.OneIn(2) ? kUInt8 : kInt8;
  return MakeFunction({x}, Quantize(result, 0x1p-2, to == kInt8 ? random.Pick(-20, 20) : random.Pick(0, 200), to));
}

TEST(NativeQuantised, RequantisedResultsAreExact) {
  for (const auto& native : Levels()) {
    for (uint32_t seed = 1; seed <= NumSeeds(); ++seed) {
      SCOPED_TRACE(native->Probe().version + ", seed " + std::to_string(seed));
      const Function function = RandomRequantised(seed);
      ExpectEqual(*native, function, ChannelsLastOf(function), 1 + static_cast<int>(seed % 2));
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << PrintExpr(function);
    }
  }
}

TEST(NativeQuantised, MatricesOfRunTimeAreExact) {
  for (const auto& native : Levels()) {
    RandomProducts random(3);
    for (int i = 0; i < 12; ++i) {
      const int64_t batch = random.Pick(1, 3), m = random.Pick(1, 20), k = random.Pick(1, 40), n = random.Pick(1, 50);
      const bool turn = random.OneIn(2);
      SCOPED_TRACE(ToString(Shape{batch, m, k, n}));
      const Var a = Input("a", {batch, m, k}, kUInt8);
      const Var b = Input("b", turn ? Shape{batch, n, k} : Shape{batch, k, n}, kInt8);
      const auto integers = [&](const Var& x, int64_t zero) {
        return MakeCall("subtract", {Cast(x, kInt32), MakeScalar(static_cast<double>(zero), kInt32)});
      };
      const Attrs attrs{{"transpose_b", turn}};
      const auto expect = [&](const Expr& result) {
        ExpectEqual(*native, MakeFunction({a, b}, result), PlainLayouts(2, 1), 1 + i % 2);
      };
      expect(MakeCall("nn.batch_matmul", {integers(a, 201), integers(b, -77)}, attrs));
      const Expr numbers = MakeCall(
          "nn.batch_matmul", {Dequantize(a, 0x1p-7, 130), Dequantize(b, 0x1p-6, random.Pick(-9, 9), kInt8)}, attrs);
      expect(Quantize(numbers, 0x1p-3, 128));
    }
  }
}

TEST(NativeQuantised, SizesOfNothingAndOne) {
  for (const auto& native : Levels()) {
    for (const auto& [m, k, n] : {std::tuple{0, 5, 3}, {1, 0, 3}, {1, 1, 1}, {2, 3, 0}, {1, 2, 33}, {5, 1, 17}}) {
      SCOPED_TRACE(ToString(Shape{m, k, n}));
      const Var x = Input("x", {m, k}, kInt8);
      const Expr wide = MakeCall("subtract", {Cast(x, kInt32), MakeScalar(7, kInt32)});
      const Constant weights = MakeConstant(RandomTensor({n, k}, kInt32, -128, 127, 5));
      ExpectEqual(*native, MakeFunction({x}, MakeCall("nn.dense", {wide, weights})), PlainLayouts(1, 1), 1);
    }
    for (const auto& [batch, in, out, side] : {std::tuple{0, 4, 3, 5}, {1, 1, 1, 1}, {1, 5, 2, 1}, {2, 3, 33, 2}}) {
      SCOPED_TRACE(ToString(Shape{batch, in, out, side}));
      const Var x = Input("x", {batch, in, side, side}, kUInt8);
      const Expr wide = MakeCall("subtract", {Cast(x, kInt32), MakeScalar(7, kInt32)});
      const Constant weights = MakeConstant(RandomTensor({out, in, 3, 3}, kInt32, -128, 127, 5));
      const Function function = MakeFunction({x}, MakeCall("nn.conv2d", {wide, weights}, {{"padding", V{1, 1}}}));
      ExpectEqual(*native, function, PlainLayouts(1, 1), 1);
    }
  }
}

/// What `toolchain` makes of `input`, a series, by `function`.
Tensor ComputedBy(const Toolchain& toolchain, const Function& function, const Tensor& input) {
  InferType(function);
  const Result<CompiledPartition> compiled = toolchain.RelayToRuntime({function, PlainLayouts(1, 1), 1});
  EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
  const std::unique_ptr<Kernel> kernel =
      GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
  const TensorTypeNode& type = *AsTensorType(function->body()->checked_type());
  const Tensor result = Tensor::Empty(type.static_shape(), type.dtype());
  const std::vector<void*> from{input.raw()}, to{result.raw()};
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes)}, kUInt8);
  kernel->Bind(from, to, compiled->workspace_bytes == 0 ? nullptr : workspace.raw());
  kernel->Run();
  return result;
}

TEST(NativeQuantised, QuotientsAreThoseOfDivisions) {
  // Numbers half way between two integers, and their neighbours; the ends; what is none.
  for (const auto& native : Levels()) {
    std::mt19937 random(5);
    for (const DataType dtype : {kUInt8, kInt8, DataType::Int(16), DataType::UInt(16)}) {
      const bool is_signed = dtype.code == DataType::Code::kInt;
      const double least = is_signed ? -std::ldexp(1.0, dtype.bits - 1) : 0;
      for (int trial = 0; trial < 6; ++trial) {
        const auto scale = std::ldexp(std::uniform_real_distribution<float>(1, 2)(random), 3 * trial - 9);
        const double zero = least + static_cast<double>(random() % (1U << dtype.bits));
        SCOPED_TRACE(
            fmt::format("{} {}, scale {}, zero point {}", native->Probe().version, dtype.ToString(), scale, zero));
        std::vector<float> values{0.0F, -0.0F, INFINITY, -INFINITY, NAN, 3e38F, -3e38F, 1e-40F};
        for (int i = -600; i <= 600; ++i) {
          const float half = (static_cast<float>(i) + 0.5F) * scale;
          for (const float value :
               {half, std::nextafter(half, 1e9F), std::nextafter(half, -1e9F), static_cast<float>(i) * scale}) {
            values.push_back(value);
          }
        }
        for (int i = 0; i < 500; ++i) {
          const auto integer = static_cast<float>(static_cast<int>(random() % 140000) - 70000);
          values.push_back((integer + 0.5F) * scale);
        }
        const Tensor input = Tensor::Empty({static_cast<int64_t>(values.size())}, kFloat32);
        std::copy(values.begin(), values.end(), input.data<float>());
        const Var x = Input("x", input.shape());
        const Function function = MakeFunction({x}, Quantize(x, scale, static_cast<int64_t>(zero), dtype));
        const Tensor got = ComputedBy(*native, function, input);
        const Tensor want = Evaluate(function, {&input, 1}).at(0);
        for (int64_t i = 0; i < want.num_elements(); ++i) {
          ASSERT_EQ(got.At(i), want.At(i)) << fmt::format("of {}", input.At(i));
        }
      }
    }
  }
}

TEST(NativeQuantised, MeansOfBytesAreReadAsTheyLie) {
  // Vectors run along the channels of channels-last bytes, which no number of a row of pixels is next to.
  const Var x = Input("x", {1, 48, 7, 7}, kUInt8);
  const Expr mean = MakeCall("nn.global_avg_pool2d", {Dequantize(x, 0x1p-5, 3)});
  const Function function = MakeFunction({x}, Quantize(mean, 0x1p-4, 2));
  const BoundaryLayouts layouts{{Layout::kChannelsLast}, {Layout::kPlain}};
  ExpectAgrees(Native(), function, {.layouts = layouts, .all_bytes = true, .share_one_off = 0.02});
}

TEST(NativeQuantised, ImagesOfFewChannelsLieInPlanes) {
  const auto preferred = [](const Function& function) {
    InferType(function);
    return Native().Layouts(function, std::vector<bool>(function->params().size(), true), {true}).front();
  };
  const auto convolved = [](const Var& x, int64_t channels) {
    return MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({24, channels, 3, 3}, 2)}));
  };
  using L = BoundaryLayouts;
  const Var few = Input("x", {1, 3, 9, 9}), many = Input("x", {1, 5, 9, 9});
  EXPECT_EQ(preferred(MakeFunction({few}, Quantize(few, 0.1, 3))), (L{{Layout::kPlain}, {Layout::kPlain}}));
  EXPECT_EQ(preferred(MakeFunction({many}, Quantize(many, 0.1, 3))),
            (L{{Layout::kChannelsLast}, {Layout::kChannelsLast}}));
  EXPECT_EQ(preferred(convolved(few, 3)), (L{{Layout::kPlain}, {Layout::kChannelsLast}}));
  EXPECT_EQ(preferred(convolved(many, 5)), (L{{Layout::kChannelsLast}, {Layout::kChannelsLast}}));
}

TEST(NativeQuantised, SumsOfBytesAreRoundedAsNumbers) {
  // Half of them lie half way between two integers. Scales are powers of two: no other step rounds.
  for (const auto& native : Levels()) {
    for (const double scale : {0.25, 0x1p-9, 2.0}) {
      for (const int64_t zero : {0, 121}) {
        SCOPED_TRACE(fmt::format("{}, scale {}, zero point {}", native->Probe().version, scale, zero));
        const Var x = Input("x", {65536}, kUInt8);
        const Var y = Input("y", {65536}, kUInt8);
        const Expr sum = MakeCall("add", {Dequantize(x, scale, zero), Dequantize(y, scale, 5)});
        const Expr bytes = Quantize(sum, 2 * scale, 128 - zero);
        ExpectEqual(*native, MakeFunction({x, y}, bytes), PlainLayouts(2, 1), 1);
        const Expr again = MakeCall("add", {Dequantize(bytes, 2 * scale, 128 - zero), Dequantize(x, scale, zero)});
        ExpectEqual(*native, MakeFunction({x, y}, Quantize(again, 4 * scale, 3, kInt8)), PlainLayouts(2, 1), 1);
      }
    }
  }
}

Options OptionsFor(const RowCall& call) {
  Options options{.low = -1, .high = 1, .all_bytes = true, .share_one_off = 0.005};
  if (call.has_channels) options.layouts = ChannelsLastOf(call.function);
  return options;
}

TEST(NativeQuantised, AgreesWhereverLibrariesHaveRows) {
  for (const QuantisedAnchor& a : QuantisedAnchors()) {
    for (const RowCall& call : QuantisedRows(a)) {
      SCOPED_TRACE(call.row);
      ExpectAgrees(Native(), call.function, OptionsFor(call));
    }
  }
  for (const RowCall& call : QuantisedOthers()) {
    SCOPED_TRACE(call.row);
    ExpectAgrees(Native(), call.function, OptionsFor(call));
  }
  for (const RowCall& call : IntegerRows()) {
    SCOPED_TRACE(call.row);
    Options options = OptionsFor(call);
    options.low = -3;
    options.high = 3;
    ExpectAgrees(Native(), call.function, options);
  }
}

TEST(NativeQuantised, LargestNumbersAreLargestIntegers) {
  const Var x = Input("x", {2, 19, 9, 8}, kUInt8);
  const Attrs window{{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}};
  const auto pooled = [&](double scale, DataType dtype) {
    return MakeFunction({x}, Quantize(MakeCall("nn.max_pool2d", {Dequantize(x, 0.02, 3)}, window), scale, 3, dtype));
  };
  for (const Function& function : {pooled(0.02, kUInt8), pooled(0.03, kUInt8), pooled(0.02, kInt8)}) {
    ExpectAgrees(Native(), function, {.layouts = ChannelsLastOf(function), .all_bytes = true, .share_one_off = 0.005});
  }
}

TEST(NativeQuantised, AnchorsAreCandidatesWithTheirOperands) {
  const QuantisedAnchor a = QuantisedConv(2, false);
  const Function function = MakeFunction({a.x}, Quantize(MakeCall("nn.relu", {a.Biased()}), 0.02, 100));
  InferType(function);
  const DataflowGraph graph(function);
  RuleLog log;
  size_t most = 0;
  for (const CandidatePartition& one : GatherPartitionRule(Native())->AllCandidates(graph, Native(), log)) {
    most = std::max(most, static_cast<size_t>(one.sub_graph.depth()));
  }
  EXPECT_EQ(most, 5u) << "qnn.dequantize, nn.conv2d, add, nn.relu, qnn.quantize";
}

}  // namespace
}  // namespace collage
