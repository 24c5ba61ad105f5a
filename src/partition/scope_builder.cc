// scope_builder.cc: building units in the order in which they need each other.
#include "partition/scope_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// Field `index` of a value of tuple type.
Expr Project(const Expr& tuple, int index) {
  if (const TupleNode* literal = As<TupleNode>(tuple)) return literal->fields()[index];
  const Expr field = MakeTupleGetItem(tuple, index);
  const TupleTypeNode* type = AsTupleType(tuple->checked_type());
  if (type != nullptr) field->set_checked_type(type->fields()[index]);
  return field;
}

Expr TypedTuple(std::vector<Expr> fields) {
  std::vector<Type> types;
  for (const Expr& field : fields) types.push_back(field->checked_type());
  const Expr tuple = MakeTuple(std::move(fields));
  tuple->set_checked_type(TupleType(std::move(types)));
  return tuple;
}

/// How many tensors a value has when it is a tuple; -1 for a tensor.
int TupleSize(const Type& type) {
  if (AsTensorType(type) != nullptr) return -1;
  const TupleTypeNode* tuple = AsTupleType(type);
  const auto is_tensor = [](const Type& field) { return AsTensorType(field) != nullptr; };
  if (tuple == nullptr || !std::all_of(tuple->fields().begin(), tuple->fields().end(), is_tensor)) {
    throw Error(ErrorCategory::kUnsupported,
                "only tensors and tuples of tensors can cross a partition's boundary, got " + ToString(type));
  }
  return static_cast<int>(tuple->fields().size());
}

/// How many tensors the value of `node` is across a boundary: -1 when it crosses as it is.
int SizeAcross(const DataflowGraph& graph, int node) {
  if (graph.boundaries() == Boundaries::kExact) return -1;
  return TupleSize(graph.node(node).expr->checked_type());
}

}  // namespace

Function TypedFunction(const std::vector<Var>& params, const Expr& body, Attrs attrs) {
  Function function = MakeFunction(params, body, nullptr, std::move(attrs));
  std::vector<Type> types;
  for (const Var& param : params) types.push_back(param->checked_type());
  function->set_checked_type(FuncType(std::move(types), body->checked_type()));
  return function;
}

std::vector<int> ExitsOf(const DataflowGraph& graph, const std::vector<int>& inside) {
  std::vector<int> exits;
  for (int index : inside) {
    const DataflowGraph::Node& node = graph.node(index);
    const auto is_outside = [&](int output) { return !std::binary_search(inside.begin(), inside.end(), output); };
    const bool is_used = std::any_of(node.outputs.begin(), node.outputs.end(), is_outside);
    if ((is_used && !graph.IsCopied(index)) || node.is_external) exits.push_back(index);
  }
  return exits;
}

ScopeResult ResultOf(const DataflowGraph& graph, const ScopeBuilder& scope, const std::vector<int>& exits) {
  COLLAGE_CHECK(!exits.empty()) << "a sub-graph that nothing uses";
  ScopeResult result;
  std::vector<Expr> fields;
  for (int exit : exits) {
    const Expr& value = scope.ValueOf(exit);
    const int size = SizeAcross(graph, exit);
    if (size < 0) {
      result.outputs.push_back({exit});
      fields.push_back(value);
    }
    for (int field = 0; field < size; ++field) {
      result.outputs.push_back({exit, field});
      if (exits.size() > 1) fields.push_back(Project(value, field));
    }
  }
  result.body = exits.size() == 1 ? scope.ValueOf(exits[0]) : TypedTuple(std::move(fields));
  return result;
}

ScopeBuilder::ScopeBuilder(const DataflowGraph& graph, const IndexSet* members,
                           const std::vector<NestedSubGraph>& nested, Finish finish)
    : graph_(graph), members_(members), nested_(nested), finish_(std::move(finish)) {
  for (size_t i = 0; i < nested_.size(); ++i) {
    for (int index : nested_[i].inside) {
      if (!graph_.IsCopied(index)) nested_of_[index] = static_cast<int>(i);
    }
  }
}

bool ScopeBuilder::Build(const std::vector<int>& results) {
  return std::all_of(results.rbegin(), results.rend(), [&](int result) { return BuildFrom(result); });
}

