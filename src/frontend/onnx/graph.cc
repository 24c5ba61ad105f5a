// graph.cc: reads the protobuf file and converts its nodes in order.
#include "frontend/onnx/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "collage/frontend/unsupported_nodes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/strings.h"
#include "collage/support/error.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/old_forms.h"
#include "frontend/onnx/values.h"
#include "support/file.h"

namespace collage {
namespace {

// Local functions nest in practice a few deep; a model in which they call each other in a cycle must not exhaust the
// stack.
constexpr size_t kDeepestCall = 100;

// Loops and functions within others multiply.
constexpr int64_t kMostNodes = 500000;

bool IsStandard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

/// The name under which the tables have an operator: that of another domain behind the domain.
std::string RowName(const onnx::NodeProto& node) {
  return IsStandard(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type();
}

}  // namespace

OnnxGraph::OnnxGraph(const std::filesystem::path& path, const ImportOptions& options, int64_t least_size)
    : path_(path), options_(options), least_size_(least_size), reader_(path) {}

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
  ReadModelFile(path_, model_);
  for (const auto& import : model_.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") opset_ = import.version();
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

/// The operator's name, with its domain unless that is ONNX's own.
std::string FullName(const onnx::NodeProto& node) {
  return IsStandard(node.domain()) ? node.op_type() : node.domain() + "::" + node.op_type();
}

const onnx::FunctionProto* OnnxGraph::LocalFunction(const onnx::NodeProto& node) const {
  const auto it = functions_.find({node.domain(), node.op_type()});
  return it == functions_.end() ? nullptr : it->second;
}

/// The row of an operator that no local function of the model stands for; null when there is none.
const OnnxRow* OnnxGraph::RowOf(const onnx::NodeProto& node) { return AllOnnxConverters().Find(RowName(node)); }

/// All operators that cannot be converted, in nested graphs and local functions too, in one error.
void OnnxGraph::CheckOperators() const {
  struct Uses {
    int count = 0;
    std::string first;
    std::string reason;
  };
  std::map<std::string, Uses> unknown;
  std::vector<UnsupportedNode> refused;
  const std::function<void(const google::protobuf::RepeatedPtrField<onnx::NodeProto>&)> check = [&](const auto& nodes) {
    for (const auto& node : nodes) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) check(attribute.g().node());
      }
      if (LocalFunction(node) != nullptr) continue;
      if (RowOf(node) != nullptr) continue;
      Uses& uses = unknown[FullName(node)];
      if (uses.count++ == 0) uses.first = NodeName(node);
      const char* reason = OnnxRefusal(RowName(node));
      if (reason != nullptr) uses.reason = std::string(": ") + reason;
      refused.push_back({NodeName(node), FullName(node), reason == nullptr ? "" : reason});
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
  const bool is_one = unknown.size() == 1;
  throw UnsupportedNodesError(std::move(refused),
                              fmt::format("{} operator{} of opset {} {} not supported: {}", unknown.size(),
                                          is_one ? "" : "s", opset_, is_one ? "is" : "are", text),
                              path_.string());
}

void OnnxGraph::AddInitializers(const onnx::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0) {
    throw Error(ErrorCategory::kUnsupported, "sparse initializers are not supported", path_.string());
  }
  for (const auto& initializer : graph.initializer()) {
    scopes_.back()[initializer.name()] = {MakeConstant(reader_.Read(initializer)),
                                          FindNarrowType(initializer.data_type())};
  }
}

// ---- nodes ----

OnnxValue OnnxGraph::Lookup(const std::string& name) const {
  const size_t first = calls_.empty() ? 0 : calls_.back().first_scope;
  for (size_t i = scopes_.size(); i-- > first;) {
    const auto it = scopes_[i].find(name);
    if (it != scopes_[i].end()) return it->second;
  }
  return {};
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

std::string OnnxGraph::ConstantHint(const onnx::NodeProto& node, size_t i) const {
  const std::string& name = node.input(static_cast<int>(i));
  const bool is_param = std::ranges::any_of(params_, [&](const Var& param) { return param->name() == name; });
  return is_param ? fmt::format("give the value that it has in every run: --constant {}=VALUE", name) : "";
}

std::vector<Expr> OnnxGraph::ConvertSubgraph(const onnx::GraphProto& graph, const std::vector<Expr>& inputs) {
  if (static_cast<size_t>(graph.input_size()) != inputs.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("the graph '{}' has {} inputs where {} are wanted", graph.name(),
                                                   graph.input_size(), inputs.size()));
  }
  scopes_.emplace_back();
  AddInitializers(graph);
  for (int i = 0; i < graph.input_size(); ++i) {
    const onnx::ValueInfoProto& input = graph.input(i);
    const NarrowType* narrow = FindNarrowType(input.type().tensor_type().elem_type());
    scopes_.back()[input.name()] = {inputs[static_cast<size_t>(i)], narrow};
  }
  for (const onnx::NodeProto* node : NodesInOrder(graph.node(), path_.string())) Convert(*node);
  std::vector<Expr> outputs;
  for (const auto& output : graph.output()) {
    const OnnxValue value = Lookup(output.name());
    outputs.push_back(value.expr);
    if (value.narrow != nullptr) {
      throw Error(ErrorCategory::kUnsupported, fmt::format("output '{}' of the graph '{}' has element type {}",
                                                           output.name(), graph.name(), value.narrow->name));
    }
    if (value.expr) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("nothing computes output '{}' of the graph '{}'", output.name(), graph.name()));
  }
  scopes_.pop_back();
  return outputs;
}

