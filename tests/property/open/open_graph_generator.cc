// open_graph_generator.cc: inputs, worlds and steps of random models with symbolic sizes.
#include "property/open/open_graph_generator.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "collage/frontend/onnx.h"
#include "collage/ir/expr.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "property/open/open_case.h"
#include "runtime/random_inputs.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

constexpr size_t kNumWorlds = 5;
constexpr int64_t kMostInInput = 3000;
constexpr int64_t kMostInValue = 20000;
constexpr int kHighestRank = 5;

}  // namespace

int OpenGraphGenerator::Value::rank() const {
  return static_cast<int>(shapes[static_cast<size_t>(first_alive)].size());
}

OpenGraphGenerator::OpenGraphGenerator(uint64_t seed)
    : random_(seed),
      opset_(random_.Pick(Ints{11, 13, 17, 17, 18, 20})),
      target_(model_.mutable_graph()),
      path_(std::filesystem::temp_directory_path() / ("collage_growing_" + std::to_string(getpid()) + ".onnx")) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(opset_);
  model_.mutable_graph()->set_name("random");
}

OpenCase OpenGraphGenerator::Make() {
  AddInputs();
  AddWorlds();
  const int wanted = static_cast<int>(Between(2, 9));
  int made = 0;
  for (int tries = 0; tries < 12 * wanted && made < wanted; ++tries) made += Step() ? 1 : 0;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  return Finish();
}

// ---- inputs and worlds ----

/// A symbol that there is, or a new one.
int64_t OpenGraphGenerator::Symbol() {
  if (num_symbols_ > 0 && OneIn(3)) return -1 - Below(num_symbols_);
  return -1 - num_symbols_++;
}

void OpenGraphGenerator::AddInputs() {
  const int count = OneIn(4) ? 3 : static_cast<int>(Between(1, 2));
  const int64_t channels = Between(1, 3), features = 2 * Between(1, 3);
  bool has_open = false;
  std::set<int64_t> unnamed;
  for (int i = 0; i < count; ++i) {
    Input input{"x" + std::to_string(i), {}};
    TensorProto::DataType type = TensorProto::FLOAT;
    const auto open = [&](int64_t size) { return OneIn(4) ? size : Symbol(); };
    switch (Below(8)) {
      case 0: input.dims = {open(1), channels, open(8), open(12)}; break;
      case 1: input.dims = {OneIn(2) ? 1 : open(2), channels, Symbol(), Symbol()}; break;
      case 2: input.dims = {OneIn(2) ? 1 : open(2), channels, Symbol()}; break;
      case 3: input.dims = {open(2), Symbol(), features}; break;
      case 4: input.dims = {Symbol(), features}; break;
      case 5:
        input.dims = {OneIn(3) ? 1 : Symbol(), Symbol()};
        type = TensorProto::INT64;
        break;
      case 6: input.dims = {Symbol()}; break;
      default:
        for (int64_t rank = Between(2, 4); rank-- > 0;) input.dims.push_back(open(Between(1, 4)));
    }
    if (i + 1 == count && !has_open && *std::ranges::min_element(input.dims) >= 0) input.dims.back() = Symbol();
    has_open = has_open || *std::ranges::min_element(input.dims) < 0;
    auto& proto = *model_.mutable_graph()->add_input();
    proto.set_name(input.name);
    proto.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    for (int64_t& size : input.dims) {
      auto& dim = *proto.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
      if (size >= 0) {
        dim.set_dim_value(size);
      } else if (OneIn(8)) {
        size = -1 - num_symbols_++;  // one of its own, without a name
      } else {
        dim.set_dim_param("s" + std::to_string(-1 - size));
      }
    }
    inputs_.push_back(input);
  }
}

InputShapes OpenGraphGenerator::ShapesIn(const Ints& sizes) const {
  InputShapes shapes;
  for (const Input& input : inputs_) {
    Shape& shape = shapes[input.name];
    for (const int64_t dim : input.dims) shape.push_back(dim >= 0 ? dim : sizes[static_cast<size_t>(-1 - dim)]);
  }
  return shapes;
}

