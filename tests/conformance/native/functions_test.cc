// native_functions_test.cc: native functions of one value that are recognised by what they compute, and the bounds that
// elementary functions keep: near zero, far from it, and for what is not finite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "conformance/conformance.h"
#include "support/machine.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;
using testing::HasSubstr;
using testing::Not;
using V = std::vector<int64_t>;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

Expr Number(double value, DataType dtype = kFloat32) { return MakeScalar(value, dtype); }
Expr Times(const Expr& a, const Expr& b) { return MakeCall("multiply", {a, b}); }
Expr Plus(const Expr& a, const Expr& b) { return MakeCall("add", {a, b}); }

Expr Gelu(const Expr& x) {
  const Expr erf = MakeCall("erf", {MakeCall("divide", {x, Number(std::sqrt(2.0))})});
  return Times(Times(x, Plus(erf, Number(1))), Number(0.5));
}

Expr GeluByTanh(const Expr& x) {
  const Expr cube = MakeCall("power", {x, Number(3)});
  const Expr inner = Times(Plus(x, Times(cube, Number(0.044715))), Number(std::sqrt(2 / M_PI)));
  return Times(Times(x, Number(0.5)), Plus(MakeCall("tanh", {inner}), Number(1)));
}

/// x times each of some numbers, so that rows have elements of all sizes.
Expr Spread(const Var& x, const std::vector<double>& scales) {
  Tensor numbers = Tensor::Zeros({static_cast<int64_t>(scales.size()), 1}, kFloat32);
  for (size_t i = 0; i < scales.size(); ++i) numbers.data<float>()[i] = static_cast<float>(scales[i]);
  return Times(x, MakeConstant(numbers));
}

std::string LoopsOf(const Function& function) {
  InferType(function);
  const auto lowered = Native().RelayToTIR({function, PlainLayouts(function->params().size(), 1), 1});
  return lowered.ok() ? lowered->mlir : lowered.reason().text;
}

TEST(NativeFunctionsTest, GeluKeepsItsErrorBound) {
  const Var x = Input("x", {100, 601});
  for (const Expr& gelu : {Gelu(x), GeluByTanh(x)}) {
    for (const double range : {1e-3, 0.1, 1.0}) {
      ExpectAgrees(Native(), MakeFunction({x}, gelu), {.tolerance = 2e-7, .low = -range, .high = range});
    }
    // Where nothing but the function's own tail is left, and where it is the argument.
    ExpectAgrees(Native(), MakeFunction({x}, gelu), {.tolerance = 2e-7, .low = -9, .high = 0});
    ExpectAgrees(Native(), MakeFunction({x}, gelu), {.tolerance = 2e-7, .low = -1e6, .high = 1e6});
  }
  const Var y = Input("y", {8, 601});
  const Expr tiny = Spread(y, {1, 1e-3, 1e-6, 1e-12, 1e-30, 1e-38, 1e-40, 1e-44});
  for (const Expr& gelu : {Gelu(tiny), GeluByTanh(tiny)}) ExpectAgrees(Native(), MakeFunction({y}, gelu));
}

TEST(NativeFunctionsTest, GeluOfWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double most = 1e38;  // what is written out doubles it
  const Var x = Input("x", {9, 37});
  for (const double low : {0.5, -1.0}) {
    const Expr spread = Spread(x, {1, 0, -0.0, kInfinity, -kInfinity, kNan, -kNan, most, -most});
    for (const Expr& gelu : {Gelu(spread), GeluByTanh(spread)}) {
      ExpectAgrees(Native(), MakeFunction({x}, gelu), {.low = low, .high = low + 0.4});
    }
  }
}

TEST(NativeFunctionsTest, GeluIsKnownHoweverItIsWritten) {
  const Var x = Input("x", {5, 70});
  const Expr shifted = Plus(x, Number(0.25));  // the function is of this sum
  const Expr erf = MakeCall("erf", {Times(Number(std::sqrt(0.5)), shifted)});
  const Expr cube = Times(shifted, Times(shifted, shifted));
  const Expr inner = Plus(Times(shifted, Number(0.7978846)), Times(Number(0.7978846 * 0.044715), cube));
  const std::vector<Expr> written{Gelu(x), GeluByTanh(x), Times(Number(0.5), Times(Plus(Number(1), erf), shifted)),
                                  MakeCall("divide", {Times(shifted, Plus(erf, Number(1))), Number(2)}),
                                  Times(shifted, Plus(Number(0.5), Times(Number(0.5), MakeCall("tanh", {inner}))))};
  const bool has_tables = HasInstructionSet("avx512vl") && HasInstructionSet("avx512dq");
  for (const Expr& gelu : written) {
    const Function function = MakeFunction({x}, gelu);
    if (has_tables) {
      EXPECT_THAT(LoopsOf(function), Not(HasSubstr("math.copysign")));
    }
    ExpectAgrees(Native(), function, {.tolerance = 4e-7, .low = -5, .high = 5});
  }
}

