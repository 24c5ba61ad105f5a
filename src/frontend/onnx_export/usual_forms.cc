// usual_forms.cc: peephole rewriting of a graph of ONNX. Each rule looks from a node at what makes its inputs, and
// makes the node itself another one: the order of the graph stays right, and what was before is dropped when nobody
// reads it.
#include "frontend/onnx_export/usual_forms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "frontend/onnx/tensor_reader.h"
#include "frontend/onnx_export/finish_graph.h"
#include "frontend/onnx_export/graph_writer.h"

namespace collage {
namespace {

using google::protobuf::RepeatedPtrField;
using V = std::vector<int64_t>;

// Convolutions, and batch norms of images, have their channels here.
constexpr size_t kChannels = 1;

// ---- nodes ----

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntOf(const onnx::NodeProto& node, const std::string& name) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? 0 : attribute->i();
}

void SetFloat(onnx::NodeProto& node, const std::string& name, double value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
}

void SetInts(onnx::NodeProto& node, const std::string& name, const V& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
}

/// The node computes something else from now on, under the same name.
void Become(onnx::NodeProto& node, const std::string& op_type, const OnnxNames& inputs) {
  node.set_op_type(op_type);
  node.clear_attribute();
  node.clear_input();
  for (const std::string& input : inputs) node.add_input(input);
}

// ---- shapes and constants ----

/// Whether `shape` broadcasts against data of `rank` along its channels only.
bool IsPerChannel(const Shape& shape, size_t rank, int64_t channels) {
  if (shape.size() > rank) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_channels = i + rank - shape.size() == kChannels;
    if (shape[i] != 1 && !(is_channels && shape[i] == channels)) return false;
  }
  return true;
}

/// The elements of `value`, one or as many as there are channels, as a vector [channels].
Tensor PerChannel(const Tensor& value, int64_t channels) {
  if (value.num_elements() == channels) return value.Reshaped({channels});
  const Tensor vector = Tensor::Empty({channels}, value.dtype());
  for (int64_t i = 0; i < channels; ++i) vector.Set(i, value.At(0));
  return vector;
}

Tensor Sum(const Tensor& a, const Tensor& b) {
  const Tensor sum = Tensor::Empty(a.shape(), a.dtype());
  for (int64_t i = 0; i < sum.num_elements(); ++i) sum.Set(i, a.At(i) + b.At(i));
  return sum;
}

Tensor Filled(double value, int64_t count, DataType dtype) {
  const Tensor tensor = Tensor::Empty({count}, dtype);
  for (int64_t i = 0; i < count; ++i) tensor.Set(i, value);
  return tensor;
}

/// The bytes of a matrix [rows, columns] as those of [columns, rows], by tiles that stay in cache.
std::string TransposedBytes(const std::string& bytes, size_t rows, size_t columns) {
  constexpr size_t kTile = 32;
  const size_t size = bytes.size() / (rows * columns);
  std::string result(bytes.size(), '\0');
  for (size_t row = 0; row < rows; row += kTile) {
    for (size_t column = 0; column < columns; column += kTile) {
      for (size_t r = row; r < std::min(row + kTile, rows); ++r) {
        for (size_t c = column; c < std::min(column + kTile, columns); ++c) {
          std::memcpy(&result[(c * rows + r) * size], &bytes[(r * columns + c) * size], size);
        }
      }
    }
  }
  return result;
}

// ---- rules ----

class UsualForms {
 public:
  UsualForms(OnnxGraphWriter& writer, onnx::GraphProto& graph, const OnnxShapes& shapes)
      : writer_(writer), graph_(graph), shapes_(shapes) {}

  void Run() {
    for (onnx::TensorProto& constant : *graph_.mutable_initializer()) constants_[constant.name()] = &constant;
    for (const onnx::NodeProto& node : graph_.node()) CountReads(node);
    for (const onnx::ValueInfoProto& output : graph_.output()) ++reads_[output.name()];
    RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (onnx::NodeProto& node : nodes) {
      Rewrite(node);
      Emit(std::move(node));
    }
  }

