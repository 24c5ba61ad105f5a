// open_import_test.cc: small models whose sizes are symbolic, at sizes of all kinds: what strides, floors, minima and
// comparisons of sizes decide must be decided anew in each run.
#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "collage/frontend/onnx.h"
#include "collage/ir/named_dimensions.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "unit/frontend/model_file.h"
#include "unit/frontend/open_model_check.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using onnx::TensorProto;
using V = std::vector<int64_t>;

/// A model with the result "y".
class OpenModel : public ModelFile {
 public:
  explicit OpenModel(int64_t opset = 17) : ModelFile(opset) { Output("y"); }

  /// An input "x" of float32.
  OpenModel& X(const std::vector<std::string>& dims) {
    SymbolicInput("x", TensorProto::FLOAT, dims);
    return *this;
  }
  OpenModel& List(const std::string& name, const V& values) {
    Initializer(name, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values));
    return *this;
  }
  OpenModel& Number(const std::string& name, int64_t value) {
    Initializer(name, Tensor::Of<int64_t>({}, kInt64, V{value}));
    return *this;
  }
  /// Small numbers, some below zero, no two neighbours alike.
  OpenModel& Weights(const std::string& name, const Shape& shape) {
    const Tensor weights = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < weights.num_elements(); ++i) weights.Set(i, static_cast<double>(i * 7 % 11 - 5) / 8);
    Initializer(name, weights);
    return *this;
  }
  /// Size `axis` of `x` as the list `name`, as exporters write it.
  void Size(const std::string& x, int64_t axis, const std::string& name) {
    Node("Shape", {x}, {name + "_shape"});
    List(name + "_axis", {axis});
    Node("Gather", {name + "_shape", name + "_axis"}, {name});
  }
  void Cast(const std::string& x, const std::string& result, TensorProto::DataType type = TensorProto::FLOAT) {
    SetInt(Node("Cast", {x}, {result}), "to", type);
  }
  /// conv(x): [N, `channels`, W] → [N, 8, (W + 2 `padding` - 8) / `stride` + 1].
  void Conv(const std::string& result, int64_t channels, int64_t stride, int64_t padding) {
    Weights("filter", {8, channels, 8});
    onnx::NodeProto& conv = Node("Conv", {"x", "filter"}, {result}, "conv");
    SetInts(conv, "strides", {stride});
    SetInts(conv, "pads", {padding, padding});
  }
};

/// Each of `sizes` as the shape of the input "x".
std::vector<InputShapes> ForEach(const V& sizes, const std::function<Shape(int64_t)>& shape) {
  std::vector<InputShapes> all;
  for (const int64_t size : sizes) all.push_back({{"x", shape(size)}});
  return all;
}

/// Expects that the import keeps the sizes symbolic and is right at all of `sizes`.
void Check(const OpenModel& model, const std::vector<InputShapes>& sizes) {
  const OpenVerdict verdict = CheckOpenModel(model.Write(), sizes);
  ASSERT_TRUE(verdict.kind == OpenVerdict::Kind::kRight) << verdict.text;
  EXPECT_EQ(verdict.num_equal, static_cast<int>(sizes.size()));
}

TEST(OpenImportTest, AMeanAsASumOverALength) {
  OpenModel model;
  model.X({"1", "4", "W"}).List("time", {2});
  model.Conv("c", 4, 8, 4);
  model.Node("ReduceSum", {"c", "time"}, {"sum"});
  model.Size("c", 2, "length");
  model.Cast("length", "count");
  model.Node("Div", {"sum", "count"}, {"y"});
  Check(model, ForEach({160, 400, 5, 8, 17, 64}, [](int64_t w) { return Shape{1, 4, w}; }));
}

