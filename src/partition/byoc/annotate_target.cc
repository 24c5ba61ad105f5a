// annotate_target.cc: calls that a toolchain takes are put between compiler_begin and compiler_end: single operators by
// its predicate, Composite functions by their name. Constants stay as they are: they go into partitions.
#include <algorithm>

#include "collage/ir/visitor.h"
#include "partition/byoc/regions.h"
#include "partition/byoc/toolchains.h"
#include "partition/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// Whether `call` is one that `toolchain` takes; its arguments' types must be known.
bool Takes(const Toolchain& toolchain, const CallNode& call) {
  if (const OpDef* op = call.op()) return !op->name.starts_with("annotation.") && toolchain.SupportsCall(call).ok();
  const FunctionNode* function = As<FunctionNode>(call.callee());
  return function != nullptr && function->attrs().StringOr("Composite", "").starts_with(toolchain.name() + ".");
}

class Annotator {
 public:
  Annotator(std::vector<const Toolchain*> toolchains, bool include_others)
      : toolchains_(std::move(toolchains)), include_others_(include_others) {}

  Expr operator()(const Expr& original, const Expr& expr) const {
    std::string compiler;
    if (expr->kind() == ExprKind::kCall) {
      compiler = CompilerFor(*As<CallNode>(original));
    } else if (include_others_ && (expr->kind() == ExprKind::kTuple || expr->kind() == ExprKind::kTupleGetItem)) {
      compiler = CompilerOfAll(Children(expr));
    }
    if (compiler.empty()) return expr;
    std::vector<Expr> children = Children(expr);
    for (Expr& child : children) child = Enter(child, compiler);
    const Expr inside = WithChildren(expr, children);
    inside->set_checked_type(original->checked_type());
    return CompilerEnd(inside, compiler);
  }

 private:
  std::string CompilerFor(const CallNode& call) const {
    for (const Toolchain* toolchain : toolchains_) {
      if (Takes(*toolchain, call)) return toolchain->name();
    }
    return "";
  }

  /// The toolchain from whose regions all `values` come; empty when there is none.
  static std::string CompilerOfAll(const std::vector<Expr>& values) {
    std::string compiler;
    for (const Expr& value : values) {
      if (AsCallOf(value, kCompilerEnd) == nullptr) return "";
      if (!compiler.empty() && compiler != CompilerOf(value)) return "";
      compiler = CompilerOf(value);
    }
    return compiler;
  }

  /// `value` as it enters a region. A tuple enters field by field, since tuples do not cross boundaries.
  static Expr Enter(const Expr& value, const std::string& compiler) {
    switch (value->kind()) {
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kFunction: return value;
      case ExprKind::kTuple: {
        std::vector<Expr> fields = static_cast<const TupleNode&>(*value).fields();
        for (Expr& field : fields) field = Enter(field, compiler);
        const Expr tuple = MakeTuple(std::move(fields));
        tuple->share_span(*value);
        return tuple;
      }
      default: return CompilerBegin(value, compiler);  // one per use: a shared one would join the regions of its users
    }
  }

  std::vector<const Toolchain*> toolchains_;
  bool include_others_;
};

}  // namespace

Function AnnotateTarget(const Function& function, const IRModule&, const PassContext& context) {
  const Annotator annotate(FindToolchains(context, "relay.AnnotateTarget.targets"),
                           context.ConfigBool("relay.AnnotateTarget.include_non_call_ops"));
  return AsShared<FunctionNode>(
      RewriteNodes(function, IsOrdinary,
                   [&](const Expr& original, const Expr& expr, const Rewritten&) { return annotate(original, expr); }));
}

}  // namespace collage
