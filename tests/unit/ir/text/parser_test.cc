#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "ir/print_value.h"
#include "ir/text/expression_text.h"
#include "unit/ir/deep.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(IsExpressionTextTest, CommentsAndHeadersAreNoPartOfEither) {
  for (const char* before :
       {"", "/* one */ ", "/* a /* nested */ def */\n", "// def\n", "# listing\n", "#[version = \"0.0.5\"]\n/**/",
        "/* def */ #[version = \"0.0.5\"] // x\n#[attributes = {a=[\"]\", 1]}] /* /* */ */ "}) {
    for (const char* definition : {"def @main(%x: float32) { %x }", "type Box { Of(float32) }", "extern type T"}) {
      EXPECT_FALSE(IsExpressionText(std::string(before) + definition)) << before << definition;
    }
    EXPECT_TRUE(IsExpressionText(std::string(before) + "add(%x, %y)")) << before;
    EXPECT_TRUE(IsExpressionText(std::string(before) + "%0 = exp(%x); %0")) << before;
    EXPECT_FALSE(IsExpressionText(before)) << "an empty module";
  }
  EXPECT_FALSE(IsExpressionText("/* not closed def @main() { }")) << "ParseModule says what is wrong";
}

Expr Body(const std::string& text) { return ParseModule(text, "t.relay").main()->body(); }

std::string MessageOf(const std::string& text) {
  try {
    ParseModule(text, "t.relay");
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    return error.Format();
  }
  return "no error";
}

void ExpectMessage(const std::string& text, const std::string& part) {
  EXPECT_NE(MessageOf(text).find(part), std::string::npos) << MessageOf(text);
}

const Tensor& Value(const Expr& expr) { return As<ConstantNode>(expr)->value(); }

// ---- expressions ----

TEST(ParserTest, InfixOperatorsBindAndAssociateAsInArithmetic) {
  const char* params = "(%a: float32, %b: float32, %c: float32)";
  const auto equal = [&](const std::string& infix, const std::string& calls) {
    const auto parse = [&](const std::string& body) {
      return ParseExpr(std::string("fn ") + params + " { " + body + " }");
    };
    EXPECT_TRUE(StructuralEqual(parse(infix), parse(calls))) << infix;
  };
  equal("%a - %b - %c", "subtract(subtract(%a, %b), %c)");
  equal("%a + %b * %c", "add(%a, multiply(%b, %c))");
  equal("(%a + %b) / %c", "divide(add(%a, %b), %c)");
  equal("%a+%b<%c", "less(add(%a, %b), %c)");
  equal("%a < %b == (%b >= %c)", "equal(less(%a, %b), greater_equal(%b, %c))");
  equal("%a - 1f", "subtract(%a, 1f)");
  equal("%a-1f", "subtract(%a, 1f)");
  equal("%a * -1f", "multiply(%a, -1f)");
}

TEST(ParserTest, NumbersByTheirSuffix) {
  const auto dtype = [](const std::string& text) { return Value(ParseExpr(text)).dtype().ToString(); };
  EXPECT_EQ(dtype("1"), "int32");
  EXPECT_EQ(dtype("3000000000"), "int64");
  EXPECT_EQ(dtype("1i16"), "int16");
  EXPECT_EQ(dtype("1i64"), "int64");
  EXPECT_EQ(dtype("1f"), "float32");
  EXPECT_EQ(dtype("1.5"), "float32");
  EXPECT_EQ(dtype("1f16"), "float16");
  EXPECT_EQ(dtype("1e-3f64"), "float64");
  EXPECT_EQ(dtype("True"), "bool");
  EXPECT_EQ(*Value(ParseExpr("-9223372036854775808")).data<int64_t>(), INT64_MIN);
  EXPECT_EQ(*Value(ParseExpr("16777217.0000001f")).data<float>(), 16777218.0f) << "rounded once";
  EXPECT_EQ(*Value(ParseExpr("-inff")).data<float>(), -INFINITY);
}

TEST(ParserTest, ProjectionsOfProjections) {
  const Expr body = Body("def @main(%x: ((float32, int32), bool)) { %x.0.1 }");
  EXPECT_EQ(ToString(body->checked_type()), "int32");
}

TEST(ParserTest, TuplesAndParentheses) {
  EXPECT_EQ(ToString(Body("def @main(%x: float32) { (%x) }")->checked_type()), "float32");
  EXPECT_EQ(ToString(Body("def @main(%x: float32) { (%x,) }")->checked_type()), "(float32,)");
  EXPECT_EQ(ToString(Body("def @main(%x: float32) { () }")->checked_type()), "()");
}

