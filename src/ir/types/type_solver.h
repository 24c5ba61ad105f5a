// type_solver.h: unification of types with holes, by which type inference learns from later uses what earlier
// expressions did not say (RFC 0.81 builds on Relay's inference; Hindley-Milner without generalisation).
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/ir/type.h"

namespace collage {

using TypeBindings = std::unordered_map<const TypeNode*, Type>;

/// `type` with the type variables (or holes) among the keys of `bindings` replaced; null values leave them alone.
Type ReplaceTypes(const Type& type, const TypeBindings& bindings);

/// Holes and what they were found to be. Types that solutions make too deep or too large to walk count as unknown, so
/// that no text takes more than linear time or much stack.
class TypeSolver {
 public:
  static Type Fresh() { return std::make_shared<IncompleteTypeNode>(); }

  /// Returns the outermost known type: the solution of a hole, or the type itself.
  Type Find(Type type) const;
  /// `type` with all solved holes filled in.
  Type Resolve(const Type& type) const;
  /// The first hole in a resolved type; null when there is none.
  const TypeNode* FirstHole(const Type& type) const;

  /// Makes a value of type `from` usable where `to` is wanted, solving holes in both; false when it is not. `?` accepts
  /// any size (not the other way round), a polymorphic function fits the function types that it can become.
  bool Fit(const Type& to, const Type& from);
  /// Makes two types one: the result has `?` where sizes differ. Null when they cannot agree.
  Type Join(const Type& a, const Type& b);

  /// `type` with fresh holes for the type parameters that `args` does not give.
  static Type Instantiate(const FuncTypeNode& type, const std::vector<Type>& args, std::vector<Type>* chosen = nullptr);

  /// Holes solved since the last call.
  std::vector<const TypeNode*> TakeSolved() { return std::exchange(solved_, {}); }

 private:
  enum class Mode : uint8_t { kFit, kExact, kJoin };
  Type Unify(const Type& to, const Type& from, Mode mode);
  bool UnifyAll(const std::vector<Type>& to, const std::vector<Type>& from, Mode mode, std::vector<Type>* united);
  static Type UnifyTensors(const Type& to, const Type& from, Mode mode);
  Type UnifyFunctions(const Type& to, const Type& from, Mode mode);
  Type UnifyKinds(const Type& to, const Type& from, Mode mode);
  Type Solve(const Type& hole, const Type& type);

  /// Visits the unsolved holes in `type` until `stop` says so; each shared part once.
  template <typename Stop>
  bool AnyHole(const Type& type, const Stop& stop) const;
  Type ResolveShared(const Type& type, TypeBindings* done, int depth) const;

  TypeBindings bound_;
  std::vector<Type> kept_;  // the keys of bound_, so that no other hole takes their place in memory
  int depth_ = 0;
  int steps_ = 0;
  std::vector<const TypeNode*> solved_;
};

}  // namespace collage
