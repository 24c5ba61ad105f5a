// graph.cc: reads the protobuf file and converts its nodes in order.
#include "frontend/onnx/graph.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "frontend/onnx/node_order.h"
#include "support/file.h"

namespace collage {
namespace {

// Local functions nest in practice a few deep; a model in which they call each other in a cycle must not exhaust the
// stack.
constexpr size_t kDeepestCall = 100;

// Loops and functions within others multiply.
constexpr int64_t kMostNodes = 500000;

bool IsStandard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

Expr GivenConstant(const onnx::ValueInfoProto& input, const Tensor& value) {
  const std::optional<DataType> dtype = OnnxDType(input.type().tensor_type().elem_type());
  if (dtype != value.dtype()) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has elements of type {}, the constant given for it of type {}", input.name(),
                            dtype ? dtype->ToString() : "?", value.dtype().ToString()));
  }
  return MakeConstant(value);
}

/// The size that the file gives; nothing for a symbolic size.
std::optional<int64_t> KnownDim(const onnx::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() > 0 ? std::optional<int64_t>(dim.dim_value()) : std::nullopt;
}

/// "batch, 3, ?".
std::string DimsText(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim()) {
    const std::optional<int64_t> known = KnownDim(dim);
    text += (text.empty() ? "" : ", ") + (known                     ? std::to_string(*known)
                                          : dim.dim_param().empty() ? "?"
                                                                    : dim.dim_param());
  }
  return text;
}

/// Whether `given` has the rank and the known sizes that the model states.
bool FitsShape(const onnx::TypeProto::Tensor& tensor, const Shape& given) {
  if (!tensor.has_shape()) return true;
  if (static_cast<int>(given.size()) != tensor.shape().dim_size()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::optional<int64_t> size = KnownDim(tensor.shape().dim(static_cast<int>(i)));
    if (size && *size != given[i]) return false;
  }
  return true;
}

Var TypedVar(const std::string& name, std::vector<Dim> shape, DataType dtype, const std::string& where) {
  Shape sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.is_any() ? 1 : dim.size());
  if (!CheckedBytes(sizes, dtype)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has shape {}, which no tensor can have", name, ToString(sizes)), where);
  }
  Var var = MakeVar(name, TensorType(std::move(shape), dtype));
  var->set_checked_type(var->type_annotation());
  return var;
}

}  // namespace

OnnxGraph::OnnxGraph(const std::filesystem::path& path, const ImportOptions& options)
    : path_(path), options_(options), reader_(path) {}

IRModule OnnxGraph::Import() {
  Parse();
  CheckOperators();
  scopes_.emplace_back();
  AddInitializers(model_.graph());
  AddInputs();
  for (const onnx::NodeProto* node : NodesInOrder(model_.graph().node(), path_.string())) Convert(*node);
  return Finish();
}

void OnnxGraph::Parse() {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path_);
  if (file->bytes().size() > std::numeric_limits<int>::max()) {
    throw Error(ErrorCategory::kUnsupported, "the file is larger than 2 GB", path_.string(),
                "store the weights as external data");
  }
  google::protobuf::io::ArrayInputStream array(file->bytes().data(), static_cast<int>(file->bytes().size()));
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  google::protobuf::SetLogHandler(nullptr);
  const bool parsed = model_.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (!parsed || !model_.has_graph() || model_.graph().node_size() == 0) {
    throw Error(ErrorCategory::kInput, "not an ONNX model: the file is damaged, truncated or of another kind",
                path_.string());
  }
  for (const auto& import : model_.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") opset_ = import.version();
  }
  // A model of other domains alone has no opset; its operators are named below.
  if (opset_ < 7 && opset_ != 0) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("the model is of opset {}; 7 and newer are supported", opset_),
                path_.string(), "convert it with onnx.version_converter");
  }
  for (const auto& function : model_.functions()) functions_[{function.domain(), function.name()}] = &function;
}

std::vector<std::string> OnnxGraph::InputNames() {
  Parse();
  std::set<std::string> initializers;
  for (const auto& initializer : model_.graph().initializer()) initializers.insert(initializer.name());
  std::vector<std::string> names;
  for (const auto& input : model_.graph().input()) {
    if (!initializers.contains(input.name())) names.push_back(input.name());
  }
  return names;
}

// ---- operators ----

const onnx::FunctionProto* OnnxGraph::LocalFunction(const onnx::NodeProto& node) const {
  const auto it = functions_.find({node.domain(), node.op_type()});
  return it == functions_.end() ? nullptr : it->second;
}

