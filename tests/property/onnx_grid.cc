// onnx_grid.cc: draws operands and attributes.
#include "property/onnx_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "collage/runtime/tensor.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor_reader.h"
#include "property/onnx_operators.h"
#include "property/random_source.h"

namespace collage {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

const std::vector<int64_t> kOpsets{7,  8,  9,  10, 11, 12, 13, 13, 14, 15, 16, 17,
                                   17, 18, 18, 19, 20, 21, 21, 22, 23, 24, 26, 28};
const std::vector<int64_t> kUsualInts{-2, -1, 0, 0, 1, 1, 2, 3};
const std::vector<int64_t> kEdgeInts{
    INT64_MIN,        -1000000000000, INT32_MIN,        -100,     -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100, INT32_MAX,
    int64_t{1} << 33, 1000000000000,  int64_t{1} << 62, INT64_MAX};
const std::vector<int64_t> kEdgeSizes{0, 0, 0, 1, 1, 2, 3, 5, 8, 17, 100000, 1000000000000, int64_t{1} << 62};
const std::vector<int> kTypes{TensorProto::FLOAT, TensorProto::DOUBLE, TensorProto::FLOAT16, TensorProto::BFLOAT16,
                              TensorProto::INT8,  TensorProto::INT16,  TensorProto::INT32,   TensorProto::INT64,
                              TensorProto::UINT8, TensorProto::UINT16, TensorProto::UINT32,  TensorProto::UINT64,
                              TensorProto::BOOL};
const std::vector<int> kOtherTypes{TensorProto::UNDEFINED,
                                   TensorProto::STRING,
                                   TensorProto::COMPLEX64,
                                   TensorProto::FLOAT8E4M3FN,
                                   TensorProto::INT4,
                                   99,
                                   -1};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

size_t BytesOf(int type) {
  switch (type) {
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case TensorProto::COMPLEX64: return 8;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
    case TensorProto::UINT32: return 4;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::INT16:
    case TensorProto::UINT16: return 2;
    default: return 1;
  }
}

bool IsFloat(int type) {
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
         type == TensorProto::BFLOAT16;
}

/// A tensor's type, and its elements if they are given.
struct Operand {
  bool is_absent = false;
  bool has_values = false;
  int type = TensorProto::FLOAT;
  Shape shape;
  std::vector<double> values;
};

class Builder {
 public:
  Builder(uint64_t op, RandomSource random) : random_(std::move(random)), op_(GridOperatorOf(op)) {
    static const std::vector<int> chances{0, 20, 10, 10, 5, 5, 2, 2};  // one in so many things is changed; 0: none
    chance_ = random_.Pick(chances);
    opset_ = random_.Pick(kOpsets);
    float_type_ = random_.OneIn(4) ? random_.Pick(kTypes) : static_cast<int>(TensorProto::FLOAT);
    if (!IsFloat(float_type_)) float_type_ = TensorProto::FLOAT;
  }

  onnx::ModelProto Make() {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset_);
    graph_ = model_.mutable_graph();
    graph_->set_name("grid");
    SetOperator();
    node_.set_name("node");
    const OnnxSignature& signature = AllOnnxConverters().Find(op_)->signature;
    const GridOperator* row = nullptr;
    for (const GridOperator& candidate : GridOperators()) {
      if (candidate.op == op_) row = &candidate;
    }
    std::vector<Operand> operands = row != nullptr ? Given(*row, signature) : Alike(signature);
    if (Changes() && Changes()) operands.resize(static_cast<size_t>(random_.Below(12)), Anything());
    for (size_t i = 0; i < operands.size(); ++i) node_.add_input(AddOperand(operands[i], "in" + std::to_string(i)));
    AddOutputs(signature);
    if (row != nullptr) {
      for (const std::string& text : Split(row->attributes, ' ')) AddAttribute(text);
    }
    if (Changes() && Changes())
      AddAttribute(random_.Pick(std::vector<std::string>{"axis:i", "axes:I", "k:i", "shape:I"}));
    *graph_->add_node() = node_;
    return model_;
  }

 private:
  bool Changes() { return chance_ > 0 && random_.OneIn(chance_); }

  /// Rows of other domains are called "com.microsoft.NAME".
  void SetOperator() {
    const size_t dot = op_.rfind('.');
    node_.set_op_type(dot == std::string::npos ? op_ : op_.substr(dot + 1));
    if (dot == std::string::npos) return;
    node_.set_domain(op_.substr(0, dot));
    onnx::OperatorSetIdProto& domain = *model_.add_opset_import();
    domain.set_domain(node_.domain());
    domain.set_version(1);
  }

