// import_test.cc: how models become modules: control flow, functions, constants, quantised weights, errors.
#include <gtest/gtest.h>

#include <functional>

#include "collage/frontend/onnx.h"
#include "collage/ir/named_dimensions.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;
using V = std::vector<int64_t>;

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, kFloat32, values);
}
Tensor Ints(const Shape& shape, const V& values) { return Tensor::Of<int64_t>(shape, kInt64, values); }
Tensor Bool(bool value) { return MakeScalar(value ? 1 : 0, kBool)->value(); }

std::vector<double> Elements(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(tensor.At(i));
  return result;
}

/// The error that importing gives; "" when there is none.
std::string ImportError(const ModelFile& model, const ImportOptions& options = {}) {
  try {
    ImportOnnx(model.Write(), options);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

bool HasKind(const Expr& root, ExprKind kind) {
  bool found = false;
  PostOrder(root, [&](const Expr& expr) { found = found || expr->kind() == kind; });
  return found;
}

/// `graph` as an attribute that negates or doubles the outer value x.
void AddBranch(onnx::NodeProto& node, const std::string& name, const std::string& op) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  onnx::NodeProto& inner = *attribute.mutable_g()->add_node();
  inner.set_op_type(op);
  inner.add_input("x");
  if (op == "Add") inner.add_input("x");
  inner.add_output(name + "_result");
  attribute.mutable_g()->add_output()->set_name(name + "_result");
}

void AddIf(ModelFile& model) {
  onnx::NodeProto& node = model.Node("If", {"condition"}, {"y"});
  AddBranch(node, "then_branch", "Neg");
  AddBranch(node, "else_branch", "Add");
}

TEST(ImportTest, BranchesThatAreKnownAreTaken) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y").Initializer("condition", Bool(false));
  AddIf(model);
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_FALSE(HasKind(module.main()->body(), ExprKind::kIf));
  const std::vector<Tensor> inputs{Floats({2}, {1, 2})};
  EXPECT_EQ(Elements(Evaluate(module.main(), inputs)[0]), (std::vector<double>{2, 4}));
}

TEST(ImportTest, OtherBranchesBecomeIf) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Input("condition", TensorProto::BOOL, {}).Output("y");
  AddIf(model);
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_TRUE(HasKind(module.main()->body(), ExprKind::kIf));
  const Tensor x = Floats({2}, {1, 2});
  EXPECT_EQ(Elements(Evaluate(module.main(), std::vector{x, Bool(true)})[0]), (std::vector<double>{-1, -2}));
  EXPECT_EQ(Elements(Evaluate(module.main(), std::vector{x, Bool(false)})[0]), (std::vector<double>{2, 4}));
}

/// A loop that doubles its value in every turn; how many turns there are is an input.
void AddLoop(ModelFile& model) {
  onnx::NodeProto& node = model.Node("Loop", {"count", "", "x"}, {"y"});
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *attribute.mutable_g();
  for (const char* name : {"i", "go_on", "value"}) body.add_input()->set_name(name);
  for (const char* name : {"go_on", "doubled"}) body.add_output()->set_name(name);
  onnx::NodeProto& add = *body.add_node();
  add.set_op_type("Add");
  add.add_input("value");
  add.add_input("value");
  add.add_output("doubled");
}

TEST(ImportTest, LoopsOfKnownLengthAreUnrolledOthersRecurse) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Input("count", TensorProto::INT64, {}).Output("y");
  AddLoop(model);
  const Tensor x = Floats({2}, {1, 3});
  const IRModule open = ImportOnnx(model.Write());
  EXPECT_TRUE(HasKind(open.main()->body(), ExprKind::kLet));
  EXPECT_EQ(Elements(Evaluate(open.main(), std::vector{x, Ints({}, {3})})[0]), (std::vector<double>{8, 24}));
  EXPECT_EQ(Elements(Evaluate(open.main(), std::vector{x, Ints({}, {0})})[0]), (std::vector<double>{1, 3}));
  const IRModule known = ImportOnnx(model.Write(), {.constants = {{"count", Ints({}, {3})}}});
  EXPECT_FALSE(HasKind(known.main()->body(), ExprKind::kLet));
  EXPECT_EQ(Elements(Evaluate(known.main(), std::vector{x})[0]), (std::vector<double>{8, 24}));
}

