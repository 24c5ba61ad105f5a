// packed_weights_test.cc: weights of few bits, as exporters write them, stay packed up to the partitions, and mean what
// DequantizeLinear says.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collage/frontend/onnx.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "ir/eval/evaluate.h"
#include "runtime/random_inputs.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

/// Operators of `function`, and the bytes of its constants.
struct Content {
  std::multiset<std::string> operators;
  size_t constant_bytes = 0;

  explicit Content(const Function& function) {
    PostOrder(function->body(), [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      if (call != nullptr && call->op() != nullptr) operators.insert(call->op()->name);
      if (const ConstantNode* constant = As<ConstantNode>(expr)) constant_bytes += constant->value().size_bytes();
    });
  }
};

/// Integers of `type`, whatever they are stored in, as an initializer of bytes.
class Integers {
 public:
  Integers(TensorProto::DataType type, const Shape& shape, uint64_t seed) : type_(type), shape_(shape) {
    const bool is_signed = type == TensorProto::INT4 || type == TensorProto::INT8;
    const bool is_narrow = type == TensorProto::INT4 || type == TensorProto::UINT4;
    const int range = is_narrow ? 16 : 256;
    const Tensor random = Tensor::Empty(shape, kFloat64);
    FillRandom(random, seed, 0, range);
    for (int64_t i = 0; i < random.num_elements(); ++i) {
      const int number = std::min(static_cast<int>(random.At(i)), range - 1);
      values_.push_back(is_signed ? number - range / 2 : number);
    }
  }

  void AddTo(ModelFile& model, const std::string& name) const {
    TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type_);
    for (const int64_t size : shape_) tensor.add_dims(size);
    const bool is_narrow = type_ == TensorProto::INT4 || type_ == TensorProto::UINT4;
    std::string bytes((values_.size() + (is_narrow ? 1 : 0)) / (is_narrow ? 2 : 1), '\0');
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto code = static_cast<unsigned>(values_[i]) & (is_narrow ? 0xfu : 0xffu);
      char& byte = bytes[is_narrow ? i / 2 : i];
      byte = static_cast<char>(static_cast<unsigned>(static_cast<unsigned char>(byte)) |
                               (is_narrow ? code << (i % 2 * 4) : code));
    }
    tensor.set_raw_data(bytes);
  }

  int operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }

 private:
  TensorProto::DataType type_;
  Shape shape_;
  std::vector<int> values_;
};

struct Form {
  TensorProto::DataType type;
  std::string how;  ///< "MatMul", "Transpose" in front of it, "Gemm" or "transB"
  int64_t depth, columns, block;
  bool has_zeros = true;
};

/// A product with weights that DequantizeLinear makes of blocks along the axis that is summed over, and the weights
/// [K, N] that it makes.
struct Product {
  explicit Product(const Form& f) : model(21), weights(Tensor::Empty({f.depth, f.columns}, kFloat32)) {
    const bool is_last = f.how == "Transpose" || f.how == "transB";  // [N, K]
    const int64_t blocks = f.depth / f.block;
    const auto shape = [&](int64_t depth) { return is_last ? Shape{f.columns, depth} : Shape{depth, f.columns}; };
    const auto at = [&](int64_t k, int64_t n, int64_t depth) { return is_last ? n * depth + k : k * f.columns + n; };
    const Integers numbers(f.type, shape(f.depth), 1), zeros(f.type, shape(blocks), 2);
    const Tensor scales = Tensor::Empty(shape(blocks), kFloat32);
    FillRandom(scales, 3, 0.01, 0.1);
    for (int64_t k = 0; k < f.depth; ++k) {
      for (int64_t n = 0; n < f.columns; ++n) {
        const int64_t own = at(k / f.block, n, blocks);
        const int zero = f.has_zeros ? zeros[own] : 0;
        weights.Set(k * f.columns + n, static_cast<float>(numbers[at(k, n, f.depth)] - zero) * scales.At(own));
      }
    }
    numbers.AddTo(model, "w");
    model.Initializer("s", scales);
    if (f.has_zeros) zeros.AddTo(model, "z");
    onnx::NodeProto& made = model.Node("DequantizeLinear", {"w", "s", f.has_zeros ? "z" : ""}, {"d"});
    SetInt(made, "axis", is_last ? 1 : 0);
    SetInt(made, "block_size", f.block);
    if (f.how == "Transpose") SetInts(model.Node("Transpose", {"d"}, {"t"}), "perm", {1, 0});
    const std::string op = f.how == "Gemm" || f.how == "transB" ? "Gemm" : "MatMul";
    onnx::NodeProto& product = model.Node(op, {"x", f.how == "Transpose" ? "t" : "d"}, {"y"});
    if (f.how == "transB") SetInt(product, "transB", 1);
    model.Output("y");
  }

