// open_case.cc: text, bytes and shrinking of models with symbolic sizes.
#include "property/open/open_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr int kMostTrials = 400;
constexpr const char* kSizesKey = "sizes";

std::string TensorText(const onnx::TensorProto& tensor) {
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const std::string type = onnx::TensorProto::DataType_Name(tensor.data_type());
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  const std::string head = fmt::format("{}[{}]", type, fmt::join(dims, ","));
  if (count > 8) return head;
  std::vector<double> elements;
  for (int64_t i = 0; i < count; ++i) {
    const char* raw = tensor.raw_data().data();
    switch (tensor.data_type()) {
      case onnx::TensorProto::FLOAT: elements.push_back(reinterpret_cast<const float*>(raw)[i]); break;
      case onnx::TensorProto::INT64:
        elements.push_back(static_cast<double>(reinterpret_cast<const int64_t*>(raw)[i]));
        break;
      case onnx::TensorProto::INT32: elements.push_back(reinterpret_cast<const int32_t*>(raw)[i]); break;
      default: elements.push_back(raw[i]);
    }
  }
  return fmt::format("{}{{{}}}", head, fmt::join(elements, ","));
}

void AddGraphText(const onnx::GraphProto& graph, const std::string& indent, std::string& text);

std::string AttributeText(const onnx::AttributeProto& attribute, const std::string& indent) {
  const std::string& name = attribute.name();
  switch (attribute.type()) {
    case onnx::AttributeProto::INT: return fmt::format("{}={}", name, attribute.i());
    case onnx::AttributeProto::FLOAT: return fmt::format("{}={}", name, attribute.f());
    case onnx::AttributeProto::STRING: return fmt::format("{}='{}'", name, attribute.s());
    case onnx::AttributeProto::INTS: return fmt::format("{}=[{}]", name, fmt::join(attribute.ints(), ","));
    case onnx::AttributeProto::TENSOR: return fmt::format("{}={}", name, TensorText(attribute.t()));
    case onnx::AttributeProto::GRAPH: {
      std::string text = fmt::format("{}=\n", name);
      AddGraphText(attribute.g(), indent + "    ", text);
      return text + indent + "  ";
    }
    default: return name + "=?";
  }
}

void AddGraphText(const onnx::GraphProto& graph, const std::string& indent, std::string& text) {
  for (const auto& input : graph.input()) {
    text += fmt::format("{}input {}", indent, input.name());
    if (input.has_type()) {
      const auto& tensor = input.type().tensor_type();
      std::vector<std::string> dims;
      for (const auto& dim : tensor.shape().dim()) {
        dims.push_back(dim.has_dim_value()       ? std::to_string(dim.dim_value())
                       : dim.dim_param().empty() ? "?"
                                                 : dim.dim_param());
      }
      text += fmt::format(" {}[{}]", onnx::TensorProto::DataType_Name(tensor.elem_type()), fmt::join(dims, ", "));
    }
    text += "\n";
  }
  for (const auto& initializer : graph.initializer())
    text += fmt::format("{}{} = {}\n", indent, initializer.name(), TensorText(initializer));
  for (const auto& node : graph.node()) {
    text += fmt::format("{}{} = {}({})", indent, fmt::join(node.output(), ", "), node.op_type(),
                        fmt::join(node.input(), ", "));
    std::vector<std::string> attributes;
    for (const auto& attribute : node.attribute()) attributes.push_back(AttributeText(attribute, indent));
    if (!attributes.empty()) text += fmt::format(" {{{}}}", fmt::join(attributes, ", "));
    text += "\n";
  }
  for (const auto& output : graph.output()) text += fmt::format("{}output {}\n", indent, output.name());
}

/// The names that a graph and those inside it read.
void AddRead(const onnx::NodeProto& node, std::set<std::string>& read) {
  for (const std::string& input : node.input()) read.insert(input);
  for (const auto& attribute : node.attribute()) {
    for (const auto& inner : attribute.g().node()) AddRead(inner, read);
    for (const auto& output : attribute.g().output()) read.insert(output.name());
  }
}

/// `to` wherever `from` is read.
void Replace(onnx::GraphProto& graph, const std::string& from, const std::string& to) {
  for (auto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (input == from) input = to;
    }
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Replace(*attribute.mutable_g(), from, to);
    }
  }
  for (auto& output : *graph.mutable_output()) {
    if (output.name() == from) output.set_name(to);
  }
}

/// Makes one case smaller, step by step.
class Shrinker {
 public:
  Shrinker(OpenCase test, const std::function<bool(const OpenCase&)>& fails) : test_(std::move(test)), fails_(fails) {}

  OpenCase Run() {
    for (const InputShapes& shapes : std::vector(test_.sizes)) {
      OpenCase smaller = test_;
      smaller.sizes = {shapes};
      if (Take(smaller)) break;
    }
    EarliestResult();
    bool goes_on = true;
    while (goes_on) goes_on = SkipNode() || DropAttribute() || DropInput();
    return test_;
  }