TEST(ParserTest, ShadowingSeesTheFormerMeaning) {
  EXPECT_TRUE(StructuralEqual(ParseExpr("fn (%x: float32) { let %x = exp(%x); let %x = add(%x, %x); %x }"),
                              ParseExpr("fn (%x: float32) { let %a = exp(%x); let %b = add(%a, %a); %b }")));
}

TEST(ParserTest, GraphBindingsShareNodes) {
  const Expr sum = Body("def @main(%x: float32) { %7 = exp(%x); add(%7, %7) }");
  EXPECT_EQ(As<CallNode>(sum)->args()[0], As<CallNode>(sum)->args()[1]);
}

TEST(ParserTest, CommentsNamesWithSlashesAndStatementsWithoutVariable) {
  const Expr body = Body(R"(
    def @main(%base/x: float32, /* a /* nested */ comment */ %y: float32) {  // the rest of a line
      let %r = ref(%y);
      ref_write(%r, %base/x);
      %base/x / %y
    })");
  EXPECT_EQ(ToString(body->checked_type()), "float32");
}

TEST(ParserTest, SpansSayWhereAnExpressionStands) {
  const Expr body = Body("def @main(%x: float32) {\n  %0 = exp(%x);\n  tanh(%0)\n}");
  EXPECT_EQ(body->span().source, "t.relay");
  EXPECT_EQ(body->span().line, 3);
  EXPECT_EQ(body->span().column, 3);
}

TEST(ParserTest, ConstantsFromTheCaller) {
  ParseOptions options;
  options.constants = {MakeScalar(1, kFloat32), MakeConstant(Tensor::Zeros({2}, kFloat32))};
  EXPECT_EQ(ParseExpr("meta[relay.Constant][1]", "t", options), Expr(options.constants[1]));
}

TEST(ParserTest, TheListingOfTheRfc) {
  // RFC 0.81, after partitioning: functions in functions, bindings numbered anew inside them.
  ParseOptions options;
  options.constants = {MakeConstant(Tensor::Zeros({8, 1, 5, 5}, kFloat32)),
                       MakeConstant(Tensor::Zeros({8, 1, 1}, kFloat32))};
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1, 28, 28), float32]) -> Tensor[(1, 8, 28, 28), float32] {
  %4 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
  %20 = fn (%FunctionVar_0: Tensor[(1, 1, 32, 32), float32], %FunctionVar_1: Tensor[(8, 1, 1), float32],
            Primitive=1, Compiler="cutlass", global_symbol="collage_cutlass") -> Tensor[(1, 8, 28, 28), float32] {
    %1 = fn (%FunctionVar_01: Tensor[(1, 1, 32, 32), float32], %FunctionVar_11: Tensor[(8, 1, 1), float32],
             Composite="cutlass.conv2d_bias") -> Tensor[(1, 8, 28, 28), float32] {
      %0 = nn.conv2d(%FunctionVar_01, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/,
                     padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5]);
      add(%0, %FunctionVar_11)
    };
    %1(%FunctionVar_0, %FunctionVar_1)
  };
  %20(%4, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/)
})",
                                      "rfc.relay", options);
  EXPECT_EQ(ToString(module.main()->body()->checked_type()), "Tensor[(1, 8, 28, 28), float32]");
  const FunctionNode* partition = As<FunctionNode>(As<CallNode>(module.main()->body())->callee());
  EXPECT_EQ(partition->attrs().String("Compiler"), "cutlass");
  EXPECT_EQ(partition->attrs().Int("Primitive"), 1);
}

// ---- round trips ----

TEST(ParserTest, PrintingAndParsingRestoresAModuleBitForBit) {
  const std::vector<float> values{0.0f, -0.0f, 1e-45f, 0.1f, NAN, -INFINITY, 3.4e38f};
  const Constant weights = MakeConstant(Tensor::Of<float>({7}, kFloat32, values));
  const Constant bytes = MakeConstant(Tensor::Of<uint8_t>({2, 2}, kUInt8, std::vector<uint8_t>{0, 1, 254, 255}));
  const Constant empty = MakeConstant(Tensor::Zeros({0, 3}, kInt64));
  const Var x = MakeVar("x", TensorType(Shape{7}, kFloat32));
  const Expr sum = MakeCall("add", {x, weights});
  const Expr scaled = MakeCall("multiply", {MakeCall("multiply", {sum, weights}), MakeScalar(0.1, kFloat32)});
  const Expr all = MakeTuple({scaled, sum, bytes, empty, MakeScalar(0.1, kFloat16), MakeScalar(-0.0, kFloat64),
                              MakeScalar(NAN, kFloat32), MakeScalar(3, kBFloat16)});
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, all)));
  const std::string text = PrintModule(module);
  const IRModule restored = ParseModule(text);
  EXPECT_TRUE(StructuralEqual(restored.main(), module.main())) << text;
  EXPECT_EQ(PrintModule(restored), text);
}