TEST(ImportTest, LocalFunctionsAreInlinedWithTheirAttributes) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  onnx::NodeProto& call = model.Node("Leaky", {"x"}, {"y"});
  call.set_domain("local");
  SetFloat(call, "slope", 0.5F);
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("Leaky");
  function.set_domain("local");
  function.add_input("value");
  function.add_output("result");
  function.add_opset_import()->set_version(16);
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("value");
  node.add_output("result");
  onnx::AttributeProto& alpha = *node.add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_EQ(Elements(Evaluate(module.main(), std::vector{Floats({2}, {-4, 4})})[0]), (std::vector<double>{-2, 4}));
}

TEST(ImportTest, FunctionsThatCallThemselvesAreRefused) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  model.Node("Again", {"x"}, {"y"}).set_domain("local");
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("Again");
  function.set_domain("local");
  function.add_input("value");
  function.add_output("result");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("Again");
  node.set_domain("local");
  node.add_input("value");
  node.add_output("result");
  EXPECT_NE(ImportError(model).find("function 'Again' calls itself"), std::string::npos) << ImportError(model);
}

TEST(ImportTest, ShapesMayBeGivenAsConstants) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {3}).Input("shape", TensorProto::INT64, {1}).Output("y");
  model.Node("Tile", {"x", "shape"}, {"y"}, "repeated");
  EXPECT_EQ(ImportError(model),
            "node 'repeated' (Tile, opset 17): input 1 ('shape', an input of the model) must be constant");
  const IRModule module = ImportOnnx(model.Write(), {.constants = {{"shape", Ints({1}, {2})}}});
  EXPECT_EQ(module.main()->params().size(), 1);
  EXPECT_EQ(ToString(module.main()->body()->checked_type()), "Tensor[(6), float32]");
  EXPECT_EQ(ImportError(model, {.constants = {{"shape", Floats({1}, {6})}}}),
            "input 'shape' has elements of type int64, the constant given for it of type float32");
  EXPECT_EQ(ImportError(model, {.constants = {{"sahpe", Ints({1}, {6})}}}), "the model has no input 'sahpe'");
}

TEST(ImportTest, ShapesOfARun) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto results = [&](const char* op, const std::vector<Tensor>& operands, int num_results = 1) {
    ModelFile model(17);
    model.Input("x", TensorProto::FLOAT, {2, 3});
    std::vector<std::string> names{"x"}, outputs;
    std::vector<Value> values{x};
    for (const Tensor& operand : operands) {
      names.push_back("operand" + std::to_string(values.size()));
      model.Input(names.back(), TensorProto::INT64, operand.shape());
      values.emplace_back(operand);
    }
    for (int i = 0; i < num_results; ++i) {
      outputs.push_back("y" + std::to_string(i));
      model.Output(outputs.back());
    }
    model.Node(op, names, outputs);
    return FlattenTensors(Interpret(ImportOnnx(model.Write()), "main", values));
  };
  for (const V& shape : {V{3, 2}, V{6, -1}, V{0, 3}}) {
    const Tensor y = results("Reshape", {Ints({2}, shape)})[0];
    EXPECT_EQ(y.shape(), shape == V({6, -1}) ? Shape({6, 1}) : shape == V({0, 3}) ? Shape({2, 3}) : shape);
    EXPECT_EQ(Elements(y), Elements(x));
  }
  EXPECT_EQ(Elements(results("Slice", {Ints({2}, {0, 1}), Ints({2}, {2, 3})})[0]), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(Elements(results("Slice", {Ints({2}, {1, -1}), Ints({2}, {9, 9})})[0]), std::vector<double>{6});
  EXPECT_EQ(results("Expand", {Ints({3}, {4, 1, 3})})[0].shape(), (Shape{4, 2, 3}));
  for (const int64_t k : {2, 1, 0}) {
    const std::vector<Tensor> top = results("TopK", {Ints({1}, {k})}, 2);
    EXPECT_EQ(top[0].shape(), (Shape{2, k}));
    EXPECT_EQ(top[1].shape(), (Shape{2, k}));
    const std::vector<double> largest = k == 2   ? std::vector<double>{3, 2, 6, 5}
                                        : k == 1 ? std::vector<double>{3, 6}
                                                 : std::vector<double>{};
    EXPECT_EQ(Elements(top[0]), largest);
  }
}