TEST(NativeFunctionsTest, WhatLooksLikeGeluIsComputedAsItIs) {
  const Var x = Input("x", {5, 70});
  const Var y = Input("y", {5, 70});
  const Var row = Input("row", {70});
  const auto gate = [](const Expr& factor, const Expr& of, double constant) {
    const Expr erf = MakeCall("erf", {MakeCall("divide", {of, Number(std::sqrt(2.0))})});
    return Times(Times(factor, Plus(erf, Number(constant))), Number(0.5));
  };
  const conformance::Options options{.tolerance = 4e-7, .low = -5, .high = 5};
  ExpectAgrees(Native(), MakeFunction({x, y}, gate(x, y, 1)), options);
  ExpectAgrees(Native(), MakeFunction({x, row}, gate(x, row, 1)), options);
  ExpectAgrees(Native(), MakeFunction({row}, gate(row, row, 1)), options);
  ExpectAgrees(Native(), MakeFunction({x}, gate(x, x, 1.01)), options);
  ExpectAgrees(Native(), MakeFunction({x}, gate(x, Times(x, Number(1.001)), 1)), options);
  ExpectAgrees(Native(), MakeFunction({x}, gate(x, Times(x, Number(0.25)), 1)), options);
  // Of a value of its own, in part, or beside what it is made of.
  const Expr erf = MakeCall("erf", {MakeCall("divide", {x, Number(std::sqrt(2.0))})});
  const Expr whole = Times(Times(x, Plus(erf, Number(1))), Number(0.5));
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({whole, erf})), options);
  ExpectAgrees(Native(), MakeFunction({x}, Times(Gelu(x), Gelu(Gelu(x)))), options);
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("sum", {Gelu(x)}, {{"axis", V{1}}})), options);
  const Var wide = Input("wide", {5, 70}, kFloat64);
  const Expr wide_erf = MakeCall("erf", {Times(wide, Number(std::sqrt(0.5), kFloat64))});
  const Expr half = Times(wide, Number(0.5, kFloat64));
  ExpectAgrees(Native(), MakeFunction({wide}, Times(half, Plus(wide_erf, Number(1, kFloat64)))));
}

TEST(NativeFunctionsTest, SigmoidKeepsItsErrorBound) {
  const Var x = Input("x", {100, 601});
  const Expr sigmoid = MakeCall("sigmoid", {x});
  for (const double range : {0.1, 1.0, 20.0, 200.0}) {
    ExpectAgrees(Native(), MakeFunction({x}, sigmoid), {.tolerance = 3e-7, .low = -range, .high = range});
  }
  // Relative errors where it is small: next to e^x.
  for (const double shift : {-80.0, -20.0, -4.0}) {
    const Expr back = Times(MakeCall("sigmoid", {Plus(x, Number(shift))}), Number(std::exp(-shift)));
    const double bound = (3 - shift) * 1.2e-7;
    ExpectAgrees(Native(), MakeFunction({x}, back), {.tolerance = bound, .low = -0.4, .high = 0.2});
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Var y = Input("y", {6, 37});
  const Expr spread = Spread(y, {0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e38});
  for (const Expr& value : {MakeCall("sigmoid", {spread}), Times(spread, MakeCall("sigmoid", {spread}))}) {
    ExpectAgrees(Native(), MakeFunction({y}, value), {.low = 0.5, .high = 1});
  }
}

/// How many vectors are read, and written (negative), in turns, as `text` has it: 4, -4 are four reads and four writes.
V ReadsAndWrites(const std::string& text) {
  V runs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
    const bool is_read = has("llvm.load") || has("masked.load");
    if (!has("vector<") || !(is_read || has("llvm.store") || has("masked.store"))) continue;
    if (runs.empty() || (runs.back() > 0) != is_read) runs.push_back(0);
    runs.back() += is_read ? 1 : -1;
  }
  return runs;
}

// Or the processor waits with what it reads until it knows where the last result goes.
TEST(NativeFunctionsTest, SeveralVectorsAreReadBeforeTheirResultsAreWritten) {
  if (!HasInstructionSet("avx512vl")) GTEST_SKIP() << "vectors of 16 only";
  const Var x = Input("x", {1, 4 * 64 + 2 * 16 + 5});
  EXPECT_EQ(ReadsAndWrites(LoopsOf(MakeFunction({x}, Gelu(x)))), (V{4, -4, 1, -1, 1, -1}));
  for (const int64_t length : {1, 16, 63, 64, 80, 64 + 5, 4 * 64 + 2 * 16 + 5, 4096 + 3 * 16 + 7}) {
    const Var y = Input("y", {3, length});
    ExpectAgrees(Native(), MakeFunction({y}, Gelu(y)), {.tolerance = 2e-7, .low = -3, .high = 3});
  }
}

TEST(NativeFunctionsTest, SoftmaxOfRowsThatAreNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int64_t length : {3, 16, 40, 64, 128, 197, 1100}) {
    const Var x = Input("x", {7, length});
    // Rows of nothing, of all, of one that is not finite; numbers as far apart as can be.
    Tensor added = Tensor::Zeros({7, length}, kFloat32);
    float* numbers = added.data<float>();
    for (int64_t i = 0; i < length; ++i) {
      numbers[i] = static_cast<float>(-kInfinity);
      numbers[length + i] = static_cast<float>(kInfinity);
      numbers[6 * length + i] = i % 2 == 0 ? 3e38F : -3e38F;
    }
    numbers[2 * length + length / 2] = static_cast<float>(kInfinity);
    numbers[3 * length + length - 1] = static_cast<float>(-kInfinity);
    numbers[4 * length] = std::numeric_limits<float>::quiet_NaN();
    const auto check = [&](const char* op) {
      const Expr rows = Plus(x, MakeConstant(added));
      ExpectAgrees(Native(), MakeFunction({x}, MakeCall(op, {rows})), {.tolerance = 2e-6, .low = -5, .high = 5});
    };
    check("nn.softmax");
    std::fill(numbers + 6 * length, numbers + 7 * length, 0.0F);  // to be told from its logarithm
    check("nn.log_softmax");
  }
}

}  // namespace
}  // namespace collage