TEST(ParserTest, StringsKeepQuotesBackslashesAndLines) {
  const Var x = MakeVar("x", TensorType(Shape{}, kFloat32));
  const Function function = MakeFunction({x}, x, nullptr, {{"global_symbol", "a\"b\\c\nd"}});
  EXPECT_TRUE(StructuralEqual(ParseExpr(PrintExpr(function)), function));
}

TEST(ParserTest, DepthIsNoLimitForStatements) {
  const Function chain = DeepChain();
  EXPECT_TRUE(StructuralEqual(ParseExpr(PrintExpr(chain)), chain));
  std::string lets = "fn (%x: float32) { ";
  for (int i = 0; i < kDeep; ++i) lets += "let %x = exp(%x); ";
  const Expr function = ParseExpr(lets + "%x }");
  EXPECT_TRUE(StructuralEqual(ParseExpr(PrintExpr(function)), function));
  std::string sum = "fn (%x: float32) { %x";
  for (int i = 0; i < kDeep; ++i) sum += " + %x";
  EXPECT_TRUE(ParseExpr(sum + " }")->checked_type());
}

// ---- errors ----

TEST(ParserTest, ErrorsShowTheLineAndACaret) {
  EXPECT_EQ(MessageOf("def @main(%x: float32) {\n  nn.rellu(%x)\n}"),
            "t.relay:2:3: error: unknown operator 'nn.rellu'\n"
            "    nn.rellu(%x)\n"
            "    ^\n"
            "hint: did you mean 'nn.relu', 'nn.prelu', 'qnn.relu'?");
}

TEST(ParserTest, EveryErrorIsReportedOnce) {
  EXPECT_EQ(MessageOf("def @main(%x: float32) {\n"
                      "  %0 = nn.rellu(%x);\n"
                      "  let %y = add(%0, %z);\n"
                      "  %1 = exp(%y, oops=1);\n"
                      "  %1 +\n"
                      "}\n"
                      "def @other(%x: flaot32) { %x }"),
            "t.relay:2:8: error: unknown operator 'nn.rellu'\n"
            "    %0 = nn.rellu(%x);\n"
            "         ^\n"
            "hint: did you mean 'nn.relu', 'nn.prelu', 'qnn.relu'?\n"
            "t.relay:3:20: error: unknown variable '%z'\n"
            "    let %y = add(%0, %z);\n"
            "                     ^\n"
            "hint: did you mean '%x'?\n"
            "t.relay:4:8: error: operator 'exp' has no attribute 'oops'\n"
            "    %1 = exp(%y, oops=1);\n"
            "         ^\n"
            "hint: it takes no attributes\n"
            "t.relay:6:1: error: expected an expression, got '}'\n"
            "  }\n"
            "  ^\n"
            "t.relay:7:16: error: unknown type 'flaot32'\n"
            "  def @other(%x: flaot32) { %x }\n"
            "                 ^\n"
            "hint: did you mean 'float32'?");
}