/// Leaves are used as they are: constants, operators, functions. The whole graph enters functions that are no
/// partitions, and keeps variables.
bool ScopeBuilder::IsLeaf(int node) const {
  if (nested_of_.contains(node)) return false;
  if (graph_.IsConstant(node) && !graph_.IsInlinedInPartitions(node)) return IsInside(node);
  if (graph_.IsInlinedInPartitions(node)) {
    const FunctionNode* function = As<FunctionNode>(graph_.node(node).expr);
    return members_ != nullptr || function == nullptr || function->attrs().IntOr("Primitive", 0) != 0;
  }
  const ExprKind kind = graph_.node(node).expr->kind();
  return kind == ExprKind::kGlobalVar || (members_ == nullptr && kind == ExprKind::kVar);
}

/// A tuple that is built outside is built again inside, unless tuples cross boundaries.
bool ScopeBuilder::IsInside(int node) const {
  if (members_ == nullptr || members_->Contains(node)) return true;
  return graph_.boundaries() == Boundaries::kTensors && graph_.node(node).expr->kind() == ExprKind::kTuple;
}

/// Whether `node` is a let whose variable is computed by a nested sub-graph, or by this one: only its body is left.
bool ScopeBuilder::IsDissolvedLet(int node) const {
  const LetNode* let = As<LetNode>(graph_.node(node).expr);
  if (let == nullptr) return false;
  const int var = graph_.IndexOf(let->var());
  return nested_of_.contains(var) || (members_ != nullptr && members_->Contains(var));
}

/// Returns the parts of a node's value; a variable inside is replaced by the value of its let.
std::vector<Expr> ScopeBuilder::PartsOf(int node) const {
  const DataflowGraph::Node& it = graph_.node(node);
  const ExprKind kind = it.expr->kind();
  if (IsDissolvedLet(node)) return {static_cast<const LetNode&>(*it.expr).body()};
  if (kind == ExprKind::kVar && it.is_let_bound && it.inputs.size() == 1) {
    return {graph_.node(it.inputs[0]).expr};
  }
  const bool is_refused = kind == ExprKind::kVar || kind == ExprKind::kIf || kind == ExprKind::kMatch ||
                          kind == ExprKind::kLet || kind == ExprKind::kFunction;
  if (members_ != nullptr && is_refused) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("{} (node {}) cannot be inside a partition", graph_.LabelAt(node), node));
  }
  return Children(it.expr);
}

ScopeBuilder::Unit ScopeBuilder::UnitOf(int node) const {
  auto it = nested_of_.find(node);
  return it == nested_of_.end() ? Unit{node, -1} : Unit{-1, it->second};
}

ScopeBuilder::Progress& ScopeBuilder::ProgressOf(const Unit& unit) {
  return unit.nested >= 0 ? nested_progress_[unit.nested] : node_progress_[unit.node];
}

std::vector<BoundaryValue> ScopeBuilder::NeedsOf(const Unit& unit) {
  if (unit.nested >= 0) return FunctionOf(unit.nested).boundary.inputs;
  std::vector<BoundaryValue> needs;
  const Expr& expr = graph_.node(unit.node).expr;
  const TupleGetItemNode* projection = As<TupleGetItemNode>(expr);
  for (const Expr& child : PartsOf(unit.node)) {
    const int input = graph_.IndexOf(child);
    if (IsLeaf(input)) continue;
    if (IsInside(input) || graph_.boundaries() == Boundaries::kExact) {
      needs.push_back({input});
    } else if (projection != nullptr) {
      needs.push_back({input, projection->index()});
    } else {
      const int size = TupleSize(graph_.node(input).expr->checked_type());
      if (size < 0) needs.push_back({input});
      for (int field = 0; field < size; ++field) needs.push_back({input, field});
    }
  }
  return needs;
}

bool ScopeBuilder::BuildFrom(int root) {
  if (IsLeaf(root)) {
    values_[root] = graph_.node(root).expr;
    return true;
  }
  if (ProgressOf(UnitOf(root)) == Progress::kBuilt) return true;
  std::vector<Frame> stack;
  const auto open = [&](const Unit& unit) {
    ProgressOf(unit) = Progress::kOpen;
    stack.push_back({unit, NeedsOf(unit), 0});
  };
  open(UnitOf(root));
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next == frame.needs.size()) {
      BuildUnit(frame.unit);
      ProgressOf(frame.unit) = Progress::kBuilt;
      stack.pop_back();
      continue;
    }
    const BoundaryValue need = frame.needs[frame.next++];
    if (!IsInside(need.node)) {
      AddParam(need);
      continue;
    }
    const Unit unit = UnitOf(need.node);
    const Progress progress = ProgressOf(unit);
    if (progress == Progress::kOpen) return false;
    if (progress == Progress::kNew) open(unit);
  }
  return true;
}