OpenGraphGenerator::Ints OpenGraphGenerator::RandomSizes(int kind) {
  // Some models have layers that need a dozen rows or more.
  const auto with_least = [&](int64_t size) { return size + least_; };
  static const Ints kLarge{100, 160, 257, 400, 640};
  static const Ints kMiddle{7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 101};
  Ints sizes(static_cast<size_t>(num_symbols_));
  const int64_t same = Between(2, 9);
  for (int64_t& size : sizes) {
    if (kind == 0) size = with_least(Between(2, 9));
    if (kind == 1) size = with_least(same);
    if (kind == 2) size = with_least(Between(1, 12));
    if (kind == 3) size = Between(1, 3);
    if (kind == 4) size = random_.Pick(kMiddle);
    if (kind == 5) size = 1;
  }
  if (kind == 3) sizes[static_cast<size_t>(Below(num_symbols_))] = random_.Pick(kLarge);
  // No input may be too large: some sizes become small again.
  const auto is_large = [&] {
    return std::ranges::any_of(ShapesIn(sizes),
                               [](const auto& input) { return NumElements(input.second) > kMostInInput; });
  };
  while (is_large()) *std::ranges::max_element(sizes) = Between(1, 6);
  return sizes;
}

void OpenGraphGenerator::AddWorlds() {
  if (num_symbols_ < 4 && OneIn(3)) least_ = Between(4, 16);
  for (const int kind : {0, OneIn(2) ? 1 : 5, 2, 3, 4}) worlds_.push_back({RandomSizes(kind), true});
  for (int i = 0; i < 2; ++i) untried_.push_back(RandomSizes(Below(6)));
  Names names;
  for (const Input& input : inputs_) names.push_back(input.name);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto type = model_.graph().input(static_cast<int>(i)).type().tensor_type().elem_type();
    Value value{inputs_[i].name, type == TensorProto::INT64 ? kInt64 : kFloat32, {}, std::nullopt};
    for (const World& world : worlds_) value.shapes.push_back(ShapesIn(world.sizes).at(inputs_[i].name));
    values_.push_back(std::move(value));
  }
}

// ---- steps ----

bool OpenGraphGenerator::Step() {
  using G = OpenGraphGenerator;
  static const std::vector<Way> ways{&G::SizeItself,
                                     &G::SizeAsNumber,
                                     &G::SizeAsNumber,
                                     &G::MeanBySum,
                                     &G::MeanBySum,
                                     &G::Chosen,
                                     &G::FilledWithShape,
                                     &G::CountingAdded,
                                     &G::CountingAdded,
                                     &G::FromTable,
                                     &G::TableCut,
                                     &G::TableCut,
                                     &G::TriangularMask,
                                     &G::PositionsOfOnes,
                                     &G::Convolution,
                                     &G::Convolution,
                                     &G::Convolution,
                                     &G::Convolution,
                                     &G::TransposedConvolution,
                                     &G::Pool,
                                     &G::Pool,
                                     &G::GlobalPool,
                                     &G::MatMulByWeights,
                                     &G::MatMulByWeights,
                                     &G::Gemm,
                                     &G::Attention,
                                     &G::Unary,
                                     &G::Unary,
                                     &G::BinaryWithConstant,
                                     &G::Binary,
                                     &G::Binary,
                                     &G::Reduction,
                                     &G::Reduction,
                                     &G::Softmax,
                                     &G::Normalisation,
                                     &G::Recurrent,
                                     &G::Recurrent,
                                     &G::ArgReduction,
                                     &G::TopK,
                                     &G::OneHot,
                                     &G::CumulativeSum,
                                     &G::Embedding,
                                     &G::Slice,
                                     &G::Slice,
                                     &G::Slice,
                                     &G::Slice,
                                     &G::Reshape,
                                     &G::Reshape,
                                     &G::ReshapeComputed,
                                     &G::ReshapeComputed,
                                     &G::SplitHeads,
                                     &G::Flatten,
                                     &G::Squeeze,
                                     &G::Unsqueeze,
                                     &G::Transpose,
                                     &G::Expand,
                                     &G::Tile,
                                     &G::Pad,
                                     &G::PadToMultiple,
                                     &G::ResizeByScales,
                                     &G::ResizeBySizes,
                                     &G::ResizeLike,
                                     &G::Split,
                                     &G::Concat,
                                     &G::GatherStep,
                                     &G::Blocks,
                                     &G::Crop,
                                     &G::If,
                                     &G::IfSqueeze,
                                     &G::Loop};
  onnx::GraphProto& graph = *model_.mutable_graph();
  const int num_nodes = graph.node_size(), num_initializers = graph.initializer_size();
  const Made made = (this->*random_.Pick(ways))();
  if (!made.empty() && Accept(made)) return true;
  graph.mutable_node()->DeleteSubrange(num_nodes, graph.node_size() - num_nodes);
  graph.mutable_initializer()->DeleteSubrange(num_initializers, graph.initializer_size() - num_initializers);
  return false;
}

