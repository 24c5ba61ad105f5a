// operators.cc: the rows, by family.
#include "backends/onednn_graph/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

bool IsFloat(DataType dtype) { return dtype == kFloat32 || dtype == kBFloat16 || dtype == kFloat16; }

/// The dtype of all arguments and the result.
DataType RequireFloats(const Call& call) {
  const DataType dtype = DTypeOf(call);
  bool is_same = IsFloat(dtype);
  for (const Expr& argument : call->args()) {
    for (const Type& type : FlattenTensorTypes(argument->checked_type())) {
      is_same = is_same && AsTensorType(type)->dtype() == dtype;
    }
  }
  if (!is_same) throw Refusal{"computes float32, bfloat16 and float16, one of them at a time"};
  return dtype;
}

int64_t NormalAxis(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

bool KeepsLast(const Value& value, const Shape& own) {
  return !value.shape.empty() && !own.empty() && value.shape.back() == own.back();
}

// ---- element by element

/// One argument, in whatever shape it is.
void Unary(Builder& graph, const Call& call, const char* kind, json attrs = json::object()) {
  const DataType dtype = RequireFloats(call);
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), {x.tensor}, own, dtype), x.shape});
}

template <const char* kind>
void UnaryRow(Builder& graph, const Call& call) {
  Unary(graph, call, kind);
}

void LeakyRelu(Builder& graph, const Call& call) {
  Unary(graph, call, "LeakyReLU", {{"alpha", call->attrs().Double("alpha")}});
}

void Clip(Builder& graph, const Call& call) {
  Unary(graph, call, "Clamp", {{"min", call->attrs().Double("a_min")}, {"max", call->attrs().Double("a_max")}});
}

void Cast(Builder& graph, const Call& call) {
  const Value x = graph.ValueOf(call->args()[0]);
  const GraphTensor from = graph.TensorOf(x);
  const DataType to = DTypeOf(call);
  if (!IsFloat(from.dtype) || !IsFloat(to) || (from.dtype != kFloat32 && to != kFloat32) || from.dtype == to) {
    throw Refusal{fmt::format("converts between float32 and its halves only, got {} to {}", from.dtype.ToString(),
                              to.ToString())};
  }
  graph.Set(call, Value{graph.Add(call, "TypeCast", json::object(), {x.tensor}, from.shape, to), x.shape});
}

/// Whether a tensor of `shape`, spread over one of rank `rank`, is a vector along `axis`.
bool IsVectorAlong(const Shape& shape, size_t rank, size_t axis) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && rank - shape.size() + i != axis) return false;
  }
  return shape.size() <= rank;
}

/// `x` with `bias` along the axis where its producer takes one.
bool IsBias(Builder& graph, const Call& call, const Expr& x, const Expr& bias) {
  if (As<ConstantNode>(bias) == nullptr || As<CallNode>(x) == nullptr) return false;
  const CallNode& maker = *As<CallNode>(x);
  const bool is_convolution = maker.op() != nullptr && maker.op()->name.starts_with("nn.conv");
  const Value made = graph.ValueOf(x);
  const Shape own = graph.TensorOf(made).shape;
  const size_t rank = made.shape.size();
  const Shape result = ShapeOf(call);
  if (rank == 0 || result != made.shape) return false;
  if (is_convolution) return IsVectorAlong(ShapeOf(bias), rank, 1) && graph.AddBias(call, x, bias, 1);
  if (!KeepsLast(made, own)) return false;
  return IsVectorAlong(ShapeOf(bias), rank, rank - 1) && graph.AddBias(call, x, bias, own.size() - 1);
}

