// native_sort_test.cc: native sort, argsort and topk: lengths around powers of two, axes, dtypes, equal elements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/conformance.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;
using conformance::Options;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

void ExpectOrders(const Shape& shape, DataType dtype, int axis, const Options& options = {}) {
  SCOPED_TRACE(fmt::format("{} {} along {}", ToString(shape), dtype.ToString(), axis));
  const Var x = Input("x", shape, dtype);
  for (const bool ascending : {false, true}) {
    const Attrs attrs{{"axis", axis}, {"is_ascend", ascending}};
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("sort", {x}, attrs)), options);
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("argsort", {x}, attrs)), options);
  }
}

TEST(NativeSortTest, LengthsAndAxes) {
  for (const int64_t length : {1, 2, 3, 7, 8, 9, 33}) ExpectOrders({3, length}, kFloat32, -1);
  ExpectOrders({17}, kFloat32, 0);
  ExpectOrders({5, 6, 4}, kFloat32, 0);
  ExpectOrders({5, 6, 4}, kFloat32, 1);
  ExpectOrders({0, 4}, kFloat32, 1);
  ExpectOrders({4, 0}, kFloat32, 1);
}

TEST(NativeSortTest, EqualElementsKeepTheirOrder) {
  // Whole numbers of a small range: most are equal to others.
  for (const DataType dtype : {kInt32, kInt64, kUInt8, kFloat16, kFloat64}) {
    ExpectOrders({4, 50}, dtype, 1, {.low = 0, .high = 9});
  }
  const Var x = Input("x", {200}, kInt32);
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("argsort", {x}, {{"dtype", "int64"}})), {.low = 0, .high = 3});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("argsort", {x}, {{"dtype", "float32"}})), {.low = 0, .high = 3});
}

TEST(NativeSortTest, ThreadsShareRows) {
  ExpectOrders({67, 129}, kFloat32, 1, {.num_threads = 2});
  ExpectOrders({129, 67}, kFloat32, 0, {.num_threads = 2});
}

TEST(NativeSortTest, FirstElementsOfMany) {
  const Var x = Input("x", {3, 100});
  for (const int k : {1, 2, 5, 64, 99, 100}) {
    SCOPED_TRACE(k);
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("topk", {x}, {{"k", k}})));
  }
  for (const char* type : {"both", "values", "indices"}) {
    for (const int axis : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{} along {}", type, axis));
      const Var y = Input("y", {6, 9, 11}, kInt32);
      const Attrs attrs{{"k", 4}, {"axis", axis}, {"ret_type", type}, {"is_ascend", true}, {"dtype", "int64"}};
      ExpectAgrees(Native(), MakeFunction({y}, MakeCall("topk", {y}, attrs)), {.low = 0, .high = 20});
    }
  }
}

TEST(NativeSortTest, OperandsAreComputedAndResultsUsed) {
  const Var x = Input("x", {5, 20});
  const Expr top = MakeCall("topk", {MakeCall("tanh", {x})}, {{"k", 3}});
  ExpectAgrees(Native(), MakeFunction({x}, MakeTupleGetItem(top, 1)));
  const Expr scaled = MakeCall("multiply", {MakeTupleGetItem(top, 0), MakeScalar(2, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({scaled, MakeTupleGetItem(top, 1)})));
  const Expr sorted = MakeCall("sort", {MakeCall("negative", {x})});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.relu", {sorted})));
}

}  // namespace
}  // namespace collage
