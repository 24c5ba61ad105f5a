// matmul_nbits_test.cc: products with packed weights of few bits: all bits, blocks, zero points and numbers of rows,
// with data as floats and rounded to bytes, alone and with what follows.
#include <random>

#include "conformance/fused_calls.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point

struct Form {
  int64_t rows, depth, columns, bits, block;
  DataType zeros;  ///< the type of zero points; none: half of the range
  bool have_one_zero = false;

  int64_t blocks() const { return (depth + block - 1) / block; }
  std::string Text() const {
    return ToString({rows, depth, columns, bits, block}) + (zeros == DataType() ? "" : " " + zeros.ToString());
  }
};

Expr Product(const Form& f, const Expr& x) {
  const double range = 1 << f.bits;
  const auto numbers = [&](const Shape& shape, DataType dtype, double most, uint32_t seed) {
    return MakeConstant(RandomTensor(shape, dtype, 0, most, seed));
  };
  std::vector<Expr> args{x, numbers({f.columns, f.blocks(), f.block * f.bits / 8}, kUInt8, 255, 3),
                         RandomConstant({f.columns, f.blocks()}, 4, 0.05 / range, 0.5 / range)};
  if (f.zeros != DataType()) {
    const double most = f.have_one_zero ? 0 : static_cast<double>((1 << f.bits) - 1);
    args.push_back(numbers({f.columns, f.blocks()}, f.zeros, most, 5));
  }
  return MakeCall("qnn.matmul_nbits", args, {{"bits", f.bits}, {"block_size", f.block}});
}

std::vector<Form> Forms() {
  std::vector<Form> forms{
      {1, 64, 32, 4, 32, {}},           {1, 64, 7, 4, 32, {}},         {1, 96, 70, 4, 16, kUInt8},
      {1, 256, 33, 8, 64, kUInt8},      {1, 160, 40, 2, 32, {}},       {5, 64, 64, 2, 16, kUInt8},
      {6, 128, 65, 4, 128, {}},         {7, 100, 48, 4, 32, kFloat32}, {12, 33, 20, 8, 16, {}},
      {13, 64, 96, 4, 32, kUInt8},      {40, 320, 100, 4, 64, {}},     {25, 48, 33, 2, 16, kFloat32},
      {3, 64, 32, 4, 32, kUInt8, true}, {128, 896, 70, 4, 32, {}}};
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 12; ++i) {
    const DataType zeros[] = {{}, kUInt8, kFloat32};
    forms.push_back({draw(1, 30), draw(1, 300), draw(1, 100), int64_t{2} << draw(0, 2), int64_t{16} << draw(0, 3),
                     zeros[draw(0, 2)]});
  }
  return forms;
}

void ExpectFormsAgree(const Toolchain& toolchain, double tolerance) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.Text());
    for (const int threads : {1, 2}) {
      const Options options{.num_threads = threads, .tolerance = tolerance};
      const Var x = Input("x", {form.rows, form.depth});
      ExpectAgrees(toolchain, MakeFunction({x}, Product(form, x)), options);
      const Var more = Input("more", {form.rows, form.columns});
      const Expr gated = MakeCall("multiply", {MakeCall("sigmoid", {Product(form, x)}), more});
      ExpectAgrees(toolchain, MakeFunction({x, more}, gated), options);
    }
  }
}

TEST(NativeMatMulNBitsTest, AgreesForAllForms) { ExpectFormsAgree(BuiltinToolchain("native"), 1e-4); }

TEST(NativeMatMulNBitsTest, AgreesWithDataRoundedToBytes) {
  // This processor, one without VNNI, one with AVX2 and one with SSSE3; those that code can be run for.
  std::vector<std::string> processors{"", "x86-64-v2"};
  if (HasInstructionSet("avx2")) processors.emplace_back("x86-64-v3");
  if (HasInstructionSet("avx512vl") && HasInstructionSet("avx512bw")) processors.emplace_back("x86-64-v4");
  for (const std::string& processor : processors) {
    SCOPED_TRACE(processor);
    const ToolchainConfiguration native(BuiltinToolchain("native"));
    const auto toolchain = native.With("inference_precision", "int8").With("mcpu", processor).Make();
    ExpectFormsAgree(*toolchain, 2e-2);  // of the largest result: each factor is off by 1/254 of its block's largest
  }
}

TEST(NativeMatMulNBitsTest, NarrowDataAndScalesAgree) {
  const Form form{3, 64, 40, 4, 32, {}};
  const Var x = Input("x", {form.rows, form.depth}, kFloat16);
  ExpectAgrees(BuiltinToolchain("native"), MakeFunction({x}, Product(form, x)), {.tolerance = 2e-3});
}

TEST(NativeMatMulNBitsTest, WeightsThatAreNotKnownAreDeclined) {
  const Var x = Input("x", {1, 64}), bytes = Input("bytes", {32, 2, 16}, kUInt8);
  const Expr call = MakeCall("qnn.matmul_nbits", {x, bytes, RandomConstant({32, 2}, 3)});
  const Function function = MakeFunction({x, bytes}, call);
  InferType(function);
  const Result<void> taken = BuiltinToolchain("native").SupportsCall(*As<CallNode>(function->body()));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.reason().text, "packed weights that are not known");
}

TEST(NativeTakeNBitsTest, AgreesForAllForms) {
  struct Table {
    int64_t features, bits, block;
    DataType zeros, scales = kFloat32;
  };
  for (const Table& t : {Table{64, 4, 32, {}}, Table{48, 4, 32, kUInt8}, Table{100, 8, 16, kFloat32},
                         Table{36, 2, 16, kUInt8}, Table{70, 4, 7, {}, kFloat16}, Table{20, 8, 20, kUInt8, kFloat64}}) {
    SCOPED_TRACE(ToString({t.features, t.bits, t.block}));
    const int64_t rows = 11, blocks = (t.features + t.block - 1) / t.block;
    const Tensor bytes = RandomTensor({rows, t.features * t.bits / 8}, kUInt8, 0, 255, 3);
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 9}}) {
      const Var at = Input("at", shape, kInt64);
      std::vector<Expr> args{MakeConstant(bytes), at,
                             MakeConstant(RandomTensor({rows, blocks}, t.scales, 0.01, 0.1, 4))};
      if (t.zeros != DataType()) args.push_back(MakeConstant(RandomTensor({rows, blocks}, t.zeros, 0, 9, 5)));
      const Expr taken = MakeCall("qnn.take_nbits", args, {{"bits", t.bits}, {"block_size", t.block}});
      const Options options{.tolerance = 1e-6, .low = -11, .high = 10};
      ExpectAgrees(BuiltinToolchain("native"), MakeFunction({at}, taken), options);
      ExpectAgrees(BuiltinToolchain("native"), MakeFunction({at}, MakeCall("nn.relu", {taken})), options);
    }
  }
}

}  // namespace
}  // namespace collage