 private:
  void CountReads(const onnx::NodeProto& node) {
    for (const std::string& input : node.input()) ++reads_[input];
    ForEachNestedName(node, [&](const std::string& name) { reads_[name] += 2; });  // never the only reader
  }

  void Emit(onnx::NodeProto&& node) {
    onnx::NodeProto& kept = *graph_.add_node();
    kept = std::move(node);
    for (const std::string& output : kept.output()) makers_[output] = &kept;
  }

  void Rewrite(onnx::NodeProto& node) {
    const std::string op = node.op_type();
    if (op == "Add" && (FormBias(node) || FormAddend(node) || FormBatchNorm(node) || FormPRelu(node))) return;
    if (op == "Reshape" && (FormProductOfSequences(node) || FormProductOfBatches(node))) return;
    if (op == "Clip") FormHardSigmoid(node);
    if (op == "Mul") FormGelu(node);
  }

  // ---- what is known of values ----

  /// The node that makes a value, if it is of this type.
  const onnx::NodeProto* Maker(const std::string& name, const std::string& op_type) const {
    const auto maker = makers_.find(name);
    return maker != makers_.end() && maker->second->op_type() == op_type ? maker->second : nullptr;
  }
  /// Returns the maker if the value is read once.
  const onnx::NodeProto* OnlyMaker(const std::string& name, const std::string& op_type) const {
    const auto reads = reads_.find(name);
    return reads != reads_.end() && reads->second == 1 ? Maker(name, op_type) : nullptr;
  }

  onnx::TensorProto* Constant(const std::string& name) const {
    const auto constant = constants_.find(name);
    return constant == constants_.end() ? nullptr : constant->second;
  }

  std::optional<Shape> ShapeOf(const std::string& name) const {
    if (const onnx::TensorProto* constant = Constant(name)) {
      return Shape(constant->dims().begin(), constant->dims().end());
    }
    const auto shape = shapes_.find(name);
    return shape == shapes_.end() ? std::nullopt : std::optional(shape->second);
  }

  /// The one element of a constant of floats.
  std::optional<double> NumberOf(const std::string& name) const {
    const onnx::TensorProto* constant = Constant(name);
    if (constant == nullptr || NumElements(*ShapeOf(name)) != 1) return std::nullopt;
    const Tensor value = TensorReader("").Read(*constant);
    return value.dtype().is_floating() ? std::optional(value.At(0)) : std::nullopt;
  }
  bool IsNumber(const std::string& name, double value) const {
    const std::optional<double> number = NumberOf(name);
    return number && std::abs(*number - value) <= 1e-6 * std::abs(value);
  }

  /// The input beside the one that is `name`, of a node that takes them in any order.
  static const std::string& Other(const onnx::NodeProto& node, const std::string& name) {
    return node.input(node.input(0) == name ? 1 : 0);
  }

  // ---- what is made ----

  std::string AddConstant(const Tensor& value) {
    const std::string name = writer_.AddConstant(value);
    constants_[name] = graph_.mutable_initializer(graph_.initializer_size() - 1);
    return name;
  }

  std::string AddNode(const std::string& op_type, const OnnxNames& inputs, const V& perm = {}) {
    onnx::NodeProto node;
    Become(node, op_type, inputs);
    if (!perm.empty()) SetInts(node, "perm", perm);
    node.set_name(writer_.FreshName(op_type));
    node.add_output(node.name());
    const std::string name = node.name();
    Emit(std::move(node));
    return name;
  }

  /// Returns the value that `name` is a reshape of, if it has the shape `wanted`.
  std::optional<std::string> Unshaped(const std::string& name, const Shape& wanted) const {
    const onnx::NodeProto* reshape = Maker(name, "Reshape");
    if (reshape == nullptr || ShapeOf(reshape->input(0)) != wanted) return std::nullopt;
    return reshape->input(0);
  }

  /// The elements of `name` in another shape.
  std::string Shaped(const std::string& name, const Shape& wanted) {
    if (const std::optional<std::string> before = Unshaped(name, wanted)) return *before;
    const onnx::NodeProto* reshape = Maker(name, "Reshape");
    const std::string data = reshape == nullptr ? name : reshape->input(0);
    const std::string sizes = AddConstant(Tensor::Of<int64_t>({static_cast<int64_t>(wanted.size())}, kInt64, wanted));
    return AddNode("Reshape", {data, sizes});
  }

