// onnx_test.cc: the front end on the small standard models: import, prepare, evaluate, compare with onnxruntime's
// outputs.
#include "collage/frontend/onnx.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "ir/eval/evaluate.h"
#include "runtime/compare.h"
#include "runtime/npy.h"
#include "unit/frontend/model_file.h"
#include "unit/frontend/models_folder.h"

namespace collage {
namespace {

class OnnxModelTest : public testing::TestWithParam<const char*> {};

TEST_P(OnnxModelTest, EvaluatesToTheReference) {
  const std::filesystem::path model = ModelsFolder() / "small" / (std::string(GetParam()) + ".onnx");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not there; run tools/models/prepare-tests";
  std::filesystem::path arrays_path = model;
  const auto arrays = ReadNpz(arrays_path.replace_extension(".npz"));
  for (bool prepared : {false, true}) {
    SCOPED_TRACE(prepared ? "prepared for partitioning" : "as imported");
    IRModule module = ImportOnnx(model);
    if (prepared) module = PrepareForPartitioning(std::move(module));
    std::vector<Tensor> inputs;
    for (const Var& param : module.main()->params()) inputs.push_back(arrays.at("in." + param->name()));
    const std::vector<Tensor> outputs = Evaluate(module.main(), inputs);
    const AttrValue::List& names = *module.main()->attrs().Get("output_names").as_list();
    ASSERT_EQ(outputs.size(), names.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Comparison comparison = Compare(outputs[i], arrays.at("out." + *names[i].as_string()), {1e-3, 1e-4});
      EXPECT_TRUE(comparison.agrees) << *names[i].as_string() << ": " << comparison.difference;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(StandardModels, OnnxModelTest,
                         testing::Values("mnist", "squeezenet", "mobilenet_v2", "efficientnet_b0", "nasnet_a_mobile",
                                         "densenet121", "resnet18", "resnet50", "resnext50", "inception_v3", "vgg16",
                                         "convnext_tiny", "resnet3d_18", "dcgan", "unet", "yolo", "vit_b16",
                                         "bert_base", "distilbert", "gpt2", "llama", "lstm_tagger", "gru_speech",
                                         "nasrnn", "resnet50_int8"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxTest, UnknownOperatorsAreNamedAllAtOnce) {
  ModelFile model(17);
  model.Input("x", onnx::TensorProto::FLOAT, {3}).Output("y");
  model.Node("Bogus", {"x"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"});
  model.Node("Bogus", {"b"}, {"c"}, "second");
  model.Node("Relu", {"c"}, {"y"}).set_domain("com.acme");
  try {
    ImportOnnx(model.Write());
    FAIL() << "a model of unknown operators was imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_EQ(error.message(),
              "2 operators of opset 17 are not supported: 'Bogus' (2 times, first at node 'first'), 'com.acme::Relu' "
              "(1 time, first at node 'y')");
  }
}

}  // namespace
}  // namespace collage
