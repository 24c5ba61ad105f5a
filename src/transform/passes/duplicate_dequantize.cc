// duplicate_dequantize.cc: every reader of dequantised values dequantises them itself. Kernels of 8-bit integers hold
// the qnn.dequantize of their operands, and a value that another kernel needs, too, could be inside of none of them.
#include <unordered_set>

#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

class Duplicator {
 public:
  /// `expr` with a qnn.dequantize of its own for each that another reader has already.
  Expr Own(const Expr& expr) {
    if (const CallNode* call = As<CallNode>(expr)) {
      std::vector<Expr> args = call->args();
      if (!OwnAll(args)) return expr;
      const Expr result = MakeCall(call->callee(), args, call->attrs(), call->type_args());
      result->set_span(call->span());
      return result;
    }
    if (const TupleNode* tuple = As<TupleNode>(expr)) {
      std::vector<Expr> fields = tuple->fields();
      if (OwnAll(fields)) return MakeTuple(fields);
    }
    return expr;
  }

 private:
  /// Whether any of `values` was replaced. A reader that takes one twice needs one copy.
  bool OwnAll(std::vector<Expr>& values) {
    std::unordered_map<const ExprNode*, Expr> owned;
    bool changed = false;
    for (Expr& value : values) {
      const CallNode* call = AsCallOf(value, "qnn.dequantize");
      if (call == nullptr) continue;
      const auto [it, is_new] = owned.try_emplace(value.get(), value);
      if (is_new && !taken_.insert(value.get()).second) {
        it->second = TypedCall("qnn.dequantize", call->args(), *call, call->attrs());
      }
      changed = changed || it->second != value;
      value = it->second;
    }
    return changed;
  }

  std::unordered_set<const ExprNode*> taken_;  // by their first readers
};

}  // namespace

Function DuplicateDequantize(const Function& function) {
  Duplicator duplicator;
  return AsShared<FunctionNode>(RewriteNodes(
      function, [&](const Expr&, const Expr& rewritten, const Rewritten&) { return duplicator.Own(rewritten); }));
}

}  // namespace collage
