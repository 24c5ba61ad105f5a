// operands_test.cc: operands and attributes that are not as an operator has them are refused, and the message says
// which.
#include <gtest/gtest.h>

#include <set>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "frontend/onnx/importer.h"
#include "ir/eval/evaluate.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;
using V = std::vector<int64_t>;

Tensor Floats(const Shape& shape) { return Tensor::Zeros(shape, kFloat32); }
Tensor Ints(const Shape& shape, const V& values) { return Tensor::Of<int64_t>(shape, kInt64, values); }

void SetInts(onnx::NodeProto& node, const std::string& name, const V& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
}

/// A model of one node called n, whose inputs x0, x1, … are constants or, of a shape alone, inputs of the model.
class OneNode {
 public:
  OneNode(const std::string& op, int opset, int outputs = 1) : model_(opset), op_(op), outputs_(outputs) {}

  OneNode& Input(const Shape& shape, TensorProto::DataType type = TensorProto::FLOAT) {
    model_.Input(NextName(), type, shape);
    return *this;
  }
  OneNode& Constant(const Tensor& value) {
    model_.Initializer(NextName(), value);
    return *this;
  }
  OneNode& Absent() {
    inputs_.emplace_back();
    return *this;
  }

  /// The node, for attributes to be added to; no inputs after it.
  onnx::NodeProto& Node() {
    if (node_ != nullptr) return *node_;
    std::vector<std::string> names;
    for (int i = 0; i < outputs_; ++i) names.push_back("y" + std::to_string(i));
    node_ = &model_.Node(op_, inputs_, names, "n");
    model_.Output(names.empty() ? "x0" : names[0]);
    return *node_;
  }

  /// "category: message" of the error that importing gives; what is imported has none.
  std::string Refusal() {
    Node();
    try {
      ImportOnnx(model_.Write());
    } catch (const Error& error) {
      return std::string(ToString(error.category())) + ": " + error.message();
    }
    return "";
  }

 private:
  std::string NextName() {
    inputs_.push_back("x" + std::to_string(inputs_.size()));
    return inputs_.back();
  }

  ModelFile model_;
  std::string op_;
  int outputs_;
  std::vector<std::string> inputs_;
  onnx::NodeProto* node_ = nullptr;
};

TEST(OperandsTest, MatMulOfAScalar) {
  EXPECT_EQ(OneNode("MatMul", 17).Input({}).Input({3, 4}).Refusal(),
            "input: node 'n' (MatMul, opset 17): input 0 ('A') is float32, rank 1 or more is wanted");
  EXPECT_EQ(OneNode("MatMulInteger", 17).Input({2, 3}, TensorProto::INT8).Input({}, TensorProto::INT8).Refusal(),
            "input: node 'n' (MatMulInteger, opset 17): input 1 ('B') is int8, rank 1 or more is wanted");
}

TEST(OperandsTest, OneInputWhereTwoAreWanted) {
  const std::string shape = "input: node 'n' ";
  EXPECT_EQ(OneNode("ConvTranspose", 17).Input({1, 2, 3}).Refusal(),
            shape + "(ConvTranspose, opset 17): has 1 input, 2 to 3 are wanted (X, W, B)");
  EXPECT_EQ(OneNode("Expand", 17).Input({1, 2}).Refusal(),
            shape + "(Expand, opset 17): has 1 input, 2 are wanted (input, shape)");
  EXPECT_EQ(OneNode("NegativeLogLikelihoodLoss", 17).Input({2, 3}).Refusal(),
            shape + "(NegativeLogLikelihoodLoss, opset 17): has 1 input, 2 to 3 are wanted (input, target, weight)");
  EXPECT_EQ(OneNode("GroupNormalization", 18).Input({2, 4, 3}).Refusal(),
            shape + "(GroupNormalization, opset 18): has 1 input, 3 are wanted (X, scale, bias)");
  EXPECT_EQ(OneNode("Min", 17).Refusal(), shape + "(Min, opset 17): has 0 inputs, 1 or more are wanted (data_0)");
  EXPECT_EQ(OneNode("Split", 17).Refusal(),
            shape + "(Split, opset 17): has 0 inputs, 1 to 2 are wanted (input, split)");
  EXPECT_EQ(OneNode("Relu", 17, 2).Input({2}).Refusal(), shape + "(Relu, opset 17): has 2 outputs, 1 is wanted");
  EXPECT_EQ(OneNode("Add", 17).Absent().Input({2}).Refusal(), shape + "(Add, opset 17): input 0 ('A') is missing");
}