/// As torch exports `(y + self.p[:, :, :y.shape[-1]]).mean(-1)` behind a convolution.
TEST(OpenImportTest, ATableThatIsCutToALength) {
  OpenModel model;
  model.X({"N", "4", "W"}).Weights("p", {1, 8, 100}).List("zero", {0}).List("axis", {2});
  model.Conv("c", 4, 8, 4);
  model.Size("c", 2, "length");
  model.Node("Slice", {"p", "zero", "length", "axis"}, {"cut"});
  model.Node("Add", {"c", "cut"}, {"sum"});
  onnx::NodeProto& mean = model.Node("ReduceMean", {"sum"}, {"y"});
  SetInts(mean, "axes", {-1});
  SetInt(mean, "keepdims", 0);
  Check(model, ForEach({160, 400, 8, 31, 1}, [](int64_t w) { return Shape{2, 4, w}; }));
}

/// As torch exports `y[:, :, y.shape[-1] - 1:]`.
TEST(OpenImportTest, TheLastStep) {
  OpenModel model;
  model.X({"1", "4", "W"}).List("one", {1}).List("all", {INT64_MAX}).List("axis", {2});
  model.Conv("c", 4, 8, 4);
  model.Size("c", 2, "length");
  model.Node("Sub", {"length", "one"}, {"last"});
  model.Node("Slice", {"c", "last", "all", "axis"}, {"y"});
  Check(model, ForEach({160, 8, 17, 40, 400}, [](int64_t w) { return Shape{1, 4, w}; }));
}

TEST(OpenImportTest, TheLastStepUpToTheLength) {
  OpenModel model;
  model.X({"N", "4", "W"}).List("one", {1}).List("axis", {2});
  model.Conv("c", 4, 8, 4);
  model.Size("c", 2, "length");
  model.Node("Sub", {"length", "one"}, {"last"});
  model.Node("Slice", {"c", "last", "length", "axis"}, {"y"});
  Check(model, ForEach({160, 8, 17, 40, 400}, [](int64_t w) { return Shape{3, 4, w}; }));
}

TEST(OpenImportTest, AnEighthOfALength) {
  OpenModel model;
  model.X({"1", "W"}).List("zero", {0}).List("eight", {8}).List("axis", {1});
  model.Size("x", 1, "length");
  model.Node("Div", {"length", "eight"}, {"eighth"});
  model.Node("Slice", {"x", "zero", "eighth", "axis"}, {"y"});
  Check(model, ForEach({64, 160, 15, 8, 7, 1}, [](int64_t w) { return Shape{1, w}; }));
}

// As exporters write sizes behind strides: integers round towards 0, so that the formula is another one for size 0.
TEST(OpenImportTest, SizesOfOneFormulaForAllButNone) {
  OpenModel model;
  model.X({"N", "4", "H", "W"}).Number("one", 1).Number("eight", 8).List("two", {2}).List("all", {-1});
  onnx::NodeProto& pool = model.Node("MaxPool", {"x"}, {"p"});
  SetInts(pool, "kernel_shape", {1, 1});
  SetInts(pool, "strides", {8, 8});
  model.Size("x", 0, "batch");
  for (const int64_t axis : {2, 3}) {
    const std::string size = "size" + std::to_string(axis);
    model.Size("x", axis, size + "_list");
    model.Node("Squeeze", {size + "_list"}, {size});
    model.Node("Sub", {size, "one"}, {size + "_last"});
    model.Node("Div", {size + "_last", "eight"}, {size + "_steps"});
    model.Node("Add", {size + "_steps", "one"}, {size + "_sum"});
    model.Node("Reshape", {size + "_sum", "all"}, {size + "_pooled"});
  }
  SetInt(model.Node("Concat", {"batch", "two", "two", "size2_pooled", "size3_pooled"}, {"shape"}), "axis", 0);
  SetInt(model.Node("Reshape", {"p", "shape"}, {"y"}), "allowzero", 1);
  Check(model, ForEach({160, 8, 17, 1, 9}, [](int64_t size) { return Shape{3, 4, size, 11}; }));
  const NamedDimensions dimensions(ImportOnnx(model.Write()).main()->attrs(), {"x"});
  ASSERT_TRUE(dimensions.ranges().contains("H"));
  EXPECT_EQ(dimensions.ranges().at("H").low, 1) << "runs without rows must be refused";
}