void Binary(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Value a = graph.ValueOf(call->args()[0]), b = graph.ValueOf(call->args()[1]);
  const Shape own_a = graph.TensorOf(a).shape, own_b = graph.TensorOf(b).shape;
  const Shape result = ShapeOf(call);
  // In whatever shape they are, where that is the same or one of them is a number.
  if (a.shape == b.shape && own_a == own_b) {
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {a.tensor, b.tensor}, own_a, dtype), result});
  }
  if (NumElements(b.shape) == 1 && a.shape == result) {
    const int number = graph.Shaped(b, {1});
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {a.tensor, number}, own_a, dtype), result});
  }
  if (NumElements(a.shape) == 1 && b.shape == result) {
    const int number = graph.Shaped(a, {1});
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {number, b.tensor}, own_b, dtype), result});
  }
  const int left = graph.Shaped(a, a.shape), right = graph.Shaped(b, b.shape);
  graph.Set(call, Value{graph.Add(call, kind, json::object(), {left, right}, result, dtype), result});
}

template <const char* kind>
void BinaryRow(Builder& graph, const Call& call) {
  Binary(graph, call, kind);
}

void AddRow(Builder& graph, const Call& call) {
  RequireFloats(call);
  if (IsBias(graph, call, call->args()[0], call->args()[1])) return;
  if (IsBias(graph, call, call->args()[1], call->args()[0])) return;
  Binary(graph, call, "Add");
}

/// A vector along `axis` as it is spread over a tensor of `rank`.
int Spread(Builder& graph, const Expr& vector, int64_t axis, size_t rank) {
  Shape shape(rank - static_cast<size_t>(axis), 1);
  shape[0] = ShapeOf(vector).at(0);
  return graph.Shaped(graph.ValueOf(vector), shape);
}

void BiasAdd(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Expr& data = call->args()[0];
  const Shape shape = ShapeOf(call);
  const int64_t axis = NormalAxis(call->attrs().Int("axis"), shape.size());
  const Value made = graph.ValueOf(data);
  const Shape own = graph.TensorOf(made).shape;
  const CallNode* maker = As<CallNode>(data);
  const bool is_convolution = maker != nullptr && maker->op() != nullptr && maker->op()->name.starts_with("nn.conv");
  if (is_convolution && axis == 1 && graph.AddBias(call, data, call->args()[1], 1)) return;
  const bool is_last = axis == static_cast<int64_t>(shape.size()) - 1 && KeepsLast(made, own);
  if (!is_convolution && is_last && graph.AddBias(call, data, call->args()[1], own.size() - 1)) return;
  const int bias = Spread(graph, call->args()[1], axis, shape.size());
  graph.Set(call, Value{graph.Add(call, "Add", json::object(), {graph.Shaped(data), bias}, shape, dtype), shape});
}

void Prelu(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  if (shape.size() < 2 || NormalAxis(call->attrs().Int("axis"), shape.size()) != 1) {
    throw Refusal{"takes slopes per channel, on axis 1, only"};
  }
  const json attrs{{"data_format", "NCX"}, {"per_channel_broadcast", true}};
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, "PReLU", attrs, inputs, shape, dtype), shape});
}

// ---- products

void Dense(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Value data = graph.ValueOf(call->args()[0]);
  const Shape result = ShapeOf(call);
  Shape own = graph.TensorOf(data).shape;
  int operand = data.tensor;
  if (!KeepsLast(data, own) || own.size() < 2) {
    own = data.shape;
    operand = graph.Shaped(data, own);
  }
  own.back() = result.back();
  const int weight = graph.Shaped(call->args()[1]);
  const json attrs{{"transpose_a", false}, {"transpose_b", true}};
  graph.Set(call, Value{graph.Add(call, "MatMul", attrs, {operand, weight}, own, dtype), result});
}

json Transposes(const Call& call) {
  return {{"transpose_a", call->attrs().Bool("transpose_a")}, {"transpose_b", call->attrs().Bool("transpose_b")}};
}

void MatMul(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Shape result = ShapeOf(call);
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, "MatMul", Transposes(call), inputs, result, dtype), result});
}

/// `lead` and the last two dimensions of `shape`.
Shape WithLead(const Shape& lead, const Shape& shape) {
  Shape whole = lead;
  whole.insert(whole.end(), shape.end() - 2, shape.end());
  return whole;
}