TEST(OperandsTest, InputsOfOtherOpsets) {
  EXPECT_EQ(OneNode("Clip", 9).Input({2}).Constant(Floats({})).Refusal(),
            "input: node 'n' (Clip, opset 9): has 2 inputs, 1 is wanted (input)");
  EXPECT_EQ(OneNode("Slice", 13).Input({2}).Refusal(),
            "input: node 'n' (Slice, opset 13): has 1 input, 3 to 5 are wanted (data, starts, ends, axes, steps)");
}

TEST(OperandsTest, ElementsOfAnotherKind) {
  EXPECT_EQ(OneNode("Sqrt", 17).Input({2}, TensorProto::INT32).Refusal(),
            "input: node 'n' (Sqrt, opset 17): input 0 ('X') is Tensor[(2), int32], floats are wanted");
  EXPECT_EQ(OneNode("Add", 17).Input({2}).Input({2}, TensorProto::INT32).Refusal(),
            "input: node 'n' (Add, opset 17): input 1 ('B') is Tensor[(2), int32], elements of the type of input 0 are "
            "wanted");
}

TEST(OperandsTest, RanksThatCollageHasNot) {
  EXPECT_EQ(
      OneNode("MaxPool", 17).Input({1, 1, 2, 2, 2, 2}).Refusal(),
      "unsupported: node 'n' (MaxPool, opset 17): input 0 ('X') is Tensor[(1, 1, 2, 2, 2, 2), float32], rank 3 to "
      "5 is supported");
  EXPECT_EQ(OneNode("MaxPool", 17).Input({1, 1}).Refusal(),
            "input: node 'n' (MaxPool, opset 17): input 0 ('X') is Tensor[(1, 1), float32], rank 3 to 5 is wanted");
}

TEST(OperandsTest, NonMaxSuppressionOfOtherScores) {
  EXPECT_NE(OneNode("NonMaxSuppression", 17)
                .Input({1, 5, 4})
                .Input({1, 2, 9})
                .Refusal()
                .find("expects a score per box, class and batch"),
            std::string::npos);
  EXPECT_EQ(OneNode("NonMaxSuppression", 17).Input({5, 4}).Input({1, 2, 5}).Refusal(),
            "input: node 'n' (NonMaxSuppression, opset 17): input 0 ('boxes') is Tensor[(5, 4), float32], rank 3 is "
            "wanted");
}

TEST(OperandsTest, WindowsOfNoOneSize) {
  EXPECT_EQ(OneNode("HannWindow", 17).Constant(Ints({0}, {})).Refusal(),
            "input: node 'n' (HannWindow, opset 17): input 0 has 0 elements, one is wanted");
  EXPECT_EQ(OneNode("HannWindow", 17).Constant(Ints({}, {1000000000000})).Refusal(),
            "input: node 'n' (HannWindow, opset 17): cannot make a window of 1000000000000 samples");
}

TEST(OperandsTest, BatchNormalizationOfOtherStatistics) {
  OneNode model("BatchNormalization", 17);
  model.Input({2, 3, 4}).Input({3}).Input({3}).Input({3}).Input({1});
  EXPECT_NE(model.Refusal().find("expects 3 values as argument 4"), std::string::npos) << model.Refusal();
}

