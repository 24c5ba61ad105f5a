// dataflow_graph.cc: indexing, and what single nodes are.
#include "dataflow/dataflow_graph.h"

#include <algorithm>

#include "collage/ir/visitor.h"

namespace collage {

DataflowGraph::DataflowGraph(Function function) : function_(std::move(function)) {
  const auto add = [this](const Expr& expr) {
    if (!indices_.emplace(expr.get(), static_cast<int>(nodes_.size())).second) return;
    nodes_.push_back({expr, {}, {}, false});
  };
  for (const Var& param : function_->params()) add(param);
  PostOrderInScope(function_, add);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const bool is_inner_function = nodes_[i].expr->kind() == ExprKind::kFunction && nodes_[i].expr != Expr(function_);
    if (is_inner_function) continue;
    for (const Expr& child : Children(nodes_[i].expr)) {
      const int input = indices_.at(child.get());
      nodes_[i].inputs.push_back(input);
      std::vector<int>& outputs = nodes_[static_cast<size_t>(input)].outputs;
      if (outputs.empty() || outputs.back() != static_cast<int>(i)) outputs.push_back(static_cast<int>(i));
    }
  }
  nodes_[static_cast<size_t>(indices_.at(function_->body().get()))].is_external = true;
}

const OpDef* DataflowGraph::OpAt(int index) const {
  const CallNode* call = As<CallNode>(node(index).expr);
  return call == nullptr ? nullptr : call->op();
}

OpPatternKind DataflowGraph::KindAt(int index) const {
  if (const OpDef* op = OpAt(index)) return op->pattern;
  switch (node(index).expr->kind()) {
    case ExprKind::kTuple:
    case ExprKind::kTupleGetItem: return OpPatternKind::kInjective;
    case ExprKind::kConstant: return OpPatternKind::kElemWise;
    default: return OpPatternKind::kOpaque;
  }
}

bool DataflowGraph::CanInline(int index) const {
  switch (node(index).expr->kind()) {
    case ExprKind::kOp:
    case ExprKind::kConstructor:
    case ExprKind::kFunction:
    case ExprKind::kConstant: return true;
    default: return false;
  }
}

std::string DataflowGraph::LabelAt(int index) const {
  const Expr& expr = node(index).expr;
  switch (expr->kind()) {
    case ExprKind::kVar: return "%" + static_cast<const VarNode&>(*expr).name();
    case ExprKind::kGlobalVar: return "@" + static_cast<const GlobalVarNode&>(*expr).name();
    case ExprKind::kConstant: return static_cast<const ConstantNode&>(*expr).is_scalar() ? "scalar" : "const";
    case ExprKind::kOp: return "`" + static_cast<const OpNode&>(*expr).name() + "`";
    case ExprKind::kTuple: return "tuple";
    case ExprKind::kTupleGetItem: return "proj";
    case ExprKind::kFunction: return "fn";
    case ExprKind::kLet: return "let";
    case ExprKind::kIf: return "if";
    case ExprKind::kMatch: return "match";
    case ExprKind::kCall: return OpAt(index) != nullptr ? OpAt(index)->name : "call";
    default: return "ref";
  }
}

}  // namespace collage