TEST(ImportTest, OpenDimensionsStayOpen) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {-1, 2, 3}).Output("y");
  model.Initializer("w", Floats({2, 3}, {1, -2, 3, -4, 5, -6})).Initializer("shape", Ints({3}, {0, 3, -1}));
  model.Node("Relu", {"x"}, {"r"});
  model.Node("Reshape", {"r", "shape"}, {"s"});
  model.Node("MatMul", {"s", "w"}, {"y"});
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_EQ(ToString(module.main()->params()[0]->checked_type()), "Tensor[(?, 2, 3), float32]");
  for (const int64_t rows : {1, 4}) {
    const Tensor x = Tensor::Empty({rows, 2, 3}, kFloat32);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(i % 7) - 3);
    const IRModule known = ImportOnnx(model.Write(), {.shapes = {{"x", x.shape()}}});
    const Tensor expected = Evaluate(known.main(), std::vector<Tensor>{x})[0];
    const Tensor actual = Evaluate(module.main(), std::vector<Tensor>{x})[0];
    EXPECT_EQ(actual.shape(), expected.shape());
    EXPECT_EQ(Elements(actual), Elements(expected));
  }
}

TEST(ImportTest, ConstantsOfOpenSizesAreComputed) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {-1, -1, 2}).Output("y");
  model.Initializer("zero", Ints({}, {0})).Initializer("one", Ints({}, {1})).Initializer("three", Ints({}, {3}));
  model.Initializer("last", Ints({1}, {1})).Initializer("row", Floats({2}, {5, -6}));
  model.Node("Shape", {"x"}, {"shape"});
  model.Node("Gather", {"shape", "one"}, {"length"});
  model.Node("Mul", {"length", "three"}, {"stop"});
  model.Node("Range", {"zero", "stop", "three"}, {"range"});
  SetInt(model.Node("Cast", {"range"}, {"places"}), "to", TensorProto::FLOAT);
  model.Node("Unsqueeze", {"places", "last"}, {"column"});
  model.Node("Expand", {"row", "shape"}, {"rows"});
  model.Node("Add", {"x", "column"}, {"sum"});
  model.Node("Mul", {"sum", "rows"}, {"y"});
  const IRModule module = ImportOnnx(model.Write());
  for (const Shape& shape : {Shape{1, 4, 2}, Shape{3, 1, 2}}) {
    const Tensor x = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(i % 7) - 3);
    const IRModule known = ImportOnnx(model.Write(), {.shapes = {{"x", shape}}});
    EXPECT_EQ(Elements(Evaluate(module.main(), std::vector<Tensor>{x})[0]),
              Elements(Evaluate(known.main(), std::vector<Tensor>{x})[0]));
  }
}

TEST(ImportTest, WhatNeedsANumberCannotStayOpen) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {1, 1, -1}).Output("y");
  onnx::NodeProto& pool = model.Node("AveragePool", {"x"}, {"y"}, "strided");
  SetInts(pool, "kernel_shape", {3});
  SetInts(pool, "strides", {2});
  SetString(pool, "auto_pad", "SAME_UPPER");
  const std::string error = ImportError(model);
  EXPECT_NE(error.find("node 'strided' (AveragePool, opset 17): needs to know the padding of auto_pad SAME_UPPER, "),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("which the model leaves open"), std::string::npos) << error;
}