TEST(OperandsTest, OneHotOfNoDepth) {
  EXPECT_EQ(OneNode("OneHot", 17).Input({2}).Constant(Ints({0}, {})).Input({2}).Refusal(),
            "input: node 'n' (OneHot, opset 17): input 1 has 0 elements, one is wanted");
  EXPECT_EQ(OneNode("OneHot", 17).Input({2}).Constant(Ints({}, {-3})).Input({2}).Refusal(),
            "input: node 'n' (OneHot, opset 17): depth is -3, a size is wanted");
}

TEST(OperandsTest, TensorScatterOfAnotherRank) {
  EXPECT_EQ(OneNode("TensorScatter", 24).Input({2, 4, 3}).Input({2, 4}).Refusal(),
            "input: node 'n' (TensorScatter, opset 24): cache and update have ranks 3 and 2, equal ones are wanted");
}

TEST(OperandsTest, LoopsOnEmptyConditions) {
  OneNode model("Loop", 17);
  model.Constant(Ints({}, {2})).Constant(Tensor::Zeros({0}, kBool)).Input({2});
  onnx::AttributeProto& body = *model.Node().add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  EXPECT_NE(model.Refusal().find("cannot reshape 0 elements"), std::string::npos) << model.Refusal();
}

TEST(OperandsTest, TriluRangeAndRoiAlignOfOtherRanks) {
  EXPECT_EQ(OneNode("Trilu", 17).Input({3}).Refusal(),
            "input: node 'n' (Trilu, opset 17): input 0 ('input') is Tensor[(3), float32], rank 2 or more is wanted");
  EXPECT_NE(OneNode("Range", 17).Constant(Floats({0})).Constant(Floats({1})).Constant(Floats({1})).Refusal(), "");
  EXPECT_EQ(OneNode("RoiAlign", 17).Input({1, 2, 5, 5}).Input({4}).Input({1}, TensorProto::INT64).Refusal(),
            "input: node 'n' (RoiAlign, opset 17): input 1 ('rois') is Tensor[(4), float32], rank 2 is wanted");
}

TEST(OperandsTest, SplitsThatDoNotAddUp) {
  EXPECT_EQ(OneNode("Split", 17, 2).Input({4}).Constant(Ints({2}, {1, 9})).Refusal(),
            "input: node 'n' (Split, opset 17): cannot split 4 into 2 parts of (1, 9)");
  OneNode none("Split", 18, 2);
  SetInt(none.Input({4}).Node(), "num_outputs", 0);
  EXPECT_EQ(none.Refusal(),
            "input: node 'n' (Split, opset 18): attribute 'num_outputs' is 0, a number from 2 to 2 is wanted");
}

TEST(OperandsTest, AttributesOutOfRange) {
  OneNode stride("Conv", 17);
  SetInts(stride.Input({1, 2, 5}).Input({3, 2, 3}).Node(), "strides", {-1});
  EXPECT_EQ(stride.Refusal(),
            "input: node 'n' (Conv, opset 17): attribute 'strides' is [-1], 1 number from 1 to 2147483647 is wanted");
  OneNode kernel("MaxPool", 17);
  SetInts(kernel.Input({1, 2, 5}).Node(), "kernel_shape", {2, 2});
  EXPECT_EQ(kernel.Refusal(), "input: node 'n' (MaxPool, opset 17): a kernel of rank 2 for data of rank 3");
  OneNode group("Conv", 17);
  SetInt(group.Input({1, 2, 5}).Input({3, 2, 3}).Node(), "group", 0);
  EXPECT_EQ(group.Refusal(),
            "input: node 'n' (Conv, opset 17): attribute 'group' is 0, a number from 1 to 2147483647 is wanted");
  OneNode block("DepthToSpace", 17);
  SetInt(block.Input({1, 4, 2, 2}).Node(), "blocksize", 0);
  EXPECT_EQ(block.Refusal(),
            "input: node 'n' (DepthToSpace, opset 17): attribute 'blocksize' is 0, a number from 1 to 32768 is wanted");
  OneNode direction("BitShift", 17);
  SetString(direction.Input({2}, TensorProto::UINT8).Input({2}, TensorProto::UINT8).Node(), "direction", "UP");
  EXPECT_EQ(direction.Refusal(),
            "input: node 'n' (BitShift, opset 17): attribute 'direction' is 'UP', one of 'LEFT', 'RIGHT' is wanted");
  OneNode dtype("Cast", 17);
  SetInt(dtype.Input({2}).Node(), "to", 99);
  EXPECT_EQ(dtype.Refusal(), "unsupported: node 'n' (Cast, opset 17): element type 99 is not supported");
}

