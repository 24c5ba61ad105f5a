// dataflow_graph.cc: indexing with an explicit stack, and what single nodes are.
#include "dataflow/dataflow_graph.h"

#include <algorithm>
#include <unordered_set>

#include "dataflow/scope_finder.h"

namespace collage {

/// Numbers a function's sub-expressions, depth first.
class DataflowIndexer {
 public:
  explicit DataflowIndexer(DataflowGraph& graph) : graph_(graph) {}

  void Run() {
    Enter(graph_.function_, nullptr, false);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next < frame.children.size()) {
        if (frame.next == 1 && frame.expr->kind() == ExprKind::kLet) {  // behind its value, the variable is as any node
          recursive_.erase(static_cast<const LetNode&>(*frame.expr).var().get());
        }
        const Child child = frame.children[frame.next++];
        const bool in_primitive = frame.in_primitive || IsPrimitive(child.block);
        if (!graph_.indices_.contains(child.expr.get()) && !recursive_.contains(child.expr.get())) {
          Enter(child.expr, child.block, in_primitive);
        }
      } else {
        Leave(frame);
        stack_.pop_back();
      }
    }
    Connect();
    graph_.nodes_.back().is_external = true;
  }

 private:
  struct Child {
    Expr expr;
    const ExprNode* block;
  };
  struct Frame {
    Expr expr;
    const ExprNode* block;
    bool in_primitive;
    std::vector<Child> children;
    size_t next = 0;
  };

  static bool IsPrimitive(const ExprNode* block) {
    if (block == nullptr || block->kind() != ExprKind::kFunction) return false;
    return static_cast<const FunctionNode*>(block)->attrs().IntOr("Primitive", 0) != 0;
  }

  static void AddPatternVars(const Pattern& root, const ExprNode* block, std::vector<Child>& children) {
    std::vector<const Pattern*> stack{&root};
    while (!stack.empty()) {
      const Pattern& pattern = *stack.back();
      stack.pop_back();
      if (pattern.var) children.push_back({pattern.var, block});
      for (auto it = pattern.sub_patterns.rbegin(); it != pattern.sub_patterns.rend(); ++it) stack.push_back(&*it);
    }
  }

  static void AddClauses(const MatchNode& match, std::vector<Child>& children) {
    for (const Clause& clause : match.clauses()) {
      AddPatternVars(clause.pattern, &match, children);
      children.push_back({clause.body, &match});
    }
  }

  void Enter(const Expr& expr, const ExprNode* block, bool in_primitive) {
    stack_.push_back({expr, block, in_primitive, {}, 0});
    std::vector<Child>& children = stack_.back().children;
    switch (expr->kind()) {
      case ExprKind::kTuple:
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) children.push_back({field, block});
        return;
      case ExprKind::kTupleGetItem: children = {{static_cast<const TupleGetItemNode&>(*expr).tuple(), block}}; return;
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        children.push_back({call.callee(), block});
        for (const Expr& arg : call.args()) children.push_back({arg, block});
        return;
      }
      case ExprKind::kFunction: {
        const auto& function = static_cast<const FunctionNode&>(*expr);
        const ExprNode* inner = expr == Expr(graph_.function_) ? nullptr : expr.get();
        for (const Var& param : function.params()) children.push_back({param, inner});
        children.push_back({function.body(), inner});
        return;
      }
      case ExprKind::kLet: {
        const auto& let = static_cast<const LetNode&>(*expr);
        recursive_.insert(let.var().get());
        children = {{let.value(), block}, {let.var(), block}, {let.body(), block}};
        return;
      }
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(*expr);
        children = {
            {branch.condition(), block}, {branch.then_branch(), expr.get()}, {branch.else_branch(), expr.get()}};
        return;
      }
      case ExprKind::kMatch: {
        const auto& match = static_cast<const MatchNode&>(*expr);
        children.push_back({match.data(), block});
        return AddClauses(match, children);
      }
      case ExprKind::kRefCreate: children = {{static_cast<const RefCreateNode&>(*expr).value(), block}}; return;
      case ExprKind::kRefRead: children = {{static_cast<const RefReadNode&>(*expr).ref(), block}}; return;
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(*expr);
        children = {{write.ref(), block}, {write.value(), block}};
        return;
      }
      default: return;
    }
  }

  void Leave(const Frame& frame) {
    graph_.indices_.emplace(frame.expr.get(), static_cast<int>(graph_.nodes_.size()));
    DataflowGraph::Node node{.expr = frame.expr};
    node.is_in_primitive = frame.in_primitive;
    graph_.nodes_.push_back(std::move(node));
    blocks_.push_back(frame.block);
  }

  void AddEdge(const Expr& from, int to) {
    auto it = graph_.indices_.find(from.get());
    if (it == graph_.indices_.end() || it->second >= to) return;  // a recursive function's own variable
    graph_.nodes_[to].inputs.push_back(it->second);
  }

  void Connect() {
    for (size_t i = 0; i < graph_.nodes_.size(); ++i) {
      if (blocks_[i] != nullptr) graph_.nodes_[i].basic_block = graph_.indices_.at(blocks_[i]);
      ConnectInputs(graph_.nodes_[i].expr, static_cast<int>(i));
    }
    for (size_t i = 0; i < graph_.nodes_.size(); ++i) {
      for (int input : graph_.nodes_[i].inputs) {
        graph_.nodes_[input].outputs.push_back(static_cast<int>(i));
      }
    }
  }

  void ConnectInputs(const Expr& expr, int index) {
    switch (expr->kind()) {
      case ExprKind::kTuple:
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) AddEdge(field, index);
        return;
      case ExprKind::kTupleGetItem: return AddEdge(static_cast<const TupleGetItemNode&>(*expr).tuple(), index);
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        AddEdge(call.callee(), index);
        for (const Expr& arg : call.args()) AddEdge(arg, index);
        return;
      }
      case ExprKind::kFunction: return AddEdge(static_cast<const FunctionNode&>(*expr).body(), index);
      case ExprKind::kLet: {
        const auto& let = static_cast<const LetNode&>(*expr);
        const int var = graph_.indices_.at(let.var().get());
        graph_.nodes_[var].is_let_bound = true;
        AddEdge(let.value(), var);
        return AddEdge(let.body(), index);
      }
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(*expr);
        for (const Expr& child : {branch.condition(), branch.then_branch(), branch.else_branch()})
          AddEdge(child, index);
        return;
      }
      case ExprKind::kMatch: {
        const auto& match = static_cast<const MatchNode&>(*expr);
        AddEdge(match.data(), index);
        for (const Clause& clause : match.clauses()) {
          std::vector<Child> vars;
          AddPatternVars(clause.pattern, nullptr, vars);
          for (const Child& var : vars) AddEdge(match.data(), graph_.indices_.at(var.expr.get()));
          AddEdge(clause.body, index);
        }
        return;
      }
      case ExprKind::kRefCreate: return AddEdge(static_cast<const RefCreateNode&>(*expr).value(), index);
      case ExprKind::kRefRead: return AddEdge(static_cast<const RefReadNode&>(*expr).ref(), index);
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(*expr);
        AddEdge(write.ref(), index);
        return AddEdge(write.value(), index);
      }
      default: return;
    }
  }

  DataflowGraph& graph_;
  std::vector<Frame> stack_;
  std::vector<const ExprNode*> blocks_;            ///< of each node
  std::unordered_set<const ExprNode*> recursive_;  ///< let variables whose value is being numbered
};

