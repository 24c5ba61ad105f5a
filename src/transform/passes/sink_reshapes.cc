// sink_reshapes.cc: a product of matrices knows no batches, so that its rows are grouped anew behind it, in front of
// its bias and activation. Element-wise operators there are computed in the product's own rows, where a
// kernel may do it with the product, and the reshape comes behind it; reshapes that meet cancel each other. Rows of an
// unknown number are regrouped by the very reshape that there was.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "collage/ir/infer_type.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

std::optional<Shape> StaticShapeOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(InferType(expr));
  return type != nullptr && type->is_static() ? std::optional(type->static_shape()) : std::nullopt;
}

Expr ReshapedTo(const Expr& value, const Shape& shape, const ExprNode& origin) {
  return TypedCall("reshape", {value}, origin, {{"newshape", shape}, {"allowzero", true}});
}

/// All but the last axis, without ones in front.
Shape Groups(const Shape& shape) {
  const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t size) { return size != 1; });
  return first >= shape.end() - 1 ? Shape{} : Shape(first, shape.end() - 1);
}

class Sinker {
 public:
  /// Returns the replacement of `expr`, the rewritten `original`.
  Expr Sink(const Expr& original, const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return expr;
    const OpDef& op = *call->op();
    if (op.name == "nn.dense" || op.name == "nn.matmul") return Remember(expr);
    if (op.pattern > OpPatternKind::kBroadcast || !op.layout_agnostic) return expr;
    const TensorTypeNode* type = AsTensorType(original->checked_type());
    if (type == nullptr) return expr;
    if (!type->is_static()) return SinkDynamic(expr, *call);
    const Shape shape = type->static_shape();
    if (NumElements(shape) == 0 || (op.FindAttr("axis") != nullptr && !MeansNoAxis(*call))) return expr;
    for (const Expr& arg : call->args()) {
      const Expr* rows = RowsOf(arg, shape);
      if (rows == nullptr) continue;
      const Expr computed = ComputeIn(*StaticShapeOf(*rows), shape, *call);
      return computed ? ReshapedTo(Remember(computed), shape, *original) : expr;
    }
    return expr;
  }

 private:
  /// A value that groups rows of a product, [?, N], into [?, …, N] by one reshape or several.
  struct Regrouped {
    Expr rows;
    std::vector<const CallNode*> steps;  ///< the last one first
  };

