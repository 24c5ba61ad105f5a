// called_composites.cc: see called_composites.h.
#include "backends/native/compiler/driver/called_composites.h"

#include <fmt/format.h>

#include "backends/native/description/decompose.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "transform/rewriting.h"

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

}  // namespace

CutBody CutAtCalls(const Expr& body, const std::vector<CalledLibrary>& libraries) {
  CutBody cut;
  const Expr rest = RewriteNodes(
      body, [](const FunctionNode& inner) { return !inner.attrs().Has("Composite"); },
      [&](const Expr& original, const Expr& expr, const Rewritten&) -> Expr {
        const CalledLibrary* library = LibraryOf(expr, libraries);
        if (library == nullptr) return expr;
        const auto& call = static_cast<const CallNode&>(*expr);
        CalledComposite called = Called(AsShared<FunctionNode>(call.callee()), call.args(), *library);
        called.result = MakeVar(fmt::format("call{}", cut.calls.size()), original->checked_type());
        cut.calls.push_back(std::move(called));
        return cut.calls.back().result;
      });
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