DataflowGraph::DataflowGraph(Function function, Boundaries boundaries)
    : function_(std::move(function)), boundaries_(boundaries) {
  DataflowIndexer(*this).Run();
  ScopeFinder(*this).Run();
}

namespace {

bool IsStatic(const Type& type) {
  if (const TensorTypeNode* tensor = AsTensorType(type)) return tensor->is_static();
  const TupleTypeNode* tuple = AsTupleType(type);
  return tuple == nullptr || std::all_of(tuple->fields().begin(), tuple->fields().end(), IsStatic);
}

/// Whether the result's shape is unknown although the arguments' are known: it follows from their values.
bool HasDataDependentShape(const CallNode& call) {
  if (AsTensorType(call.checked_type()) == nullptr || IsStatic(call.checked_type())) return false;
  return std::all_of(call.args().begin(), call.args().end(),
                     [](const Expr& arg) { return IsStatic(arg->checked_type()); });
}

/// Returns the kind of a tuple, and of projections from it.
OpPatternKind KindOfTuple(const Type& type) {
  const TupleTypeNode* tuple = AsTupleType(type);
  const auto is_tensor = [](const Type& field) { return AsTensorType(field) != nullptr; };
  const bool all = tuple != nullptr && std::all_of(tuple->fields().begin(), tuple->fields().end(), is_tensor);
  return all ? OpPatternKind::kInjective : OpPatternKind::kOpaque;
}

}  // namespace