TEST(ParserTest, EachMistakeHasItsMessage) {
  ExpectMessage("#[version = \"0.0.4\"]", "version \"0.0.4\" of the text format is not known");
  ExpectMessage("main", "expected 'def', 'type' or 'extern type', got 'main'");
  ExpectMessage("def @main(%x: float32) { exp(%x); }", "a block ends without a result");
  ExpectMessage("def @main(%x: float32) { exp(%x) exp(%x) }", "expected ';' or '}', got 'exp'");
  ExpectMessage("def @main(%x: float32) { %0 }", "'%0' is not bound before its use");
  ExpectMessage("def @main(%x: float32) { @man(%x) }", "there is no function '@man'");
  ExpectMessage("def @main(%x: float32) { @man(%x) }", "hint: did you mean '@main'?");
  ExpectMessage("def @main() { 1 } def @main() { 2 }", "function '@main' is defined twice");
  ExpectMessage("type A { X, } type A { Y, } def @main() { 1 }", "type 'A' is defined twice");
  ExpectMessage("type A { X, } type B { X, } def @main() { 1 }", "constructor 'X' is defined twice");
  ExpectMessage("type L[A] { N, } def @main(%l: L) { %l }", "type 'L' takes 1 arguments, got 0");
  ExpectMessage("type P { Q(int32), } def @main(%p: P) { match (%p) { Q => { 1 }, } }", "has 1 fields, the pattern 0");
  ExpectMessage("def @main() { meta[relay.Constant][0] }", "constant 0 is missing: the text comes with 0");
  ExpectMessage("def @main() { 1f8 }", "bad number '1f8'");
  ExpectMessage("def @main() { 100000i16 }", "'100000i16' does not fit into int16");
  ExpectMessage("def @main() { /* }", "this comment is not closed");
  ExpectMessage("def @main(%x: float32) { nn.pad(%x, 0f, pad_mode=\"edge) }", "this string is not closed");
  ExpectMessage("def @main(%x: Tensor[(2,, float32]) { %x }", "expected a dimension, got ','");
  ExpectMessage("def @main() { 1 ~ 2 }", "unexpected character '~'");
  ExpectMessage("def @main(%x: float32) { clip(%x, a_min=0f, a_min=1f) }", "attribute 'a_min' is given twice");
  ExpectMessage("def @main(%x: float32) {", "a block ends without a result");
  ExpectMessage("extern type A { X } def @main() { 1 }", "type 'A' is extern, so it cannot have constructors");
  ExpectMessage("extern def @main() { 1 }", "expected 'def', 'type' or 'extern type', got 'extern'");
  ExpectMessage("type int32 { X } def @main() { 1 }", "'int32' is the name of a dtype");
  ExpectMessage("type A { add } def @main() { 1 }", "'add' is the name of an operator");
  ExpectMessage("type A { X } def @main(%a: A) { match (%a) { x => 1 } }", "unknown constructor 'x'");
  ExpectMessage("type A { X } def @main(%a: A) { match (%a) { y => 1 } }", "hint: a variable is '%y'");
  ExpectMessage("def @main() { \"Y\" }", "there is no constructor \"Y\"");
  ExpectMessage("def @main() { 1e400 }", "'1e400' does not fit into float32");
  ExpectMessage("def @main() { 3.40283e+38f32 }", "does not fit into float32");
  ExpectMessage("def @main() { 70000f16 }", "'70000f16' does not fit into float16");
  ExpectMessage("def @main() { 1e5e6 }", "bad number '1e5e6'");
  ExpectMessage("def @main() { -%x }", "expected a number, got '%x'");
  ExpectMessage("def @main(%x {device=1}: int32) { %x }", "expected 'virtual_device', got 'device'");
  ExpectMessage("def @main(%x {virtual_device=meta[VirtualDevice][0]}: int32) { %x }", "VirtualDevice 0 is missing");
  ExpectMessage("def @main(virtual_device=VirtualDevice(kind=1)) { 1 }", "a virtual device has no 'kind'");
  ExpectMessage("def @main(virtual_device=VirtualDevice(device_type=\"x\")) { 1 }", "must be an integer");
  ExpectMessage("#[license = 1] def @main() { 1 }", "expected 'version' or 'attributes', got 'license'");
  ExpectMessage("def @main(%x: int32) { add(%x; %x %x, 1) }", "expected ';' or ',' or ')'");
  EXPECT_EQ(MessageOf("def @main(%x: int32, type=1) { %x }"), "no error");
}

TEST(ParserTest, VirtualDevicesAreKept) {
  const std::string text =
      "fn (%x {virtual_device=VirtualDevice(device_type=2, target=\"cuda\")}: int32, "
      "virtual_device=VirtualDevice(virtual_device_id=1)) -> int32 {\n  %x\n}\n";
  const Expr expr = ParseExpr(text);
  const FunctionNode* function = As<FunctionNode>(expr);
  EXPECT_EQ(function->virtual_device().device_id, 1);
  EXPECT_EQ(function->params()[0]->virtual_device().device_type, 2);
  EXPECT_EQ(function->params()[0]->virtual_device().target, "cuda");
  EXPECT_EQ(PrintExpr(expr), text);
}

TEST(ParserTest, EveryBoundVariableMayHaveAVirtualDevice) {
  const std::string text =
      "free_var %f {virtual_device=VirtualDevice(device_type=2)}: int32;\n"
      "let %x {virtual_device=VirtualDevice(device_type=1, virtual_device_id=3)}: int32 = 1;\n"
      "match ((%x, %f)) {\n"
      "  (%y {virtual_device=VirtualDevice(memory_scope=\"l2\")}: int32, _) => {\n    %y\n  },\n}\n";
  const Expr expr = ParseExpr(text);
  EXPECT_EQ(As<LetNode>(expr)->var()->virtual_device(), (VirtualDevice{.device_type = 1, .device_id = 3}));
  const Expr again = ParseExpr(PrintExpr(expr));
  EXPECT_EQ(PrintExpr(again), PrintExpr(expr));
  EXPECT_TRUE(StructuralEqual(again, expr));
  for (const char* device : {" {virtual_device=VirtualDevice(device_type=2)}", "memory_scope=\"l2\"",
                             "{virtual_device=VirtualDevice(device_type=1, virtual_device_id=3)}"}) {
    EXPECT_NE(PrintExpr(expr).find(device), std::string::npos) << PrintExpr(expr);
  }
  ExpectMessage("def @main() { let %x {device=1} = 1; %x }", "expected 'virtual_device', got 'device'");
}

