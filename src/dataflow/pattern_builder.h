// pattern_builder.h: patterns made in C++. Sharing a pattern between two places says that both are the same node:
//
//   const DFPatternPtr x = Wildcard();
//   const DFPatternPtr swish = CallPattern("multiply", {x, CallPattern("sigmoid", {x})});
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/pattern.h"

namespace collage {

using PatternAttrs = std::vector<std::pair<std::string, std::string>>;

DFPatternPtr Wildcard();
DFPatternPtr ConstantPattern();
/// A variable, of the given name unless that is empty.
DFPatternPtr VarPattern(std::string name = "");
/// This very node.
DFPatternPtr ExprPattern(Expr expr);
/// The operator itself, as callee of `CallPattern`. Throws kInput for an unknown name.
DFPatternPtr OpPattern(const std::string& op);
/// A call of an operator; attributes by name and text of the value ("1", "[2,2]", "NCHW").
DFPatternPtr CallPattern(const std::string& op, std::vector<DFPatternPtr> args, PatternAttrs attrs = {});
/// A call of an operator with any arguments.
DFPatternPtr AnyCallPattern(const std::string& op, PatternAttrs attrs = {});
/// A call of what `callee` matches.
DFPatternPtr CallPattern(DFPatternPtr callee, std::vector<DFPatternPtr> args, PatternAttrs attrs = {});
DFPatternPtr TuplePattern(std::vector<DFPatternPtr> fields);
/// Field `index`, any when negative.
DFPatternPtr ProjectionPattern(DFPatternPtr tuple, int index = -1);
DFPatternPtr AlternativePattern(std::vector<DFPatternPtr> choices);
/// `pattern`, or what `wrap` makes of it: OptionalPattern(conv, [](auto p) { return CallPattern("nn.relu", {p}); }).
DFPatternPtr OptionalPattern(DFPatternPtr pattern, const std::function<DFPatternPtr(DFPatternPtr)>& wrap);
/// No parameters given: any.
DFPatternPtr FunctionPattern(std::optional<std::vector<DFPatternPtr>> params, DFPatternPtr body,
                             PatternAttrs attrs = {});
DFPatternPtr LetPattern(DFPatternPtr var, DFPatternPtr value, DFPatternPtr body);
DFPatternPtr IfPattern(DFPatternPtr condition, DFPatternPtr then_branch, DFPatternPtr else_branch);
DFPatternPtr DominatorPattern(DFPatternPtr parent, DFPatternPtr path, DFPatternPtr child);
DFPatternPtr WithDType(DFPatternPtr pattern, DataType dtype);
/// -1 stands for any size.
DFPatternPtr WithShape(DFPatternPtr pattern, std::vector<int64_t> shape);

}  // namespace collage