bool OpenGraphGenerator::Accept(const Names& outputs) {
  model_.mutable_graph()->clear_output();
  for (const std::string& name : outputs) model_.mutable_graph()->add_output()->set_name(name);
  WriteModel(path_, model_);
  const bool may_give_up = OneIn(3);
  std::vector<std::optional<std::vector<Value>>> found(worlds_.size());
  size_t num_alive = 0, num_lost = 0;
  for (size_t world = 0; world < worlds_.size(); ++world) {
    if (!IsAlive(world)) continue;
    found[world] = ImportIn(world, outputs);
    ++(found[world] ? num_alive : num_lost);
    if (num_lost > 0 && !may_give_up) return false;
  }
  if (num_alive < 3) return false;
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value{outputs[i], {}, std::vector<Shape>(worlds_.size()), std::vector<Tensor>(worlds_.size())};
    bool is_first = true;
    for (size_t world = 0; world < worlds_.size(); ++world) {
      if (!found[world]) continue;
      const Value& own = (*found[world])[i];
      if (is_first) {
        value.dtype = own.dtype;
        value.first_alive = static_cast<int>(world);
      }
      is_first = false;
      value.shapes[world] = own.shapes[0];
      if (own.dtype != value.dtype ||
          value.shapes[world].size() != value.shapes[static_cast<size_t>(value.first_alive)].size())
        return false;
      if (!own.constants) value.constants = std::nullopt;
      if (value.constants) (*value.constants)[world] = own.constants->at(0);
    }
    values.push_back(std::move(value));
  }
  for (size_t world = 0; world < worlds_.size(); ++world) worlds_[world].is_alive = found[world].has_value();
  for (Value& value : values_) {
    while (!IsAlive(static_cast<size_t>(value.first_alive))) ++value.first_alive;
  }
  values_.insert(values_.end(), values.begin(), values.end());
  return true;
}

std::optional<std::vector<OpenGraphGenerator::Value>> OpenGraphGenerator::ImportIn(size_t world, const Names& outputs) {
  try {
    const IRModule module = ImportOnnx(path_, {.shapes = ShapesIn(worlds_[world].sizes)});
    const Expr body = module.main()->body();
    const TupleNode* tuple = As<TupleNode>(body);
    const std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{body} : tuple->fields();
    if (results.size() != outputs.size()) return std::nullopt;
    std::vector<Value> found;
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorTypeNode* type = AsTensorType(InferType(results[i]));
      if (type == nullptr || !type->is_static() || type->rank() > kHighestRank) return std::nullopt;
      const Shape shape = type->static_shape();
      const int64_t count = NumElements(shape);
      if (count > kMostInValue || (count == 0 && !OneIn(20))) return std::nullopt;
      const ConstantNode* constant = As<ConstantNode>(results[i]);
      Value value{outputs[i], type->dtype(), {shape}, std::nullopt};
      if (constant != nullptr) value.constants = {constant->value()};
      found.push_back(std::move(value));
    }
    return found;
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kInternal) throw;
    return std::nullopt;
  }
}

OpenCase OpenGraphGenerator::Finish() {
  onnx::GraphProto& graph = *model_.mutable_graph();
  std::set<std::string> read;
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) read.insert(input);
  }
  std::vector<const Value*> unread, others;
  for (size_t i = inputs_.size(); i < values_.size(); ++i) {
    (read.contains(values_[i].name) ? others : unread).push_back(&values_[i]);
  }
  std::set<std::string> outputs;
  while (outputs.size() < 3 && !unread.empty()) {
    outputs.insert(unread.back()->name);
    unread.pop_back();
  }
  if (!others.empty() && OneIn(4)) outputs.insert(random_.Pick(others)->name);
  if (outputs.empty()) outputs.insert(Node("Identity", {inputs_[0].name}));
  graph.clear_output();
  for (const std::string& name : outputs) graph.add_output()->set_name(name);
  if (!OneIn(4)) Prune(graph);
  OpenCase made{model_, {}};
  for (const World& world : worlds_) made.sizes.push_back(ShapesIn(world.sizes));
  for (const Ints& sizes : untried_) made.sizes.push_back(ShapesIn(sizes));
  return made;
}

