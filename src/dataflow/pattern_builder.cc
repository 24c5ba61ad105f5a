// pattern_builder.cc: one function per kind of pattern.
#include "dataflow/pattern_builder.h"

#include "collage/ir/op.h"

namespace collage {
namespace {

using Kind = DFPattern::Kind;

std::shared_ptr<DFPattern> Make(Kind kind, std::vector<DFPatternPtr> args = {}) {
  auto pattern = std::make_shared<DFPattern>();
  pattern->kind = kind;
  pattern->args = std::move(args);
  return pattern;
}

}  // namespace

DFPatternPtr Wildcard() { return Make(Kind::kWildcard); }
DFPatternPtr ConstantPattern() { return Make(Kind::kConstant); }

DFPatternPtr VarPattern(std::string name) {
  auto pattern = Make(Kind::kVar);
  pattern->op = std::move(name);
  return pattern;
}

DFPatternPtr ExprPattern(Expr expr) {
  auto pattern = Make(Kind::kExpr);
  pattern->expr = std::move(expr);
  return pattern;
}

DFPatternPtr OpPattern(const std::string& op) {
  auto pattern = Make(Kind::kOp);
  pattern->op = GetOp(op)->name();
  return pattern;
}

DFPatternPtr CallPattern(const std::string& op, std::vector<DFPatternPtr> args, PatternAttrs attrs) {
  auto pattern = Make(Kind::kCall, std::move(args));
  pattern->op = GetOp(op)->name();
  pattern->attrs = std::move(attrs);
  return pattern;
}

DFPatternPtr AnyCallPattern(const std::string& op, PatternAttrs attrs) {
  auto pattern = Make(Kind::kCall);
  pattern->op = GetOp(op)->name();
  pattern->any_args = true;
  pattern->attrs = std::move(attrs);
  return pattern;
}

DFPatternPtr CallPattern(DFPatternPtr callee, std::vector<DFPatternPtr> args, PatternAttrs attrs) {
  args.insert(args.begin(), std::move(callee));
  auto pattern = Make(Kind::kCall, std::move(args));
  pattern->attrs = std::move(attrs);
  return pattern;
}

DFPatternPtr TuplePattern(std::vector<DFPatternPtr> fields) { return Make(Kind::kTuple, std::move(fields)); }

DFPatternPtr ProjectionPattern(DFPatternPtr tuple, int index) {
  auto pattern = Make(Kind::kProjection, {std::move(tuple)});
  pattern->index = index;
  return pattern;
}

DFPatternPtr AlternativePattern(std::vector<DFPatternPtr> choices) {
  return Make(Kind::kAlternative, std::move(choices));
}

DFPatternPtr OptionalPattern(DFPatternPtr pattern, const std::function<DFPatternPtr(DFPatternPtr)>& wrap) {
  return AlternativePattern({wrap(pattern), pattern});
}

DFPatternPtr FunctionPattern(std::optional<std::vector<DFPatternPtr>> params, DFPatternPtr body, PatternAttrs attrs) {
  auto pattern = Make(Kind::kFunction);
  pattern->any_args = !params.has_value();
  if (params) pattern->args = std::move(*params);
  pattern->args.push_back(std::move(body));
  pattern->attrs = std::move(attrs);
  return pattern;
}

DFPatternPtr LetPattern(DFPatternPtr var, DFPatternPtr value, DFPatternPtr body) {
  return Make(Kind::kLet, {std::move(var), std::move(value), std::move(body)});
}

DFPatternPtr IfPattern(DFPatternPtr condition, DFPatternPtr then_branch, DFPatternPtr else_branch) {
  return Make(Kind::kIf, {std::move(condition), std::move(then_branch), std::move(else_branch)});
}

DFPatternPtr DominatorPattern(DFPatternPtr parent, DFPatternPtr path, DFPatternPtr child) {
  return Make(Kind::kDominates, {std::move(parent), std::move(path), std::move(child)});
}

DFPatternPtr WithDType(DFPatternPtr pattern, DataType dtype) {
  auto typed = Make(Kind::kTyped, {std::move(pattern)});
  typed->dtype = dtype.ToString();
  return typed;
}

DFPatternPtr WithShape(DFPatternPtr pattern, std::vector<int64_t> shape) {
  auto typed = Make(Kind::kTyped, {std::move(pattern)});
  typed->any_shape = false;
  typed->shape = std::move(shape);
  return typed;
}

}  // namespace collage