  // ---- operands ----

  int TypeFor(OnnxElements elements, const std::string& name) {
    if (Changes()) return random_.OneIn(12) ? random_.Pick(kOtherTypes) : random_.Pick(kTypes);
    const bool is_quantised = op_.find("Quantize") != std::string::npos || op_.find("QLinear") != std::string::npos ||
                              op_.ends_with("Integer") || op_.ends_with("IntegerToFloat") || op_.ends_with("QGemm") ||
                              op_.ends_with("QAttention") || op_.ends_with("NBits");
    static const std::vector<int> indices{TensorProto::INT64, TensorProto::INT64, TensorProto::INT32};
    switch (elements) {
      case OnnxElements::kFloat: return float_type_;
      case OnnxElements::kBool: return TensorProto::BOOL;
      case OnnxElements::kSame: return first_type_;
      case OnnxElements::kInt:
        return name == "B" && is_quantised ? static_cast<int>(TensorProto::INT32)
               : is_quantised              ? static_cast<int>(TensorProto::UINT8)
                                           : random_.Pick(indices);
      default: return float_type_;
    }
  }

  Shape ShapeOf(const std::string& text) {
    Shape shape;
    if (text != "()") {
      for (const std::string& size : Split(text, 'x')) shape.push_back(std::stoll(size));
    }
    return shape;
  }

  Operand Change(Operand operand) {
    switch (random_.Below(7)) {
      case 0: return Anything();
      case 1: operand.is_absent = true; break;
      case 2:
        if (!operand.shape.empty())
          operand.shape[static_cast<size_t>(random_.Below(static_cast<int>(operand.shape.size())))] =
              random_.Pick(kEdgeSizes);
        operand.values.clear();
        break;
      case 3: operand.shape.insert(operand.shape.begin(), 1); break;
      case 4:
        if (!operand.shape.empty()) operand.shape.pop_back();
        operand.values.clear();
        break;
      case 5:
        for (double& value : operand.values) {
          if (random_.OneIn(2)) value = static_cast<double>(random_.Pick(kEdgeInts));
        }
        break;
      default: operand.has_values = !operand.has_values; break;
    }
    return operand;
  }

  Operand Anything() {
    Operand operand;
    operand.type = random_.Pick(kTypes);
    operand.has_values = random_.OneIn(2);
    const int rank = random_.OneIn(6) ? random_.Below(8) : random_.Below(6);
    for (int i = 0; i < rank; ++i)
      operand.shape.push_back(random_.OneIn(8) ? random_.Pick(kEdgeSizes) : 1 + random_.Below(4));
    return operand;
  }

  /// Operands that the operator accepts, but for what is changed.
  std::vector<Operand> Given(const GridOperator& row, const OnnxSignature& signature) {
    std::vector<Operand> operands;
    for (const std::string& text : Split(row.inputs, ' ')) {
      const size_t i = operands.size();
      const OnnxOperand& known = signature.inputs[std::min(i, signature.inputs.size() - 1)];
      if (known.since > opset_ && !Changes()) break;
      if (known.is_optional && random_.OneIn(4)) break;
      Operand operand;
      operand.type = TypeFor(known.elements, known.name);
      if (i == 0) first_type_ = operand.type;
      if (text == "?") {
        operand.is_absent = true;
      } else if (text.starts_with('=')) {
        operand.has_values = true;
        const bool is_vector = text[1] == '[';
        for (const std::string& number : Split(is_vector ? text.substr(2, text.size() - 3) : text.substr(1), ',')) {
          operand.values.push_back(std::stod(number));
        }
        if (is_vector) operand.shape = {static_cast<int64_t>(operand.values.size())};
        const bool is_float = text.find('.') != std::string::npos;
        if (known.elements == OnnxElements::kNumber && !is_float && !Changes()) operand.type = TensorProto::INT64;
      } else {
        operand.shape = ShapeOf(text);
        operand.has_values = random_.OneIn(2);
      }
      operands.push_back(Changes() ? Change(std::move(operand)) : std::move(operand));
    }
    return operands;
  }

  /// Operands of shapes that broadcast.
  std::vector<Operand> Alike(const OnnxSignature& signature) {
    static const std::vector<std::string> shapes{"2x3", "2x3", "3", "()", "1x3", "2x1", "1x2x3", "0x3", "1x1x1x1x1"};
    std::vector<Operand> operands;
    const int type = TypeFor(signature.inputs.empty() ? OnnxElements::kAny : signature.inputs[0].elements, "");
    for (const OnnxOperand& known : signature.inputs) {
      const int count = known.is_variadic ? 1 + random_.Below(3) : 1;
      for (int i = 0; i < count; ++i) {
        Operand operand;
        operand.type = Changes() ? random_.Pick(kTypes) : type;
        operand.shape = ShapeOf(random_.Pick(shapes));
        operand.has_values = random_.OneIn(2);
        operands.push_back(Changes() ? Change(std::move(operand)) : std::move(operand));
      }
    }
    return operands;
  }

