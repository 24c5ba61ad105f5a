// open_graph_layers.cc: random layers of models with symbolic sizes.
#include <algorithm>

#include "property/open/open_graph_generator.h"

namespace collage {

using onnx::TensorProto;

/// Strides, dilations, and pads one way or the other.
void OpenGraphGenerator::SetWindow(Attributes& attributes, int rank, const Ints& kernel) {
  Ints strides, dilations, pads(2 * static_cast<size_t>(rank), 0);
  for (int i = 0; i < rank; ++i) {
    strides.push_back(OneIn(6) ? 8 : Between(1, 4));
    dilations.push_back(OneIn(5) ? 2 : 1);
  }
  if (OneIn(2)) attributes.emplace_back("strides", strides);
  if (OneIn(3)) attributes.emplace_back("dilations", dilations);
  if (OneIn(4)) {
    static const Names modes{"SAME_UPPER", "SAME_LOWER", "VALID"};
    attributes.emplace_back("auto_pad", random_.Pick(modes));
  } else if (!OneIn(3)) {
    for (size_t i = 0; i < pads.size(); ++i) pads[i] = Below(static_cast<int>(kernel[i % kernel.size()]));
    if (OneIn(2)) std::copy_n(pads.begin(), rank, pads.begin() + rank);
    attributes.emplace_back("pads", pads);
  }
}

OpenGraphGenerator::Made OpenGraphGenerator::Convolution() {
  const Value* x = Floats(OneIn(2) ? 3 : 4);
  const int64_t channels = x == nullptr ? -1 : FixedSize(*x, 1);
  if (channels < 1) return {};
  const int rank = x->rank() - 2;
  Ints kernel;
  for (int i = 0; i < rank; ++i) kernel.push_back(OneIn(6) ? 8 : Between(1, 4));
  Attributes attributes;
  SetWindow(attributes, rank, kernel);
  const bool is_depthwise = OneIn(4);
  const int64_t results = is_depthwise ? channels : Between(1, 4);
  if (is_depthwise) attributes.emplace_back("group", channels);
  Shape weights{results, is_depthwise ? 1 : channels};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  Names inputs{x->name, Weights(weights)};
  if (OneIn(2)) inputs.push_back(Weights({results}));
  return {Node("Conv", inputs, attributes)};
}

OpenGraphGenerator::Made OpenGraphGenerator::TransposedConvolution() {
  const Value* x = Floats(OneIn(2) ? 3 : 4);
  const int64_t channels = x == nullptr ? -1 : FixedSize(*x, 1);
  if (channels < 1) return {};
  const int rank = x->rank() - 2;
  Shape weights{channels, Between(1, 3)};
  Ints strides;
  for (int i = 0; i < rank; ++i) {
    weights.push_back(Between(2, 4));
    strides.push_back(Between(1, 3));
  }
  Attributes attributes{{"strides", strides}};
  if (OneIn(3)) attributes.emplace_back("pads", Ints(2 * static_cast<size_t>(rank), 1));
  return {Node("ConvTranspose", {x->name, Weights(weights)}, attributes)};
}

OpenGraphGenerator::Made OpenGraphGenerator::Pool() {
  const Value* x = Floats(OneIn(2) ? 3 : 4);
  if (x == nullptr) return {};
  const int rank = x->rank() - 2;
  Ints kernel, strides;
  for (int i = 0; i < rank; ++i) {
    kernel.push_back(Between(2, 3));
    strides.push_back(Between(1, 3));
  }
  const bool is_average = OneIn(2);
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}};
  if (OneIn(3)) {
    attributes.emplace_back("ceil_mode", int64_t{1});
  } else if (OneIn(4)) {
    attributes.emplace_back("auto_pad", std::string(OneIn(2) ? "SAME_UPPER" : "SAME_LOWER"));
  }
  if (OneIn(3)) attributes.emplace_back("pads", Ints(2 * static_cast<size_t>(rank), 1));
  if (is_average && OneIn(2)) attributes.emplace_back("count_include_pad", int64_t{1});
  return {Node(is_average ? "AveragePool" : "MaxPool", {x->name}, attributes)};
}

OpenGraphGenerator::Made OpenGraphGenerator::GlobalPool() {
  const Value* x = Floats(OneIn(2) ? 3 : 4);
  if (x == nullptr) return {};
  return {Node(OneIn(2) ? "GlobalAveragePool" : "GlobalMaxPool", {x->name})};
}