/// The row of an operator that no local function of the model stands for; null when there is none.
const OnnxRow* OnnxGraph::RowOf(const onnx::NodeProto& node) {
  return AllOnnxConverters().Find(IsStandard(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type());
}

/// All operators that cannot be converted, in nested graphs and local functions too, in one error.
void OnnxGraph::CheckOperators() const {
  struct Uses {
    int count = 0;
    std::string first;
    std::string reason;
  };
  std::map<std::string, Uses> unknown;
  const std::function<void(const google::protobuf::RepeatedPtrField<onnx::NodeProto>&)> check = [&](const auto& nodes) {
    for (const auto& node : nodes) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) check(attribute.g().node());
      }
      if (LocalFunction(node) != nullptr) continue;
      if (RowOf(node) != nullptr) continue;
      Uses& uses = unknown[IsStandard(node.domain()) ? node.op_type() : node.domain() + "::" + node.op_type()];
      if (uses.count++ == 0) uses.first = NodeName(node);
      const char* reason = IsStandard(node.domain()) ? OnnxRefusal(node.op_type()) : nullptr;
      if (reason != nullptr) uses.reason = std::string(": ") + reason;
    }
  };
  check(model_.graph().node());
  for (const auto& [key, function] : functions_) check(function->node());
  if (unknown.empty()) return;
  std::string text;
  for (const auto& [op, uses] : unknown) {
    text += fmt::format("{}'{}' ({} time{}, first at node '{}'{})", text.empty() ? "" : ", ", op, uses.count,
                        uses.count == 1 ? "" : "s", uses.first, uses.reason);
  }
  throw Error(ErrorCategory::kUnsupported,
              fmt::format("{} operator{} of opset {} {} not supported: {}", unknown.size(),
                          unknown.size() == 1 ? "" : "s", opset_, unknown.size() == 1 ? "is" : "are", text),
              path_.string());
}

// ---- inputs ----

void OnnxGraph::AddInitializers(const onnx::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0) {
    throw Error(ErrorCategory::kUnsupported, "sparse initializers are not supported", path_.string());
  }
  for (const auto& initializer : graph.initializer()) {
    scopes_.back()[initializer.name()] = MakeConstant(reader_.Read(initializer));
  }
}

void OnnxGraph::AddInputs() {
  std::vector<const onnx::ValueInfoProto*> inputs;
  std::set<std::string> names;
  for (const auto& input : model_.graph().input()) {
    if (scopes_[0].contains(input.name())) continue;  // an initializer that is listed as input too
    names.insert(input.name());
    const auto given = options_.constants.find(input.name());
    if (given == options_.constants.end()) {
      inputs.push_back(&input);
    } else {
      scopes_[0][input.name()] = GivenConstant(input, given->second);
    }
  }
  std::set<std::string> asked;
  for (const auto& [name, shape] : options_.shapes) asked.insert(name);
  for (const auto& [name, value] : options_.constants) asked.insert(name);
  for (const std::string& name : asked) {
    if (names.contains(name)) continue;
    std::string known;
    for (const std::string& candidate : names) known += (known.empty() ? "'" : ", '") + candidate + "'";
    throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), path_.string(),
                "its inputs are " + known);
  }
  BindSymbols(inputs);
  for (const onnx::ValueInfoProto* input : inputs) {
    params_.push_back(InputParam(*input));
    scopes_[0][input->name()] = params_.back();
  }
}

/// The name of a symbolic size; "" where the model gives none. Some tools write "?" or "None" instead.
std::string OnnxGraph::NameOf(const onnx::TensorShapeProto::Dimension& dim) {
  const std::string& name = dim.dim_param();
  const bool has_letter = std::ranges::any_of(name, [](unsigned char c) { return std::isalpha(c) || c >= 0x80; });
  return has_letter && name != "None" ? name : "";
}

/// A dimension that is given for one input is given for all that the model calls by the same name, unless several are
/// given that differ.
void OnnxGraph::BindSymbols(const std::vector<const onnx::ValueInfoProto*>& inputs) {
  std::set<std::string> ambiguous;
  for (const onnx::ValueInfoProto* input : inputs) {
    const auto given = options_.shapes.find(input->name());
    const auto& dims = input->type().tensor_type().shape().dim();
    if (given == options_.shapes.end() || given->second.size() != static_cast<size_t>(dims.size())) continue;
    for (int i = 0; i < dims.size(); ++i) {
      const std::string name = NameOf(dims[i]);
      if (KnownDim(dims[i]) || name.empty()) continue;
      const int64_t size = given->second[static_cast<size_t>(i)];
      if (bound_.emplace(name, size).first->second != size) ambiguous.insert(name);
    }
  }
  for (const std::string& name : ambiguous) bound_.erase(name);
}

