// expression_generator.cc: types, reuse, and ways to make an expression of any type: let, if, match, calls, loops,
// effects.
#include "property/expression_generator.h"

#include "collage/ir/text.h"

namespace collage {
namespace {

const char* const kPrelude = R"(
type List[A] { Cons(A, List[A]), Nil, }
type Maybe[A] { Some(A), Nothing, }
type Figure { Circle(float32), Box(float32, (int32, float32)), Point, }

def @id[A](%a: A) -> A { %a }
def @swap[A, B](%p: (A, B), Inline=1) -> (B, A) { (%p.1, %p.0) }
def @compose[A, B, C](%f: fn (A) -> B, %g: fn (B) -> C) -> fn (A) -> C { fn (%a: A) -> C { %g(%f(%a)) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Nil => Nil, Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)) }
}
def @fold[A, B](%f: fn (B, A) -> B, %b: B, %l: List[A]) -> B {
  match (%l) { Cons(%h, %t) => @fold(%f, %f(%b, %h), %t), Nil => %b }
}
def @length[A](%l: List[A]) -> int32 { match (%l) { Nil => 0, Cons(_, %t) => 1 + @length(%t) } }
def @get[A](%m: Maybe[A], %default: A) -> A { match (%m) { Some(%a) => %a, Nothing => %default } }
def @even(%n: int32) -> bool { if (%n <= 0) { True } else { @odd(%n - 1) } }
def @odd(%n: int32) -> bool { if (%n <= 0) { False } else { @even(%n - 1) } }
def @grow(%x: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] { concatenate((tanh(%x), %x), axis=0) }
)";

}  // namespace

const TypeCallNode* AsDataType(const Type& type, const std::string& name) {
  if (!type || type->kind() != TypeKind::kTypeCall) return nullptr;
  const auto* call = static_cast<const TypeCallNode*>(type.get());
  return call->callee()->name() == name ? call : nullptr;
}

ExpressionGenerator::ExpressionGenerator(RandomSource random, const RandomModuleOptions& options)
    : random_(std::move(random)), options_(options), prelude_(ParseModule(kPrelude, "prelude")) {}

Var ExpressionGenerator::NewVar(const Type& type) {
  static const std::vector<std::string> kNames{"x", "y", "a_value", "x", "l"};
  return MakeVar(random_.OneIn(3) ? random_.Pick(kNames) : "v" + std::to_string(next_name_++), type);
}

// ---- types ----

Type ExpressionGenerator::DataType(int depth) {
  static const std::vector<Shape> kShapes{{2}, {3}, {2, 3}, {3, 2}, {2, 4}, {1}, {4}};
  switch (random_.Below(depth > 0 ? 13 : 8)) {
    case 0:
    case 1: return TensorType(Shape{}, kInt32);
    case 2: return TensorType(Shape{}, kFloat32);
    case 3: return TensorType(Shape{}, kBool);
    case 4: return TensorType(Shape{2}, kInt32);
    case 5: return TensorType(Shape{}, kInt64);
    case 6:
    case 7: return TensorType(random_.Pick(kShapes), kFloat32);
    case 8:
    case 9: {
      std::vector<Type> fields;
      for (int i = random_.Below(4); i > 0; --i) fields.push_back(DataType(depth - 1));
      return TupleType(std::move(fields));
    }
    case 10: return DataTypeNamed("List", {DataType(depth - 1)});
    case 11: return DataTypeNamed("Maybe", {DataType(depth - 1)});
    default: return DataTypeNamed("Figure", {});
  }
}

Type ExpressionGenerator::AnyType(int depth) {
  if (!random_.OneIn(4)) return DataType(depth);
  std::vector<Type> args;
  for (int i = random_.Below(3); i > 0; --i) args.push_back(DataType(depth - 1));
  return FuncType(std::move(args), random_.OneIn(5) && depth > 0 ? AnyType(depth - 1) : DataType(depth - 1));
}

// ---- drawing ----

Expr ExpressionGenerator::Of(const Type& type, int fuel) {
  // Something that may be used later, or never.
  if (fuel > 2 && random_.OneIn(8)) {
    const Type other = DataType(1);
    Add(Of(other, fuel - 2), other);
  }
  if (random_.OneIn(3)) {
    if (Expr reused = Reused(type)) return reused;
  }
  if (fuel <= 0) return Leaf(type);
  std::vector<Make> ways;
  AddTypedWays(type, fuel - 1, &ways);
  if (ways.empty() || random_.OneIn(2)) AddGeneralWays(type, fuel - 1, &ways);
  Expr expr = random_.Pick(ways)();
  if (random_.OneIn(2)) Add(expr, type);
  return expr;
}

Expr ExpressionGenerator::Reused(const Type& type) {
  std::vector<Expr> fitting;
  for (const auto& [expr, has] : in_scope_) {
    if (TypeEqual(has, type)) fitting.push_back(expr);
  }
  return fitting.empty() ? nullptr : random_.Pick(fitting);
}