 private:
  /// Whether `smaller` still fails; it is what is made smaller from now on then.
  bool Take(OpenCase smaller) {
    if (num_trials_ >= kMostTrials) return false;
    ++num_trials_;
    Prune(*smaller.model.mutable_graph());
    if (smaller.model.graph().node_size() == 0 || !fails_(smaller)) return false;
    test_ = std::move(smaller);
    return true;
  }

  /// The first result in the model that is wrong by itself.
  void EarliestResult() {
    const onnx::GraphProto graph = test_.model.graph();
    for (const auto& node : graph.node()) {
      for (const std::string& result : node.output()) {
        OpenCase smaller = test_;
        smaller.model.mutable_graph()->clear_output();
        smaller.model.mutable_graph()->add_output()->set_name(result);
        if (Take(std::move(smaller))) return;
      }
    }
  }

  bool SkipNode() {
    const onnx::GraphProto graph = test_.model.graph();
    for (const auto& node : graph.node()) {
      for (const std::string& input : node.input()) {
        if (input.empty()) continue;
        OpenCase smaller = test_;
        Replace(*smaller.model.mutable_graph(), node.output(0), input);
        if (Take(std::move(smaller))) return true;
      }
    }
    return false;
  }

  bool DropAttribute() {
    for (int i = 0; i < test_.model.graph().node_size(); ++i) {
      for (int k = 0; k < test_.model.graph().node(i).attribute_size(); ++k) {
        OpenCase smaller = test_;
        smaller.model.mutable_graph()->mutable_node(i)->mutable_attribute()->DeleteSubrange(k, 1);
        if (Take(std::move(smaller))) return true;
      }
    }
    return false;
  }

  bool DropInput() {
    std::set<std::string> read;
    for (const auto& node : test_.model.graph().node()) AddRead(node, read);
    for (const auto& output : test_.model.graph().output()) read.insert(output.name());
    for (int i = 0; i < test_.model.graph().input_size(); ++i) {
      const std::string name = test_.model.graph().input(i).name();
      if (read.contains(name)) continue;
      OpenCase smaller = test_;
      smaller.model.mutable_graph()->mutable_input()->DeleteSubrange(i, 1);
      for (InputShapes& shapes : smaller.sizes) shapes.erase(name);
      if (Take(std::move(smaller))) return true;
    }
    return false;
  }

  OpenCase test_;
  const std::function<bool(const OpenCase&)>& fails_;
  int num_trials_ = 0;
};

}  // namespace

void WriteModel(const std::filesystem::path& path, const onnx::ModelProto& model) {
  std::ofstream file(path, std::ios::binary);
  if (!model.SerializeToOstream(&file)) throw Error(ErrorCategory::kResource, "cannot write", path.string());
}

void Prune(onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const auto& output : graph.output()) read.insert(output.name());
  std::vector<onnx::NodeProto> kept;
  for (int i = graph.node_size(); i-- > 0;) {
    const onnx::NodeProto& node = graph.node(i);
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return read.contains(name); })) continue;
    AddRead(node, read);
    kept.push_back(node);
  }
  graph.clear_node();
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) *graph.add_node() = *node;
  onnx::GraphProto initializers;
  for (const auto& initializer : graph.initializer()) {
    if (read.contains(initializer.name())) *initializers.add_initializer() = initializer;
  }
  graph.mutable_initializer()->Swap(initializers.mutable_initializer());
}

std::string Serialize(const OpenCase& test) {
  onnx::ModelProto model = test.model;
  model.clear_metadata_props();
  for (const InputShapes& shapes : test.sizes) {
    std::string text;
    for (const auto& [name, shape] : shapes)
      text += fmt::format("{} {} {} ", name, shape.size(), fmt::join(shape, " "));
    auto& entry = *model.add_metadata_props();
    entry.set_key(kSizesKey);
    entry.set_value(text);
  }
  return model.SerializeAsString();
}

OpenCase DeserializeOpenCase(const std::string& bytes) {
  OpenCase test;
  if (!test.model.ParseFromString(bytes)) throw Error(ErrorCategory::kInput, "not a case of a model and its sizes");
  for (const auto& entry : test.model.metadata_props()) {
    if (entry.key() != kSizesKey) continue;
    InputShapes shapes;
    std::istringstream words(entry.value());
    std::string name;
    for (size_t rank = 0; words >> name >> rank;) {
      Shape& shape = shapes[name];
      shape.resize(rank);
      for (int64_t& size : shape) words >> size;
    }
    test.sizes.push_back(std::move(shapes));
  }
  return test;
}

std::string ToString(const OpenCase& test) {
  std::string text;
  for (const auto& import : test.model.opset_import()) text += fmt::format("  opset {}\n", import.version());
  AddGraphText(test.model.graph(), "  ", text);
  for (const InputShapes& shapes : test.sizes) text += fmt::format("  sizes {}\n", ToString(shapes));
  return text;
}

OpenCase Shrink(OpenCase test, const std::function<bool(const OpenCase&)>& fails) {
  return Shrinker(std::move(test), fails).Run();
}

}  // namespace collage