/// Imports a model of x [past], z [next], and a mask for all of them, as decoders have it.
IRModule ImportMasked(const std::string& sum, const std::map<std::string, SizeRange>& dims = {}) {
  OpenModel model;
  model.SymbolicInput("mask", TensorProto::FLOAT, {sum});
  model.SymbolicInput("x", TensorProto::FLOAT, {"past"});
  model.SymbolicInput("z", TensorProto::FLOAT, {"next"});
  SetInt(model.Node("Concat", {"x", "z"}, {"all"}), "axis", 0);
  model.Node("Mul", {"all", "mask"}, {"y"});
  ImportOptions options;
  options.dims = dims;
  return ImportOnnx(model.Write(), options);
}

Dim MaskLength(const IRModule& module) { return AsTensorType(module.main()->params()[0]->checked_type())->shape()[0]; }

TEST(OpenImportTest, ADimensionThatIsTheSumOfOthersByItsName) {
  const IRModule module = ImportMasked("past + next");
  EXPECT_EQ(MaskLength(module).symbolic()->ToString(), "past + next");
  const Dim result = AsTensorType(module.main()->body()->checked_type())->shape()[0];
  EXPECT_TRUE(MaskLength(module).IsSame(result)) << "else a run could broadcast the mask";
  EXPECT_EQ(MaskLength(ImportMasked("past+next", {{"past", {5, 5}}})).symbolic()->ToString(), "next + 5");
  EXPECT_EQ(MaskLength(ImportMasked("past + next", {{"past", {5, 5}}, {"next", {2, 2}}})).size(), 7);
}

TEST(OpenImportTest, ASumOfWhatNoDimensionIsCalledIsANameLikeAnyOther) {
  for (const char* name : {"past + others", "past + 2*next", "1 + 2", "+"}) {
    EXPECT_EQ(MaskLength(ImportMasked(name)).symbolic()->terms().size(), 1u) << name;
  }
}

TEST(OpenImportTest, NoMoreThanALength) {
  OpenModel model;
  model.X({"1", "W"}).List("zero", {0}).List("most", {64}).List("axis", {1});
  model.Size("x", 1, "length");
  model.Node("Min", {"length", "most"}, {"end"});
  model.Node("Slice", {"x", "zero", "end", "axis"}, {"y"});
  Check(model, ForEach({640, 64, 65, 1, 30}, [](int64_t w) { return Shape{1, w}; }));
}

TEST(OpenImportTest, AComparisonOfALength) {
  OpenModel model;
  model.X({"1", "W"}).List("limit", {100});
  model.Size("x", 1, "length");
  model.Node("Greater", {"length", "limit"}, {"is_long"});
  model.Cast("is_long", "addend");
  model.Node("Add", {"x", "addend"}, {"y"});
  Check(model, ForEach({640, 101, 100, 1, 30}, [](int64_t w) { return Shape{1, w}; }));
}

TEST(OpenImportTest, AMinimumOfALength) {
  OpenModel model;
  model.X({"1", "W"}).List("two", {2});
  model.Size("x", 1, "length");
  model.Node("Min", {"length", "two"}, {"smaller"});
  model.Cast("smaller", "factor");
  model.Node("Mul", {"x", "factor"}, {"y"});
  Check(model, ForEach({1, 2, 3, 640}, [](int64_t w) { return Shape{1, w}; }));
}

/// More symbols than any list of trial sizes would have.
TEST(OpenImportTest, SevenSymbols) {
  for (int read = 0; read < 7; ++read) {
    OpenModel model;
    std::vector<InputShapes> sizes(4);
    for (int i = 0; i < 7; ++i) {
      const std::string name = "x" + std::to_string(i);
      model.SymbolicInput(name, TensorProto::FLOAT, {"N" + std::to_string(i)});
      for (size_t trial = 0; trial < sizes.size(); ++trial) {
        sizes[trial][name] = {1 + (3 * i + 5 * static_cast<int64_t>(trial)) % 11};
      }
    }
    model.Node("Shape", {"x" + std::to_string(read)}, {"shape"});
    SetTensor(model.Node("ConstantOfShape", {"shape"}, {"y"}), "value",
              Tensor::Of<float>({1}, kFloat32, std::vector<float>{3}));
    Check(model, sizes);
  }
}

