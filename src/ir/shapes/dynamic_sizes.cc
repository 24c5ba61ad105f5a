// dynamic_sizes.cc: which dimensions are equal, operator by operator.
#include "collage/ir/dynamic_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using Place = DynamicSizes::Place;

class SizeFinder {
 public:
  SizeFinder(const Function& function, std::vector<Expr>* exprs) : function_(function), exprs_(exprs) {}

  DynamicSizes Run() {
    for (const Var& param : function_->params()) Add(param, {DynamicSizes::Step::kParameter});
    PostOrder(function_->body(), [&](const Expr& expr) { Visit(expr); });
    result_.result = values_.at(function_->body().get());
    MakeVariables();
    return std::move(result_);
  }

 private:
  void Add(const Expr& expr, DynamicSizes::Step step) {
    const auto value = static_cast<int>(result_.steps.size());
    values_[expr.get()] = value;
    types_.push_back(FlattenTensorTypes(expr->checked_type()));
    result_.steps.push_back(std::move(step));
    if (exprs_ != nullptr) exprs_->push_back(expr);
    for (size_t field = 0; field < types_.back().size(); ++field) {
      const TensorTypeNode& tensor = *AsTensorType(types_.back()[field]);
      for (int dim = 0; dim < tensor.rank(); ++dim) {
        if (tensor.shape()[dim].is_any()) NumberOf({value, static_cast<int>(field), dim});
      }
    }
  }

