// onnx_export_test.cc: what Relay becomes in ONNX: every operator and every small model goes out and comes back.
#include "collage/frontend/onnx_export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "onnx/onnx-ml.pb.h"
#include "runtime/compare.h"
#include "support/file.h"
#include "unit/frontend/models_folder.h"

namespace collage {
namespace {

onnx::ModelProto Exported(const IRModule& module) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ExportOnnx(module)));
  return model;
}

IRModule Reimported(const IRModule& module) {
  const TemporaryFolder folder;
  WriteFile(folder / "model.onnx", ExportOnnx(module));
  return ImportOnnx(folder / "model.onnx");
}

/// The error that exporting a text gives; "" when there is none.
std::string ExportError(const std::string& text) {
  try {
    ExportOnnx(ParseModule(text));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

std::vector<std::string> OpTypes(const onnx::GraphProto& graph) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

Tensor Random(const TensorTypeNode& type, double low, double high, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = Tensor::Empty(type.static_shape(), type.dtype());
  std::uniform_real_distribution<double> real(low, high);
  std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(std::ceil(low)),
                                               static_cast<int64_t>(std::floor(high)));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.Set(i, type.dtype().is_floating() ? real(random) : static_cast<double>(whole(random)));
  }
  return tensor;
}

/// The flattened results of @main.
std::vector<Tensor> Results(const IRModule& module, const std::vector<Tensor>& inputs) {
  return Evaluate(module.main(), inputs);
}

/// What pass qnn.CanonicalizeOps replaces before a module is exported.
bool IsOfQuantisedDialect(const std::string& op) {
  return op.starts_with("qnn.") && op != "qnn.quantize" && op != "qnn.dequantize";
}

TEST(OnnxExportTest, EveryOperatorHasARow) {
  std::vector<std::string> all;
  for (const Op& op : AllOps()) {
    if (!IsOfQuantisedDialect(op->name())) all.push_back(op->name());
  }
  EXPECT_THAT(OnnxExportableOps(), testing::UnorderedElementsAreArray(all));
}

/// A call of the operator on its example's arguments, all of which are parameters.
IRModule ExampleModule(const OpDef& op, const OpExample& example) {
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Type& type : example.args) {
    std::vector<Expr> parts;
    for (const Type& part : FlattenTensorTypes(type)) {
      params.push_back(MakeVar(fmt::format("x{}", params.size()), part));
      parts.push_back(params.back());
    }
    args.push_back(AsTupleType(type) == nullptr ? parts.at(0) : MakeTuple(parts));
  }
  return InferTypes(IRModule::FromFunction(MakeFunction(params, MakeCall(op.name, args, example.attrs))));
}

class OnnxExportOfOp : public testing::TestWithParam<std::string> {};

TEST_P(OnnxExportOfOp, ComesBackAsWhatItWas) {
  const OpDef& op = GetOp(GetParam())->def();
  for (size_t e = 0; e < op.examples.size(); ++e) {
    SCOPED_TRACE(fmt::format("example {}", e));
    const OpExample& example = op.examples[e];
    const IRModule module = ExampleModule(op, example);
    std::vector<Tensor> inputs;
    for (const Var& param : module.main()->params()) {
      inputs.push_back(Random(*AsTensorType(param->checked_type()), example.low, example.high,
                              static_cast<uint32_t>(inputs.size() + 1)));
    }
    const std::vector<Tensor> wanted = Results(module, inputs);
    std::vector<Tensor> got;
    try {
      got = Results(Reimported(module), inputs);
    } catch (const Error& error) {
      // What says how something is shaped must be a constant for the importer.
      if (error.message().find("must be constant") != std::string::npos) continue;
      FAIL() << error.Format();
    }
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].dtype(), wanted[i].dtype());
      const Comparison comparison = Compare(got[i], wanted[i], {1e-5, 1e-5});
      EXPECT_TRUE(comparison.agrees) << "result " << i << ": " << comparison.difference;
    }
  }
}