TEST(ParserTest, TypeVariablesThatShareANameArePrintedApart) {
  const TypeVar outer = std::make_shared<const TypeVarNode>("A");
  const TypeVar inner = std::make_shared<const TypeVarNode>("A");
  const Var x = MakeVar("x", outer);
  const Var y = MakeVar("y", inner);
  const Var f = MakeVar("f", FuncType({Type(inner), Type(outer)}, Type(inner), {inner}));
  const Function local = MakeFunction({y}, x, Type(outer), {}, {inner});
  const Function function = MakeFunction({x, f}, MakeTuple({local, f}), nullptr, {}, {outer});
  const std::string text = PrintExpr(function);
  EXPECT_EQ(text,
            "fn [A](%x: A, %f: fn [A1] (A1, A) -> A1) {\n"
            "  %0 = fn [A1](%y: A1) -> A {\n    %x\n  };\n"
            "  (%0, %f)\n}\n");
  const Expr again = ParseExpr(text, "t", {.infer_types = false});
  EXPECT_EQ(PrintExpr(again), text);
  EXPECT_TRUE(StructuralEqual(again, function));
  // Siblings keep their names, and a variable named as a type does not hide it.
  const Function apart = MakeFunction(
      {}, MakeTuple({MakeFunction({y}, y, Type(inner), {}, {inner}), MakeFunction({x}, x, Type(outer), {}, {outer})}));
  EXPECT_EQ(PrintExpr(apart).find("A1"), std::string::npos) << PrintExpr(apart);
  const TypeVar number = std::make_shared<const TypeVarNode>("int32");
  const Var n = MakeVar("n", number);
  const Var i = MakeVar("i", TensorType(Shape{}, kInt32));
  EXPECT_EQ(PrintExpr(MakeFunction({n, i}, n, nullptr, {}, {number})),
            "fn [int321](%n: int321, %i: int32) {\n  %n\n}\n");
}

TEST(ParserTest, AttributesThatSayNothingHereAreReadAndDropped) {
  const std::string text = R"(def @main(%x: Tensor[(1, 4, 4, 4), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
    %0 = nn.conv2d(%x, %w, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None);
    %1 = strided_slice(%0, begin=[0], end=[1], strides=[1], slice_mode="end", axes=[0]);
    %2 = image.resize2d(%1, size=[8, 8], roi=[0f, 0f, 0f, 0f], extrapolation_value=0f, out_dtype="");
    arange(0, 4, 1, start=meta[relay.Constant][0], stop=4, step=1, dtype="int32")
  })";
  ParseOptions options;
  options.constants = {MakeScalar(0, kInt32)};
  const IRModule module = ParseModule(text + "", "t", options);
  EXPECT_EQ(PrintExpr(module.main()->body(), {.types = false}).find("slice_mode"), std::string::npos);
  ExpectMessage("def @main(%x: Tensor[(4), float32]) { strided_slice(%x, begin=[0], end=[2], slice_mode=\"size\") }",
                "attribute 'slice_mode' of operator 'strided_slice' can only be \"end\"");
  ExpectMessage("def @main(%x: Tensor[(4), float32], %i: int32) { take(%x, %i) }",
                "operator 'take' needs attribute 'axis'");
}

TEST(ParserTest, NamesThatAreNoWordsAreQuoted) {
  IRModule module;
  const GlobalTypeVar type = std::make_shared<const GlobalTypeVarNode>("a type");
  const Constructor constructor = std::make_shared<const ConstructorNode>("fn", std::vector<Type>{}, type);
  module.AddType({type, {}, {constructor}});
  module.Set("fused-add.1",
             MakeFunction({}, MakeCall(Expr(constructor), {}), nullptr, {{"an attribute", 1}, {"a.b", 2}}));
  const std::string text = PrintModule(InferTypes(module));
  EXPECT_NE(text.find("def @\"fused-add.1\"(a.b=2, \"an attribute\"=1) -> \"a type\" {\n  \"fn\"\n}"),
            std::string::npos)
      << text;
  EXPECT_EQ(PrintModule(ParseModule(text)), text);
}

