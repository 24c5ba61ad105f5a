// inference.h: the state of inferring the types of one expression, and its steps.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "ir/types/infer_order.h"
#include "ir/types/type_solver.h"

namespace collage {

/// Infers the types of one expression and of all in it. Each step gives the type of one node from its children's; a
/// type with holes stays here until they are solved.
class Inference {
 public:
  /// `module` gives the types of global functions and the definitions of algebraic types; may be null.
  explicit Inference(const IRModule* module) : module_(module) {}

  Type Of(const Expr& root);

 private:
  /// The type as far as it is known; null when nothing is.
  Type TypeOf(const ExprNode& expr) const;
  Type TypeOf(const Expr& expr) const { return TypeOf(*expr); }
  std::string TextOf(const Type& type) const { return ToString(solver_.Resolve(type)); }
  void SetType(const ExprNode& expr, Type type);
  /// Checks that no type is left open.
  void Finish(const ExprNode& expr) const;

  void Visit(const Expr& expr);
  Type Compute(const Expr& expr);
  Type ReferencedType(const ExprNode& expr, const Expr& ref);

  // Variables and patterns.
  Type VarType(const VarNode& var);
  /// The type of a function before its body is known: what is annotated, holes for the rest.
  Type ProvisionalType(const FunctionNode& function);
  void BindPattern(const Pattern& pattern, const Type& type, const MatchNode& match);
  void BindConstructor(const Pattern& pattern, const Type& type, const MatchNode& match);
  const TypeData& Definition(const ConstructorNode& constructor) const;
  Type GlobalType(const GlobalVarNode& global);

  // Scopes.
  Type FunctionType(const FunctionNode& function);
  Type LetType(const LetNode& let);
  Type IfType(const IfNode& branch);
  Type MatchType(const MatchNode& match);

  // Calls and projections: infer_call.cc.
  Type CallType(const CallNode& call);
  /// The result's type, or a hole when an argument's type is not known yet.
  Type OpCallType(const CallNode& call, const OpDef& op);
  const TypeNode* OpenArg(const CallNode& call) const;
  Type Apply(const CallNode& call, const OpDef& op) const;
  Type ConstructorType(const ConstructorNode& constructor) const;
  Type ProjectionType(const TupleGetItemNode& item);

  // Deferred calls: infer_call.cc.
  /// `expr` is typed when `hole` is solved; until then its type is the hole that this returns.
  Type Defer(const ExprNode& expr, const TypeNode* hole);
  /// Types what waited for the holes that were solved since.
  void Retry();
  void RetryOne(const ExprNode& expr);
  void FinishDeferred() const;

  const IRModule* module_;
  const ExprNode* root_ = nullptr;
  TypeSolver solver_;
  std::unordered_map<const ExprNode*, Type> partial_;  // types with holes
  std::vector<const ExprNode*> open_;                  // their nodes, in the order in which they were met
  std::unordered_map<const FunctionNode*, Type> provisional_;
  std::unordered_map<const TypeNode*, std::vector<const ExprNode*>> waiting_;  // hole → calls and projections
  std::unordered_map<const ExprNode*, Type> deferred_;                         // → its type's hole; null when done
  std::vector<const ExprNode*> deferred_order_;
  Binders binders_;
};

/// Throws what is wrong with `expr`, saying where it stands.
[[noreturn]] void FailInference(const ExprNode& expr, const std::string& message, const std::string& hint = "");

}  // namespace collage
