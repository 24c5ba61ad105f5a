// called_composites.cc: see called_composites.h.
#include "backends/native/compiler/driver/called_composites.h"

#include <fmt/format.h>

#include <unordered_map>

#include "backends/native/description/decompose.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// The call of `composite` with `args`, in which results of earlier calls are variables.
CalledComposite Called(const Function& composite, const std::vector<Expr>& args, const CalledLibrary& library) {
  CalledComposite called;
  called.label = composite->attrs().String("Composite");
  called.library = &library;
  if (AsTensorType(composite->body()->checked_type()) == nullptr) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("Composite '{}' returns no tensor", called.label));
  }
  std::vector<Var> params;
  std::vector<Expr> given;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i]->kind() == ExprKind::kConstant) {
      given.push_back(args[i]);
      continue;
    }
    const Type type = composite->params()[i]->checked_type();
    if (AsTensorType(type) == nullptr) {
      throw Error(ErrorCategory::kUnsupported, fmt::format("Composite '{}' takes a tuple", called.label));
    }
    params.push_back(MakeVar(fmt::format("x{}", params.size()), type));
    given.push_back(params.back());
    called.arguments.push_back(args[i]);
  }
  called.function = MakeFunction(params, MakeCall(composite, given));
  InferType(called.function);
  return called;
}

/// `expr` with what replaces its children, by the original; functions are left alone.
Expr WithRewritten(const Expr& expr, const std::unordered_map<const ExprNode*, Expr>& done) {
  std::vector<Expr> children = Children(expr);
  bool changed = false;
  for (Expr& child : children) {
    const auto replacement = child == nullptr ? done.end() : done.find(child.get());
    if (replacement == done.end() || replacement->second == child) continue;
    child = replacement->second;
    changed = true;
  }
  return changed ? WithChildren(expr, children) : expr;
}

}  // namespace

CutBody CutAtCalls(const Expr& body, const std::vector<CalledLibrary>& libraries) {
  CutBody cut;
  std::unordered_map<const ExprNode*, Expr> done;
  const auto is_in_body = [](const Expr& expr) { return expr->kind() != ExprKind::kFunction; };
  PostOrder(body, {.visits = is_in_body, .enters = nullptr}, [&](const Expr& expr) {
    const Expr rewritten = WithRewritten(expr, done);
    const CalledLibrary* library = LibraryOf(rewritten, libraries);
    if (library == nullptr) {
      done.emplace(expr.get(), rewritten);
      return;
    }
    const auto& call = static_cast<const CallNode&>(*rewritten);
    CalledComposite called = Called(AsShared<FunctionNode>(call.callee()), call.args(), *library);
    called.result = MakeVar(fmt::format("call{}", cut.calls.size()), expr->checked_type());
    done.emplace(expr.get(), called.result);
    cut.calls.push_back(std::move(called));
  });
  const Expr rest = done.at(body.get());
  if (cut.calls.empty()) {
    cut.rest = cut.whole = Decompose(rest);
    return cut;
  }
  // Values that several parts share are decomposed once and stay shared.
  std::vector<Expr> parts;
  for (const CalledComposite& called : cut.calls) {
    parts.insert(parts.end(), called.arguments.begin(), called.arguments.end());
  }
  parts.push_back(rest);
  cut.whole = Decompose(MakeTuple(parts));
  auto part = static_cast<const TupleNode&>(*cut.whole).fields().begin();
  for (CalledComposite& called : cut.calls) {
    for (Expr& argument : called.arguments) argument = *part++;
  }
  cut.rest = *part;
  return cut;
}

Result<ExternCall> CallFor(const CalledComposite& composite, const BoundaryLayouts& layouts, int num_threads) {
  Result<ExternCall> answer = Reason{"has no function for '" + composite.label + "'", composite.library->name};
  for (const CompositeCall& row : composite.library->calls) {
    if (row.match.name != composite.label) continue;
    answer = row.call({composite.function, layouts, num_threads});
    if (answer.ok()) return answer;
  }
  return answer;
}

}  // namespace collage::native
