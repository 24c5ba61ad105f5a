// describe_graph.cc: kinds, names, types and attributes of nodes.
#include "driver/explanation/describe_graph.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "ir/place.h"
#include "ir/print_value.h"

namespace collage {
namespace {

const char* KindOf(const DataflowGraph& graph, int index) {
  switch (graph.node(index).expr->kind()) {
    case ExprKind::kCall: return "call";
    case ExprKind::kConstant: return "constant";
    case ExprKind::kVar: return "input";
    case ExprKind::kTuple: return "tuple";
    case ExprKind::kTupleGetItem: return "field";
    case ExprKind::kOp: return "operator";
    default: return "other";
  }
}

std::vector<std::string> TypesOf(const Expr& expr) {
  std::vector<std::string> texts;
  const Type& type = expr->checked_type();
  if (type == nullptr || (AsTensorType(type) == nullptr && AsTupleType(type) == nullptr)) return texts;
  for (const Type& field : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(field);
    std::string dims;
    for (const Dim& dim : tensor->shape()) dims += (dims.empty() ? "" : ", ") + dim.ToString();
    texts.push_back(fmt::format("{}[{}]", tensor->dtype().ToString(), dims));
  }
  return texts;
}

std::optional<WeightStatistics> RoundedStatisticsOf(const Tensor& tensor) {
  std::optional<WeightStatistics> weights = StatisticsOf(tensor);
  if (!weights) return weights;
  for (double* value : {&weights->minimum, &weights->maximum, &weights->mean, &weights->deviation, &weights->zeros}) {
    *value = Rounded(*value);
  }
  return weights;
}

ExplainedNode Describe(const DataflowGraph& graph, int index) {
  const Expr& expr = graph.node(index).expr;
  ExplainedNode node;
  node.kind = KindOf(graph, index);
  if (expr->kind() == ExprKind::kOp || expr->kind() == ExprKind::kFunction) return node;
  node.types = TypesOf(expr);
  node.name = PlaceOf(expr->span());
  if (const VarNode* var = As<VarNode>(expr)) node.name = var->name();
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    node.bytes = static_cast<int64_t>(constant->value().size_bytes());
    node.weights = RoundedStatisticsOf(constant->value());
  }
  for (const int input : graph.node(index).inputs) {
    if (graph.node(input).expr->kind() != ExprKind::kOp) node.inputs.push_back(input);
  }
  if (graph.OpAt(index) == nullptr) return node;
  node.op = graph.OpAt(index)->name;
  for (const auto& [name, value] : As<CallNode>(expr)->attrs()) {
    if (!value.is_none()) node.attrs[name] = AttrText(value);
  }
  return node;
}

}  // namespace

std::vector<ExplainedNode> DescribeNodes(const DataflowGraph& graph) {
  std::vector<ExplainedNode> nodes;
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) nodes.push_back(Describe(graph, index));
  return nodes;
}

std::vector<int> ResultsOf(const DataflowGraph& graph) {
  const int body = graph.IndexOf(graph.function()->body());
  const bool is_tuple = graph.node(body).expr->kind() == ExprKind::kTuple;
  return is_tuple ? graph.node(body).inputs : std::vector<int>{body};
}

double Rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int decimals = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Through text: a power of ten below one is no binary number. std::stod refuses numbers that are denormal.
  return std::strtod(fmt::format("{:.{}f}", value, std::max(decimals, 0)).c_str(), nullptr);
}

}  // namespace collage
