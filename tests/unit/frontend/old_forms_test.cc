// old_forms_test.cc: operators of opsets before 7.
#include "frontend/onnx/old_forms.h"

#include <gtest/gtest.h>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

Tensor Counted(const Shape& shape) {
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(i));
  return tensor;
}

Tensor ResultOf(const ModelFile& model, const std::vector<Tensor>& inputs) {
  return Evaluate(ImportOnnx(model.Write(), {}).main(), inputs)[0];
}

TEST(OldFormsTest, OperandsAreBroadcastAlongAnAxis) {
  ModelFile model(6);
  model.Input("x", TensorProto::FLOAT, {2, 3, 4}).Input("b", TensorProto::FLOAT, {3}).Output("y");
  onnx::NodeProto& node = model.Node("Add", {"x", "b"}, {"y"});
  SetInt(node, "broadcast", 1);
  SetInt(node, "axis", 1);
  const Tensor y = ResultOf(model, {Tensor::Zeros({2, 3, 4}, kFloat32), Counted({3})});
  ASSERT_EQ(y.shape(), (Shape{2, 3, 4}));
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(y.At(i), static_cast<double>(i / 4 % 3));
}

TEST(OldFormsTest, SlopesBelongToChannels) {
  ModelFile model(6);
  model.Input("x", TensorProto::FLOAT, {1, 2, 2}).Input("s", TensorProto::FLOAT, {2}).Output("y");
  model.Node("PRelu", {"x", "s"}, {"y"});
  const Tensor x = Tensor::Of<float>({1, 2, 2}, kFloat32, std::vector<float>{-1, -1, -1, 2});
  const Tensor slopes = Tensor::Of<float>({2}, kFloat32, std::vector<float>{10, 20});
  const Tensor y = ResultOf(model, {x, slopes});
  EXPECT_EQ(y.At(1), -10);
  EXPECT_EQ(y.At(2), -20);
  EXPECT_EQ(y.At(3), 2);
}

TEST(OldFormsTest, AxesThatDoNotFitAreRefused) {
  ModelFile model(6);
  model.Input("x", TensorProto::FLOAT, {2, 3}).Input("b", TensorProto::FLOAT, {3}).Output("y");
  onnx::NodeProto& node = model.Node("Mul", {"x", "b"}, {"y"}, "scale");
  SetInt(node, "broadcast", 1);
  SetInt(node, "axis", 2);
  try {
    ImportOnnx(model.Write(), {});
    FAIL() << "imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "node 'scale' (Mul, opset 6): attribute 'axis' is 2, which does not fit its operands");
  }
}

}  // namespace
}  // namespace collage