Expr ExpressionGenerator::Leaf(const Type& type) {
  Expr reused = Reused(type);
  return reused ? reused : Smallest(type);
}

void ExpressionGenerator::AddGeneralWays(const Type& type, int fuel, std::vector<Make>* ways) {
  ways->push_back([=, this] { return LetOf(type, fuel); });
  ways->push_back([=, this] { return LetOf(type, fuel); });
  ways->push_back([=, this] { return IfOf(type, fuel); });
  ways->push_back([=, this] { return MatchOf(type, fuel); });
  ways->push_back([=, this] { return CallOf(type, fuel); });
  ways->push_back([=, this] { return GlobalCallOf(type, fuel); });
  ways->push_back([=, this] { return ProjectionOf(type, fuel); });
  if (loops_ < 2) ways->push_back([=, this] { return LoopOf(type, fuel); });
  if (options_.references) ways->push_back([=, this] { return EffectsOf(type, fuel); });
}

// ---- every type ----

Expr ExpressionGenerator::LetOf(const Type& type, int fuel) {
  const Type value_type = AnyType(1);
  Expr value;
  {
    const Scope scope(*this);
    value = Of(value_type, fuel - 1);
  }
  // Only an annotation says what an empty list, or a function that nobody calls, is of.
  const bool is_plain = AsTensorType(value_type) != nullptr;
  const Var var = NewVar(is_plain && random_.OneIn(2) ? nullptr : value_type);
  const Scope scope(*this);
  Add(var, value_type);
  return std::make_shared<LetNode>(var, std::move(value), Of(type, fuel));
}

Expr ExpressionGenerator::IfOf(const Type& type, int fuel) {
  Expr condition = Of(TensorType(Shape{}, kBool), fuel - 1);
  const auto branch = [&] {
    const Scope scope(*this);
    return Of(type, fuel - 1);
  };
  Expr then_branch = branch();
  return std::make_shared<IfNode>(std::move(condition), std::move(then_branch), branch());
}

Expr ExpressionGenerator::MatchOf(const Type& type, int fuel) {
  Type data_type = DataTypeNamed("Figure", {});
  if (!random_.OneIn(4)) {
    do data_type = DataType(2);
    while (AsTensorType(data_type) != nullptr);
  }
  Expr data;
  {
    const Scope scope(*this);
    data = Of(data_type, fuel - 1);
  }
  std::vector<Clause> clauses;
  const int some = random_.Below(3);
  for (int i = 0; i <= some; ++i) {
    const Scope scope(*this);
    Pattern pattern = PatternOf(data_type, 2, /*must_fit=*/i == some);
    clauses.push_back({std::move(pattern), Of(type, fuel - 1)});
  }
  return std::make_shared<MatchNode>(std::move(data), std::move(clauses), random_.OneIn(2));
}

/// Binds its variables in the innermost scope.
Pattern ExpressionGenerator::PatternOf(const Type& type, int depth, bool must_fit) {
  Pattern pattern;
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple != nullptr && depth > 0 && random_.OneIn(2)) {
    pattern.kind = Pattern::Kind::kTuple;
    for (const Type& field : tuple->fields()) pattern.sub_patterns.push_back(PatternOf(field, depth - 1, must_fit));
    return pattern;
  }
  if (type->kind() == TypeKind::kTypeCall && depth > 0 && !must_fit && !random_.OneIn(4)) {
    const auto& call = static_cast<const TypeCallNode&>(*type);
    const TypeData& data = prelude_.types().at(call.callee()->name());
    pattern.kind = Pattern::Kind::kConstructor;
    pattern.constructor = random_.Pick(data.constructors);
    for (const Type& input : pattern.constructor->inputs()) {
      // Fields are of the type's parameter, of the type itself, or fixed.
      const bool is_param = input->kind() == TypeKind::kTypeVar;
      const Type field = is_param ? call.args()[0] : input->kind() == TypeKind::kTypeCall ? type : input;
      pattern.sub_patterns.push_back(PatternOf(field, depth - 1, false));
    }
    return pattern;
  }
  if (random_.OneIn(3)) return pattern;
  pattern.kind = Pattern::Kind::kVar;
  pattern.var = NewVar(random_.OneIn(3) ? type : nullptr);
  Add(pattern.var, type);
  return pattern;
}

Function ExpressionGenerator::FunctionOf(const Type& type, int fuel, bool annotated, Attrs attrs) {
  const FuncTypeNode& function = *AsFuncType(type);
  const Scope scope(*this);
  ++functions_;
  std::vector<Var> params;
  for (const Type& arg : function.args()) {
    params.push_back(NewVar(annotated ? arg : nullptr));
    Add(params.back(), arg);
  }
  Expr body = Of(function.result(), fuel);
  --functions_;
  return MakeFunction(std::move(params), std::move(body), annotated ? function.result() : nullptr, std::move(attrs));
}