TEST(ParserTest, AttributesOfAModuleAreKept) {
  IRModule module = ParseModule("def @main() { 1 }");
  module.attrs.Set("model", "net.onnx");
  module.attrs.Set("opset", 17);
  EXPECT_EQ(ParseModule(PrintModule(module)).attrs, module.attrs);
}

TEST(ParserTest, SpansOfAnyTextStayComments) {
  const Expr call = MakeCall("exp", {MakeScalar(1, kFloat32)});
  call->set_span({"a */ node /* of", 0, 0});
  EXPECT_EQ(PrintExpr(call, {.spans = true}), "exp(1f) /* span=a ./ node .* of */\n");
  EXPECT_TRUE(StructuralEqual(ParseExpr(PrintExpr(call, {.spans = true})), call));
}

TEST(ParserTest, NestingIsLimitedInsteadOfOverflowing) {
  const std::string open(100000, '(');
  ExpectMessage("def @main() { " + open + "1 }", "nested more than 250 levels deep");
  ExpectMessage("def @main(%x: " + open + "float32) { %x }", "nested more than 250 levels deep");
  std::string brackets(100000, '[');
  ExpectMessage("def @main(%x: float32) { nn.pad(%x, 0f, pad_width=" + brackets + ") }",
                "nested more than 250 levels deep");
}

TEST(ParserTest, WhatIsPrintedCanBeReadHoweverDeepItNests) {
  const auto nested = [](int depth) {
    Expr expr = MakeScalar(1, kInt32);
    for (int i = 0; i < depth; ++i) {
      const Expr condition = MakeScalar(1, kBool);
      expr = i % 2 == 0 ? std::make_shared<IfNode>(condition, expr, MakeScalar(2, kInt32))
                        : MakeCall(Expr(MakeFunction({}, expr)), {});
    }
    return expr;
  };
  const Expr deep = nested(100);
  EXPECT_TRUE(StructuralEqual(ParseExpr(PrintExpr(deep)), deep));
  ExpectError([&] { PrintExpr(nested(101)); }, ErrorCategory::kUnsupported, "nest more than 100 deep");
}

TEST(ParserTest, ReadingStopsAfterTwentyErrors) {
  std::string text = "def @main(%x: float32) {\n";
  for (int i = 0; i < 50; ++i) text += "  %0 = nonsense(%x);\n";
  const std::string message = MessageOf(text + "  %0 }");
  size_t count = 0;
  for (size_t at = 0; (at = message.find("unknown operator", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 20u);
  EXPECT_NE(message.find("too many errors"), std::string::npos);
}

/// TVM's metadata section of one constant, a scalar int32 of 3, with another tensor or other nodes.
std::string TvmMetadata(const std::string& tensor = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAAgAQAEAAAAAAAAAAMAAAA=",
                        const std::string& data = "0", const std::string& array = "[3]") {
  return R"(#[metadata]
{
  "root": 1,
  "nodes": [
    { "type_key": "" },
    { "type_key": "Map", "keys": [ "SourceName", "relay.Constant", "VirtualDevice" ], "data": [6, 2, 7] },
    { "type_key": "Array", "data": )" +
         array + R"( },
    { "type_key": "relay.Constant",
      "attrs": { "_checked_type_": "4", "data": ")" +
         data + R"(", "span": "0", "virtual_device_": "8" } },
    { "type_key": "relay.TensorType", "attrs": { "dtype": "int32", "shape": "5", "span": "0" } },
    { "type_key": "Array" },
    { "type_key": "Array" },
    { "type_key": "Array", "data": [8] },
    { "type_key": "VirtualDevice",
      "attrs": { "device_type_int": "2", "memory_scope": "9", "target": "10", "virtual_device_id": "1" } },
    { "type_key": "runtime.String", "repr_str": "global" },
    { "type_key": "Target", "attrs": { "kind": "11", "host": "0" } },
    { "type_key": "TargetKind", "repr_str": "cuda" }
  ],
  "b64ndarrays": [ ")" +
         tensor + R"(" ],
  "attrs": {"tvm_version": "0.18.0"}
})";
}

TEST(ParserTest, MetadataOfTvmIsRead) {
  const std::string text = R"(def @main(%x {virtual_device=meta[VirtualDevice][0]}: int32) {
    add(%x, meta[relay.Constant][0] /* ty=int32 span=t:1:1 */)
  }
  )";
  const IRModule module = ParseModule(text + TvmMetadata(), "t");
  EXPECT_EQ(module.main()->params()[0]->virtual_device(), (VirtualDevice{2, 1, "cuda", "global"}));
  const std::string printed = PrintExpr(module.main()->body(), {.types = false});
  EXPECT_NE(printed.find("add(%x, 3)\n"), std::string::npos) << printed;
}

