#include <gtest/gtest.h>

#include <cmath>

#include "collage/ir/text.h"
#include "unit/ir/deep.h"

namespace collage {
namespace {

const Type kVector = TensorType(Shape{4}, kFloat32);
const PrintOptions kPlain{.header = false, .types = false, .metadata = false};

Constant Range(Shape shape) {
  Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(i));
  return MakeConstant(tensor);
}

/// Prints what was parsed; texts below are in the form that printing gives.
std::string Again(const std::string& text) { return PrintModule(ParseModule(text), kPlain); }

TEST(PrinterTest, OperandsAreBoundBeforeTheirUse) {
  const Var x = MakeVar("x", TensorType(Shape{1, 3, 8, 8}, kFloat32));
  const Expr conv = MakeCall("nn.conv2d", {x, Range({4, 3, 3, 3})}, {{"padding", std::vector<int64_t>{1, 1}}});
  const Expr sum = MakeCall("add", {conv, MakeScalar(0.5, kFloat32)});
  const IRModule module = IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {sum})));
  EXPECT_EQ(PrintModule(module, kPlain),
            R"(def @main(%x: Tensor[(1, 3, 8, 8), float32]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(4, 3, 3, 3), float32]*/, padding=[1, 1]);
  %1 = add(%0, 0.5f);
  nn.relu(%1)
}
)");
}

TEST(PrinterTest, SharedValuesAreBoundOnceEvenWhenTheyEndABlock) {
  const std::string text = R"(def @main(%x: float32) -> (float32, float32) {
  %0 = exp(%x);
  let %y = %0;
  (%0, %y)
}
)";
  EXPECT_EQ(Again(text), text);
}

TEST(PrinterTest, NamesAreUniqueWithinAFunction) {
  const std::vector<Var> params{MakeVar("x", kVector), MakeVar("x", kVector), MakeVar("x1", kVector),
                                MakeVar("x", kVector), MakeVar("0.in-put", kVector)};
  const Function function = MakeFunction(params, MakeTuple({params.begin(), params.end()}));
  EXPECT_EQ(PrintExpr(function),
            "fn (%x: Tensor[(4), float32], %x1: Tensor[(4), float32], %x11: Tensor[(4), float32], "
            "%x2: Tensor[(4), float32], %v0_in_put: Tensor[(4), float32]) {\n  (%x, %x1, %x11, %x2, %v0_in_put)\n}\n");
}

TEST(PrinterTest, FreeVariablesAreDeclared) {
  EXPECT_EQ(PrintExpr(MakeCall("exp", {MakeVar("x", kVector)})), "free_var %x: Tensor[(4), float32];\nexp(%x)\n");
}

TEST(PrinterTest, ScalarsHaveSuffixesThatKeepTheirValue) {
  EXPECT_EQ(PrintExpr(MakeScalar(0.1, kFloat32)), "0.1f\n");
  EXPECT_EQ(PrintExpr(MakeScalar(-1, kFloat64)), "-1f64\n");
  EXPECT_EQ(PrintExpr(MakeScalar(1.5, kFloat16)), "1.5f16\n");
  EXPECT_EQ(PrintExpr(MakeScalar(-7, kInt32)), "-7\n");
  EXPECT_EQ(PrintExpr(MakeScalar(7, kInt64)), "7i64\n");
  EXPECT_EQ(PrintExpr(MakeScalar(1, kBool)), "True\n");
  EXPECT_EQ(PrintExpr(MakeScalar(7, kUInt8)), "meta[relay.Constant][0] /*uint8*/\n");
  EXPECT_EQ(PrintExpr(MakeScalar(INFINITY, kFloat32)), "meta[relay.Constant][0] /*float32*/\n");
}

TEST(PrinterTest, FunctionsWithAttributesAsPartitionsHaveThem) {
  const std::string text =
      R"(def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(2, 4), float32]) -> Tensor[(1, 2), float32] {
  %1 = fn (%a: Tensor[(1, 4), float32], %b: Tensor[(2, 4), float32], Compiler="dnnl", Primitive=1) -> Tensor[(1, 2), float32] {
    %0 = nn.dense(%a, %b);
    nn.relu(%0)
  };
  %1(%x, %w)
}
)";
  EXPECT_EQ(Again(text), text);
}

TEST(PrinterTest, ControlFlowDataTypesAndReferences) {
  const std::string text = R"(type List[A] {
  Cons(A, List[A]),
  Nil,
}

def @id[A](%a: A) -> A {
  %a
}

def @main(%c: bool, %l: List[float32]) -> float32 {
  let %r = ref(1f);
  %0 = ref_read(%r);
  let %a: () = ref_write(%r, %0);
  if (%c) {
    match? (%l) {
      Cons(%h, _) => {
        %1 = (
          let %t = exp(%h);
          add(%t, %t)
        );
        @id(%1)
      },
    }
  } else {
    2f
  }
}
)";
  EXPECT_EQ(Again(text), text);
}

TEST(PrinterTest, AttributesOfEveryKindButNoDefaults) {
  const std::string text = R"(def @main(%x: Tensor[(2, 4), float32]) -> Tensor[(2), float32] {
  %0 = clip(%x, a_max=6f, a_min=-1e-05f);
  %1 = nn.pad(%0, 0f, pad_mode="edge", pad_width=[[0, 0], [1, 1]]);
  sum(%1, axis=[1], exclude=False)
}
)";
  std::string wanted = text;
  wanted.replace(wanted.find(", exclude=False"), 15, "");
  EXPECT_EQ(Again(text), wanted);
}

TEST(PrinterTest, TypesWhereAsked) {
  EXPECT_EQ(PrintModule(ParseModule("def @main(%x: float32) { add(exp(%x), 1f) }"), {.header = true, .types = true}),
            R"(#[version = "0.0.5"]
def @main(%x: float32) -> float32 {
  %0 = exp(%x) /* ty=float32 */;
  add(%0, 1f) /* ty=float32 */
}
)");
}

TEST(PrinterTest, DepthIsNoLimit) {
  const std::string text = PrintExpr(DeepChain());
  EXPECT_NE(text.find("%99998 = nn.relu(%99997);\n  nn.relu(%99998)\n}"), std::string::npos);
}

}  // namespace
}  // namespace collage