void ScopeBuilder::AddParam(const BoundaryValue& value) {
  if (value.field < 0 ? values_.contains(value.node) : fields_.contains(value)) return;
  const Type& type = graph_.node(value.node).expr->checked_type();
  const Type tensor = value.field < 0 ? type : AsTupleType(type)->fields()[value.field];
  if (graph_.boundaries() == Boundaries::kTensors) TupleSize(tensor);  // refuses what cannot cross
  const Var param = MakeVar(fmt::format("FunctionVar_{}", params_.size()), tensor);
  param->set_checked_type(tensor);
  param->share_span(*graph_.node(value.node).expr);
  param->set_virtual_device(graph_.node(value.node).expr->virtual_device());
  params_.push_back(param);
  inputs_.push_back(value);
  if (value.field < 0) {
    values_[value.node] = param;
  } else {
    fields_[value] = param;
  }
}

void ScopeBuilder::BuildUnit(const Unit& unit) { unit.nested >= 0 ? CallNested(unit.nested) : BuildNode(unit.node); }

/// The value of a node as an argument; a tuple that came in field by field is built again.
Expr ScopeBuilder::ValueOrLeaf(int node) const {
  if (IsLeaf(node)) return graph_.node(node).expr;
  auto it = values_.find(node);
  if (it != values_.end()) return it->second;
  std::vector<Expr> fields;
  for (int field = 0; field < TupleSize(graph_.node(node).expr->checked_type()); ++field) {
    fields.push_back(fields_.at({node, field}));
  }
  return TypedTuple(std::move(fields));
}

void ScopeBuilder::BuildNode(int node) {
  const Expr& expr = graph_.node(node).expr;
  if (const TupleGetItemNode* projection = As<TupleGetItemNode>(expr)) {
    const int tuple = graph_.node(node).inputs[0];
    auto field = fields_.find({tuple, projection->index()});
    if (field != fields_.end()) {
      values_[node] = field->second;
      return;
    }
  }
  std::vector<Expr> children = PartsOf(node);
  if ((expr->kind() == ExprKind::kVar && !children.empty()) || IsDissolvedLet(node)) {
    values_[node] = ValueOrLeaf(graph_.IndexOf(children[0]));
    return;
  }
  bool is_changed = false;
  for (Expr& child : children) {
    const Expr value = ValueOrLeaf(graph_.IndexOf(child));
    is_changed = is_changed || value != child;
    child = value;
  }
  Expr& value = values_[node];
  value = is_changed ? WithChildren(expr, children) : expr;
  if (is_changed) value->set_checked_type(expr->checked_type());
}

const ScopeBuilder::NestedFunction& ScopeBuilder::FunctionOf(int number) {
  auto known = functions_.find(number);
  if (known != functions_.end()) return known->second;
  const NestedSubGraph& nested = nested_[number];
  const IndexSet members(graph_.size(), nested.inside);
  ScopeBuilder scope(graph_, &members, nested.nested);
  NestedFunction result;
  result.exits = ExitsOf(graph_, nested.inside);
  COLLAGE_CHECK(scope.Build(result.exits)) << "nested sub-graphs depend on each other in a circle";
  ScopeResult body = ResultOf(graph_, scope, result.exits);
  result.boundary = {scope.inputs(), std::move(body.outputs)};
  result.function = TypedFunction(scope.params(), body.body, nested.attrs);
  if (finish_) result.function = finish_(number, std::move(result.function));
  return functions_.emplace(number, std::move(result)).first->second;
}

Expr ScopeBuilder::Use(const BoundaryValue& value) const {
  if (value.field < 0) return ValueOrLeaf(value.node);
  auto field = fields_.find(value);
  return field != fields_.end() ? field->second : Project(values_.at(value.node), value.field);
}

void ScopeBuilder::CallNested(int number) {
  const NestedFunction& nested = FunctionOf(number);
  std::vector<Expr> args;
  for (const BoundaryValue& input : nested.boundary.inputs) args.push_back(Use(input));
  const Expr call = MakeCall(Expr(nested.function), std::move(args));
  call->share_span(*graph_.node(nested.exits.back()).expr);
  call->set_checked_type(nested.function->body()->checked_type());
  if (nested.exits.size() == 1) {
    values_[nested.exits[0]] = call;
    return;
  }
  int next = 0;
  for (int exit : nested.exits) {
    const int size = SizeAcross(graph_, exit);
    std::vector<Expr> fields;
    for (int field = 0; field < std::max(size, 1); ++field) fields.push_back(Project(call, next++));
    values_[exit] = size < 0 ? fields[0] : TypedTuple(std::move(fields));
  }
}

}  // namespace collage