TEST(ParserTest, AttributesMayBeInTheMetadata) {
  const std::string text = R"(
  def @main(%x: int32, a=meta[Array][0], b=meta[Map][0], c=meta[Target][0], d=meta[relay.Constant][0],
            e=meta[FloatImm][0]) { %x }
  #[metadata]
  {"root": 1, "nodes": [
    {"type_key": ""},
    {"type_key": "Map", "keys": ["Array", "Map", "Target", "relay.Constant", "FloatImm", "tir.Other", "Loop"],
     "data": [2, 3, 4, 5, 6, 14, 16]},
    {"type_key": "Array", "data": [7]}, {"type_key": "Array", "data": [8]}, {"type_key": "Array", "data": [9]},
    {"type_key": "Array", "data": [10]}, {"type_key": "Array", "data": [11]},
    {"type_key": "Array", "data": [12, 13, 0]},
    {"type_key": "Map", "keys": ["key"], "data": [12]},
    {"type_key": "Target", "attrs": {"kind": "15"}},
    {"type_key": "relay.Constant", "attrs": {"data": "0"}},
    {"type_key": "FloatImm", "attrs": {"dtype": "float32", "value": "0.5"}},
    {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "-3"}},
    {"type_key": "runtime.String", "repr_str": "a text"},
    {"type_key": "Array", "data": [17]},
    {"type_key": "TargetKind", "repr_str": "llvm"},
    {"type_key": "Array", "data": [14]},
    {"type_key": "tir.Other", "attrs": {}}],
   "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAAgAQAEAAAAAAAAAAMAAAA="]})";
  const Function function = ParseModule(text, "t").main();
  const Attrs& attrs = function->attrs();
  EXPECT_EQ(attrs.Get("a"), AttrValue(AttrValue::List{-3, "a text", AttrValue()}));
  EXPECT_EQ(AttrText(attrs.Get("b")), "[[\"key\", -3]]");
  EXPECT_EQ(attrs.String("c"), "llvm");
  EXPECT_EQ(attrs.Int("d"), 3);
  EXPECT_EQ(attrs.Double("e"), 0.5);
  const auto with = [&](const std::string& value) {
    return "def @main(%x: int32, a=" + value + ") { %x }" + text.substr(text.find("\n  #[metadata]"));
  };
  EXPECT_EQ(MessageOf(with("meta[Array][0]")), "no error");
  ExpectMessage(with("meta[Array][1]"), "Array 1 is missing: the text comes with 1");
  ExpectMessage(with("meta[Nothing][0]"), "Nothing 0 is missing: the text comes with 0");
  ExpectMessage(with("meta[tir.Other][0]"), "an attribute cannot be a 'tir.Other'");
  ExpectMessage(
      "def @main() { 1 }\n#[metadata]\n{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Map\", "
      "\"keys\": [\"Array\"], \"data\": [2]}, {\"type_key\": \"Array\", \"data\": [2, 2]}]}",
      "metadata: lists nest too deeply or are too long");
}

TEST(ParserTest, DevicesAsTvmWritesThemBecomeAttributes) {
  const std::string text = R"(def @main(%x: int32) {
    device_copy(on_device(%x, virtual_device=VirtualDevice(device_type=1, memory_scope="l2"), constrain_result=True),
                src_virtual_device=VirtualDevice(device_type=1), dst_virtual_device=meta[VirtualDevice][0])
  }
  )";
  EXPECT_EQ(PrintExpr(ParseModule(text + TvmMetadata(), "t").main()->body(), {.types = false}),
            "free_var %x: int32;\n"
            "%0 = on_device(%x, constrain_result=True, device_type=1, memory_scope=\"l2\");\n"
            "device_copy(%0, dst_device_id=1, dst_device_type=2, dst_memory_scope=\"global\", dst_target=\"cuda\", "
            "src_device_type=1)\n");
  ExpectMessage("def @main(%x: int32) { on_device(%x, device_type=1, virtual_device=VirtualDevice(device_type=2)) }",
                "attribute 'device_type' is given twice");
}