/// What precedes the last two dimensions of `own`, where those are `shape`'s and there are two dimensions or more.
std::optional<Shape> LeadOf(const Shape& own, const Shape& shape) {
  if (own.size() < 4 || !std::equal(own.end() - 2, own.end(), shape.end() - 2)) return {};
  return Shape(own.begin(), own.end() - 2);
}

void BatchMatMul(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Value a = graph.ValueOf(call->args()[0]), b = graph.ValueOf(call->args()[1]);
  const Shape result = ShapeOf(call);
  std::vector<std::optional<Shape>> leads{LeadOf(graph.TensorOf(a).shape, a.shape),
                                          LeadOf(graph.TensorOf(b).shape, b.shape)};
  if (const CallNode* reshape = graph.OnlyReshapeOf(call)) {
    leads.push_back(LeadOf(AsTensorType(reshape->checked_type())->static_shape(), result));
  }
  for (const std::optional<Shape>& lead : leads) {
    if (!lead || NumElements(*lead) != a.shape[0] || NumElements(*lead) != b.shape[0]) continue;
    const int left = graph.View(a, WithLead(*lead, a.shape)), right = graph.View(b, WithLead(*lead, b.shape));
    if (left < 0 || right < 0) continue;
    const Shape own = WithLead(*lead, result);
    return graph.Set(call, Value{graph.Add(call, "MatMul", Transposes(call), {left, right}, own, dtype), result});
  }
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, "MatMul", Transposes(call), inputs, result, dtype), result});
}

// ---- windows

std::vector<int64_t> PerDimension(std::vector<int64_t> values, size_t rank) {
  if (values.size() == 1) values.resize(rank, values[0]);
  return values;
}

void RequireChannelsFirst(const Call& call, const char* attribute, std::string_view order) {
  const std::string given = call->attrs().StringOr(attribute, "");
  if (!given.empty() && !given.starts_with(order)) throw Refusal{"takes channels on axis 1 only, got " + given};
}

json WindowAttrs(const Call& call, size_t rank) {
  const Attrs& attrs = call->attrs();
  const std::vector<int64_t> padding = PerDimension(attrs.Ints("padding"), rank);
  const auto count = static_cast<ptrdiff_t>(rank);
  return {{"strides", PerDimension(attrs.Ints("strides"), rank)},
          {"dilations", PerDimension(attrs.Ints("dilation"), rank)},
          {"pads_begin", std::vector<int64_t>(padding.begin(), padding.begin() + count)},
          {"pads_end", std::vector<int64_t>(padding.end() - count, padding.end())},
          {"data_format", "NCX"}};
}

void Convolution(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const bool is_transposed = call->op()->name.ends_with("_transpose");
  const Shape result = ShapeOf(call);
  RequireChannelsFirst(call, "data_layout", "NC");
  RequireChannelsFirst(call, "kernel_layout", is_transposed ? "IO" : "OI");
  json attrs = WindowAttrs(call, result.size() - 2);
  attrs["groups"] = call->attrs().Int("groups");
  attrs["weights_format"] = is_transposed ? "IOX" : "OIX";
  if (is_transposed) {
    if (call->attrs().Int("groups") != 1) throw Refusal{"has transposed convolutions of one group only"};
    attrs["output_padding"] = PerDimension(call->attrs().Ints("output_padding"), result.size() - 2);
  }
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  const char* kind = is_transposed ? "ConvTranspose" : "Convolution";
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), inputs, result, dtype), result});
}

void AddPool(Builder& graph, const Call& call, bool is_max, json attrs) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  const char* kind = is_max ? "MaxPool" : "AvgPool";
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), {graph.Shaped(call->args()[0])}, shape, dtype), shape});
}

