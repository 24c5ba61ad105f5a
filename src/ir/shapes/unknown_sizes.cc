// unknown_sizes.cc: which dimensions are equal, operator by operator.
#include "ir/shapes/unknown_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using Place = UnknownSizes::Place;

size_t Axis(int64_t axis, int rank) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); }

class SizeFinder {
 public:
  SizeFinder(const Function& function, std::vector<Expr>* exprs) : function_(function), exprs_(exprs) {}

  UnknownSizes Run() {
    for (const Var& param : function_->params()) Add(param, {UnknownSizes::Step::kParameter});
    PostOrder(function_->body(), [&](const Expr& expr) { Visit(expr); });
    result_.result = values_.at(function_->body().get());
    MakeVariables();
    return std::move(result_);
  }

 private:
  void Add(const Expr& expr, UnknownSizes::Step step) {
    const auto value = static_cast<int>(result_.steps.size());
    values_[expr.get()] = value;
    types_.push_back(FlattenTensorTypes(expr->checked_type()));
    result_.steps.push_back(std::move(step));
    if (exprs_ != nullptr) exprs_->push_back(expr);
    for (size_t field = 0; field < types_.back().size(); ++field) {
      const TensorTypeNode& tensor = *AsTensorType(types_.back()[field]);
      for (int dim = 0; dim < tensor.rank(); ++dim) {
        if (tensor.shape()[static_cast<size_t>(dim)].is_any()) NumberOf({value, static_cast<int>(field), dim});
      }
    }
  }

  void Visit(const Expr& expr) {
    using Step = UnknownSizes::Step;
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
    throw Error(ErrorCategory::kUnsupported, fmt::format("a function of unknown shapes with {}", what));
  }