TEST(ParserTest, ConstantsOfEveryTypeSurvivePrintingAsTvmDoes) {
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                           "bfloat16", "float32", "float64", "float32x4"}) {
    const Tensor value = Tensor::Empty({2, 3}, DataType::FromString(name));
    for (size_t i = 0; i < value.size_bytes(); ++i) {
      value.data<unsigned char>()[i] = static_cast<unsigned char>(value.dtype().is_bool() ? i % 2 : 37 * i + 1);
    }
    const std::string text = PrintModule(IRModule::FromFunction(MakeFunction({}, MakeConstant(value))));
    EXPECT_NE(text.find("b64ndarrays"), std::string::npos);
    const Expr read = ParseModule(text, "t").main()->body();
    ASSERT_NE(As<ConstantNode>(read), nullptr);
    const Tensor& again = As<ConstantNode>(read)->value();
    ASSERT_EQ(again.dtype(), value.dtype());
    ASSERT_EQ(again.shape(), value.shape());
    EXPECT_EQ(std::memcmp(again.raw(), value.raw(), value.size_bytes()), 0) << name;
  }
}

TEST(ParserTest, BoolsOfMetadataAreZeroOrOne) {
  const IRModule module = ParseModule(
      "def @main() { (meta[relay.Constant][0], meta[relay.Constant][1]) }\n#[metadata]\n"
      R"({"relay.Constant": [{"dtype": "bool", "shape": [], "data": "Ag=="}, {"dtype": "bool", "shape": [2], "data": "AAI="}]})",
      "t");
  EXPECT_TRUE(StructuralEqual(module.main(), ParseModule(PrintModule(module), "printed").main()));
}

TEST(ParserTest, DamagedMetadataOfTvmIsRefused) {
  const std::string text = "def @main() { meta[relay.Constant][0] }\n";
  EXPECT_EQ(MessageOf(text + TvmMetadata()), "no error");
  ExpectMessage(text + TvmMetadata("nonsense!"), "metadata: b64ndarrays[0] is not base64");
  ExpectMessage(text + TvmMetadata("AAAA"), "metadata: b64ndarrays[0] ends too early");
  ExpectMessage(text + TvmMetadata("AAAAAAAAAAAA"), "b64ndarrays[0] is no saved tensor");
  ExpectMessage(text + TvmMetadata("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAAgAQAEAAAAAAAAAAMA"),
                "b64ndarrays[0] holds 2 bytes of elements, int32 () needs 4");
  ExpectMessage(text + TvmMetadata("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAAhAQAEAAAAAAAAAAMAAAA="),
                "elements of an unknown type: code 0, 33 bits, 1 lanes");
  ExpectMessage(text + TvmMetadata("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAA/wAAAAAgAQAEAAAAAAAAAAMAAAA="), "ends too early");
  ExpectMessage(text + TvmMetadata("AAAA", "1"), "metadata: there is no tensor 1");
  ExpectMessage(text + TvmMetadata("AAAA", "x"), "metadata: attribute 'data' of a node is no integer");
  ExpectMessage(text + TvmMetadata("AAAA", "0", "[99]"), "metadata: there is no node 99");
  ExpectMessage(text + TvmMetadata("AAAA", "0", "[-1]"), "metadata: an array's element is no number of a node");
  ExpectMessage(text + TvmMetadata("AAAA", "0", "3"), "metadata: 'data' of a node is no array");
  ExpectMessage(text + "#[metadata]\n{\"root\": 1}", "metadata: the section has no array 'nodes'");
}

TEST(ParserTest, DamagedMetadataIsRefused) {
  const auto with = [](const std::string& metadata) {
    return "def @main() { meta[relay.Constant][0] }\n#[metadata]\n" + metadata;
  };
  const auto constant = [&](const std::string& fields) { return with("{\"relay.Constant\": [{" + fields + "}]}"); };
  EXPECT_EQ(MessageOf(constant(R"("dtype": "float32", "shape": [1], "data": "AACAPw==")")), "no error");
  ExpectMessage(with("nonsense"), "metadata: the section is not a JSON object");
  ExpectMessage(with("{\"Other\": []}"), "unknown entry 'Other'");
  ExpectMessage(constant(R"("dtype": "float32", "shape": [1])"), "needs a 'dtype', a 'shape' and 'data'");
  ExpectMessage(constant(R"("dtype": "float33", "shape": [1], "data": "AACAPw==")"), "unknown dtype \"float33\"");
  ExpectMessage(constant(R"("dtype": "float32", "shape": [-1], "data": "AACAPw==")"), "a negative size");
  ExpectMessage(constant(R"("dtype": "float32", "shape": [4294967296, 4294967296], "data": "")"), "is too big");
  ExpectMessage(constant(R"("dtype": "float32", "shape": [2], "data": "AACAPw==")"), "holds 8 characters of data");
  ExpectMessage(constant(R"("dtype": "float32", "shape": [1], "data": "AAC!Pw==")"), "data that is not base64");
}

}  // namespace
}  // namespace collage