TEST(ImportTest, PaddingThatKeepsTheSizeFollowsIt) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {1, 1, -1, -1}).Output("y").Output("z");
  model.Initializer("w", Floats({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}));
  onnx::NodeProto& conv = model.Node("Conv", {"x", "w"}, {"y"});
  SetInts(conv, "strides", {2, 3});
  SetString(conv, "auto_pad", "SAME_UPPER");
  onnx::NodeProto& pool = model.Node("MaxPool", {"x"}, {"z"});
  SetInts(pool, "kernel_shape", {3, 2});
  SetInts(pool, "strides", {2, 2});
  SetString(pool, "auto_pad", "SAME_LOWER");
  const IRModule module = ImportOnnx(model.Write());
  for (const Shape& shape : {Shape{1, 1, 4, 6}, Shape{1, 1, 5, 7}, Shape{1, 1, 1, 2}, Shape{1, 1, 9, 8}}) {
    const Tensor x = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(i % 7) - 9);
    const IRModule known = ImportOnnx(model.Write(), {.shapes = {{"x", shape}}});
    for (size_t i = 0; i < 2; ++i) {
      const Tensor expected = Evaluate(known.main(), std::vector<Tensor>{x})[i];
      const Tensor actual = Evaluate(module.main(), std::vector<Tensor>{x})[i];
      EXPECT_EQ(actual.shape(), expected.shape());
      EXPECT_EQ(Elements(actual), Elements(expected));
    }
  }
}

TEST(ImportTest, DimensionsOfOneNameAreGivenOnce) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"batch", "2"}).SymbolicInput("z", TensorProto::FLOAT, {"batch", "2"});
  model.Output("y").Node("Add", {"x", "z"}, {"y"});
  const IRModule module = ImportOnnx(model.Write(), {.shapes = {{"x", Shape{3, 2}}}});
  EXPECT_EQ(ToString(module.main()->params()[1]->checked_type()), "Tensor[(3, 2), float32]");
}

TEST(ImportTest, DimensionsAreGivenByNameOrPlace) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"batch", "2"}).SymbolicInput("z", TensorProto::FLOAT, {"batch", "2"});
  model.Output("y").Node("Add", {"x", "z"}, {"y"});
  const auto types = [&](const std::map<std::string, SizeRange>& dims) {
    const IRModule module = ImportOnnx(model.Write(), {.dims = dims});
    std::string text;
    for (const Var& param : module.main()->params()) text += ToString(param->checked_type()) + " ";
    return text;
  };
  EXPECT_EQ(types({{"batch", {3, 3}}}), "Tensor[(3, 2), float32] Tensor[(3, 2), float32] ");
  EXPECT_EQ(types({{"batch", {1, 8}}}), "Tensor[(?, 2), float32] Tensor[(?, 2), float32] ");
  EXPECT_EQ(types({{"x[0]", {3, 3}}, {"z[0]", {1, 1}}}), "Tensor[(3, 2), float32] Tensor[(1, 2), float32] ");
  // One that the model gives a size.
  EXPECT_EQ(types({{"x[1]", {5, 5}}, {"z[1]", {5, 5}}}), "Tensor[(?, 5), float32] Tensor[(?, 5), float32] ");
  EXPECT_EQ(ImportError(model, {.dims = {{"bacth", {1, 1}}}}), "the model has no dimension 'bacth'");
  EXPECT_EQ(ImportError(model, {.dims = {{"batch", {8, 1}}}}), "dimension 'batch' cannot have sizes from 8 to 1");
  EXPECT_EQ(ImportError(model, {.shapes = {{"x", Shape{3, 2}}}, .dims = {{"batch", {1, 2}}}}),
            "input 'x' has shape [batch, 2], which (3, 2) does not fit: 'batch' is given other sizes");
}