OpenGraphGenerator::Made OpenGraphGenerator::MatMulByWeights() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int64_t width = FixedSize(*x, x->rank() - 1);
  if (width < 1) return {};
  return {Node("MatMul", {x->name, Weights({width, 2 * Between(1, 3)})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Gemm() {
  const Value* x = Floats(2);
  if (x == nullptr) return {};
  const bool transposes = OneIn(4);
  const int64_t width = FixedSize(*x, transposes ? 0 : 1);
  if (width < 1) return {};
  const int64_t results = Between(1, 20);
  const bool is_stored_transposed = OneIn(2);
  Attributes attributes{{"transB", int64_t{is_stored_transposed}}, {"transA", int64_t{transposes}}};
  if (OneIn(3)) attributes.emplace_back("alpha", 0.5);
  Names inputs{x->name, Weights(is_stored_transposed ? Shape{results, width} : Shape{width, results})};
  if (OneIn(2)) inputs.push_back(Weights({results}));
  return {Node("Gemm", inputs, attributes)};
}

/// softmax(x xᵀ / sqrt(d)) x, with d as a number or from the shape.
OpenGraphGenerator::Made OpenGraphGenerator::Attention() {
  const Value* x = Floats(OneIn(2) ? 3 : 4);
  if (x == nullptr) return {};
  Ints perm = AllAxes(*x);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  std::string scores = Node("MatMul", {x->name, Node("Transpose", {x->name}, {{"perm", perm}})});
  if (OneIn(2)) {
    scores = Node("Div", {scores, Node("Sqrt", {AsFloat(SizeOf(x->name, x->rank(), x->rank() - 1))})});
  }
  return {Node("MatMul", {Node("Softmax", {scores}, {{"axis", int64_t{x->rank()} - 1}}), x->name})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Unary() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  static const Names ops{"Relu",      "Sigmoid",     "Tanh",     "Abs",      "Neg",
                         "LeakyRelu", "HardSigmoid", "Softplus", "Identity", "Erf"};
  return {Node(random_.Pick(ops), {x->name})};
}

OpenGraphGenerator::Made OpenGraphGenerator::BinaryWithConstant() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  static const Names ops{"Add", "Mul", "Sub", "Max", "Min"};
  Shape shape;
  if (x->rank() > 0 && OneIn(2)) {
    const int axis = Axis(*x);
    if (FixedSize(*x, axis) < 1) return {};
    shape.assign(static_cast<size_t>(x->rank() - axis), 1);
    shape[0] = FixedSize(*x, axis);
  }
  return {Node(random_.Pick(ops), {x->name, Weights(shape)})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Binary() {
  const Value* x = Floats();
  const Value* y = Floats();
  if (OneIn(2)) {
    std::vector<const Value*> all;
    for (const Value& value : values_) {
      if (value.is_float()) all.push_back(&value);
    }
    if (!all.empty()) y = random_.Pick(all);
  }
  if (x == nullptr || y == nullptr) return {};
  static const Names ops{"Add", "Mul", "Sub", "Max", "Min"};
  return {Node(random_.Pick(ops), {x->name, y->name})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Reduction() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  static const Names ops{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"};
  const std::string op = random_.Pick(ops);
  Ints axes;
  for (int axis = 0; axis < x->rank(); ++axis) {
    if (OneIn(2)) axes.push_back(OneIn(3) ? axis - x->rank() : axis);
  }
  if (axes.empty()) axes.push_back(x->rank() - 1);
  return {WithAxes(op, x->name, axes, op == "ReduceSum" ? 13 : 18, {{"keepdims", int64_t{Below(2)}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Softmax() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  return {
      Node(OneIn(3) ? "LogSoftmax" : "Softmax", {x->name}, {{"axis", int64_t{OneIn(2) ? x->rank() - 1 : Axis(*x)}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Normalisation() {
  const Value* x = Floats(OneIn(2) ? 3 : -1);
  if (x == nullptr || x->rank() < 2) return {};
  const int last = x->rank() - 1;
  const int64_t width = FixedSize(*x, last), channels = FixedSize(*x, 1);
  if (OneIn(3) && channels > 0 && x->rank() > 2) {
    return {Node("InstanceNormalization", {x->name, Weights({channels}), Weights({channels})}, {{"epsilon", 0.1}})};
  }
  if (OneIn(3) && channels > 0) {
    const Tensor ones = Tensor::Empty({channels}, kFloat32);
    for (int64_t i = 0; i < channels; ++i) ones.Set(i, 1);
    return {Node("BatchNormalization",
                 {x->name, Weights({channels}), Weights({channels}), Weights({channels}), Constant(ones)})};
  }
  if (opset_ >= 17 && width > 0 && OneIn(2)) {
    return {Node("LayerNormalization", {x->name, Weights({width}), Weights({width})},
                 {{"axis", int64_t{-1}}, {"epsilon", 0.1}})};
  }
  // Written out, along any axis.
  const int axis = OneIn(2) ? last : Axis(*x);
  const auto mean = [&](const std::string& of) {
    return WithAxes("ReduceMean", of, {axis}, 18, {{"keepdims", int64_t{1}}});
  };
  const std::string centred = Node("Sub", {x->name, mean(x->name)});
  const std::string variance = mean(Node("Mul", {centred, centred}));
  return {Node("Div", {centred, Node("Sqrt", {Node("Add", {variance, Scalar(0.1)})})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Recurrent() {
  const Value* x = Floats(3);
  const int64_t width = x == nullptr ? -1 : FixedSize(*x, 2);
  if (width < 1) return {};
  const bool is_lstm = OneIn(2);
  const int64_t gates = is_lstm ? 4 : 3, hidden = Between(1, 3);
  const int64_t directions = OneIn(4) ? 2 : 1;
  std::string data = x->name;
  if (OneIn(2)) data = Node("Transpose", {data}, {{"perm", Ints{1, 0, 2}}});
  Names inputs{data, Weights({directions, gates * hidden, width}), Weights({directions, gates * hidden, hidden})};
  if (OneIn(2)) {
    inputs.push_back(Weights({directions, 2 * gates * hidden}));
    if (OneIn(2)) {  // a state of zeros for each of the batch
      const std::string shape = Join({directions, SizeOf(data, 3, 1), hidden});
      const std::string zeros = Node("ConstantOfShape", {shape});
      inputs.insert(inputs.end(), {"", zeros});
      if (is_lstm) inputs.push_back(zeros);
    }
  }
  Attributes attributes{{"hidden_size", hidden}};
  if (directions == 2) attributes.emplace_back("direction", std::string("bidirectional"));
  const std::string all = Node(is_lstm ? "LSTM" : "GRU", inputs, attributes, is_lstm ? 3 : 2);
  if (directions == 2 || OneIn(3)) return {all, all + "_1"};
  return {WithAxes("Squeeze", all, {1}, 13)};
}

/// Positions of the largest, of values straight from a layer of products or from an input, where nothing is equal.
OpenGraphGenerator::Made OpenGraphGenerator::ArgReduction() {
  const Value& x = values_[static_cast<size_t>(Below(static_cast<int>(inputs_.size())))];
  if (!x.is_float()) return {};
  const std::string places =
      Node(OneIn(2) ? "ArgMax" : "ArgMin", {x.name}, {{"axis", int64_t{Axis(x)}}, {"keepdims", int64_t{Below(2)}}});
  return {OneIn(2) ? places : Cast(places, TensorProto::FLOAT)};
}

OpenGraphGenerator::Made OpenGraphGenerator::TopK() {
  const Value& x = values_[static_cast<size_t>(Below(static_cast<int>(inputs_.size())))];
  if (!x.is_float()) return {};
  const int axis = Axis(x);
  const std::string size = SizeOf(x.name, x.rank(), axis);
  const std::string count = OneIn(2) ? Node("Min", {size, Number(Between(1, 6))}) : DerivedOnce(size);
  const std::string largest = Node("TopK", {x.name, AsList(count)}, {{"axis", int64_t{axis}}}, 2);
  return {largest, Cast(largest + "_1", TensorProto::FLOAT)};
}

OpenGraphGenerator::Made OpenGraphGenerator::OneHot() {
  std::vector<const Value*> ints;
  for (const Value& value : values_) {
    if (value.dtype == kInt64 && value.rank() > 0 && value.rank() < 4) ints.push_back(&value);
  }
  if (ints.empty()) return {};
  const Value& x = *random_.Pick(ints);
  const Tensor values = Tensor::Of<float>({2}, kFloat32, std::vector<float>{0, 1});
  return {Node("OneHot", {x.name, Derived(AnySize()), Constant(values)}, {{"axis", int64_t{-1}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::CumulativeSum() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  return {Node("CumSum", {x->name, Number(Axis(*x))}, {{"reverse", int64_t{Below(2)}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Embedding() {
  std::vector<const Value*> ints;
  for (const Value& value : values_) {
    if (value.dtype == kInt64 && value.rank() > 0 && value.rank() < 4) ints.push_back(&value);
  }
  if (ints.empty()) return {};
  return {Node("Gather", {Weights({700, 2 * Between(1, 3)}), random_.Pick(ints)->name})};
}

}  // namespace collage