  /// A matrix with rows and columns exchanged: a constant that nothing else reads is exchanged itself.
  std::string TransposedMatrix(const std::string& name) {
    onnx::TensorProto& matrix = *Constant(name);
    if (reads_[name] != 1) return AddNode("Transpose", {name}, {1, 0});
    const int64_t rows = matrix.dims(0);
    const int64_t columns = matrix.dims(1);
    matrix.set_raw_data(TransposedBytes(matrix.raw_data(), static_cast<size_t>(rows), static_cast<size_t>(columns)));
    matrix.set_dims(0, columns);
    matrix.set_dims(1, rows);
    return name;
  }

  /// `name` as a vector [channels] that broadcasts along the channels of data of `rank`; "" when it is no such thing.
  std::string ChannelVector(const std::string& name, size_t rank, int64_t channels) {
    const std::optional<Shape> shape = ShapeOf(name);
    if (!shape || !IsPerChannel(*shape, rank, channels)) return "";
    if (const onnx::TensorProto* constant = Constant(name)) {
      if (*shape == Shape{channels}) return name;
      return AddConstant(PerChannel(TensorReader("").Read(*constant), channels));
    }
    return Unshaped(name, {channels}).value_or("");  // such as a bias that is dequantised
  }

  // ---- the rules; each says whether it applied ----

  /// Conv(x, w) + b.
  bool FormBias(onnx::NodeProto& add) {
    for (int side : {0, 1}) {
      const std::string value = add.input(side);
      const onnx::NodeProto* conv = OnlyMaker(value, "Conv");
      if (conv == nullptr) conv = OnlyMaker(value, "ConvTranspose");
      const std::optional<Shape> shape = ShapeOf(value);
      if (conv == nullptr || !shape || ShapeOf(add.output(0)) != shape) continue;
      std::string bias = ChannelVector(add.input(1 - side), shape->size(), (*shape)[kChannels]);
      if (bias.empty()) continue;
      if (conv->input_size() > 2) {
        const onnx::TensorProto* a = Constant(conv->input(2));
        const onnx::TensorProto* b = Constant(bias);
        if (a == nullptr || b == nullptr) continue;
        bias = AddConstant(Sum(TensorReader("").Read(*a), TensorReader("").Read(*b)));
      }
      const onnx::NodeProto with_bias = *conv;
      Become(add, with_bias.op_type(), {with_bias.input(0), with_bias.input(1), bias});
      *add.mutable_attribute() = with_bias.attribute();
      return true;
    }
    return false;
  }

  /// Gemm(a, b) + c, where c is a row or a number.
  bool FormAddend(onnx::NodeProto& add) {
    for (int side : {0, 1}) {
      const std::string value = add.input(side);
      const std::string addend = add.input(1 - side);
      const onnx::NodeProto* gemm = OnlyMaker(value, "Gemm");
      const std::optional<Shape> shape = ShapeOf(value);
      const std::optional<Shape> row = ShapeOf(addend);
      if (gemm == nullptr || gemm->input_size() != 2 || !shape || !row) continue;
      if (ShapeOf(add.output(0)) != shape || !IsPerChannel(*row, 2, (*shape)[kChannels])) continue;
      const onnx::NodeProto with_addend = *gemm;
      Become(add, "Gemm", {with_addend.input(0), with_addend.input(1), addend});
      *add.mutable_attribute() = with_addend.attribute();
      return true;
    }
    return false;
  }