// ---- nodes ----

std::string OpenGraphGenerator::Node(const std::string& op, const Names& inputs, const Attributes& attributes,
                                     int num_results) {
  onnx::NodeProto& node = *target_->add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  const std::string name = NewName();
  node.set_name(name + "_" + op);
  for (int i = 0; i < num_results; ++i) node.add_output(i == 0 ? name : name + "_" + std::to_string(i));
  for (const auto& [key, value] : attributes) {
    if (const auto* number = std::get_if<int64_t>(&value)) SetInt(node, key, *number);
    if (const auto* number = std::get_if<double>(&value)) SetFloat(node, key, static_cast<float>(*number));
    if (const auto* text = std::get_if<std::string>(&value)) SetString(node, key, *text);
    if (const auto* ints = std::get_if<Ints>(&value)) SetInts(node, key, *ints);
    if (const auto* tensor = std::get_if<Tensor>(&value)) SetTensor(node, key, *tensor);
    if (const auto* graph = std::get_if<onnx::GraphProto>(&value)) AddGraph(node, key) = *graph;
  }
  return name;
}

/// An initializer, or a node.
std::string OpenGraphGenerator::Constant(const Tensor& value) {
  if (OneIn(3)) return Node("Constant", {}, {{"value", value}});
  const std::string name = NewName();
  auto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(value.dtype() == kFloat32 ? TensorProto::FLOAT
                       : value.dtype() == kInt64 ? TensorProto::INT64
                       : value.dtype() == kInt32 ? TensorProto::INT32
                                                 : TensorProto::BOOL);
  for (const int64_t size : value.shape()) tensor.add_dims(size);
  tensor.set_raw_data(value.raw(), value.size_bytes());
  return name;
}

std::string OpenGraphGenerator::List(const Ints& values) {
  return Constant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values));
}

std::string OpenGraphGenerator::Number(int64_t value) { return Constant(Tensor::Of<int64_t>({}, kInt64, Ints{value})); }

std::string OpenGraphGenerator::Scalar(double value) {
  const Tensor scalar = Tensor::Empty({}, kFloat32);
  scalar.Set(0, value);
  return Constant(scalar);
}

std::string OpenGraphGenerator::Weights(const Shape& shape) {
  const Tensor weights = Tensor::Empty(shape, kFloat32);
  FillRandom(weights, static_cast<uint64_t>(Below(1000)));
  return Constant(weights);
}

std::string OpenGraphGenerator::Cast(const std::string& x, TensorProto::DataType type) {
  return Node("Cast", {x}, {{"to", int64_t{type}}});
}

std::string OpenGraphGenerator::WithAxes(const std::string& op, const std::string& x, const Ints& axes,
                                         int64_t first_with_input, Attributes attributes) {
  if (opset_ >= first_with_input) return Node(op, {x, List(axes)}, attributes);
  attributes.emplace_back("axes", axes);
  return Node(op, {x}, attributes);
}

// ---- values ----

const OpenGraphGenerator::Value* OpenGraphGenerator::Floats(int rank) {
  std::vector<const Value*> fit;
  for (const Value& value : values_) {
    const bool fits = value.is_float() && (rank < 0 || value.rank() == rank) && !(value.constants && value.rank() == 0);
    if (fits) fit.push_back(&value);
  }
  if (fit.empty()) return nullptr;
  if (!OneIn(3)) return fit.back();
  return random_.Pick(fit);
}

const OpenGraphGenerator::Value* OpenGraphGenerator::Find(const std::string& name) const {
  for (const Value& value : values_) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

int64_t OpenGraphGenerator::FixedSize(const Value& value, int axis) const {
  int64_t size = -1;
  for (size_t world = 0; world < worlds_.size(); ++world) {
    if (!IsAlive(world)) continue;
    const int64_t own = value.shapes[world][static_cast<size_t>(axis)];
    if (size >= 0 && own != size) return -1;
    size = own;
  }
  return size;
}

OpenGraphGenerator::Ints OpenGraphGenerator::AllAxes(const Value& value) const {
  Ints axes;
  for (int axis = 0; axis < value.rank(); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace collage