  int Newest() const { return static_cast<int>(result_.steps.size()) - 1; }
  const TensorTypeNode& TensorAt(int value, int field = 0) const {
    return *AsTensorType(types_[static_cast<size_t>(value)][static_cast<size_t>(field)]);
  }
  const Dim& DimAt(const Place& place) const {
    return TensorAt(place.value, place.field).shape()[static_cast<size_t>(place.dim)];
  }

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
    while (parent_[static_cast<size_t>(number)] != number) number = parent_[static_cast<size_t>(number)];
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
    parent_[static_cast<size_t>(from)] = to;
    if (known_[static_cast<size_t>(from)] >= 0) SetKnown(to, known_[static_cast<size_t>(from)], false);
    is_assumed_[static_cast<size_t>(to)] =
        is_assumed_[static_cast<size_t>(to)] || is_assumed_[static_cast<size_t>(from)] || is_assumed;
  }
  void UniteAll(Place a, Place b) {
    const int rank = std::min(TensorAt(a.value, a.field).rank(), TensorAt(b.value, b.field).rank());
    for (a.dim = b.dim = 0; a.dim < rank; ++a.dim, ++b.dim) Unite(a, b);
  }

  // ---- operators ----

  void Relate(const CallNode& call, const UnknownSizes::Step& step) {
    const std::string& name = call.op()->name;
    const int self = Newest();
    if (step.args.empty() || types_[static_cast<size_t>(step.args[0])].empty()) return;
    const int data = step.args[0];
    const auto second = [&] { return step.args[1]; };
    if (name == "nn.bias_add" || name == "nn.prelu") {
      UniteAll({self, 0, 0}, {data, 0, 0});
      const auto axis = static_cast<int>(Axis(call.attrs().Int("axis"), TensorAt(data).rank()));
      return Unite({self, 0, axis}, {second(), 0, 0});
    }
    if (IsPlaceByPlace(*call.op())) return LineUp(step);
    static const std::vector<std::string> same{"nn.softmax",    "nn.log_softmax",  "nn.layer_norm", "nn.instance_norm",
                                               "nn.group_norm", "nn.l2_normalize", "cumsum",        "cumprod"};
    if (std::ranges::find(same, name) != same.end()) return UniteAll({self, 0, 0}, {data, 0, 0});
    if (name == "transpose") return Transpose(call, self, data);
    if (name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul") return Product(call, step);
    if (name == "nn.conv1d" || name == "nn.conv2d" || name == "nn.conv3d" ||
        call.op()->FindAttr("pool_size") != nullptr) {
      return Window(call, step);
    }
    if (name.starts_with("nn.global_")) {
      Unite({self, 0, 0}, {data, 0, 0});
      return Unite({self, 0, 1}, {data, 0, 1});
    }
    if (name == "take") return Take(call, step);
    if (name == "strided_slice") return Slice(call, self, data);
    if (name == "concatenate") return AlongAxis(call, step, /*joins=*/true);
    if (name == "split") return AlongAxis(call, step, /*joins=*/false);
    if (call.op()->pattern == OpPatternKind::kCommReduce && call.op()->FindAttr("keepdims") != nullptr) {
      return Reduce(call, self, data);
    }
  }

  void LineUp(const UnknownSizes::Step& step) {
    const int self = Newest();
    const int rank = TensorAt(self).rank();
    for (int dim = 0; dim < rank; ++dim) {
      const Place own{self, 0, dim};
      std::vector<Place> others;
      for (const int arg : step.args) {
        const int at = dim - (rank - TensorAt(arg).rank());
        if (at < 0) continue;
        const Place place{arg, 0, at};
        const bool is_one = !DimAt(place).is_any() && DimAt(place).size() == 1;
        if (!is_one && (others.empty() || std::ranges::find(others, place) == others.end())) others.push_back(place);
      }
      // One size that is not 1 is the result's; of several each could be 1 where another is not.
      for (const Place& other : others) Unite(own, other, others.size() > 1 && !AreUnited(others));
    }
  }
  bool AreUnited(const std::vector<Place>& places) {
    const auto root = [&](const Place& place) { return DimAt(place).is_any() ? Root(NumberOf(place)) : -1; };
    return std::ranges::all_of(places,
                               [&](const Place& place) { return root(place) >= 0 && root(place) == root(places[0]); });
  }

  void Transpose(const CallNode& call, int self, int data) {
    const int rank = TensorAt(data).rank();
    for (int i = 0; i < rank; ++i) {
      const size_t axis = call.attrs().IsNone("axes") ? static_cast<size_t>(rank - 1 - i)
                                                      : Axis(call.attrs().Ints("axes")[static_cast<size_t>(i)], rank);
      Unite({self, 0, i}, {data, 0, static_cast<int>(axis)});
    }
  }

  void Product(const CallNode& call, const UnknownSizes::Step& step) {
    const int self = Newest(), a = step.args[0], b = step.args[1];
    const bool is_dense = call.op()->name == "nn.dense";
    const bool turns_a = !is_dense && call.attrs().Bool("transpose_a");
    const bool turns_b = is_dense || call.attrs().Bool("transpose_b");
    const int rank = TensorAt(self).rank(), a_rank = TensorAt(a).rank(), b_rank = TensorAt(b).rank();
    Unite({self, 0, rank - 2}, {a, 0, a_rank - (turns_a ? 1 : 2)});
    Unite({self, 0, rank - 1}, {b, 0, b_rank - (turns_b ? 2 : 1)});
    Unite({a, 0, a_rank - (turns_a ? 2 : 1)}, {b, 0, b_rank - (turns_b ? 1 : 2)});
    for (int dim = 0; dim + 2 < rank; ++dim) {
      std::vector<Place> others;
      for (const int arg : {a, b}) {
        const Place place{arg, 0, dim};
        if (TensorAt(arg).rank() != rank) continue;
        if (DimAt(place).is_any() || DimAt(place).size() != 1) others.push_back(place);
      }
      for (const Place& other : others) Unite({self, 0, dim}, other, others.size() > 1 && !AreUnited(others));
    }
  }

  /// Convolutions and pools: windows that slide by one over as much more as they take keep the size.
  void Window(const CallNode& call, const UnknownSizes::Step& step) {
    const int self = Newest(), data = step.args[0];
    const int rank = TensorAt(data).rank() - 2;
    const bool is_pool = call.op()->FindAttr("pool_size") != nullptr;
    Unite({self, 0, 0}, {data, 0, 0});
    if (is_pool) Unite({self, 0, 1}, {data, 0, 1});
    const auto of = [&](const char* name) { return PerDimension(call.attrs().Ints(name), rank); };
    const std::vector<int64_t> strides = of("strides"), dilation = of("dilation");
    const std::vector<int64_t> size = is_pool ? of("pool_size") : std::vector<int64_t>{};
    const Padding padding = SpatialPadding(call.attrs(), rank);
    for (int dim = 2; dim < rank + 2; ++dim) {
      const auto d = static_cast<size_t>(dim) - 2;
      const Dim kernel = is_pool ? Dim(size[d]) : DimAt({step.args[1], 0, dim});
      if (kernel.is_any() || strides[d] != 1) continue;
      const int64_t around = padding.before[d] + padding.after[d];
      if (around == (kernel.size() - 1) * dilation[d]) Unite({self, 0, dim}, {data, 0, dim});
    }
  }

  void Take(const CallNode& call, const UnknownSizes::Step& step) {
    const int self = Newest(), data = step.args[0], indices = step.args[1];
    if (call.op()->FindAttr("batch_dims") != nullptr && call.attrs().Int("batch_dims") != 0) return;
    if (call.attrs().IsNone("axis")) return;
    const auto axis = static_cast<int>(Axis(call.attrs().Int("axis"), TensorAt(data).rank()));
    const int more = TensorAt(indices).rank();
    for (int dim = 0; dim < TensorAt(data).rank(); ++dim) {
      if (dim != axis) Unite({self, 0, dim < axis ? dim : dim - 1 + more}, {data, 0, dim});
    }
    for (int dim = 0; dim < more; ++dim) Unite({self, 0, axis + dim}, {indices, 0, dim});
  }

  void Slice(const CallNode& call, int self, int data) {
    const int rank = TensorAt(data).rank();
    std::vector<bool> is_cut(static_cast<size_t>(rank));
    for (size_t i = 0; i < call.attrs().Ints("begin").size(); ++i) {
      is_cut[call.attrs().IsNone("axes") ? i : Axis(call.attrs().Ints("axes")[i], rank)] = true;
    }
    for (int dim = 0; dim < rank; ++dim) {
      if (!is_cut[static_cast<size_t>(dim)]) Unite({self, 0, dim}, {data, 0, dim});
    }
  }

  /// concatenate: of a tuple's fields; split: of the result's.
  void AlongAxis(const CallNode& call, const UnknownSizes::Step& step, bool joins) {
    const int whole = joins ? Newest() : step.args[0], parts = joins ? step.args[0] : Newest();
    const int rank = TensorAt(whole).rank();
    const auto axis = static_cast<int>(Axis(call.attrs().Int("axis"), rank));
    for (int field = 0; field < static_cast<int>(types_[static_cast<size_t>(parts)].size()); ++field) {
      for (int dim = 0; dim < rank; ++dim) {
        if (dim != axis) Unite({whole, 0, dim}, {parts, field, dim});
      }
    }
  }

  void Reduce(const CallNode& call, int self, int data) {
    const int rank = TensorAt(data).rank();
    std::vector<bool> reduced(static_cast<size_t>(rank), call.attrs().IsNone("axis"));
    if (!call.attrs().IsNone("axis")) {
      for (const int64_t axis : call.attrs().Ints("axis")) reduced[Axis(axis, rank)] = true;
      if (call.attrs().Bool("exclude")) reduced.flip();
    }
    const bool keeps = call.attrs().Bool("keepdims");
    int at = 0;
    for (int dim = 0; dim < rank; ++dim) {
      const bool is_reduced = reduced[static_cast<size_t>(dim)];
      if (!is_reduced) Unite({self, 0, at}, {data, 0, dim});
      at += !is_reduced || keeps ? 1 : 0;
    }
  }

  void MakeVariables() {
    std::map<int, size_t> variable_of;
    for (size_t number = 0; number < places_.size(); ++number) {
      const int root = Root(static_cast<int>(number));
      const auto [it, is_new] = variable_of.emplace(root, result_.variables.size());
      if (is_new) {
        result_.variables.push_back({{}, known_[static_cast<size_t>(root)], is_assumed_[static_cast<size_t>(root)]});
      }
      result_.variables[it->second].places.push_back(places_[number]);
    }
  }

  const Function& function_;
  std::vector<Expr>* exprs_;
  UnknownSizes result_;
  std::unordered_map<const ExprNode*, int> values_;
  std::vector<std::vector<Type>> types_;  ///< of each value, flattened
  std::map<std::tuple<int, int, int>, int> numbers_;
  std::vector<Place> places_;
  std::vector<int> parent_;
  std::vector<int64_t> known_;
  std::vector<bool> is_assumed_;
};

}  // namespace

