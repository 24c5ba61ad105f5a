// native_linear_algebra_test.cc: native einsum, of whatever terms, and determinants.
#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"

namespace collage {
namespace {

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

void ExpectTaken(const char* op, const OpExample& example, double tolerance = 1e-4) {
  const Function function = conformance::ExampleFunction(GetOp(op)->def(), example);
  InferType(function);
  const Result<void> answer = Native().SupportsCall(*As<CallNode>(function->body()));
  ASSERT_TRUE(answer.ok()) << answer.reason().text;
  conformance::ExpectAgrees(Native(), function,
                            {.num_threads = 2, .tolerance = tolerance, .low = example.low, .high = example.high});
}

TEST(NativeLinearAlgebraTest, SumsOfProducts) {
  const auto einsum = [](const char* equation, const std::vector<Shape>& shapes, DataType dtype = kFloat32) {
    SCOPED_TRACE(equation);
    std::vector<Type> fields;
    for (const Shape& shape : shapes) fields.push_back(TensorType(shape, dtype));
    const double limit = dtype.is_floating() ? 1 : 5;
    const OpExample example{{TupleType(fields)}, {{"equation", equation}}, -limit, limit};
    ExpectTaken("einsum", example, dtype == kFloat16 ? 1e-2 : 1e-4);
  };
  for (const DataType dtype : {kFloat32, kFloat64, kInt64, kFloat16}) {
    einsum("ij,jk->ik", {{7, 20}, {20, 33}}, dtype);
    einsum("bij,bkj->bik", {{3, 7, 20}, {3, 9, 20}}, dtype);
  }
  // Transposed, with several labels in each part, without an arrow.
  einsum("ji,kj->ki", {{20, 7}, {9, 20}});
  einsum("abcd,aecd->aeb", {{2, 5, 3, 4}, {2, 6, 3, 4}});
  einsum("abcd,cabe->edb", {{2, 5, 3, 4}, {3, 2, 5, 6}});
  einsum("bk,ka", {{6, 5}, {5, 7}});
  // Nothing summed, nothing left, sums of one term only.
  einsum("i,j->ij", {{17}, {20}});
  einsum("ij,ik->ikj", {{3, 17}, {3, 20}});
  einsum("ij,ij->", {{5, 20}, {5, 20}});
  einsum("ijk,lm->jl", {{3, 5, 4}, {6, 7}});
  einsum("ijk->ki", {{3, 5, 40}});
  einsum("ij->", {{3, 5}});
  // Diagonals.
  einsum("ii->i", {{21, 21}});
  einsum("ii->", {{21, 21}});
  einsum("iji,jk->ik", {{5, 6, 5}, {6, 7}});
  einsum("iijj->ij", {{3, 3, 4, 4}});
  // Three terms and more; what an ellipsis stands for; sizes of 1 that are spread, sizes of 0.
  einsum("ab,bc,cd->ad", {{4, 5}, {5, 6}, {6, 7}});
  einsum("ab,ac,ad->bcd", {{4, 2}, {4, 3}, {4, 5}});
  einsum("...ij,...jk->...ik", {{2, 3, 4, 5}, {3, 5, 6}});
  einsum("...ij,jk", {{2, 3, 4, 5}, {5, 6}});
  einsum("bij,bjk->bik", {{1, 4, 5}, {3, 5, 6}});
  einsum("ij,jk->ik", {{4, 1}, {5, 6}});
  einsum("ij,jk->ik", {{1, 1}, {1, 1}});
  einsum("ij,jk->ik", {{3, 0}, {0, 4}});
  einsum("ij,jk->ik", {{0, 3}, {3, 4}});
}

TEST(NativeLinearAlgebraTest, EinsumIsFusedWithWhatIsAroundIt) {
  const Var x = conformance::Input("x", {4, 6, 20}), y = conformance::Input("y", {4, 20, 9});
  const Expr terms = MakeTuple({MakeCall("tanh", {x}), y});
  const Expr product = MakeCall("einsum", {terms}, {{"equation", "bij,bjk->bik"}});
  conformance::ExpectAgrees(Native(), MakeFunction({x, y}, MakeCall("nn.relu", {product})));
  conformance::ExpectAgrees(Native(), MakeFunction({x, y}, MakeTuple({product, MakeCall("exp", {product})})));
}

TEST(NativeLinearAlgebraTest, Determinants) {
  for (const int64_t n : {1, 2, 3, 5, 17}) {
    SCOPED_TRACE(n);
    ExpectTaken("linalg.det", {{TensorType(Shape{7, n, n}, kFloat32)}, {}});
    ExpectTaken("linalg.det", {{TensorType(Shape{n, n}, kFloat64)}, {}});
  }
  ExpectTaken("linalg.det", {{TensorType(Shape{2, 3, 4, 4}, kFloat32)}, {}, -2, 2});
  ExpectTaken("linalg.det", {{TensorType(Shape{3, 3, 3}, kFloat16)}, {}}, 1e-2);
  ExpectTaken("linalg.det", {{TensorType(Shape{0, 3, 3}, kFloat32)}, {}});
  // Of no rank, and with zeros where the first pivot would be.
  const Var x = conformance::Input("x", {3, 4}, kFloat64);
  const Expr rows = MakeCall(
      "take", {x, MakeConstant(Tensor::Of<int64_t>({4}, kInt64, std::vector<int64_t>{0, 1, 2, 1}))}, {{"axis", 0}});
  conformance::ExpectAgrees(Native(), MakeFunction({x}, MakeCall("linalg.det", {rows})));
  const Var y = conformance::Input("y", {5, 3, 3});
  const Expr zero_diagonal =
      MakeCall("subtract", {y, MakeCall("trilu", {y, MakeScalar(0, kInt64)}, {{"upper", true}})});
  const Expr turned = MakeCall("reverse", {zero_diagonal}, {{"axis", 1}});
  const Expr full = MakeCall("add", {turned, MakeCall("trilu", {y, MakeScalar(1, kInt64)}, {{"upper", true}})});
  conformance::ExpectAgrees(Native(), MakeFunction({y}, MakeCall("exp", {MakeCall("linalg.det", {full})})));
}

}  // namespace
}  // namespace collage