  /// x * scale + shift, at least one of them a vector.
  bool FormBatchNorm(onnx::NodeProto& add) {
    for (int side : {0, 1}) {
      const onnx::NodeProto* product = OnlyMaker(add.input(side), "Mul");
      const onnx::TensorProto* shift = Constant(add.input(1 - side));
      if (product == nullptr || shift == nullptr) continue;
      const std::string x = product->input(Constant(product->input(0)) == nullptr ? 0 : 1);
      const onnx::TensorProto* scale = Constant(Other(*product, x));
      const std::optional<Shape> shape = ShapeOf(x);
      if (scale == nullptr || !shape || shape->size() < 3 || ShapeOf(add.output(0)) != shape) continue;
      const int64_t channels = (*shape)[kChannels];
      const Shape scales(scale->dims().begin(), scale->dims().end());
      const Shape shifts(shift->dims().begin(), shift->dims().end());
      const bool is_vector = std::max(NumElements(scales), NumElements(shifts)) > 1;
      const std::optional<DataType> dtype = OnnxDType(scale->data_type());
      if (!is_vector || !dtype || !dtype->is_floating()) continue;
      const std::string gamma = ChannelVector(scale->name(), shape->size(), channels);
      const std::string beta = ChannelVector(shift->name(), shape->size(), channels);
      if (gamma.empty() || beta.empty()) continue;
      Become(add, "BatchNormalization",
             {x, gamma, beta, AddConstant(Filled(0, channels, *dtype)), AddConstant(Filled(1, channels, *dtype))});
      SetFloat(add, "epsilon", 0);
      return true;
    }
    return false;
  }

  /// Relu(x) + slope * Min(x, 0).
  bool FormPRelu(onnx::NodeProto& add) {
    for (int side : {0, 1}) {
      const onnx::NodeProto* above = OnlyMaker(add.input(side), "Relu");
      const onnx::NodeProto* below = OnlyMaker(add.input(1 - side), "Mul");
      if (above == nullptr || below == nullptr) continue;
      for (const std::string& factor : below->input()) {
        const onnx::NodeProto* negative = OnlyMaker(factor, "Min");
        const std::string x = above->input(0);
        if (negative == nullptr || negative->input_size() != 2 || below->input(0) == below->input(1)) continue;
        if (negative->input(0) != x || !IsNumber(negative->input(1), 0) || !ShapeOf(x)) continue;
        if (ShapeOf(add.output(0)) != ShapeOf(x)) continue;
        const std::string slope = Other(*below, factor);
        Become(add, "PRelu", {x, slope});
        return true;
      }
    }
    return false;
  }

  /// Reshape(Gemm(Reshape(x), w)), where x and the result have the same leading dimensions.
  bool FormProductOfSequences(onnx::NodeProto& reshape) {
    const onnx::NodeProto* gemm = OnlyMaker(reshape.input(0), "Gemm");
    if (gemm == nullptr || gemm->input_size() != 2 || IntOf(*gemm, "transA") != 0) return false;
    const onnx::TensorProto* weight = Constant(gemm->input(1));
    const std::optional<Shape> flat = ShapeOf(gemm->input(0));
    const std::optional<Shape> result = ShapeOf(reshape.output(0));
    if (weight == nullptr || weight->dims_size() != 2 || !flat || !result) return false;
    const bool transposed = IntOf(*gemm, "transB") != 0;
    if (result->size() < 3 || NumElements(*result) == 0 || NumElements(*flat) == 0 ||
        result->back() != weight->dims(transposed ? 0 : 1)) {
      return false;
    }
    Shape wanted = *result;
    wanted.back() = flat->back();
    const std::string data = gemm->input(0);
    const std::string matrix = gemm->input(1);
    const std::string x = Shaped(data, wanted);
    Become(reshape, "MatMul", {x, transposed ? TransposedMatrix(matrix) : matrix});
    return true;
  }