TEST(OperandsTest, ResultsThatNoMemoryHolds) {
  const V large{int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(OneNode("ConstantOfShape", 17).Constant(Ints({2}, large)).Refusal().find("of more than 2^62 bytes"),
            std::string::npos);
  EXPECT_NE(OneNode("Tile", 17).Input({2, 2}).Constant(Ints({2}, large)).Refusal().find("of more than 2^62 bytes"),
            std::string::npos);
  EXPECT_EQ(OneNode("Range", 17)
                .Constant(Ints({}, {0}))
                .Constant(Ints({}, {1000000000000}))
                .Constant(Ints({}, {1}))
                .Refusal(),
            "unsupported: node 'n' (Range, opset 17): a range of 1000000000000 elements");
  EXPECT_EQ(OneNode("Reshape", 17).Input({2, 2}).Constant(Ints({1001}, V(1001, 1))).Refusal(),
            "unsupported: node 'n' (Reshape, opset 17): a shape of 1001 dimensions");
  // Larger than memory, but nothing that has to be computed now.
  EXPECT_EQ(OneNode("ConstantOfShape", 17).Constant(Ints({1}, {1000000000000})).Refusal(), "");
  EXPECT_EQ(OneNode("Expand", 17).Input({1}).Constant(Ints({1}, {1000000000000})).Refusal(), "");
}

TEST(OperandsTest, EveryOperatorStatesItsOperands) {
  const std::set<std::string> without_inputs{"Constant", "RandomNormal", "RandomUniform", "SequenceEmpty"};
  for (const std::string& op : AllOnnxConverters().Names()) {
    const OnnxSignature& signature = AllOnnxConverters().Find(op)->signature;
    EXPECT_TRUE(without_inputs.contains(op) || !signature.inputs.empty()) << op;
    EXPECT_GE(signature.most_outputs, 1) << op;
  }
}

TEST(NodeOrderTest, NodesMayStandInAnyOrder) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  model.Node("Neg", {"b"}, {"y"});
  model.Node("Add", {"a", "x"}, {"b"});
  model.Node("Abs", {"x"}, {"a"});
  const IRModule module = ImportOnnx(model.Write());
  const Tensor x = Tensor::Of<float>({2}, kFloat32, std::vector<float>{-3, 4});
  const Tensor y = Evaluate(module.main(), std::vector{x})[0];
  EXPECT_EQ(y.At(0), 0);
  EXPECT_EQ(y.At(1), -8);
}

TEST(NodeOrderTest, WhatNestedGraphsReadComesFirst) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Input("condition", TensorProto::BOOL, {}).Output("y");
  onnx::NodeProto& node = model.Node("If", {"condition"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->add_output()->set_name("a");
  }
  model.Node("Abs", {"x"}, {"a"});
  EXPECT_NO_THROW(ImportOnnx(model.Write()));
}

TEST(NodeOrderTest, CyclesAreRefused) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  model.Node("Add", {"x", "b"}, {"a"}, "first");
  model.Node("Neg", {"a"}, {"b"}, "second");
  model.Node("Abs", {"b"}, {"y"}, "third");
  try {
    ImportOnnx(model.Write());
    ADD_FAILURE() << "imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    EXPECT_EQ(error.message(),
              "nodes read each other's outputs in a cycle, or what comes of it: 'first' (Add), 'second' (Neg), 'third' "
              "(Abs)");
  }
}

}  // namespace
}  // namespace collage