Expr ExpressionGenerator::CallOf(const Type& type, int fuel) {
  std::vector<Type> arg_types;
  for (int i = random_.Below(3); i > 0; --i) arg_types.push_back(AnyType(1));
  std::vector<Expr> args;
  for (const Type& arg : arg_types) args.push_back(Of(arg, fuel - 1));
  // Constructors alone do not say all of their type, so that a parameter without annotation may stay unknown.
  return MakeCall(Expr(FunctionOf(FuncType(arg_types, type), fuel - 1, /*annotated=*/true)), std::move(args));
}

Expr ExpressionGenerator::GlobalCallOf(const Type& type, int fuel) {
  std::vector<std::pair<std::string, Type>> fitting;
  for (const auto& global : globals_) {
    if (TypeEqual(AsFuncType(global.second)->result(), type)) fitting.push_back(global);
  }
  if (fitting.empty()) return MakeCall(GlobalNamed("id"), {Of(type, fuel)});
  const auto& [name, function] = random_.Pick(fitting);
  std::vector<Expr> args;
  for (const Type& arg : AsFuncType(function)->args()) args.push_back(Of(arg, fuel - 1));
  return MakeCall(GlobalNamed(name), std::move(args));
}

/// let %loop = fn (%i, %state) { if (%i <= 0) { %state } else { %loop(%i - 1, …) } }; %loop(3, …)
Expr ExpressionGenerator::LoopOf(const Type& type, int fuel) {
  const Type counter = TensorType(Shape{}, kInt32);
  const Type loop_type = FuncType({counter, type}, type);
  const Var loop = MakeVar("loop", random_.OneIn(2) ? loop_type : nullptr);
  const Var i = MakeVar("i", counter);
  const Var state = MakeVar("state", type);
  Expr start = Of(type, fuel - 1);
  Expr next;
  ++loops_;
  {
    const Scope scope(*this);
    Add(i, counter);
    Add(state, type);
    next = Of(type, fuel - 1);
  }
  --loops_;
  const Expr less = MakeCall("subtract", {i, MakeScalar(1, kInt32)});
  Expr again = MakeCall(Expr(loop), {less, next});
  if (TypeEqual(type, counter) && random_.OneIn(2)) {
    // Not in tail position.
    again = MakeCall("floor_mod", {MakeCall("add", {again, i}), MakeScalar(1009, kInt32)});
  }
  const Expr ends = MakeCall("less_equal", {i, MakeScalar(0, kInt32)});
  const Function body = MakeFunction({i, state}, std::make_shared<IfNode>(ends, Expr(state), std::move(again)), type);
  const Expr count = MakeScalar(random_.Below(4), kInt32);
  return std::make_shared<LetNode>(loop, Expr(body), MakeCall(Expr(loop), {count, std::move(start)}));
}

/// A cell, a function that changes it, and reads before and after.
Expr ExpressionGenerator::EffectsOf(const Type& type, int fuel) {
  const Var cell = MakeVar("cell");
  const Var change = MakeVar("change", FuncType({type}, type));
  const Var given = MakeVar("given", type);
  const Var old = MakeVar("old", type);
  const Var before = MakeVar("before", type);
  const Var after = MakeVar("after", type);
  const auto let = [](const Var& var, Expr value, Expr body) -> Expr {
    return std::make_shared<LetNode>(var, std::move(value), std::move(body));
  };
  const auto read = [&]() -> Expr { return std::make_shared<RefReadNode>(cell); };
  Expr first = Of(type, fuel - 1);
  Expr second = Of(type, fuel - 1);
  const Expr write = std::make_shared<RefWriteNode>(cell, given);
  const Expr body = let(old, read(), let(MakeVar("_"), write, old));
  const Function function = MakeFunction({given}, body, type);
  Expr rest;
  {
    const Scope scope(*this);
    Add(before, type);
    Add(after, type);
    rest = Of(type, fuel - 1);
  }
  // The type of the cell follows from an annotation, since `first` may be an empty list.
  const Var initial = MakeVar("initial", type);
  return let(initial, std::move(first),
             let(cell, std::make_shared<RefCreateNode>(initial),
                 let(change, Expr(function),
                     let(before, MakeCall(Expr(change), {std::move(second)}), let(after, read(), std::move(rest))))));
}

Expr ExpressionGenerator::ProjectionOf(const Type& type, int fuel) {
  std::vector<Type> fields{type};
  for (int i = random_.Below(3); i > 0; --i) fields.push_back(DataType(0));
  const int index = random_.Below(static_cast<int>(fields.size()));
  std::swap(fields[0], fields[static_cast<size_t>(index)]);
  return MakeTupleGetItem(Of(TupleType(std::move(fields)), fuel), index);
}

}  // namespace collage