  /// Reshape(MatMul(Reshape(a), Reshape(b))): batches of several dimensions that were one for the product.
  bool FormProductOfBatches(onnx::NodeProto& reshape) {
    const onnx::NodeProto* product = OnlyMaker(reshape.input(0), "MatMul");
    const std::optional<Shape> flat = ShapeOf(reshape.input(0));
    const std::optional<Shape> result = ShapeOf(reshape.output(0));
    if (product == nullptr || !flat || !result || flat->size() != 3 || result->size() < 4) return false;
    if (!std::equal(flat->end() - 2, flat->end(), result->end() - 2) || NumElements(*flat) == 0) return false;
    const Shape batch(result->begin(), result->end() - 2);
    // The shape with all dimensions of the batch; nothing when the operand has another batch.
    const auto whole = [&](const std::string& name) -> std::optional<Shape> {
      const std::optional<Shape> shape = ShapeOf(name);
      if (!shape || shape->size() != 3 || (shape->front() != flat->front() && shape->front() != 1)) return std::nullopt;
      Shape wanted = shape->front() == flat->front() ? batch : Shape(batch.size(), 1);
      wanted.insert(wanted.end(), shape->end() - 2, shape->end());
      return wanted;
    };
    const std::string a = product->input(0);
    const onnx::NodeProto* transpose = Maker(product->input(1), "Transpose");
    const onnx::AttributeProto* perm = transpose == nullptr ? nullptr : FindAttribute(*transpose, "perm");
    const bool exchanged = perm != nullptr && V(perm->ints().begin(), perm->ints().end()) == V{0, 2, 1};
    const std::string b = exchanged ? transpose->input(0) : product->input(1);
    const std::optional<Shape> whole_a = whole(a);
    const std::optional<Shape> whole_b = whole(b);
    if (!whole_a || !whole_b || (!Unshaped(a, *whole_a) && !Unshaped(b, *whole_b))) return false;
    const std::string left = Shaped(a, *whole_a);
    std::string right = Shaped(b, *whole_b);
    if (exchanged) {
      V axes(result->size());
      std::iota(axes.begin(), axes.end(), 0);
      std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
      right = AddNode("Transpose", {right}, axes);
    }
    Become(reshape, "MatMul", {left, right});
    return true;
  }

  /// Clip(alpha * x + beta, 0, 1).
  bool FormHardSigmoid(onnx::NodeProto& clip) {
    if (clip.input_size() != 3 || !IsNumber(clip.input(1), 0) || !IsNumber(clip.input(2), 1)) return false;
    const onnx::NodeProto* sum = OnlyMaker(clip.input(0), "Add");
    const std::optional<double> beta = sum == nullptr ? std::nullopt : NumberOf(sum->input(1));
    const onnx::NodeProto* product = beta ? OnlyMaker(sum->input(0), "Mul") : nullptr;
    const std::optional<double> alpha = product == nullptr ? std::nullopt : NumberOf(product->input(1));
    if (!alpha) return false;
    const std::string x = product->input(0);
    if (!ShapeOf(x) || ShapeOf(clip.output(0)) != ShapeOf(x)) return false;
    Become(clip, "HardSigmoid", {x});
    SetFloat(clip, "alpha", *alpha);
    SetFloat(clip, "beta", *beta);
    return true;
  }

  /// (x * 0.5) * (Erf(x * sqrt(0.5)) + 1).
  bool FormGelu(onnx::NodeProto& product) {
    if (product.input_size() != 2) return false;
    const onnx::NodeProto* half = OnlyMaker(product.input(0), "Mul");
    const onnx::NodeProto* sum = OnlyMaker(product.input(1), "Add");
    if (half == nullptr || sum == nullptr || !IsNumber(half->input(1), 0.5) || !IsNumber(sum->input(1), 1))
      return false;
    const onnx::NodeProto* erf = OnlyMaker(sum->input(0), "Erf");
    const onnx::NodeProto* scaled = erf == nullptr ? nullptr : OnlyMaker(erf->input(0), "Mul");
    const std::string x = half->input(0);
    if (scaled == nullptr || scaled->input(0) != x || !IsNumber(scaled->input(1), M_SQRT1_2)) return false;
    if (!ShapeOf(x) || ShapeOf(product.output(0)) != ShapeOf(x)) return false;
    Become(product, "Gelu", {x});
    writer_.NeedsOpset(20);
    return true;
  }

  OnnxGraphWriter& writer_;
  onnx::GraphProto& graph_;
  const OnnxShapes& shapes_;
  std::unordered_map<std::string, onnx::TensorProto*> constants_;
  std::unordered_map<std::string, onnx::NodeProto*> makers_;
  std::unordered_map<std::string, int> reads_;
};

}  // namespace

void WriteUsualForms(OnnxGraphWriter& writer, onnx::GraphProto& graph, const OnnxShapes& shapes) {
  UsualForms(writer, graph, shapes).Run();
}

}  // namespace collage