std::vector<std::string> OpsWithExamples() {
  std::vector<std::string> names;
  for (const Op& op : AllOps()) {
    // Shifts of signed integers are tried below: ONNX has none.
    const std::set<std::string> without{"left_shift", "right_shift"};
    if (op->def().examples.empty() || without.contains(op->name()) || IsOfQuantisedDialect(op->name())) continue;
    names.push_back(op->name());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Operators, OnnxExportOfOp, testing::ValuesIn(OpsWithExamples()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

/// An operator whose sizes are arguments, the one that it is when they are known, and what they are.
struct DynamicCase {
  const char* dynamic;
  const char* known;
  std::map<std::string, Tensor> values;
};

class OnnxExportOfDynamicOp : public testing::TestWithParam<DynamicCase> {};

TEST_P(OnnxExportOfDynamicOp, IsTheStaticOneWhenItsSizesAreKnown) {
  const std::string head = "def @main(%x: Tensor[(1, 2, 5, 7), float32]";
  const IRModule module = InferTypes(ParseModule(head + GetParam().dynamic));
  const IRModule known = InferTypes(ParseModule(head + GetParam().known));
  const TemporaryFolder folder;
  WriteOnnx(module, folder / "model.onnx");
  const IRModule back = ImportOnnx(folder / "model.onnx", {.constants = GetParam().values});
  const std::vector<Tensor> inputs{Random(*AsTensorType(known.main()->params()[0]->checked_type()), -3, 3, 1)};
  const std::vector<Tensor> wanted = Results(known, inputs);
  const std::vector<Tensor> got = Results(back, inputs);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const Comparison comparison = Compare(got[i], wanted[i], {1e-5, 1e-5});
    EXPECT_TRUE(comparison.agrees) << "result " << i << ": " << comparison.difference;
  }
}

std::map<std::string, Tensor> Values(const std::map<std::string, std::vector<int64_t>>& numbers) {
  std::map<std::string, Tensor> values;
  for (const auto& [name, list] : numbers) {
    values[name] = Tensor::Of<int64_t>({static_cast<int64_t>(list.size())}, kInt64, list);
  }
  return values;
}

INSTANTIATE_TEST_SUITE_P(
    Operators, OnnxExportOfDynamicOp,
    testing::Values(
        DynamicCase{", %s: Tensor[(2), int64]) { dyn.image.resize2d(%x, %s) }",
                    ") { image.resize2d(%x, size=[10, 21]) }", Values({{"s", {10, 21}}})},
        DynamicCase{", %s: Tensor[(1), int64]) { dyn.image.resize2d(%x, %s, method=\"nearest_neighbor\", "
                    "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\") }",
                    ") { image.resize2d(%x, size=[9, 9], method=\"nearest_neighbor\", "
                    "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\") }",
                    Values({{"s", {9}}})},
        DynamicCase{", %s: Tensor[(3), int64]) { dyn.reshape(%x, %s) }", ") { reshape(%x, newshape=[7, 2, -1]) }",
                    Values({{"s", {7, 2, -1}}})},
        DynamicCase{", %s: Tensor[(2), int64]) { dyn.tile(%x, %s) }", ") { tile(%x, reps=[1, 1, 2, 3]) }",
                    Values({{"s", {2, 3}}})},
        DynamicCase{", %s: Tensor[(5), int64]) { dyn.tile(%x, %s) }",
                    ") { tile(expand_dims(%x, axis=0), reps=[2, 1, 1, 3, 1]) }", Values({{"s", {2, 1, 1, 3, 1}}})},
        DynamicCase{", %s: Tensor[(5), int64]) { dyn.broadcast_to(%x, %s) }",
                    ") { broadcast_to(%x, shape=[3, 4, 2, 5, 7]) }", Values({{"s", {3, 4, 2, 5, 7}}})},
        DynamicCase{", %s: Tensor[(2), int64]) { (%x, dyn.full(2f, %s), dyn.ones(%s, dtype=\"float32\")) }",
                    ") { (%x, full(2f, shape=[2, 3]), ones(shape=[2, 3], dtype=\"float32\")) }",
                    Values({{"s", {2, 3}}})},
        DynamicCase{", %b: Tensor[(4), int64], %e: Tensor[(4), int64], %s: Tensor[(1), int64]) { "
                    "dyn.strided_slice(%x, %b, %e, %s) }",
                    ") { strided_slice(%x, begin=[0, 0, 1, 1], end=[1, 2, 5, 7], strides=[2, 2, 2, 2]) }",
                    Values({{"b", {0, 0, 1, 1}}, {"e", {1, 2, 5, 7}}, {"s", {2}}})},
        DynamicCase{", %k: Tensor[(1), int64]) { dyn.topk(%x, %k, axis=-1, ret_type=\"values\") }",
                    ") { topk(%x, k=3, axis=-1, ret_type=\"values\") }", Values({{"k", {3}}})},
        DynamicCase{", %k: Tensor[(1), int64]) { dyn.topk(%x, %k, axis=2, ret_type=\"values\") }",
                    ") { topk(%x, k=5, axis=2, ret_type=\"values\") }", Values({{"k", {0}}})},
        DynamicCase{", %a: Tensor[(1), int64]) { dyn.squeeze(%x, %a) }", ") { squeeze(%x, axis=[0]) }",
                    Values({{"a", {0}}})},
        DynamicCase{", %a: Tensor[(1), int64]) { dyn.expand_dims(%x, %a, num_newaxis=2) }",
                    ") { expand_dims(%x, axis=-1, num_newaxis=2) }", Values({{"a", {-1}}})},
        DynamicCase{", %w: Tensor[(4, 2), int64]) { dyn.nn.pad(%x, %w, 2f) }",
                    ") { nn.pad(%x, 2f, pad_width=[[0, 0], [1, 0], [2, 3], [0, 1]]) }",
                    {{"w", Tensor::Of<int64_t>({4, 2}, kInt64, std::vector<int64_t>{0, 0, 1, 0, 2, 3, 0, 1})}}},
        DynamicCase{", %d: Tensor[(1), int64]) { "
                    "dyn.one_hot(cast(abs(%x), dtype=\"int64\"), 1f, -1f, %d, axis=1, dtype=\"float32\") }",
                    ") { one_hot(cast(abs(%x), dtype=\"int64\"), 1f, -1f, depth=4, axis=1, "
                    "dtype=\"float32\") }",
                    Values({{"d", {4}}})}));

class OnnxExportOfModel : public testing::TestWithParam<const char*> {};

TEST_P(OnnxExportOfModel, IsImportedAsTheSameModule) {
  const std::filesystem::path path = ModelsFolder() / "small" / (std::string(GetParam()) + ".onnx");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there; run tools/models/prepare-tests";
  const IRModule module = ImportOnnx(path);
  EXPECT_TRUE(StructuralEqual(module.main(), Reimported(module).main()));
}

INSTANTIATE_TEST_SUITE_P(StandardModels, OnnxExportOfModel,
                         testing::Values("mnist", "squeezenet", "mobilenet_v2", "efficientnet_b0", "nasnet_a_mobile",
                                         "densenet121", "resnet18", "resnet50", "resnext50", "inception_v3", "vgg16",
                                         "convnext_tiny", "resnet3d_18", "dcgan", "unet", "yolo", "vit_b16",
                                         "bert_base", "distilbert", "gpt2", "llama", "lstm_tagger", "gru_speech",
                                         "nasrnn", "resnet50_int8"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxExportTest, NamesAndTypesAreKept) {
  const onnx::ModelProto model = Exported(ParseModule(R"(
      def @main(%image: Tensor[(1, ?, 4), float32], %n: int64, output_names=["scores", "count"]) {
        (nn.softmax(%image), add(%n, 1i64))
      })"));
  ASSERT_EQ(model.graph().input_size(), 2);
  EXPECT_EQ(model.graph().input(0).name(), "image");
  const auto& shape = model.graph().input(0).type().tensor_type().shape();
  ASSERT_EQ(shape.dim_size(), 3);
  EXPECT_EQ(shape.dim(0).dim_value(), 1);
  EXPECT_EQ(shape.dim(1).dim_param(), "image_1");
  EXPECT_TRUE(model.graph().input(1).type().tensor_type().has_shape());
  ASSERT_EQ(model.graph().output_size(), 2);
  EXPECT_EQ(model.graph().output(0).name(), "scores");
  EXPECT_EQ(model.graph().output(1).name(), "count");
  EXPECT_EQ(model.graph().output(1).type().tensor_type().elem_type(), onnx::TensorProto::INT64);
  EXPECT_EQ(model.opset_import(0).version(), 17);
}

TEST(OnnxExportTest, YoungOperatorsAskForTheirOpset) {
  const onnx::ModelProto model = Exported(ParseModule("def @main(%x: Tensor[(3), float32]) { cumprod(%x, axis=0) }"));
  EXPECT_EQ(model.opset_import(0).version(), 26);
}

TEST(OnnxExportTest, ReductionsNameTheirAxesAsTheirOpsetDoes) {
  const std::string mean = "def @main(%x: Tensor[(3, 4), float32]) { %0 = mean(%x, axis=[1], keepdims=True); ";
  const onnx::ModelProto old = Exported(ParseModule(mean + "exp(%0) }"));
  EXPECT_EQ(old.graph().node(0).input_size(), 1);
  ASSERT_EQ(old.graph().node(0).attribute_size(), 2);
  EXPECT_EQ(old.graph().node(0).attribute(1).name(), "axes");
  EXPECT_EQ(old.graph().initializer_size(), 0);
  const onnx::ModelProto young = Exported(ParseModule(mean + "cumprod(%0, axis=0) }"));
  EXPECT_EQ(young.graph().node(0).input_size(), 2);
  EXPECT_EQ(young.graph().node(0).attribute_size(), 1);
}

TEST(OnnxExportTest, CalledFunctionsAreInlinedForEachCall) {
  const IRModule module = ParseModule(R"(
      def @twice(%a: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%a, %a) }
      def @main(%x: Tensor[(2), float32]) {
        let %f = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%y) };
        %0 = @twice(%x);
        %1 = %f(%0);
        @twice(%1)
      })");
  EXPECT_THAT(OpTypes(Exported(module).graph()), testing::ElementsAre("Add", "Relu", "Add", "Identity"));
}

TEST(OnnxExportTest, NestedTuplesAreFlattened) {
  const IRModule module = InferTypes(ParseModule(R"(
      def @main(%p: (Tensor[(2), float32], (Tensor[(2), float32], float32))) {
        %0 = (%p.1, %p.0);
        %1 = %0.0;
        (%1.1, %0)
      })"));
  const onnx::ModelProto model = Exported(module);
  EXPECT_EQ(model.graph().input_size(), 3);
  ASSERT_EQ(model.graph().output_size(), 4);
  EXPECT_EQ(model.graph().node(0).input(0), model.graph().input(2).name());
  EXPECT_EQ(model.graph().node(3).input(0), model.graph().input(0).name());
}

TEST(OnnxExportTest, BranchesSeeWhatIsOutside) {
  const IRModule module = InferTypes(ParseModule(R"(
      def @main(%c: bool, %x: Tensor[(2), float32]) {
        let %y = exp(%x);
        if (%c) { (%y, negative(%y)) } else { (tanh(%y), %x) }
      })"));
  const IRModule back = Reimported(module);
  for (double c : {0.0, 1.0}) {
    const std::vector<Value> args{MakeScalar(c, kBool)->value(),
                                  Random(*AsTensorType(TensorType(Shape{2}, kFloat32)), -1, 1, 5)};
    EXPECT_EQ(ToString(Interpret(module, "main", args)), ToString(Interpret(back, "main", args)));
  }
}

TEST(OnnxExportTest, TailRecursionIsALoop) {
  const IRModule module = InferTypes(ParseModule(R"(
      def @main(%n: int64, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
        let %loop = fn (%i: int64, %v: Tensor[(2), float32]) -> Tensor[(2), float32] {
          if (less(%i, %n)) { %loop(add(%i, 1i64), add(%v, %x)) } else { negative(%v) }
        };
        %loop(0i64, %x)
      })"));
  EXPECT_THAT(OpTypes(Exported(module).graph()), testing::Contains("Loop"));
  const IRModule back = Reimported(module);
  for (int n : {0, 1, 5}) {
    const std::vector<Value> args{MakeScalar(n, kInt64)->value(),
                                  Tensor::Of<float>({2}, kFloat32, std::vector<float>{1, 2})};
    EXPECT_EQ(ToString(Interpret(module, "main", args)), ToString(Interpret(back, "main", args))) << n;
  }
}

TEST(OnnxExportTest, WhatOnnxHasNoWordsForIsNamed) {
  EXPECT_EQ(ExportError("def @main(%x: float32) { let %r = ref(%x); ref_read(%r) }"),
            "ONNX has no words for references");
  EXPECT_EQ(ExportError("def @main(%x: int64) { right_shift(%x, 1i64) }"),
            "ONNX has no words for signed integers of operator 'right_shift'");
  EXPECT_EQ(ExportError("def @main(%x: uint8) { right_shift(%x, %x) }"), "");
  EXPECT_THAT(ExportError("def @f(%n: int64) -> int64 { if (less(%n, 2i64)) { 1i64 } else { "
                          "multiply(%n, @f(subtract(%n, 1i64))) } } def @main(%n: int64) { @f(%n) }"),
              testing::HasSubstr("is one"));
  EXPECT_EQ(ExportError("type T { A } def @main() { A }"), "expected tensors or tuples of tensors, got T");
}

TEST(OnnxExportTest, DeepChainsTakeNoStack) {
  Expr x = MakeVar("x", TensorType(Shape{1}, kFloat32));
  const Var param = AsShared<VarNode>(x);
  for (int i = 0; i < 20000; ++i) x = MakeCall("nn.relu", {x});
  EXPECT_EQ(Exported(IRModule::FromFunction(MakeFunction({param}, x))).graph().node_size(), 20001);
}

TEST(OnnxExportTest, ConstantsGoBesideTheModel) {
  const TemporaryFolder folder;
  const auto weight = MakeConstant(Random(*AsTensorType(TensorType(Shape{40, 40}, kFloat32)), -1, 1, 3));
  const Var x = MakeVar("x", TensorType(Shape{2, 40}, kFloat32));
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.dense", {x, weight}))));
  WriteOnnx(module, folder / "m.onnx", {}, /*most_inside_bytes=*/100);
  EXPECT_EQ(std::filesystem::file_size(folder / "m.onnx.data"), 6400);
  EXPECT_LT(std::filesystem::file_size(folder / "m.onnx"), 1000);
  const Function back = ImportOnnx(folder / "m.onnx").main();
  EXPECT_TRUE(StructuralEqual(module.main(), MakeFunction(back->params(), back->body())));
}

TEST(OnnxExportTest, ACallIsTriedWithoutItsWeights) {
  const Var x = MakeVar("x", TensorType(Shape{4}, DataType::Int(64)));
  const Expr shift = MakeCall("left_shift", {x, x});
  InferType(shift);
  EXPECT_FALSE(CanExportOnnx(*As<CallNode>(shift)).ok());
  const Expr sum = MakeCall("add", {x, MakeConstant(Tensor::Zeros({1000, 4}, kInt64))});
  InferType(sum);
  EXPECT_TRUE(CanExportOnnx(*As<CallNode>(sum)).ok());
}

}  // namespace
}  // namespace collage