  int64_t Count(const Shape& shape) {
    int64_t count = 1;
    for (int64_t size : shape) {
      if (__builtin_mul_overflow(count, size, &count)) return INT64_MAX;
    }
    return count;
  }

  /// The operand as a value of the graph; returns its name.
  std::string AddOperand(const Operand& operand, const std::string& name) {
    if (operand.is_absent) return "";
    const bool is_small = Count(operand.shape) >= 0 && Count(operand.shape) <= 4096;
    if (operand.has_values && is_small) {
      *graph_->add_initializer() = MakeTensor(operand, name);
      return name;
    }
    if (!is_small && random_.OneIn(2)) return Filled(operand, name);
    onnx::ValueInfoProto& input = *graph_->add_input();
    auto& type = *input.mutable_type()->mutable_tensor_type();
    input.set_name(name);
    type.set_elem_type(operand.type);
    type.mutable_shape();
    for (int64_t size : operand.shape) type.mutable_shape()->add_dim()->set_dim_value(size);
    return !operand.shape.empty() && Changes() ? WithDynamicSize(name) : name;
  }

  /// A constant of a shape that is too large to be written in a file.
  std::string Filled(const Operand& operand, const std::string& name) {
    Operand sizes{
        .has_values = true, .type = TensorProto::INT64, .shape = {static_cast<int64_t>(operand.shape.size())}};
    for (int64_t size : operand.shape) sizes.values.push_back(static_cast<double>(size));
    *graph_->add_initializer() = MakeTensor(sizes, name + "_sizes");
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type("ConstantOfShape");
    node.add_input(name + "_sizes");
    node.add_output(name);
    AttributeProto& value = *node.add_attribute();
    value.set_name("value");
    value.set_type(AttributeProto::TENSOR);
    *value.mutable_t() = MakeTensor({.has_values = true, .type = operand.type, .shape = {1}}, "");
    return name;
  }