  /// As above where a run knows the number of rows: arguments are regrouped rows, or the same for all of them.
  Expr SinkDynamic(const Expr& expr, const CallNode& call) {
    if (call.op()->FindAttr("axis") != nullptr) return expr;
    std::optional<Regrouped> regrouped;
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) {
      const std::optional<Regrouped> own = DynamicRows(arg);
      if (own && regrouped && !AreAlike(*own, *regrouped)) return expr;
      if (own && !regrouped) regrouped = own;
      args.push_back(own ? own->rows : arg);
    }
    if (!regrouped) return expr;
    const Dim width = AsTensorType(InferType(regrouped->rows))->shape()[1];
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i] == call.args()[i] && !IsForEachRow(args[i], width)) return expr;
    }
    Expr computed = TypedCall(call.op()->name, args, call, call.attrs());
    const TensorTypeNode* made = AsTensorType(computed->checked_type());
    if (made == nullptr || made->rank() != 2 || made->shape()[1] != width) return expr;
    Remember(computed);
    for (auto step = regrouped->steps.rbegin(); step != regrouped->steps.rend(); ++step) {
      std::vector<Expr> again = (*step)->args();
      again[0] = computed;
      computed = TypedCall((*step)->op()->name, again, **step, (*step)->attrs());
    }
    return computed;
  }

  /// Nothing when `expr` is nothing of the kind.
  std::optional<Regrouped> DynamicRows(const Expr& expr) const {
    Regrouped found{expr, {}};
    while (!is_rows_.contains(found.rows.get())) {
      const CallNode* call = As<CallNode>(found.rows);
      const bool is_reshape = call != nullptr && call->op() != nullptr &&
                              (call->op()->name == "reshape" || call->op()->name == "dyn.reshape");
      if (!is_reshape) return std::nullopt;
      found.steps.push_back(call);
      found.rows = call->args()[0];
    }
    const TensorTypeNode* rows = AsTensorType(InferType(found.rows));
    const TensorTypeNode* groups = AsTensorType(InferType(expr));
    if (found.steps.empty() || rows == nullptr || groups == nullptr || rows->rank() != 2 || groups->rank() < 2) {
      return std::nullopt;
    }
    const Dim &width = rows->shape()[1], &last = groups->shape().back();
    return !width.is_any() && width == last && width.size() > 0 ? std::optional(found) : std::nullopt;
  }

  /// Whether both have as many rows in every run, those of one product, and get the same shape.
  static bool AreAlike(const Regrouped& a, const Regrouped& b) {
    const auto is_equal = [](const CallNode* x, const CallNode* y) {
      return x->op() == y->op() && x->attrs() == y->attrs() &&
             std::equal(x->args().begin() + 1, x->args().end(), y->args().begin() + 1, y->args().end());
    };
    return SourceOf(a.rows) == SourceOf(b.rows) &&
           std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), is_equal);
  }

  /// The product whose rows `rows` are made of.
  static const ExprNode* SourceOf(const Expr& rows) {
    const CallNode* call = As<CallNode>(rows);
    if (call->op()->name == "nn.dense" || call->op()->name == "nn.matmul") return call;
    for (const Expr& arg : call->args()) {
      const TensorTypeNode* type = AsTensorType(InferType(arg));
      if (type != nullptr && !type->is_static()) return SourceOf(arg);
    }
    return call;
  }

  /// Whether each row of `width` elements gets the same elements of `arg`, or a single one.
  static bool IsForEachRow(const Expr& arg, const Dim& width) {
    const std::optional<Shape> shape = StaticShapeOf(arg);
    if (!shape || shape->size() > 2) return false;
    return NumElements(*shape) == 1 || (NumElements(*shape) == width.size() && shape->back() == width.size());
  }

  Expr Remember(const Expr& rows) {
    if (is_rows_.insert(rows.get()).second) alive_.push_back(rows);
    return rows;
  }

  /// Whether the axis is that of parameters for each channel, of which there is one for all.
  static bool MeansNoAxis(const CallNode& call) {
    return std::all_of(call.args().begin() + 1, call.args().end(), [](const Expr& arg) {
      const std::optional<Shape> shape = StaticShapeOf(arg);
      return shape && NumElements(*shape) == 1;
    });
  }

  /// The rows of a product that `expr` groups into `shape`, null when it is nothing of the kind.
  const Expr* RowsOf(const Expr& expr, const Shape& shape) const {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || !call->op()->is_reshape) return nullptr;
    const Expr& rows = call->args()[0];
    if (!is_rows_.contains(rows.get()) || StaticShapeOf(expr) != shape) return nullptr;
    const std::optional<Shape> own = StaticShapeOf(rows);
    return own && !shape.empty() && own->back() == shape.back() ? &rows : nullptr;
  }

  /// The call in rows of shape `rows` in place of `groups`; null where an argument cannot be regrouped.
  static Expr ComputeIn(const Shape& rows, const Shape& groups, const CallNode& call) {
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) {
      const Expr regrouped = InRows(arg, rows, groups);
      if (!regrouped) return nullptr;
      args.push_back(regrouped);
    }
    const Expr computed = TypedCall(call.op()->name, args, call, call.attrs());
    return StaticShapeOf(computed) == rows ? computed : nullptr;
  }

  /// An argument that is broadcast to `groups` as one that is broadcast to `rows` alike; null where there is none.
  static Expr InRows(const Expr& arg, const Shape& rows, const Shape& groups) {
    const std::optional<Shape> shape = StaticShapeOf(arg);
    if (!shape) return nullptr;
    const CallNode* call = As<CallNode>(arg);
    const bool is_regrouped = call != nullptr && call->op() != nullptr && call->op()->is_reshape && *shape == groups;
    if (is_regrouped && StaticShapeOf(call->args()[0]) == rows) return call->args()[0];
    Shape wanted;
    if (shape->empty() || NumElements(*shape) == shape->back()) {
      if (shape->size() <= rows.size()) return arg;
      wanted = {shape->back()};
    } else if (Groups(*shape) == Groups(groups)) {
      wanted = rows;
      wanted.back() = shape->back();
    } else {
      return nullptr;
    }
    return *shape == wanted ? arg : ReshapedTo(arg, wanted, *arg);
  }

  std::unordered_set<const ExprNode*> is_rows_;  ///< products of matrices and what was computed in their rows
  std::vector<Expr> alive_;                      ///< so that none of these is another node one day
};

}  // namespace

Function SinkReshapes(const Function& function) {
  Sinker sinker;
  return AsShared<FunctionNode>(RewriteNodes(
      function,
      [&](const Expr& original, const Expr& rewritten, const Rewritten&) { return sinker.Sink(original, rewritten); }));
}

}  // namespace collage