int UnknownSizes::VariableAt(const Place& place) const {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (std::ranges::find(variables[i].places, place) != variables[i].places.end()) return static_cast<int>(i);
  }
  return -1;
}

bool UnknownSizes::is_assumed() const { return std::ranges::any_of(variables, &Variable::is_assumed); }

bool HasUnknownSizes(const Function& function) {
  const auto is_open = [](const Type& type) {
    for (const Type& leaf : FlattenTensorTypes(type)) {
      if (!AsTensorType(leaf)->is_static()) return true;
    }
    return false;
  };
  bool has_unknown = is_open(function->body()->checked_type());
  for (const Var& param : function->params()) has_unknown = has_unknown || is_open(param->checked_type());
  return has_unknown;
}

UnknownSizes FindUnknownSizes(const Function& function, std::vector<Expr>* exprs) {
  return SizeFinder(function, exprs).Run();
}

namespace {

/// Throws for sizes that do not belong to a function.
[[noreturn]] void FailAsDamaged() {
  throw Error(ErrorCategory::kCorrupt, "what a kernel knows of its shapes is damaged");
}

const Type& FieldOf(const Type& type, int field) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr && field == 0) return type;
  if (tuple == nullptr || static_cast<size_t>(field) >= tuple->fields().size()) FailAsDamaged();
  return tuple->fields()[static_cast<size_t>(field)];
}

}  // namespace