/// Two symbols whose sizes happen to be equal stay two.
TEST(OpenImportTest, EqualSizesOfTwoSymbols) {
  OpenModel model;
  model.X({"N", "T"}).SymbolicInput("z", TensorProto::FLOAT, {"M", "T"});
  SetInt(model.Node("Concat", {"x", "z"}, {"both"}), "axis", 0);
  model.Size("z", 0, "rows");
  model.Cast("rows", "count");
  model.Node("Div", {"both", "count"}, {"y"});
  Check(model, {{{"x", {3, 3}}, {"z", {3, 3}}},
                {{"x", {1, 5}}, {"z", {4, 5}}},
                {{"x", {4, 1}}, {"z", {1, 1}}},
                {{"x", {2, 7}}, {"z", {7, 7}}}});
}

/// A recogniser of text: columns of a picture become steps of a recurrent layer. Small pictures give one step.
TEST(OpenImportTest, ColumnsOfAPictureAsSteps) {
  OpenModel model;
  model.X({"N", "1", "8", "W"}).Weights("filter", {4, 1, 4, 4}).List("minus_one", {-1}).List("zero", {0});
  SetInts(model.Node("Conv", {"x", "filter"}, {"c"}, "conv"), "strides", {4, 4});
  // [N, 4, 2, T] → [T, N, 8].
  SetInts(model.Node("Transpose", {"c"}, {"t"}), "perm", {3, 0, 1, 2});
  model.Size("t", 0, "steps");
  model.Size("t", 1, "batch");
  SetInt(model.Node("Concat", {"steps", "batch", "minus_one"}, {"shape"}), "axis", 0);
  model.Node("Reshape", {"t", "shape"}, {"sequence"});
  model.Weights("w", {1, 12, 8}).Weights("r", {1, 12, 3}).List("directions", {1});
  SetInt(model.Node("LSTM", {"sequence", "w", "r"}, {"all"}, "lstm"), "hidden_size", 3);
  model.Node("Squeeze", {"all", "directions"}, {"rows"});
  SetInts(model.Node("Transpose", {"rows"}, {"y"}), "perm", {1, 0, 2});
  Check(model, {{{"x", {1, 1, 8, 4}}},
                {{"x", {1, 1, 8, 160}}},
                {{"x", {5, 1, 8, 20}}},
                {{"x", {3, 1, 8, 15}}},
                {{"x", {2, 1, 8, 8}}}});
}

/// As a converter of Paddle models writes it: the batch and the width from Shape and Slice, everything in one Concat.
TEST(OpenImportTest, AReshapeToAComputedBatchAndWidth) {
  OpenModel model;
  model.X({"N", "3", "8", "W"}).Weights("filter", {6, 3, 3, 3}).List("zero", {0}).List("one", {1});
  onnx::NodeProto& conv = model.Node("Conv", {"x", "filter"}, {"c"}, "conv");
  SetInts(conv, "strides", {2, 2});
  SetInts(conv, "pads", {1, 1, 1, 1});
  onnx::NodeProto& pool = model.Node("AveragePool", {"c"}, {"p"}, "pool");
  SetInts(pool, "kernel_shape", {4, 2});
  SetInts(pool, "strides", {4, 2});
  model.Node("Shape", {"p"}, {"shape"});
  for (const auto& [name, begin] : {std::pair{"batch", 0}, std::pair{"width", 3}}) {
    const std::string text = name;
    model.List(text + "_begin", {begin}).List(text + "_end", {begin + 1});
    model.Node("Slice", {"shape", text + "_begin", text + "_end", "zero"}, {text});
  }
  model.List("channels", {6});
  SetInt(model.Node("Concat", {"batch", "channels", "width"}, {"wanted"}), "axis", 0);
  model.Node("Reshape", {"p", "wanted"}, {"flat"});
  SetInts(model.Node("Transpose", {"flat"}, {"t"}), "perm", {0, 2, 1});
  model.Weights("w", {6, 5});
  model.Node("MatMul", {"t", "w"}, {"scores"});
  model.Cast("width", "steps");
  model.Node("Div", {"scores", "steps"}, {"y"});
  Check(model, {{{"x", {5, 3, 8, 40}}},
                {{"x", {1, 3, 8, 23}}},
                {{"x", {3, 3, 8, 43}}},
                {{"x", {2, 3, 8, 4}}},
                {{"x", {1, 3, 8, 320}}}});
}