const OpDef* DataflowGraph::OpAt(int index) const {
  const CallNode* call = As<CallNode>(node(index).expr);
  return call == nullptr ? nullptr : call->op();
}

OpPatternKind DataflowGraph::KindAt(int index) const {
  const Expr& expr = node(index).expr;
  const Type& type = expr->checked_type();
  switch (expr->kind()) {
    case ExprKind::kConstant: return OpPatternKind::kElemWise;
    case ExprKind::kTuple: return KindOfTuple(type);
    case ExprKind::kTupleGetItem:
      return KindOfTuple(static_cast<const TupleGetItemNode&>(*expr).tuple()->checked_type());
    case ExprKind::kCall: {
      const auto& call = static_cast<const CallNode&>(*expr);
      if (const OpDef* op = call.op()) return HasDataDependentShape(call) ? OpPatternKind::kOpaque : op->pattern;
      const FunctionNode* function = As<FunctionNode>(call.callee());
      if (function == nullptr) return OpPatternKind::kOpaque;
      return static_cast<OpPatternKind>(
          function->attrs().IntOr("TOpPattern", static_cast<int64_t>(OpPatternKind::kOpaque)));
    }
    default: return OpPatternKind::kOpaque;
  }
}

bool DataflowGraph::CanInline(int index) const {
  const Expr& expr = node(index).expr;
  switch (expr->kind()) {
    case ExprKind::kOp:
    case ExprKind::kConstructor:
    case ExprKind::kFunction: return true;
    case ExprKind::kConstant: {
      const Tensor& value = static_cast<const ConstantNode&>(*expr).value();
      return value.rank() == 0 && value.dtype() != kInt8 && value.dtype() != kUInt8;
    }
    default: return false;
  }
}

std::string DataflowGraph::LabelAt(int index) const {
  const Expr& expr = node(index).expr;
  switch (expr->kind()) {
    case ExprKind::kVar: return "%" + static_cast<const VarNode&>(*expr).name();
    case ExprKind::kGlobalVar: return "@" + static_cast<const GlobalVarNode&>(*expr).name();
    case ExprKind::kConstant: return CanInline(index) ? "scalar" : "const";
    case ExprKind::kOp: return "`" + static_cast<const OpNode&>(*expr).name();
    case ExprKind::kConstructor: return "`" + static_cast<const ConstructorNode&>(*expr).name();
    case ExprKind::kTuple: return "tuple";
    case ExprKind::kTupleGetItem: return "proj";
    case ExprKind::kFunction: return "fn";
    case ExprKind::kLet: return "let";
    case ExprKind::kIf: return "if";
    case ExprKind::kMatch: return "match";
    case ExprKind::kCall: {
      if (OpAt(index) != nullptr) return OpAt(index)->name;
      const FunctionNode* function = As<FunctionNode>(static_cast<const CallNode&>(*expr).callee());
      if (function == nullptr) return "call_any";
      return function->attrs().IntOr("Primitive", 0) != 0 ? "call_prim" : "call_fun";
    }
    default: return "ref";
  }
}

std::vector<int> DominatorParents(const DataflowGraph& graph) {
  const int root = static_cast<int>(graph.size()) - 1;
  std::vector<int> parent(graph.size(), -1);
  std::vector<int> depth(graph.size(), 0);
  for (int index = root - 1; index >= 0; --index) {
    int common = -1;
    for (int output : graph.node(index).outputs) {
      if (output != root && parent[output] < 0) {  // does not reach the result
        common = -1;
        break;
      }
      if (common < 0) {
        common = output;
        continue;
      }
      int other = output;
      while (common != other) {
        int& deeper = depth[common] >= depth[other] ? common : other;
        deeper = parent[deeper];
      }
    }
    parent[index] = common;
    if (common >= 0) depth[index] = depth[common] + 1;
  }
  return parent;
}

}  // namespace collage
