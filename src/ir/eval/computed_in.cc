// computed_in.cc: types of floats, from parameters to results.
#include "ir/eval/computed_in.h"

#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/eval/random_rounding.h"

namespace collage {
namespace {

/// Facts about one expression.
struct Exactness {
  std::optional<DataType> narrowest;
  bool is_fixed = true;  ///< made of constants alone

  void Add(const Exactness& other) {
    narrowest = Narrower(narrowest, other.narrowest);
    is_fixed = is_fixed && other.is_fixed;
  }
};

class Finder {
 public:
  std::vector<Exactness> Run(const FunctionNode& function, const std::vector<Exactness>& arguments) {
    Known known;
    for (size_t i = 0; i < function.params().size(); ++i) known[function.params()[i].get()] = arguments.at(i);
    PostOrderWithValues(function.body(), [&](const Expr& expr, const Expr& value) {
      if (value != nullptr) {
        known[expr.get()] = known[value.get()];
      } else if (!known.contains(expr.get())) {
        known[expr.get()] = Of(expr, known);
      }
    });
    Expr result = function.body();
    while (const LetNode* let = As<LetNode>(result)) result = let->body();
    if (const TupleNode* tuple = As<TupleNode>(result)) {
      std::vector<Exactness> fields;
      for (const Expr& field : tuple->fields()) {
        const Type type = field->checked_type();
        const bool is_tensors = type && (AsTensorType(type) != nullptr || AsTupleType(type) != nullptr);
        fields.resize(fields.size() + (is_tensors ? FlattenTensorTypes(type).size() : 1), known[field.get()]);
      }
      return fields;
    }
    return {known[result.get()]};
  }

 private:
  using Known = std::unordered_map<const ExprNode*, Exactness>;

  Exactness Of(const Expr& expr, Known& known) {
    if (const TupleGetItemNode* item = As<TupleGetItemNode>(expr)) {
      if (const TupleNode* tuple = As<TupleNode>(item->tuple())) {
        return known[tuple->fields()[item->index()].get()];
      }
    }
    Exactness all;
    all.is_fixed = expr->kind() != ExprKind::kVar;
    for (const Expr& child : Children(expr)) all.Add(known[child.get()]);
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr) return all;
    if (const FunctionNode* callee = As<FunctionNode>(call->callee())) {
      std::vector<Exactness> arguments;
      for (const Expr& arg : call->args()) arguments.push_back(known[arg.get()]);
      Exactness result;
      for (const Exactness& field : Run(*callee, arguments)) result.Add(field);
      return result;
    }
    // Functions that are values are not followed: they compute in what their results are of.
    if (call->op() == nullptr) all.is_fixed = false;
    if (all.is_fixed || (call->op() != nullptr && RoundsNothing(*call))) return all;
    const Type type = call->checked_type();
    if (!type || (AsTensorType(type) == nullptr && AsTupleType(type) == nullptr)) return all;
    for (const Type& leaf : FlattenTensorTypes(type)) {
      const DataType dtype = AsTensorType(leaf)->dtype();
      if (dtype.is_floating()) all.narrowest = Narrower(all.narrowest, dtype);
    }
    return all;
  }

  /// Casts to a wider type do not, nor does what moves elements.
  static bool RoundsNothing(const CallNode& call) {
    if (call.op()->name != "cast") return call.op()->is_exact;
    const TensorTypeNode* from = AsTensorType(call.args()[0]->checked_type());
    const TensorTypeNode* to = AsTensorType(call.checked_type());
    return from != nullptr && to != nullptr && from->dtype().is_floating() && from->dtype().bits <= to->dtype().bits;
  }
};

}  // namespace

std::vector<std::optional<DataType>> ComputedIn(const Function& function) {
  const std::vector<Exactness> parameters(function->params().size(), Exactness{.is_fixed = false});
  const std::vector<Exactness> results = Finder().Run(*function, parameters);
  const Type type = function->body()->checked_type();
  const bool is_tensors = type && (AsTensorType(type) != nullptr || AsTupleType(type) != nullptr);
  const size_t count = is_tensors ? FlattenTensorTypes(type).size() : results.size();
  std::vector<std::optional<DataType>> narrowest;
  // The body may be one expression that has several results.
  for (size_t i = 0; i < count; ++i) narrowest.push_back(results.at(results.size() == count ? i : 0).narrowest);
  return narrowest;
}

std::optional<DataType> Narrower(std::optional<DataType> a, std::optional<DataType> b) {
  if (!a || !b) return a ? a : b;
  if (a->bits != b->bits) return a->bits < b->bits ? a : b;
  return a->code == DataType::Code::kBFloat ? a : b;
}

}  // namespace collage