TEST(ImportTest, ConstantsMayBeTexts) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2, 3}).Input("shape", TensorProto::INT64, {1}).Output("y");
  model.Node("Reshape", {"x", "shape"}, {"y"});
  const IRModule module = ImportOnnx(model.Write(), {.constant_texts = {{"shape", "6"}}});
  EXPECT_EQ(ToString(module.main()->body()->checked_type()), "Tensor[(6), float32]");
  EXPECT_EQ(ToString(ImportOnnx(model.Write(), {.constant_texts = {{"shape", "3,2"}}}).main()->body()->checked_type()),
            "Tensor[(3, 2), float32]");
  EXPECT_EQ(ImportError(model, {.constant_texts = {{"shape", "six"}}}), "'six' is not a number");
  EXPECT_EQ(ImportError(model, {.constant_texts = {{"x", "1,2"}}}), "input 'x' has shape [2, 3], 2 numbers are given");
  EXPECT_EQ(ImportError(model, {.constant_texts = {{"y", "1"}}}), "the model has no input 'y'");
}

TEST(ImportTest, InputsWithValuesAreConstantsUnlessTheyAreAskedFor) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Input("w", TensorProto::FLOAT, {2}).Output("y");
  model.Initializer("w", Floats({2}, {3, 4})).Node("Mul", {"x", "w"}, {"y"});
  const auto product = [&](const ImportOptions& options, const std::vector<Tensor>& inputs) {
    return Elements(Evaluate(ImportOnnx(model.Write(), options).main(), inputs)[0]);
  };
  const Tensor x = Floats({2}, {1, 2});
  EXPECT_EQ(product({}, {x}), (std::vector<double>{3, 8}));
  EXPECT_EQ(product({.constant_texts = {{"w", "5,6"}}}, {x}), (std::vector<double>{5, 12}));
  EXPECT_EQ(product({.shapes = {{"w", Shape{2}}}}, {x, x}), (std::vector<double>{1, 4}));
}

TEST(ImportTest, AShapeReplacesThatOfTheFile) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {10, 3}).Output("y").Node("Relu", {"x"}, {"y"});
  const IRModule module = ImportOnnx(model.Write(), {.shapes = {{"x", Shape{1, 640}}}});
  EXPECT_EQ(ToString(module.main()->body()->checked_type()), "Tensor[(1, 640), float32]");
  EXPECT_EQ(ImportError(model, {.shapes = {{"x", Shape{640}}}}),
            "input 'x' has shape [10, 3], which (640) does not fit");
}

TEST(ImportTest, SizesOutOfTheirRangeAreRefusedInARun) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"batch", "2"}).Output("y").Node("Relu", {"x"}, {"y"});
  const IRModule module = ImportOnnx(model.Write(), {.dims = {{"batch", {1, 2}}}});
  EXPECT_EQ(Interpret(module, "main", {Value(Floats({2, 2}, {1, 2, 3, 4}))}).tensor().num_elements(), 4);
  try {
    Interpret(module, "main", {Value(Tensor::Zeros({3, 2}, kFloat32))});
    ADD_FAILURE() << "three rows were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "'batch' is 3 in 'x', the model was compiled for 1 to 2");
  }
}

TEST(ImportTest, QuestionMarksAreNoNames) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"0", "0"}).Output("y").Node("Relu", {"x"}, {"y"});
  for (int d = 0; d < 2; ++d) {
    auto& shape = *model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(d)->set_dim_param(d == 0 ? "?" : "None");
  }
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_EQ(module.main()->attrs().Find(kAttrDimensionNames), nullptr);
}

TEST(ImportTest, DimensionsOfOneNameMustAgreeInARun) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"batch", "2"}).SymbolicInput("z", TensorProto::FLOAT, {"batch", "2"});
  model.Output("y").Node("Add", {"x", "z"}, {"y"});
  const IRModule module = ImportOnnx(model.Write());
  const Value two(Floats({2, 2}, {1, 2, 3, 4})), one(Floats({1, 2}, {1, 2}));
  EXPECT_EQ(Elements(Interpret(module, "main", {two, two}).tensor()), (std::vector<double>{2, 4, 6, 8}));
  try {
    Interpret(module, "main", {two, one});
    ADD_FAILURE() << "one row was repeated";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "inputs differ: 'batch' is 2 in 'x' and 1 in 'z'");
  }
}