/// Batches of two names, either of which may be the one that is 1.
TEST(OpenImportTest, ProductsOfTwoBatches) {
  OpenModel model;
  model.X({"A", "3", "4"}).SymbolicInput("z", TensorProto::FLOAT, {"B", "4", "5"});
  model.Node("MatMul", {"x", "z"}, {"y"});
  std::vector<InputShapes> sizes;
  for (const auto& [a, b] : {std::pair{2, 2}, std::pair{1, 3}, std::pair{3, 1}, std::pair{1, 1}}) {
    sizes.push_back({{"x", {a, 3, 4}}, {"z", {b, 4, 5}}});
  }
  Check(model, sizes);
}

/// Keys and values that several heads share: [B, 2, S, 4] repeated to [B, 6, S, 4] by a shape put together from sizes.
TEST(OpenImportTest, HeadsThatShareKeys) {
  OpenModel model;
  model.X({"B", "6", "S", "4"}).SymbolicInput("z", TensorProto::FLOAT, {"B", "2", "S", "4"});
  model.List("two", {2}).List("three", {3}).List("four", {4}).List("six", {6});
  model.Size("z", 0, "batch");
  model.Size("z", 2, "steps");
  model.Node("Unsqueeze", {"z", "two"}, {"one_each"});
  SetInt(model.Node("Concat", {"batch", "two", "three", "steps", "four"}, {"repeated_shape"}), "axis", 0);
  model.Node("Expand", {"one_each", "repeated_shape"}, {"repeated"});
  SetInt(model.Node("Concat", {"batch", "six", "steps", "four"}, {"heads_shape"}), "axis", 0);
  model.Node("Reshape", {"repeated", "heads_shape"}, {"keys"});
  SetInts(model.Node("Transpose", {"keys"}, {"turned"}), "perm", {0, 1, 3, 2});
  model.Node("MatMul", {"x", "turned"}, {"scores"});
  SetInt(model.Node("Softmax", {"scores"}, {"shares"}), "axis", 3);
  model.Node("MatMul", {"shares", "keys"}, {"y"});
  std::vector<InputShapes> sizes;
  for (const auto& [batch, steps] : {std::pair{1, 1}, std::pair{2, 5}, std::pair{3, 2}, std::pair{4, 17}}) {
    sizes.push_back({{"x", {batch, 6, steps, 4}}, {"z", {batch, 2, steps, 4}}});
  }
  Check(model, sizes);
}

TEST(OpenImportTest, RowsOfAnyLengthNormalised) {
  for (const int64_t axis : {-1, 1}) {
    OpenModel model;
    model.X({"N", "3", "W"}).Weights("scale", {1});
    SetInt(model.Node("LayerNormalization", {"x", "scale"}, {"y"}), "axis", axis);
    Check(model, ForEach({8, 5, 1, 64}, [](int64_t w) { return Shape{2, 3, w}; }));
  }
}

TEST(OpenImportTest, PartsOfGivenLengths) {
  OpenModel model;
  model.X({"W"}).List("parts", {2, 0, 3}).Number("last", 2);
  model.Node("SplitToSequence", {"x", "parts"}, {"sequence"});
  model.Node("SequenceAt", {"sequence", "last"}, {"y"});
  Check(model, ForEach({5}, [](int64_t w) { return Shape{w}; }));
  const IRModule module = ImportOnnx(model.Write());
  EXPECT_THROW(Interpret(module, "main", {Value(Tensor::Zeros({6}, kFloat32))}), Error) << "one element more";
  EXPECT_THROW(Interpret(module, "main", {Value(Tensor::Zeros({4}, kFloat32))}), Error) << "one element less";
}