void Pool(Builder& graph, const Call& call) {
  RequireChannelsFirst(call, "layout", "NC");
  const Shape from = ShapeOf(call->args()[0]), to = ShapeOf(call);
  const size_t rank = to.size() - 2;
  const bool is_max = call->op()->name.starts_with("nn.max");
  json attrs = WindowAttrs(call, rank);
  const std::vector<int64_t> kernel = PerDimension(call->attrs().Ints("pool_size"), rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = attrs["dilations"][d].get<int64_t>() * (kernel[d] - 1) + 1;
    const int64_t padded = from[d + 2] + attrs["pads_begin"][d].get<int64_t>() + attrs["pads_end"][d].get<int64_t>();
    const int64_t whole = (padded - reach) / attrs["strides"][d].get<int64_t>() + 1;
    if (whole != to[d + 2]) throw Refusal{"has no windows that hang over the end"};
    if (!is_max && attrs["dilations"][d] != 1) throw Refusal{"has no averages of windows with gaps"};
  }
  attrs["kernel"] = kernel;
  attrs["rounding_type"] = "floor";
  if (!is_max) {
    attrs.erase("dilations");
    attrs["exclude_pad"] = !call->attrs().Bool("count_include_pad");
  }
  AddPool(graph, call, is_max, std::move(attrs));
}

void GlobalPool(Builder& graph, const Call& call) {
  RequireChannelsFirst(call, "layout", "NC");
  const Shape from = ShapeOf(call->args()[0]);
  const std::vector<int64_t> kernel(from.begin() + 2, from.end());
  const std::vector<int64_t> zeros(kernel.size(), 0);
  const bool is_max = call->op()->name.starts_with("nn.global_max");
  json attrs{{"kernel", kernel},     {"strides", std::vector<int64_t>(kernel.size(), 1)},
             {"pads_begin", zeros},  {"pads_end", zeros},
             {"data_format", "NCX"}, {"rounding_type", "floor"}};
  if (!is_max) attrs["exclude_pad"] = false;
  AddPool(graph, call, is_max, std::move(attrs));
}

// ---- normalisations, reductions, movement

void Softmax(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const char* kind = call->op()->name == "nn.softmax" ? "SoftMax" : "LogSoftmax";
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  const int64_t axis = NormalAxis(call->attrs().Int("axis"), x.shape.size());
  if (axis == static_cast<int64_t>(x.shape.size()) - 1 && KeepsLast(x, own)) {
    return graph.Set(call, Value{graph.Add(call, kind, {{"axis", -1}}, {x.tensor}, own, dtype), x.shape});
  }
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, kind, {{"axis", axis}}, {operand}, x.shape, dtype), x.shape});
}

void LayerNorm(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Attrs& attrs = call->attrs();
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  if (NormalAxis(attrs.Int("axis"), x.shape.size()) != static_cast<int64_t>(x.shape.size()) - 1 || !KeepsLast(x, own)) {
    throw Refusal{"normalises the innermost axis only"};
  }
  if (!attrs.Bool("center") || !attrs.Bool("scale")) throw Refusal{"scales and shifts, or neither"};
  const std::vector<int> inputs{x.tensor, graph.Shaped(call->args()[1]), graph.Shaped(call->args()[2])};
  const json values{
      {"begin_norm_axis", -1}, {"epsilon", attrs.Double("epsilon")}, {"use_affine", true}, {"keep_stats", false}};
  graph.Set(call, Value{graph.Add(call, "LayerNorm", values, inputs, own, dtype), x.shape});
}

void Reduce(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape from = ShapeOf(call->args()[0]);
  if (from.empty()) throw Refusal{"reduces no scalars"};
  std::vector<int64_t> axes;
  const AttrValue& given = call->attrs().Get("axis");
  const std::vector<int64_t> named = given.is_none() ? std::vector<int64_t>{} : call->attrs().Ints("axis");
  const bool excludes = call->attrs().Bool("exclude");
  Shape kept = from;
  for (int64_t axis = 0; axis < static_cast<int64_t>(from.size()); ++axis) {
    const bool is_named = std::ranges::any_of(named, [&](int64_t one) { return NormalAxis(one, from.size()) == axis; });
    if (given.is_none() ? excludes : is_named == excludes) continue;
    axes.push_back(axis);
    kept[static_cast<size_t>(axis)] = 1;
  }
  if (axes.empty()) throw Refusal{"reduces some axis"};
  const json attrs{{"axes", axes}, {"keep_dims", true}};
  graph.Set(call, Value{graph.Add(call, kind, attrs, {graph.Shaped(call->args()[0])}, kept, dtype), ShapeOf(call)});
}