  /// `name` with an unknown number of slices along its first dimension.
  std::string WithDynamicSize(const std::string& name) {
    onnx::ValueInfoProto& input = *graph_->add_input();
    input.set_name(name + "_chosen");
    input.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::BOOL);
    input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type("Compress");
    node.add_input(name);
    node.add_input(name + "_chosen");
    node.add_output(name + "_some");
    AddInt(node, "axis", 0);
    return name + "_some";
  }

  TensorProto MakeTensor(const Operand& operand, const std::string& name) {
    TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(operand.type);
    for (int64_t size : operand.shape) tensor.add_dims(size);
    const int64_t count = Count(operand.shape);
    std::string bytes(static_cast<size_t>(std::max<int64_t>(count, 0)) * BytesOf(operand.type), '\0');
    static const std::vector<double> floats{-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 3};
    for (int64_t i = 0; i < count; ++i) {
      const bool is_given = static_cast<size_t>(i) < operand.values.size();
      const double value = is_given                ? operand.values[static_cast<size_t>(i)]
                           : Changes()             ? static_cast<double>(random_.Pick(kEdgeInts))
                           : IsFloat(operand.type) ? random_.Pick(floats)
                                                   : static_cast<double>(random_.Below(2));
      Store(bytes.data() + static_cast<size_t>(i) * BytesOf(operand.type), operand.type, value);
    }
    tensor.set_raw_data(std::move(bytes));
    return tensor;
  }

  static void Store(char* to, int type, double value) {
    const auto put = [&](auto element) { std::memcpy(to, &element, sizeof(element)); };
    const double whole = std::clamp(value, -9.2e18, 9.2e18);
    switch (type) {
      case TensorProto::FLOAT: return put(static_cast<float>(value));
      case TensorProto::DOUBLE: return put(value);
      case TensorProto::FLOAT16:
      case TensorProto::BFLOAT16: {
        const Tensor bits = Tensor::Empty({1}, type == TensorProto::FLOAT16 ? kFloat16 : kBFloat16);
        bits.Set(0, value);
        std::memcpy(to, bits.raw(), 2);
        return;
      }
      case TensorProto::BOOL: return put(static_cast<uint8_t>(value != 0));
      default: {
        const auto number = static_cast<int64_t>(whole);
        std::memcpy(to, &number, BytesOf(type));
      }
    }
  }

  // ---- outputs ----

  void AddOutputs(const OnnxSignature& signature) {
    const size_t most = std::min<size_t>(signature.most_outputs, 3);
    size_t count = std::max<size_t>(1, signature.least_outputs);
    if (most > count) count += static_cast<size_t>(random_.Below(static_cast<int>(most - count) + 1));
    if (op_ == "Split" && !Changes()) count = 2;
    if (op_ == "Loop" && !Changes()) count = static_cast<size_t>(std::max(node_.input_size() - 2, 0));
    if (Changes() && Changes()) count = static_cast<size_t>(random_.Below(7));
    for (size_t i = 0; i < count; ++i) {
      const bool is_empty = Changes() && Changes();
      node_.add_output(is_empty ? "" : "out" + std::to_string(i));
      if (!is_empty) graph_->add_output()->set_name("out" + std::to_string(i));
    }
    // A graph must have a result.
    if (graph_->output_size() > 0) return;
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type("Constant");
    node.add_output("result");
    AddInt(node, "value_int", 1);
    graph_->add_output()->set_name("result");
  }

  // ---- attributes ----

  static void AddInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
    AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(AttributeProto::INT);
    attribute.set_i(value);
  }

  int64_t Int(const std::string& name) {
    const bool is_type = name == "to" || name == "dtype" || name == "softmax_precision" || name.starts_with("output_d");
    if (is_type) return random_.OneIn(4) ? random_.Pick(kOtherTypes) : random_.Pick(kTypes);
    return Changes() ? random_.Pick(kEdgeInts) : random_.Pick(kUsualInts);
  }

  double Float() {
    static const std::vector<double> floats{0, 1, -1, 0.5, 2, 1e-5, 1e30, -1e30, std::nan(""), INFINITY};
    return random_.Pick(floats);
  }

  void AddAttribute(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    char kind = text[colon + 1];
    std::vector<std::string> given =
        text.size() > colon + 2 ? Split(text.substr(colon + 3), ',') : std::vector<std::string>{};
    const bool is_changed = Changes();
    if (given.empty() && kind != 'g' && !is_changed && !random_.OneIn(3)) return;
    if (!given.empty() && is_changed && random_.OneIn(3)) return;
    if (is_changed) given.clear();
    AttributeProto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    if (Changes() && Changes()) kind = random_.Pick(std::vector<char>{'i', 'I', 'f', 'F', 's', 'S', 't', 'g'});
    const int count = static_cast<int>(given.empty() ? static_cast<size_t>(random_.Below(5)) : given.size());
    const auto value = [&](int i) {
      return given.empty() ? "" : given[std::min(static_cast<size_t>(i), given.size() - 1)];
    };
    const bool is_number = !given.empty() && (std::isdigit(given[0][0]) != 0 || given[0][0] == '-');
    switch (kind) {
      case 'i':
        attribute.set_type(AttributeProto::INT);
        attribute.set_i(is_number ? std::stoll(given[0]) : Int(name));
        break;
      case 'I':
        attribute.set_type(AttributeProto::INTS);
        for (int i = 0; i < count; ++i) attribute.add_ints(is_number ? std::stoll(value(i)) : Int(name));
        break;
      case 'f':
        attribute.set_type(AttributeProto::FLOAT);
        attribute.set_f(static_cast<float>(Float()));
        break;
      case 'F':
        attribute.set_type(AttributeProto::FLOATS);
        for (int i = 0; i < count; ++i) attribute.add_floats(static_cast<float>(Float()));
        break;
      case 's':
        attribute.set_type(AttributeProto::STRING);
        // Commas are part of an equation.
        attribute.set_s(!given.empty() ? text.substr(colon + 3) : random_.Pick(GridStrings(name)));
        break;
      case 'S':
        attribute.set_type(AttributeProto::STRINGS);
        for (int i = 0; i < count; ++i)
          attribute.add_strings(!given.empty() ? value(i) : random_.Pick(GridStrings(name)));
        break;
      case 't': {
        attribute.set_type(AttributeProto::TENSOR);
        Operand tensor{.has_values = true, .type = TypeFor(OnnxElements::kAny, ""), .shape = {1}};
        if (Changes()) tensor = Anything();
        // Elements are written in the file.
        if (Count(tensor.shape) < 0 || Count(tensor.shape) > 4096) tensor.shape = {1};
        *attribute.mutable_t() = MakeTensor(tensor, "");
        break;
      }
      default: attribute.set_type(AttributeProto::GRAPH); AddGraph(*attribute.mutable_g());
    }
  }

  /// A graph that passes its inputs on.
  void AddGraph(onnx::GraphProto& graph) {
    graph.set_name("inner");
    int inputs = op_ == "If" ? 0 : node_.input_size();
    int outputs = node_.output_size() + (op_ == "Loop" ? 1 : 0);
    if (Changes()) inputs = random_.Below(5);
    if (Changes()) outputs = random_.Below(5);
    for (int i = 0; i < inputs; ++i) graph.add_input()->set_name("inner" + std::to_string(i));
    static const std::vector<std::string> ops{"Identity", "Identity", "Identity", "Neg", "Shape"};
    for (int i = 0; i < outputs; ++i) {
      const std::string name = "inner_out" + std::to_string(i);
      graph.add_output()->set_name(name);
      onnx::NodeProto& node = *graph.add_node();
      node.set_op_type(op_ == "Loop" && i == 0 ? "Identity" : random_.Pick(ops));
      const int source = op_ == "Loop" ? i + 1 : i;
      node.add_input(source < inputs ? "inner" + std::to_string(source) : "in0");
      node.add_output(name);
    }
  }

  RandomSource random_;
  std::string op_;
  int chance_ = 0;
  int64_t opset_ = 0;
  int float_type_ = TensorProto::FLOAT;
  int first_type_ = TensorProto::FLOAT;
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = nullptr;
  onnx::NodeProto node_;
};

}  // namespace