TEST(OpenImportTest, TheLargestOfALength) {
  for (const int64_t axis : {-1, 0}) {
    OpenModel model;
    model.X({"N", "W"});
    SetInt(model.Node("Hardmax", {"x"}, {"y"}), "axis", axis);
    Check(model, ForEach({8, 5, 1, 64}, [](int64_t w) { return Shape{3, w}; }));
  }
}

TEST(OpenImportTest, AttentionOfAnyNumberOfFeatures) {
  OpenModel model(23);
  model.X({"N", "S", "F"});
  onnx::NodeProto& node = model.Node("Attention", {"x", "x", "x"}, {"y"});
  SetInt(node, "q_num_heads", 2);
  SetInt(node, "kv_num_heads", 2);
  SetInt(node, "is_causal", 1);
  Check(model, ForEach({8, 2, 6, 64}, [](int64_t f) { return Shape{2, 3, f}; }));
}

/// Heads that share keys, as many as a run says.
TEST(OpenImportTest, AttentionOfAnyNumberOfHeads) {
  OpenModel model(23);
  model.X({"N", "H", "S", "F"});
  model.SymbolicInput("k", TensorProto::FLOAT, {"N", "K", "T", "F"});
  model.Node("Attention", {"x", "k", "k"}, {"y"});
  Check(model, {{{"x", {2, 4, 3, 8}}, {"k", {2, 2, 5, 8}}},
                {{"x", {1, 3, 3, 6}}, {"k", {1, 3, 4, 6}}},
                {{"x", {1, 6, 1, 4}}, {"k", {1, 1, 7, 4}}}});
}

/// A buffer whose files leave the features of a head open, though keys have them: what multiplies the result knows
/// them.
TEST(OpenImportTest, ABufferOfKeysHasTheFeaturesOfKeys) {
  OpenModel model;
  model.X({"N", "S", "16"}).SymbolicInput("k", TensorProto::FLOAT, {"N", "S", "8"});
  model.SymbolicInput("past", TensorProto::FLOAT, {"N", "2", "P", "features"});
  model.SymbolicInput("mask", TensorProto::INT64, {"N", "T"});
  model.Size("mask", 0, "batch");
  model.Size("mask", 1, "total");
  model.List("one", {1});
  model.Cast("total", "length", TensorProto::INT32);
  model.Node("Sub", {"total", "one"}, {"last"});
  model.Node("Expand", {"last", "batch"}, {"lasts"});
  model.Cast("lasts", "lengths", TensorProto::INT32);
  onnx::NodeProto& node =
      model.Node("GroupQueryAttention", {"x", "k", "k", "past", "past", "lengths", "length"}, {"y", "keys", "values"});
  node.set_domain("com.microsoft");
  SetInt(node, "num_heads", 4);
  SetInt(node, "kv_num_heads", 2);
  std::vector<InputShapes> sizes;
  for (const auto& [batch, tokens, past] : {std::tuple{1, 3, 2}, std::tuple{2, 1, 5}, std::tuple{1, 1, 1}}) {
    sizes.push_back({{"x", {batch, tokens, 16}},
                     {"k", {batch, tokens, 8}},
                     {"past", {batch, 2, past, 4}},
                     {"mask", {batch, past + tokens}}});
  }
  Check(model, sizes);
  const Type type = ImportOnnx(model.Write()).main()->body()->checked_type();
  EXPECT_EQ(AsTensorType(type)->shape().back(), Dim(16)) << ToString(type);
}