std::vector<OnnxValue> OnnxGraph::ConvertCall(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                              const std::vector<OnnxValue>& inputs) {
  if (calls_.size() >= kDeepestCall) {
    throw Error(ErrorCategory::kInput,
                fmt::format("function '{}' calls itself, or calls nest too deep", function.name()));
  }
  scopes_.emplace_back();
  for (size_t i = 0; i < inputs.size() && static_cast<int>(i) < function.input_size(); ++i) {
    if (inputs[i].expr) scopes_.back()[function.input(static_cast<int>(i))] = inputs[i];
  }
  calls_.push_back({&function, &node, scopes_.size() - 1, opset_});
  for (const auto& import : function.opset_import()) {
    if (IsStandard(import.domain())) opset_ = import.version();
  }
  for (const onnx::NodeProto* inner : NodesInOrder(function.node(), path_.string())) Convert(*inner);
  std::vector<OnnxValue> outputs;
  for (const std::string& output : function.output()) outputs.push_back(Lookup(output));
  opset_ = calls_.back().outer_opset;
  calls_.pop_back();
  scopes_.pop_back();
  return outputs;
}

std::vector<OnnxValue> OnnxGraph::ConvertOperator(NodeContext& context, const OnnxRow& row, bool is_standard) const {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const NarrowType* narrow = context.NarrowOf(i);
    if (narrow == nullptr || row.narrow == NarrowUse::kReads) continue;
    if (row.narrow == NarrowUse::kMoves && narrow == context.NarrowOf(0)) continue;
    if (row.narrow == NarrowUse::kItsOwn && !narrow->is_text) continue;
    context.Unsupported(fmt::format("input {} has element type {}", i, narrow->name));
  }
  if (is_standard) ReadOldForm(context);
  CheckOperands(context, row.signature);
  const std::vector<Expr> results = row.convert(context);
  std::vector<OnnxValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool is_said = i < context.narrow_outputs().size();
    const NarrowType* own = is_said ? context.narrow_outputs()[i] : nullptr;
    outputs.push_back({results[i], row.narrow == NarrowUse::kMoves ? context.NarrowOf(0) : own});
  }
  return outputs;
}

void OnnxGraph::Convert(const onnx::NodeProto& node) {
  std::vector<OnnxValue> inputs;
  std::vector<Expr> exprs;
  std::vector<const NarrowType*> narrow;
  for (const std::string& name : node.input()) {
    inputs.push_back(name.empty() ? OnnxValue() : Lookup(name));
    exprs.push_back(inputs.back().expr);
    narrow.push_back(inputs.back().narrow);
    // Within a function an input may be absent because the call leaves it out.
    if (exprs.back() || name.empty() || !calls_.empty()) continue;
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
  NodeContext context(*this, node, std::move(exprs), opset_, std::move(narrow));
  std::vector<OnnxValue> outputs;
  try {
    if (const onnx::FunctionProto* function = LocalFunction(node)) {
      outputs = ConvertCall(*function, node, inputs);
    } else {
      outputs = ConvertOperator(context, *RowOf(node), IsStandard(node.domain()));
    }
  } catch (const Error& error) {
    // An error that has a place comes from a node within this one.
    if (error.category() == ErrorCategory::kInternal || error.where() == path_.string()) throw;
    const std::string text =
        fmt::format("node '{}' ({}, opset {}): {}", context.name(), node.op_type(), opset_, error.message());
    if (error.category() != ErrorCategory::kUnsupported) {
      throw Error(error.category(), text, path_.string(), error.hint());
    }
    throw UnsupportedNodesError({{context.name(), FullName(node), error.message()}}, text, path_.string(),
                                error.hint());
  }
  for (int i = 0; i < node.output_size() && i < static_cast<int>(outputs.size()); ++i) {
    if (outputs[static_cast<size_t>(i)].expr && !node.output(i).empty()) {
      scopes_.back()[node.output(i)] = outputs[static_cast<size_t>(i)];
    }
  }
}

IRModule OnnxGraph::Finish() {
  std::vector<Expr> results;
  std::set<int64_t> string_params, string_results;
  AttrValue::List names;
  for (const auto& output : model_.graph().output()) {
    const auto& [value, narrow] = Lookup(output.name());
    if (!value) {
      throw Error(ErrorCategory::kInput, fmt::format("nothing computes output '{}'", output.name()), path_.string());
    }
    if (narrow != nullptr && narrow->is_text) string_results.insert(static_cast<int64_t>(results.size()));
    for (const Expr& tensor : TensorsOf({value})) results.push_back(tensor);
    const std::vector<Expr>* elements = AsSequence(value);
    if (elements == nullptr && !IsAbsent(value)) names.emplace_back(output.name());
    for (size_t i = 0; elements != nullptr && i < elements->size(); ++i)
      names.emplace_back(ElementName(output.name(), i));
  }
  const Expr body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
  Attrs attrs{{"output_names", std::move(names)}};
  std::vector<std::string> params;
  for (const Var& param : params_) {
    const NarrowType* narrow = scopes_[0].at(param->name()).narrow;
    if (narrow != nullptr && narrow->is_text) string_params.insert(static_cast<int64_t>(params.size()));
    params.push_back(param->name());
  }
  NamedDimensions(dimension_names_, dimension_ranges_, std::move(params)).AddTo(attrs);
  StringTensors(reader_.strings().texts(), std::move(string_params), std::move(string_results)).AddTo(attrs);
  Function main = MakeFunction(params_, body, nullptr, std::move(attrs));
  InferType(main);
  IRModule module = IRModule::FromFunction(std::move(main));
  module.attrs.Set("model", path_.filename().string());
  module.attrs.Set("opset", opset_);
  return module;
}

}  // namespace collage