template <const char* kind>
void ReduceRow(Builder& graph, const Call& call) {
  Reduce(graph, call, kind);
}

void Concatenate(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  std::vector<int> inputs;
  const Expr& tuple = call->args()[0];
  const size_t count = FlattenTensorTypes(tuple->checked_type()).size();
  for (size_t i = 0; i < count; ++i) {
    const Value value = graph.ValueOf(tuple, i);
    inputs.push_back(graph.Shaped(value, value.shape));
  }
  if (inputs.empty()) throw Refusal{"concatenates something"};
  const json attrs{{"axis", NormalAxis(call->attrs().Int("axis"), shape.size())}};
  graph.Set(call, Value{graph.Add(call, "Concat", attrs, std::move(inputs), shape, dtype), shape});
}

void Transpose(Builder& graph, const Call& call) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  std::vector<int64_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  const AttrValue& given = call->attrs().Get("axes");
  if (!given.is_none() && !call->attrs().Ints("axes").empty()) order = call->attrs().Ints("axes");
  for (int64_t& axis : order) axis = NormalAxis(axis, shape.size());
  if (shape.size() < 2) throw Refusal{"permutes two dimensions or more"};
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, "StaticTranspose", {{"order", order}}, {operand}, shape, dtype), shape});
}

// ---- 8 bits

/// Scales and zero points, which must be known.
json QuantisationAttrs(const Call& call, size_t rank) {
  const ConstantNode* scale = As<ConstantNode>(call->args()[1]);
  const ConstantNode* zero = As<ConstantNode>(call->args()[2]);
  if (scale == nullptr || zero == nullptr) throw Refusal{"takes constant scales and zero points only"};
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  const int64_t count = scale->value().num_elements();
  for (int64_t i = 0; i < count; ++i) scales.push_back(scale->value().At(i));
  for (int64_t i = 0; i < zero->value().num_elements(); ++i) {
    zeros.push_back(static_cast<int64_t>(zero->value().At(i)));
    if (zeros.back() != 0 && (count > 1 || i > 0)) throw Refusal{"takes a zero point with one scale for all only"};
  }
  zeros.resize(scales.size(), 0);
  return {{"scales", scales},
          {"zps", zeros},
          {"qtype", count == 1 ? "per_tensor" : "per_channel"},
          {"axis", rank == 0 ? 0 : NormalAxis(call->attrs().Int("axis"), rank)}};
}

bool IsByte(DataType dtype) { return dtype == kInt8 || dtype == kUInt8; }

void Quantize(Builder& graph, const Call& call) {
  const Shape shape = ShapeOf(call);
  if (DTypeOf(call->args()[0]) != kFloat32 || !IsByte(DTypeOf(call))) throw Refusal{"makes bytes of float32 only"};
  const json attrs = QuantisationAttrs(call, shape.size());
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, "Quantize", attrs, {operand}, shape, DTypeOf(call)), shape});
}

void Dequantize(Builder& graph, const Call& call) {
  const Shape shape = ShapeOf(call);
  if (!IsByte(DTypeOf(call->args()[0])) || DTypeOf(call) != kFloat32) throw Refusal{"makes float32 of bytes only"};
  const json attrs = QuantisationAttrs(call, shape.size());
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, "Dequantize", attrs, {operand}, shape, kFloat32), shape});
}

#define COLLAGE_KIND(name) constexpr char k##name[] = #name
COLLAGE_KIND(Abs);
COLLAGE_KIND(Divide);
COLLAGE_KIND(Exp);
COLLAGE_KIND(Log);
COLLAGE_KIND(Maximum);
COLLAGE_KIND(Minimum);
COLLAGE_KIND(Multiply);
COLLAGE_KIND(ReLU);
COLLAGE_KIND(ReduceMax);
COLLAGE_KIND(ReduceMean);
COLLAGE_KIND(ReduceMin);
COLLAGE_KIND(ReduceProd);
COLLAGE_KIND(ReduceSum);
COLLAGE_KIND(Round);
COLLAGE_KIND(Sigmoid);
COLLAGE_KIND(Sqrt);
COLLAGE_KIND(Subtract);
COLLAGE_KIND(Tanh);
#undef COLLAGE_KIND