std::string OnnxGraph::ShapeHint() const {
  std::string example;
  for (const auto& input : model_.graph().input()) {
    const auto& dims = input.type().tensor_type().shape().dim();
    const bool is_open = std::ranges::any_of(dims, [](const auto& dim) { return !KnownDim(dim); });
    if (!is_open || scopes_[0].find(input.name()) == scopes_[0].end()) continue;
    if (As<ConstantNode>(scopes_[0].at(input.name())) != nullptr) continue;
    example += " --shape " + ShapeExample(input);
  }
  return example.empty() ? "" : "give the shapes of the model's inputs, as in" + example;
}

std::string OnnxGraph::ShapeExample(const onnx::ValueInfoProto& input) const {
  std::string sizes;
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    sizes += (sizes.empty() ? "" : "x") + std::to_string(GivenDim(dim).value_or(1));
  }
  return input.name() + "=" + sizes;
}

/// The size that the file, or a shape that is given for another input, gives; nothing for a symbolic size.
std::optional<int64_t> OnnxGraph::GivenDim(const onnx::TensorShapeProto::Dimension& dim) const {
  if (const std::optional<int64_t> known = KnownDim(dim)) return known;
  const auto bound = bound_.find(NameOf(dim));
  return bound == bound_.end() ? std::nullopt : std::optional(bound->second);
}

Var OnnxGraph::InputParam(const onnx::ValueInfoProto& input) {
  const std::string where = path_.string();
  if (!input.type().has_tensor_type()) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("input '{}' is no tensor", input.name()), where);
  }
  const auto& tensor = input.type().tensor_type();
  const std::optional<DataType> dtype = OnnxDType(tensor.elem_type());
  if (!dtype) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("input '{}' has element type {}, which is not supported", input.name(),
                            OnnxDTypeName(tensor.elem_type())),
                where);
  }
  dimension_names_.emplace_back();
  const auto param = [&](std::vector<Dim> shape) { return TypedVar(input.name(), std::move(shape), *dtype, where); };
  std::vector<Dim> shape;
  bool is_open = !tensor.has_shape();
  for (const auto& dim : tensor.shape().dim()) {
    const std::optional<int64_t> size = GivenDim(dim);
    is_open = is_open || !size;
    shape.push_back(size ? Dim(*size) : Dim::Any());
  }
  const auto given = options_.shapes.find(input.name());
  if (given != options_.shapes.end()) {
    if (!FitsShape(tensor, given->second)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("input '{}' has shape [{}], which {} does not fit", input.name(),
                              DimsText(tensor.shape()), ToString(given->second)),
                  where);
    }
    return param({given->second.begin(), given->second.end()});
  }
  if (is_open && !(options_.keeps_open && tensor.has_shape())) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has dynamic dimensions [{}]", input.name(), DimsText(tensor.shape())), where,
                "give its shape, as in --shape " + ShapeExample(input));
  }
  if (!is_open) return param(std::move(shape));
  dimension_names_.back().resize(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_any()) continue;
    const std::string name = NameOf(tensor.shape().dim(static_cast<int>(i)));
    dimension_names_.back()[i] = name;
    shape[i] = Dim::Of(name.empty() ? sizes_.Unnamed(fmt::format("{}[{}]", input.name(), i)) : sizes_.Named(name));
  }
  const Var var = param(std::move(shape));
  sizes_.FoundIn(var);
  return var;
}

// ---- nodes ----

Expr OnnxGraph::Lookup(const std::string& name) const {
  const size_t first = calls_.empty() ? 0 : calls_.back().first_scope;
  for (size_t i = scopes_.size(); i-- > first;) {
    const auto it = scopes_[i].find(name);
    if (it != scopes_[i].end()) return it->second;
  }
  return nullptr;
}

const onnx::AttributeProto* OnnxGraph::FindAttribute(const onnx::NodeProto& node, const std::string& name) const {
  const auto find = [](const auto& attributes, const std::string& wanted) -> const onnx::AttributeProto* {
    for (const auto& attribute : attributes) {
      if (attribute.name() == wanted) return &attribute;
    }
    return nullptr;
  };
  const onnx::AttributeProto* found = find(node.attribute(), name);
  for (size_t call = calls_.size(); found != nullptr && !found->ref_attr_name().empty() && call-- > 0;) {
    const std::string wanted = found->ref_attr_name();
    found = find(calls_[call].node->attribute(), wanted);
    if (found == nullptr) found = find(calls_[call].function->attribute_proto(), wanted);
  }
  return found;
}

std::string OnnxGraph::Describe(const onnx::NodeProto& node, size_t i) const {
  const std::string& name = node.input(static_cast<int>(i));
  for (const Var& param : params_) {
    if (param->name() == name) return fmt::format("'{}', an input of the model", name);
  }
  return fmt::format("'{}'", name);
}