  ModelFile model;
  Tensor weights;
};

TEST(PackedWeightsTest, ProductsReadBlocksPacked) {
  for (const Form& f :
       {Form{TensorProto::UINT4, "MatMul", 64, 24, 32}, Form{TensorProto::INT4, "Transpose", 96, 10, 16},
        Form{TensorProto::INT4, "Gemm", 128, 33, 64, false}, Form{TensorProto::UINT8, "transB", 64, 7, 32},
        Form{TensorProto::INT8, "MatMul", 32, 16, 32, false}, Form{TensorProto::UINT4, "transB", 64, 5, 16}}) {
    SCOPED_TRACE(f.how);
    Product product(f);
    product.model.Input("x", TensorProto::FLOAT, {3, f.depth});
    const IRModule module = ImportOnnx(product.model.Write(), {});
    const IRModule prepared = PrepareForPartitioning(module);
    const Content content(prepared.main());
    EXPECT_EQ(content.operators, std::multiset<std::string>{"qnn.matmul_nbits"}) << PrintModule(prepared);
    const int64_t bits = f.type == TensorProto::UINT4 || f.type == TensorProto::INT4 ? 4 : 8;
    const auto numbers = static_cast<size_t>(f.depth * f.columns), blocks = numbers / static_cast<size_t>(f.block);
    EXPECT_LE(content.constant_bytes, numbers * static_cast<size_t>(bits) / 8 + blocks * (f.has_zeros ? 5 : 4));
    const Tensor x = Tensor::Empty({3, f.depth}, kFloat32);
    FillRandom(x, 4, -1, 1);
    const Tensor result = Evaluate(prepared.main(), std::vector{x})[0],
                 plain = Evaluate(module.main(), std::vector{x})[0];
    for (int64_t i = 0; i < 3 * f.columns; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < f.depth; ++k) {
        sum += x.At(i / f.columns * f.depth + k) * product.weights.At(k * f.columns + i % f.columns);
      }
      EXPECT_NEAR(result.At(i), sum, 1e-4);
      EXPECT_NEAR(plain.At(i), sum, 1e-4);
    }
  }
}

TEST(PackedWeightsTest, ChannelsOfFewBitsArePackedUnlessIntegersAreMultiplied) {
  const auto operators = [](TensorProto::DataType type, bool is_quantised) {
    ModelFile model(21);
    model.Input("x", TensorProto::FLOAT, {2, 64}).Output("y");
    Integers(type, {64, 8}, 1).AddTo(model, "w");
    model.Initializer("s", Tensor::Of<float>({8}, kFloat32, std::vector<float>(8, 0.1F)));
    SetInt(model.Node("DequantizeLinear", {"w", "s"}, {"d"}), "axis", 1);
    if (is_quantised) {
      model.Initializer("one", Tensor::Of<float>({}, kFloat32, std::vector<float>{0.02F}));
      model.Node("QuantizeLinear", {"x", "one"}, {"q"});
      model.Node("DequantizeLinear", {"q", "one"}, {"p"});
    }
    model.Node("MatMul", {is_quantised ? "p" : "x", "d"}, {"y"});
    return Content(PrepareForPartitioning(ImportOnnx(model.Write(), {})).main()).operators;
  };
  EXPECT_EQ(operators(TensorProto::INT4, false), std::multiset<std::string>{"qnn.matmul_nbits"});
  EXPECT_EQ(operators(TensorProto::INT4, true).count("qnn.matmul_nbits"), 0);
  EXPECT_EQ(operators(TensorProto::INT8, false).count("qnn.matmul_nbits"), 0);
}