std::string GridOperatorOf(uint64_t seed) {
  static const std::vector<std::string> names = AllOnnxConverters().Names();
  return names[seed % names.size()];
}

onnx::ModelProto MakeGridModel(uint64_t seed) { return MakeGridModel(seed, RandomSource(seed)); }
onnx::ModelProto MakeGridModel(uint64_t op, RandomSource random) { return Builder(op, std::move(random)).Make(); }

namespace {

std::string TextOf(const onnx::GraphProto& graph);

std::string TextOf(const TensorProto& tensor) {
  std::string text = OnnxDTypeName(tensor.data_type()) + "[";
  for (int64_t size : tensor.dims()) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  text += "]";
  const std::optional<DataType> dtype = OnnxDType(tensor.data_type());
  if (!dtype || tensor.raw_data().size() > 256) return text;
  const auto count = static_cast<int64_t>(tensor.raw_data().size() / dtype->size_bytes());
  const Tensor values = Tensor::Empty({count}, *dtype);
  std::memcpy(values.raw(), tensor.raw_data().data(), tensor.raw_data().size());
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? " = " : ", ", values.At(i));
  return text;
}

std::string TextOf(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case AttributeProto::INT: return std::to_string(attribute.i());
    case AttributeProto::FLOAT: return fmt::format("{}f", attribute.f());
    case AttributeProto::STRING: return "'" + attribute.s() + "'";
    case AttributeProto::INTS: return fmt::format("[{}]", fmt::join(attribute.ints(), ", "));
    case AttributeProto::FLOATS: return fmt::format("[{}]f", fmt::join(attribute.floats(), ", "));
    case AttributeProto::STRINGS: return fmt::format("['{}']", fmt::join(attribute.strings(), "', '"));
    case AttributeProto::TENSOR: return TextOf(attribute.t());
    case AttributeProto::GRAPH: return TextOf(attribute.g());
    default: return "?";
  }
}

std::string TextOf(const onnx::GraphProto& graph) {
  std::string text = "{\n";
  for (const auto& input : graph.input()) {
    const auto& type = input.type().tensor_type();
    text += "  input " + input.name() + ": " + OnnxDTypeName(type.elem_type()) + "[";
    for (const auto& dim : type.shape().dim()) {
      text += (text.back() == '[' ? "" : ", ") + std::to_string(dim.dim_value());
    }
    text += "]\n";
  }
  for (const auto& tensor : graph.initializer()) text += "  constant " + tensor.name() + ": " + TextOf(tensor) + "\n";
  for (const auto& node : graph.node()) {
    text += fmt::format("  '{}' = {}('{}')", fmt::join(node.output(), "', '"), node.op_type(),
                        fmt::join(node.input(), "', '"));
    for (const auto& attribute : node.attribute()) text += " " + attribute.name() + "=" + TextOf(attribute);
    text += "\n";
  }
  for (const auto& output : graph.output()) text += "  output " + output.name() + "\n";
  return text + "}";
}

}  // namespace

std::string TextOf(const onnx::ModelProto& model) {
  return fmt::format("opset {} {}", model.opset_import(0).version(), TextOf(model.graph()));
}

}  // namespace collage