  void Visit(const Expr& expr) {
    using Step = DynamicSizes::Step;
    if (values_.contains(expr.get())) return;
    switch (expr->kind()) {
      case ExprKind::kOp: return;
      case ExprKind::kConstant: return Add(expr, {.kind = Step::kConstant, .type = expr->checked_type()});
      case ExprKind::kTuple: {
        Step step{Step::kTuple};
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) {
          if (AsTensorType(field->checked_type()) == nullptr) Fail("nested tuples");
          step.args.push_back(values_.at(field.get()));
        }
        Add(expr, std::move(step));
        for (size_t i = 0; i < result_.steps.back().args.size(); ++i) {
          UniteAll({Newest(), static_cast<int>(i), 0}, {result_.steps.back().args[i], 0, 0});
        }
        return;
      }
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(*expr);
        const int tuple = values_.at(item.tuple().get());
        Add(expr, {.kind = Step::kField, .args = {tuple}, .field = item.index()});
        return UniteAll({Newest(), 0, 0}, {tuple, item.index(), 0});
      }
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        if (call.op() == nullptr) Fail("calls of functions");
        Step step{.kind = Step::kCall, .op = call.op(), .attrs = call.attrs()};
        for (const Expr& arg : call.args()) step.args.push_back(values_.at(arg.get()));
        Add(expr, std::move(step));
        return Relate(call, result_.steps.back());
      }
      default: Fail("more than operators");
    }
  }

  [[noreturn]] static void Fail(const char* what) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("a function of dynamic shapes with {}", what));
  }

  int Newest() const { return static_cast<int>(result_.steps.size()) - 1; }
  const TensorTypeNode& TensorAt(int value, int field = 0) const { return *AsTensorType(types_[value][field]); }
  const Dim& DimAt(const Place& place) const { return TensorAt(place.value, place.field).shape()[place.dim]; }

  // ---- sets of places ----

  int NumberOf(const Place& place) {
    const auto [it, is_new] =
        numbers_.emplace(std::tuple(place.value, place.field, place.dim), static_cast<int>(places_.size()));
    if (is_new) {
      places_.push_back(place);
      parent_.push_back(it->second);
      known_.push_back(-1);
      is_assumed_.push_back(false);
    }
    return it->second;
  }
  int Root(int number) const {
    while (parent_[number] != number) number = parent_[number];
    return number;
  }
  void SetKnown(int root, int64_t known, bool is_assumed) {
    const auto r = static_cast<size_t>(root);
    is_assumed_[r] = is_assumed_[r] || is_assumed || (known_[r] >= 0 && known_[r] != known);
    known_[r] = known;
  }
  /// Both are the same size.
  void Unite(const Place& a, const Place& b, bool is_assumed = false) {
    const bool a_is_any = DimAt(a).is_any(), b_is_any = DimAt(b).is_any();
    if (!a_is_any && !b_is_any) return;
    if (!a_is_any) return SetKnown(Root(NumberOf(b)), DimAt(a).size(), is_assumed);
    if (!b_is_any) return SetKnown(Root(NumberOf(a)), DimAt(b).size(), is_assumed);
    const int from = Root(NumberOf(b)), to = Root(NumberOf(a));
    if (from == to) return;
    parent_[from] = to;
    if (known_[from] >= 0) SetKnown(to, known_[from], false);
    is_assumed_[to] = is_assumed_[to] || is_assumed_[from] || is_assumed;
  }
  void UniteAll(Place a, Place b) {
    const int rank = std::min(TensorAt(a.value, a.field).rank(), TensorAt(b.value, b.field).rank());
    for (a.dim = b.dim = 0; a.dim < rank; ++a.dim, ++b.dim) Unite(a, b);
  }

  // ---- operators ----

  /// States the dimensions of the newest value, a call, in terms of places.
  class Equations final : public DimEquations {
   public:
    Equations(SizeFinder& finder, const DynamicSizes::Step& step) : finder_(finder), step_(step) {}

    void Equal(const DimRef& a, const DimRef& b) override { finder_.Unite(PlaceOf(a), PlaceOf(b)); }
    void Broadcast(const DimRef& result, const std::vector<DimRef>& operands) override {
      std::vector<Place> places;
      for (const DimRef& operand : operands) {
        const Place place = PlaceOf(operand);
        if (std::ranges::find(places, place) == places.end()) places.push_back(place);
      }
      // One size that is not 1 is the result's; of several each could be 1 where another is not.
      for (const Place& place : places) {
        finder_.Unite(PlaceOf(result), place, places.size() > 1 && !finder_.AreUnited(places));
      }
    }

   private:
    Place PlaceOf(const DimRef& ref) const {
      const int value = ref.argument == DimRef::kResult ? finder_.Newest() : step_.args[ref.argument];
      return {value, ref.field, ref.dim};
    }

    SizeFinder& finder_;
    const DynamicSizes::Step& step_;
  };

  void Relate(const CallNode& call, const DynamicSizes::Step& step) {
    if (step.args.empty() || types_[step.args[0]].empty()) return;
    Equations equations(*this, step);
    if (call.op()->elementwise) return LineUp(step, equations);
    if (!call.op()->equal_dims) return;
    std::vector<Type> args;
    for (const Expr& arg : call.args()) args.push_back(arg->checked_type());
    call.op()->equal_dims({args, call.attrs()}, call.checked_type(), equations);
  }

  void LineUp(const DynamicSizes::Step& step, Equations& equations) const {
    const int rank = TensorAt(Newest()).rank();
    for (int dim = 0; dim < rank; ++dim) {
      std::vector<DimRef> operands;
      for (int argument = 0; argument < static_cast<int>(step.args.size()); ++argument) {
        const int value = step.args[argument];
        const int at = dim - (rank - TensorAt(value).rank());
        if (at >= 0 && DimAt({value, 0, at}) != Dim(1)) operands.push_back({.argument = argument, .dim = at});
      }
      equations.Broadcast({.dim = dim}, operands);
    }
  }

  bool AreUnited(const std::vector<Place>& places) {
    const auto root = [&](const Place& place) { return DimAt(place).is_any() ? Root(NumberOf(place)) : -1; };
    return std::ranges::all_of(places,
                               [&](const Place& place) { return root(place) >= 0 && root(place) == root(places[0]); });
  }

  void MakeVariables() {
    std::map<int, size_t> variable_of;
    for (size_t number = 0; number < places_.size(); ++number) {
      const int root = Root(static_cast<int>(number));
      const auto [it, is_new] = variable_of.emplace(root, result_.variables.size());
      if (is_new) {
        result_.variables.push_back({{}, known_[root], is_assumed_[root]});
      }
      result_.variables[it->second].places.push_back(places_[number]);
    }
  }

  const Function& function_;
  std::vector<Expr>* exprs_;
  DynamicSizes result_;
  std::unordered_map<const ExprNode*, int> values_;
  std::vector<std::vector<Type>> types_;  ///< of each value, flattened
  std::map<std::tuple<int, int, int>, int> numbers_;
  std::vector<Place> places_;
  std::vector<int> parent_;
  std::vector<int64_t> known_;
  std::vector<bool> is_assumed_;
};

}  // namespace