constexpr OperatorRow kOperators[] = {
    {"abs", UnaryRow<kAbs>},
    {"add", AddRow},
    {"cast", Cast},
    {"clip", Clip},
    {"concatenate", Concatenate},
    {"divide", BinaryRow<kDivide>},
    {"exp", UnaryRow<kExp>},
    {"log", UnaryRow<kLog>},
    {"max", ReduceRow<kReduceMax>},
    {"maximum", BinaryRow<kMaximum>},
    {"mean", ReduceRow<kReduceMean>},
    {"min", ReduceRow<kReduceMin>},
    {"minimum", BinaryRow<kMinimum>},
    {"multiply", BinaryRow<kMultiply>},
    {"nn.avg_pool1d", Pool},
    {"nn.avg_pool2d", Pool},
    {"nn.avg_pool3d", Pool},
    {"nn.batch_matmul", BatchMatMul},
    {"nn.bias_add", BiasAdd},
    {"nn.conv1d", Convolution},
    {"nn.conv1d_transpose", Convolution},
    {"nn.conv2d", Convolution},
    {"nn.conv2d_transpose", Convolution},
    {"nn.conv3d", Convolution},
    {"nn.conv3d_transpose", Convolution},
    {"nn.dense", Dense},
    {"nn.global_avg_pool1d", GlobalPool},
    {"nn.global_avg_pool2d", GlobalPool},
    {"nn.global_avg_pool3d", GlobalPool},
    {"nn.global_max_pool1d", GlobalPool},
    {"nn.global_max_pool2d", GlobalPool},
    {"nn.global_max_pool3d", GlobalPool},
    {"nn.layer_norm", LayerNorm},
    {"nn.leaky_relu", LeakyRelu},
    {"nn.log_softmax", Softmax},
    {"nn.matmul", MatMul},
    {"nn.max_pool1d", Pool},
    {"nn.max_pool2d", Pool},
    {"nn.max_pool3d", Pool},
    {"nn.prelu", Prelu},
    {"nn.relu", UnaryRow<kReLU>},
    {"nn.softmax", Softmax},
    {"prod", ReduceRow<kReduceProd>},
    {"qnn.dequantize", Dequantize},
    {"qnn.quantize", Quantize},
    {"round", UnaryRow<kRound>},
    {"sigmoid", UnaryRow<kSigmoid>},
    {"sqrt", UnaryRow<kSqrt>},
    {"subtract", BinaryRow<kSubtract>},
    {"sum", ReduceRow<kReduceSum>},
    {"tanh", UnaryRow<kTanh>},
    {"transpose", Transpose},
};

/// The same elements, not moved: nothing is computed before somebody needs the shape.
void Reshape(Builder& graph, const Call& call) {
  const Value x = graph.ValueOf(call->args()[0]);
  if (!IsFloat(DTypeOf(call)) && !IsByte(DTypeOf(call))) {
    throw Refusal{"computes floats and bytes, got " + DTypeOf(call).ToString()};
  }
  graph.Set(call, Value{x.tensor, ShapeOf(call)});
}

}  // namespace

std::span<const OperatorRow> Operators() { return kOperators; }

void Translate(Builder& graph, const Call& call) {
  const OpDef* op = call->op();
  if (op->is_reshape) return Reshape(graph, call);
  const auto row = std::ranges::lower_bound(Operators(), std::string_view(op->name), {}, &OperatorRow::name);
  if (row == Operators().end() || row->name != op->name) throw Refusal{"has no operation for '" + op->name + "'"};
  row->translate(graph, call);
}

}  // namespace collage::onednn_graph
