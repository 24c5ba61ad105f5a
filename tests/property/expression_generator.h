// expression_generator.h: expressions of a wanted type from what is in scope.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/module.h"
#include "property/random_module.h"
#include "property/random_source.h"

namespace collage {

/// Grows expressions top down: of the ways to get a value of the wanted type, one is drawn, and its operands are wanted
/// next. Whatever was made may be used again where its variables are in scope, which gives shared nodes.
class ExpressionGenerator {
 public:
  ExpressionGenerator(RandomSource random, const RandomModuleOptions& options);

  /// Definitions that all modules have: data types and polymorphic functions.
  const IRModule& prelude() const { return prelude_; }
  RandomSource& random() { return random_; }

  /// Tensors, tuples and data, no functions.
  Type DataType(int depth);
  Type AnyType(int depth);
  Expr Of(const Type& type, int fuel);
  /// A function with a body; parameters are annotated when `annotated`.
  Function FunctionOf(const Type& type, int fuel, bool annotated, Attrs attrs = {});
  /// Callable from what is generated later; not polymorphic.
  void AddGlobal(const std::string& name, const Type& type) { globals_.emplace_back(name, type); }
  Tensor TensorOf(const Type& type);

 private:
  using Make = std::function<Expr()>;

  // ---- expression_generator.cc: what works for every type ----
  Expr Leaf(const Type& type);
  Expr Reused(const Type& type);
  void AddGeneralWays(const Type& type, int fuel, std::vector<Make>* ways);
  Expr LetOf(const Type& type, int fuel);
  Expr IfOf(const Type& type, int fuel);
  Expr MatchOf(const Type& type, int fuel);
  Expr CallOf(const Type& type, int fuel);
  Expr GlobalCallOf(const Type& type, int fuel);
  Expr LoopOf(const Type& type, int fuel);
  Expr EffectsOf(const Type& type, int fuel);
  Expr ProjectionOf(const Type& type, int fuel);
  Pattern PatternOf(const Type& type, int depth, bool must_fit);

  // ---- typed_ways.cc: what depends on the type ----
  void AddTypedWays(const Type& type, int fuel, std::vector<Make>* ways);
  void AddTensorWays(const Type& type, int fuel, std::vector<Make>* ways);
  void AddFloatShapeWays(const Type& type, int fuel, std::vector<Make>* ways);
  void AddDataWays(const Type& type, int fuel, std::vector<Make>* ways);
  Expr Smallest(const Type& type);
  Expr PrimitiveCall(const Type& type, int fuel);
  Constructor ConstructorNamed(const std::string& name) const;
  Type DataTypeNamed(const std::string& name, std::vector<Type> args) const;
  Expr GlobalNamed(const std::string& name) const { return std::make_shared<GlobalVarNode>(name); }

  /// Everything made inside is forgotten at the end: it may depend on variables that are bound there.
  class Scope {
   public:
    explicit Scope(ExpressionGenerator& generator) : generator_(generator), size_(generator.in_scope_.size()) {}
    ~Scope() { generator_.in_scope_.resize(size_); }

   private:
    ExpressionGenerator& generator_;
    size_t size_;
  };
  void Add(const Expr& expr, const Type& type) { in_scope_.emplace_back(expr, type); }
  Var NewVar(const Type& type);

  RandomSource random_;
  RandomModuleOptions options_;
  IRModule prelude_;
  std::vector<std::pair<Expr, Type>> in_scope_;
  std::vector<std::pair<std::string, Type>> globals_;
  int next_name_ = 0;
  int loops_ = 0;
  int functions_ = 0;
};

/// The arguments of data type `name`; null when `type` is another.
const TypeCallNode* AsDataType(const Type& type, const std::string& name);

}  // namespace collage