TEST(ImportTest, QuantisedWeightsStayIntegers) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {1, 2}).Output("y");
  model.Initializer("w", Tensor::Of<int8_t>({2, 3}, kInt8, std::vector<int8_t>{1, 2, 3, 4, 5, 6}));
  model.Initializer("scale", Floats({3}, {0.5, 1, 2}));
  model.Initializer("zero", Tensor::Zeros({3}, kInt8));
  SetInt(model.Node("DequantizeLinear", {"w", "scale", "zero"}, {"weight"}), "axis", 1);
  model.Node("MatMul", {"x", "weight"}, {"y"});
  const IRModule module = PrepareForPartitioning(ImportOnnx(model.Write()));
  bool found = false;
  PostOrder(module.main()->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op()->name != "qnn.dequantize") return;
    found = true;
    // Transposed before it is dequantised: a dense layer wants [N, K].
    EXPECT_EQ(ToString(call->args()[0]->checked_type()), "Tensor[(3, 2), int8]");
    EXPECT_EQ(call->attrs().Int("axis"), 0);
    EXPECT_EQ(call->args()[0]->kind(), ExprKind::kConstant);
  });
  EXPECT_TRUE(found);
  EXPECT_EQ(Elements(Evaluate(module.main(), std::vector{Floats({1, 2}, {1, 10})})[0]),
            (std::vector<double>{20.5, 52, 126}));
}

TEST(ImportTest, SizesThatTheDataDecide) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2, 2}).Output("y");
  model.Node("NonZero", {"x"}, {"y"});
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_EQ(ToString(module.main()->body()->checked_type()), "Tensor[(2, ?), int64]");
  const Tensor y = Evaluate(module.main(), std::vector{Floats({2, 2}, {0, 5, 0, 7})})[0];
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(Elements(y), (std::vector<double>{0, 1, 1, 1}));
}

TEST(ImportTest, AttributesOfAnotherTypeAreNamed) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  SetString(model.Node("Softmax", {"x"}, {"y"}, "soft"), "axis", "last");
  EXPECT_EQ(ImportError(model), "node 'soft' (Softmax, opset 17): attribute 'axis' must be of type INT, not STRING");
}

TEST(ImportTest, WhatIsRefusedSaysWhy) {
  ModelFile model(17);
  model.Output("y");
  model.Input("x", TensorProto::UINT8, {9});
  model.Node("ImageDecoder", {"x"}, {"y"}, "photo");
  EXPECT_EQ(
      ImportError(model),
      "1 operator of opset 17 is not supported: 'ImageDecoder' (1 time, first at node 'photo': images are decoded "
      "before a model runs)");
}

TEST(ImportTest, ExternalDataStaysInTheModelsFolder) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value("weights/../../secret");
  model.Node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(ImportError(model), "external data 'weights/../../secret' is not in the model's folder");
}

TEST(ImportTest, ShapesOfInitializersAreNotBelieved) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(int64_t{1} << 40);
  model.Node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(ImportError(model), "too few elements for shape (1099511627776)");
}

TEST(ImportTest, SequenceLengthsThatSayNothingVanish) {
  for (bool full : {true, false}) {
    ModelFile model(17);
    model.Input("x", TensorProto::FLOAT, {3, 2, 4}).Output("y");
    model.Initializer("w", Tensor::Zeros({1, 20, 4}, kFloat32)).Initializer("r", Tensor::Zeros({1, 20, 5}, kFloat32));
    model.Initializer("lengths", Tensor::Of<int32_t>({2}, kInt32, std::vector<int32_t>{3, full ? 3 : 1}));
    SetInt(model.Node("LSTM", {"x", "w", "r", "", "lengths"}, {"y"}), "hidden_size", 5);
    const IRModule module = ImportOnnx(model.Write());
    const CallNode* layer = As<CallNode>(As<TupleGetItemNode>(module.main()->body())->tuple());
    EXPECT_EQ(layer->args().size(), full ? 6 : 8);
  }
}

}  // namespace
}  // namespace collage