std::vector<Expr> OnnxGraph::ConvertSubgraph(const onnx::GraphProto& graph, const std::vector<Expr>& inputs) {
  if (static_cast<size_t>(graph.input_size()) != inputs.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("the graph '{}' has {} inputs where {} are wanted", graph.name(),
                                                   graph.input_size(), inputs.size()));
  }
  scopes_.emplace_back();
  AddInitializers(graph);
  for (int i = 0; i < graph.input_size(); ++i) scopes_.back()[graph.input(i).name()] = inputs[static_cast<size_t>(i)];
  for (const onnx::NodeProto* node : NodesInOrder(graph.node(), path_.string())) Convert(*node);
  std::vector<Expr> outputs;
  for (const auto& output : graph.output()) {
    outputs.push_back(Lookup(output.name()));
    if (outputs.back()) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("nothing computes output '{}' of the graph '{}'", output.name(), graph.name()));
  }
  scopes_.pop_back();
  return outputs;
}

std::vector<Expr> OnnxGraph::ConvertCall(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                         const std::vector<Expr>& inputs) {
  if (calls_.size() >= kDeepestCall) {
    throw Error(ErrorCategory::kInput,
                fmt::format("function '{}' calls itself, or calls nest too deep", function.name()));
  }
  scopes_.emplace_back();
  for (size_t i = 0; i < inputs.size() && static_cast<int>(i) < function.input_size(); ++i) {
    if (inputs[i]) scopes_.back()[function.input(static_cast<int>(i))] = inputs[i];
  }
  calls_.push_back({&function, &node, scopes_.size() - 1, opset_});
  for (const auto& import : function.opset_import()) {
    if (IsStandard(import.domain())) opset_ = import.version();
  }
  for (const onnx::NodeProto* inner : NodesInOrder(function.node(), path_.string())) Convert(*inner);
  std::vector<Expr> outputs;
  for (const std::string& output : function.output()) outputs.push_back(Lookup(output));
  opset_ = calls_.back().outer_opset;
  calls_.pop_back();
  scopes_.pop_back();
  return outputs;
}

void OnnxGraph::Convert(const onnx::NodeProto& node) {
  std::vector<Expr> inputs;
  for (const std::string& name : node.input()) {
    inputs.push_back(name.empty() ? nullptr : Lookup(name));
    // Within a function an input may be absent because the call leaves it out.
    if (inputs.back() || name.empty() || !calls_.empty()) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("node '{}' ({}) reads '{}', which nothing computes before it", NodeName(node),
                            node.op_type(), name),
                path_.string());
  }
  if (++num_converted_ > kMostNodes) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("the model has more than {} nodes with its functions and loops written out", kMostNodes),
                path_.string());
  }
  NodeContext context(*this, node, inputs, opset_);
  std::vector<Expr> outputs;
  try {
    if (const onnx::FunctionProto* function = LocalFunction(node)) {
      outputs = ConvertCall(*function, node, inputs);
    } else {
      const OnnxRow& row = *RowOf(node);
      CheckOperands(context, row.signature);
      outputs = row.convert(context);
    }
  } catch (const Error& error) {
    // An error that has a place comes from a node within this one.
    if (error.category() == ErrorCategory::kInternal || error.where() == path_.string()) throw;
    throw Error(error.category(),
                fmt::format("node '{}' ({}, opset {}): {}", context.name(), node.op_type(), opset_, error.message()),
                path_.string(), error.hint());
  }
  for (int i = 0; i < node.output_size() && i < static_cast<int>(outputs.size()); ++i) {
    if (outputs[static_cast<size_t>(i)] && !node.output(i).empty()) {
      scopes_.back()[node.output(i)] = outputs[static_cast<size_t>(i)];
    }
  }
}

IRModule OnnxGraph::Finish() {
  std::vector<Expr> results;
  AttrValue::List names;
  for (const auto& output : model_.graph().output()) {
    const Expr value = Lookup(output.name());
    if (!value) {
      throw Error(ErrorCategory::kInput, fmt::format("nothing computes output '{}'", output.name()), path_.string());
    }
    results.push_back(value);
    names.emplace_back(output.name());
  }
  const Expr body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
  Attrs attrs{{"output_names", std::move(names)}};
  const bool has_names = std::ranges::any_of(dimension_names_, [](const auto& dims) {
    return std::ranges::any_of(dims, [](const auto& name) { return !name.empty(); });
  });
  if (has_names) attrs.Set(kAttrDimensionNames, AttrOf(dimension_names_));
  Function main = MakeFunction(params_, body, nullptr, std::move(attrs));
  InferType(main);
  IRModule module = IRModule::FromFunction(std::move(main));
  module.attrs.Set("model", path_.filename().string());
  module.attrs.Set("opset", opset_);
  return module;
}

}  // namespace collage
