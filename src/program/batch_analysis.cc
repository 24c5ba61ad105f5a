// batch_analysis.cc: follows batches from operator to operator.
#include "program/batch_analysis.h"

#include <algorithm>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

bool IsStatic(const Type& type) {
  const TensorTypeNode* tensor = type == nullptr ? nullptr : AsTensorType(type);
  return tensor != nullptr && tensor->is_static();
}

/// As its row says (OpDef::keeps_rows).
bool KeepsRows(const CallNode& call) {
  if (!call.op()->keeps_rows) return false;
  std::vector<Type> args;
  for (const Expr& arg : call.args()) args.push_back(arg->checked_type());
  return call.op()->keeps_rows({args, call.attrs()}, call.checked_type());
}

class RowFinder {
 public:
  RowFinder(const DataflowGraph& graph, const std::function<bool(const CallNode&)>& takes)
      : graph_(graph), takes_(takes) {}

  std::vector<int> Run() {
    std::vector<int> answer;
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      batch_.push_back(index);
      answer.push_back(IsBatchParallel(index) ? batch_.back() : -1);
    }
    return answer;
  }

 private:
  /// Notes of which batch the rows are.
  bool IsBatchParallel(int index) {
    const DataflowGraph::Node& node = graph_.node(index);
    const Expr& expr = node.expr;
    const bool is_call = graph_.OpAt(index) != nullptr;
    if (!is_call && As<TupleNode>(expr) == nullptr) return false;
    int batch = -1;
    std::vector<Expr> read;
    for (const Expr& arg : is_call ? static_cast<const CallNode&>(*expr).args() : Children(expr)) {
      const TupleNode* tuple = As<TupleNode>(arg);
      if (tuple == nullptr) read.push_back(arg);
      if (tuple != nullptr) read.insert(read.end(), tuple->fields().begin(), tuple->fields().end());
    }
    for (const Expr& arg : read) {
      if (IsStatic(arg->checked_type())) continue;
      if (!IsBatch(arg->checked_type())) return false;
      const int own = batch_[graph_.IndexOf(arg)];
      if (batch >= 0 && own != batch) return false;
      batch = own;
    }
    if (batch < 0) return false;
    if (!is_call) {
      if (!std::ranges::all_of(read, [](const Expr& field) { return IsBatch(field->checked_type()); })) return false;
      batch_[index] = batch;
      return true;
    }
    const auto& call = static_cast<const CallNode&>(*expr);
    if (node.is_in_primitive || !IsBatch(call.checked_type()) || !KeepsRows(call) || !IsTaken(call)) return false;
    batch_[index] = batch;
    return true;
  }

  bool IsTaken(const CallNode& call) const {
    const std::function<Expr(const Expr&)> of_one = [&](const Expr& arg) -> Expr {
      if (arg->kind() == ExprKind::kConstant) return arg;
      if (const TupleNode* tuple = As<TupleNode>(arg)) {
        std::vector<Expr> fields;
        for (const Expr& field : tuple->fields()) fields.push_back(of_one(field));
        return MakeTuple(fields);
      }
      return MakeVar("x", WithBatchSize(arg->checked_type(), 1));
    };
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) args.push_back(of_one(arg));
    const Expr one = MakeCall(call.callee(), args, call.attrs());
    try {
      InferType(one);
    } catch (const Error&) {
      return false;
    }
    return takes_(static_cast<const CallNode&>(*one));
  }

  const DataflowGraph& graph_;
  const std::function<bool(const CallNode&)>& takes_;
  std::vector<int> batch_;  ///< by node, the one that its rows come from
};

}  // namespace

std::vector<int> FindBatchParallel(const DataflowGraph& graph, const std::function<bool(const CallNode&)>& takes) {
  return RowFinder(graph, takes).Run();
}

}  // namespace collage