std::vector<Type> TypesOfValues(const UnknownSizes& sizes, const std::vector<Type>& types) {
  std::vector<Type> all;
  all.reserve(sizes.steps.size());
  for (const UnknownSizes::Step& step : sizes.steps) {
    switch (step.kind) {
      case UnknownSizes::Step::kParameter:
        if (all.size() >= types.size()) FailAsDamaged();
        all.push_back(types[all.size()]);
        break;
      case UnknownSizes::Step::kConstant: all.push_back(step.type); break;
      case UnknownSizes::Step::kField:
        all.push_back(FieldOf(all[static_cast<size_t>(step.args[0])], step.field));
        break;
      case UnknownSizes::Step::kTuple:
      case UnknownSizes::Step::kCall: {
        std::vector<Type> args;
        for (const int arg : step.args) args.push_back(all[static_cast<size_t>(arg)]);
        if (step.kind == UnknownSizes::Step::kTuple) {
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

std::optional<std::vector<int64_t>> ValuesOf(const UnknownSizes& sizes, const std::vector<Type>& types) {
  std::vector<int64_t> values;
  for (const UnknownSizes::Variable& variable : sizes.variables) {
    int64_t value = variable.known;
    for (const Place& place : variable.places) {
      const TensorTypeNode* tensor = AsTensorType(FieldOf(types[static_cast<size_t>(place.value)], place.field));
      if (tensor == nullptr || place.dim >= tensor->rank()) FailAsDamaged();
      const Dim& dim = tensor->shape()[static_cast<size_t>(place.dim)];
      if (dim.is_any() || (value >= 0 && dim.size() != value)) return std::nullopt;
      value = dim.size();
    }
    values.push_back(value);
  }
  return values;
}

bool IsPlaceByPlace(const OpDef& op) {
  return op.pattern <= OpPatternKind::kBroadcast && !op.is_reshape && op.name != "tile" && op.name != "repeat" &&
         op.name != "broadcast_to" && op.name != "nn.bias_add" && op.name != "nn.prelu" && !op.name.starts_with("qnn.");
}

bool MovesElements(const OpDef& op) {
  static const std::set<std::string_view> names{"copy",    "transpose",    "concatenate",      "stack",    "split",
                                                "tile",    "repeat",       "strided_slice",    "take",     "gather",
                                                "reverse", "broadcast_to", "reverse_sequence", "gather_nd"};
  return op.is_reshape || names.contains(op.name);
}

bool AreRows(const Type& type) {
  const TensorTypeNode* tensor = type == nullptr ? nullptr : AsTensorType(type);
  if (tensor == nullptr || tensor->rank() == 0 || !tensor->shape()[0].is_any()) return false;
  return std::none_of(tensor->shape().begin() + 1, tensor->shape().end(), [](const Dim& dim) { return dim.is_any(); });
}

Type WithRows(const Type& type, int64_t rows) {
  if (!AreRows(type)) return type;
  std::vector<Dim> shape = AsTensorType(type)->shape();
  shape[0] = rows;
  return TensorType(shape, AsTensorType(type)->dtype());
}

Function WithRows(const Function& function, int64_t rows) {
  std::unordered_map<const ExprNode*, Expr> replacements;
  std::vector<Var> params;
  for (const Var& param : function->params()) {
    params.push_back(MakeVar(param->name(), WithRows(param->checked_type(), rows)));
    replacements[param.get()] = params.back();
  }
  const Function result = MakeFunction(params, Substitute(function->body(), replacements));
  InferType(result);
  return result;
}

}  // namespace collage