TEST(OpenImportTest, AShapeThatLeavesASizeOpen) {
  OpenModel model;
  model.X({"N", "W"}).SymbolicInput("z", TensorProto::FLOAT, {"N", "W"});
  model.Node("Add", {"x", "z"}, {"y"});
  const IRModule module = ImportOnnx(model.Write(), {.shapes = {{"x", {-1, 4}}}});
  const Function main = module.main();
  for (const Var& param : main->params()) {
    const std::vector<Dim>& shape = AsTensorType(param->checked_type())->shape();
    EXPECT_TRUE(shape[0].is_any());
    EXPECT_EQ(shape[1], Dim(4)) << "a size that is given holds for all dimensions of its name";
  }
  ExpectError(
      [&] {
        ImportOnnx(model.Write(), {.shapes = {{"x", {-1, 4, 4}}}});
      },
      ErrorCategory::kInput, "input 'x' has shape [N, W]");
}

TEST(OpenImportTest, AnglesOfAnyNumberOfFeatures) {
  for (const int64_t interleaved : {0, 1}) {
    OpenModel model(23);
    model.X({"N", "2", "S", "F"});
    model.SymbolicInput("cosines", TensorProto::FLOAT, {"N", "S", "half"});
    model.SymbolicInput("sines", TensorProto::FLOAT, {"N", "S", "half"});
    SetInt(model.Node("RotaryEmbedding", {"x", "cosines", "sines"}, {"y"}), "interleaved", interleaved);
    std::vector<InputShapes> sizes;
    for (const int64_t half : {4, 1, 3, 32}) {
      sizes.push_back({{"x", {2, 2, 3, 2 * half}}, {"cosines", {2, 3, half}}, {"sines", {2, 3, half}}});
    }
    Check(model, sizes);
  }
}

/// Feature maps of twice the size, as detectors add them to larger ones: pixels are repeated.
TEST(OpenImportTest, PixelsRepeatedToTwiceTheSize) {
  for (const auto& [coordinates, rounding, is_repeated] :
       {std::tuple("asymmetric", "floor", true), std::tuple("half_pixel", "round_prefer_floor", true),
        std::tuple("half_pixel", "round_prefer_ceil", true), std::tuple("asymmetric", "ceil", false),
        std::tuple("align_corners", "round_prefer_floor", false)}) {
    OpenModel model;
    model.X({"N", "3", "H", "W"});
    model.Initializer("scales", Tensor::Of<float>({4}, kFloat32, std::vector<float>{1, 1, 2, 3}));
    onnx::NodeProto& resize = model.Node("Resize", {"x", "", "scales"}, {"y"});
    SetString(resize, "mode", "nearest");
    SetString(resize, "coordinate_transformation_mode", coordinates);
    SetString(resize, "nearest_mode", rounding);
    const std::string text = PrintModule(ImportOnnx(model.Write(), {}));
    EXPECT_EQ(text.find("resize2d") == std::string::npos, is_repeated) << coordinates << " " << rounding << text;
    Check(model, ForEach({1, 2, 5, 8}, [](int64_t h) { return Shape{2, 3, h, 2 * h + 1}; }));
  }
}

/// [N, T, 4] in two halves of time, of sizes that are computed, and the sizes themselves taken apart by Split.
TEST(OpenImportTest, HalvesOfALength) {
  OpenModel model;
  model.X({"N", "T", "4"}).List("two", {2}).List("axis", {1}).List("one", {1});
  model.Size("x", 1, "length");
  model.Node("Div", {"length", "two"}, {"half"});
  model.Node("Sub", {"length", "half"}, {"rest"});
  SetInt(model.Node("Concat", {"half", "rest"}, {"sizes"}), "axis", 0);
  SetInt(model.Node("Split", {"x", "sizes"}, {"first", "second"}), "axis", 1);
  SetInt(model.Node("Concat", {"second", "first"}, {"turned"}), "axis", 1);
  model.Node("Shape", {"x"}, {"shape"});
  model.Node("Split", {"shape"}, {"batch", "steps", "width"});
  model.Node("Mul", {"batch", "steps"}, {"rows"});
  SetInt(model.Node("Concat", {"rows", "width"}, {"flat"}), "axis", 0);
  model.Node("Reshape", {"turned", "flat"}, {"y"});
  Check(model, ForEach({2, 3, 8, 101, 1}, [](int64_t t) { return Shape{2, t, 4}; }));
}

}  // namespace
}  // namespace collage