int DynamicSizes::VariableAt(const Place& place) const {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (std::ranges::find(variables[i].places, place) != variables[i].places.end()) return static_cast<int>(i);
  }
  return -1;
}

bool DynamicSizes::is_assumed() const { return std::ranges::any_of(variables, &Variable::is_assumed); }

bool HasDynamicSizes(const Function& function) {
  const auto is_dynamic_type = [](const Type& type) {
    for (const Type& leaf : FlattenTensorTypes(type)) {
      if (!AsTensorType(leaf)->is_static()) return true;
    }
    return false;
  };
  bool is_dynamic = is_dynamic_type(function->body()->checked_type());
  for (const Var& param : function->params()) is_dynamic = is_dynamic || is_dynamic_type(param->checked_type());
  return is_dynamic;
}

DynamicSizes FindDynamicSizes(const Function& function, std::vector<Expr>* exprs) {
  return SizeFinder(function, exprs).Run();
}

namespace {

/// Throws for facts of shapes that fit no function.
[[noreturn]] void FailAsDamaged() {
  throw Error(ErrorCategory::kCorrupt, "what a kernel knows of its shapes is damaged");
}

const Type& FieldOf(const Type& type, int field) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr && field == 0) return type;
  if (tuple == nullptr || static_cast<size_t>(field) >= tuple->fields().size()) FailAsDamaged();
  return tuple->fields()[field];
}

}  // namespace

std::vector<Type> TypesOfValues(const DynamicSizes& sizes, const std::vector<Type>& types) {
  std::vector<Type> all;
  all.reserve(sizes.steps.size());
  for (const DynamicSizes::Step& step : sizes.steps) {
    switch (step.kind) {
      case DynamicSizes::Step::kParameter:
        if (all.size() >= types.size()) FailAsDamaged();
        all.push_back(types[all.size()]);
        break;
      case DynamicSizes::Step::kConstant: all.push_back(step.type); break;
      case DynamicSizes::Step::kField: all.push_back(FieldOf(all[step.args[0]], step.field)); break;
      case DynamicSizes::Step::kTuple:
      case DynamicSizes::Step::kCall: {
        std::vector<Type> args;
        for (const int arg : step.args) args.push_back(all[arg]);
        if (step.kind == DynamicSizes::Step::kTuple) {
          all.push_back(TupleType(std::move(args)));
          break;
        }
        const Result<Type> type = step.op->relation({args, step.attrs});
        if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", step.op->name, type.reason().text));
        all.push_back(*type);
      }
    }
  }
  return all;
}

std::optional<std::vector<int64_t>> ValuesOf(const DynamicSizes& sizes, const std::vector<Type>& types) {
  std::vector<int64_t> values;
  for (const DynamicSizes::Variable& variable : sizes.variables) {
    int64_t value = variable.known;
    for (const Place& place : variable.places) {
      const TensorTypeNode* tensor = AsTensorType(FieldOf(types[place.value], place.field));
      if (tensor == nullptr || place.dim >= tensor->rank()) FailAsDamaged();
      const Dim& dim = tensor->shape()[place.dim];
      if (dim.is_any() || (value >= 0 && dim.size() != value)) return std::nullopt;
      value = dim.size();
    }
    values.push_back(value);
  }
  return values;
}

bool IsBatch(const Type& type) {
  const TensorTypeNode* tensor = type == nullptr ? nullptr : AsTensorType(type);
  if (tensor == nullptr || tensor->rank() == 0 || !tensor->shape()[0].is_any()) return false;
  return std::none_of(tensor->shape().begin() + 1, tensor->shape().end(), [](const Dim& dim) { return dim.is_any(); });
}

Type WithBatchSize(const Type& type, int64_t rows) {
  if (!IsBatch(type)) return type;
  std::vector<Dim> shape = AsTensorType(type)->shape();
  shape[0] = rows;
  return TensorType(shape, AsTensorType(type)->dtype());
}

Function WithBatchSize(const Function& function, int64_t rows) {
  std::unordered_map<const ExprNode*, Expr> replacements;
  std::vector<Var> params;
  for (const Var& param : function->params()) {
    params.push_back(MakeVar(param->name(), WithBatchSize(param->checked_type(), rows)));
    replacements[param.get()] = params.back();
  }
  const Function result = MakeFunction(params, Substitute(function->body(), replacements));
  InferType(result);
  return result;
}

}  // namespace collage