TEST(PackedWeightsTest, BlocksThatNothingPacksAreConstants) {
  ModelFile model(21);
  model.Input("x", TensorProto::FLOAT, {64, 6}).Output("y");
  const Integers numbers(TensorProto::INT4, {64, 6}, 1);
  numbers.AddTo(model, "w");
  model.Initializer("s", Tensor::Of<float>({2, 6}, kFloat32, std::vector<float>(12, 0.5F)));
  onnx::NodeProto& made = model.Node("DequantizeLinear", {"w", "s"}, {"d"});
  SetInt(made, "axis", 0);
  SetInt(made, "block_size", 32);
  model.Node("Add", {"x", "d"}, {"y"});
  const IRModule prepared = PrepareForPartitioning(ImportOnnx(model.Write(), {}));
  EXPECT_EQ(Content(prepared.main()).operators, std::multiset<std::string>{"add"}) << PrintModule(prepared);
  const Tensor x = Tensor::Zeros({64, 6}, kFloat32);
  const Tensor result = Evaluate(prepared.main(), std::vector{x})[0];
  for (int64_t i = 0; i < 64 * 6; ++i) EXPECT_EQ(result.At(i), numbers[i] * 0.5);
}

TEST(PackedWeightsTest, RowsOfTablesAreTakenPacked) {
  for (const TensorProto::DataType type : {TensorProto::UINT4, TensorProto::INT4}) {
    ModelFile model(21);
    model.Input("i", TensorProto::INT64, {2, -1}).Output("y").Output("z");
    const Integers numbers(type, {20, 64}, 1), zeros(type, {20, 2}, 2);
    numbers.AddTo(model, "w");
    zeros.AddTo(model, "o");
    const Tensor scales = Tensor::Empty({20, 2}, kFloat32);
    FillRandom(scales, 3, 0.01, 0.1);
    model.Initializer("s", scales);
    onnx::NodeProto& made = model.Node("DequantizeLinear", {"w", "s", "o"}, {"d"});
    SetInt(made, "axis", 1);
    SetInt(made, "block_size", 32);
    model.Node("Gather", {"d", "i"}, {"y"});
    onnx::NodeProto& rows = model.Node("GatherBlockQuantized", {"w", "i", "s", "o"}, {"z"});
    rows.set_domain("com.microsoft");
    SetInt(rows, "block_size", 32);
    onnx::OperatorSetIdProto& opset = *model.model().add_opset_import();
    opset.set_domain("com.microsoft");
    opset.set_version(1);
    const IRModule module = PrepareForPartitioning(ImportOnnx(model.Write(), {}));
    const Content content(module.main());
    EXPECT_EQ(content.operators.count("qnn.take_nbits"), content.operators.size()) << PrintModule(module);
    EXPECT_LE(content.constant_bytes, 2u * (20 * 64 / 2 + 20 * 2 * 5));
    const Tensor at = Tensor::Of<int64_t>({2, 3}, kInt64, std::vector<int64_t>{0, 19, 4, -1, 7, 0});
    const std::vector<Tensor> results = Evaluate(module.main(), std::vector{at});
    ASSERT_TRUE(BitEqual(results[0], results[1]));
    for (int64_t k = 0; k < 6 * 64; ++k) {
      const int64_t row = (at.ToInts()[static_cast<size_t>(k / 64)] + 20) % 20, block = row * 2 + k % 64 / 32;
      const auto less = static_cast<float>(numbers[row * 64 + k % 64] - zeros[block]);
      EXPECT_EQ(results[0].At(k), less * static_cast<float>(scales.At(block)));
    }
  }
}

}  // namespace
}  // namespace collage
