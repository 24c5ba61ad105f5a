// widened_function.cc: the same function in float64.
#include "property/native/widened_function.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

bool IsNarrow(DataType dtype) { return dtype.is_floating() && dtype != kFloat64; }

bool IsNarrow(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  return type != nullptr && IsNarrow(type->dtype());
}

Expr CastTo(const Expr& expr, DataType dtype) {
  const Expr cast = MakeCall("cast", {expr}, {{"dtype", dtype}});
  InferType(cast);
  return cast;
}

class Widener {
 public:
  Function Run(const Function& function) {
    std::vector<Var> params;
    for (const Var& param : function->params()) {
      const TensorTypeNode& type = *AsTensorType(param->checked_type());
      const Var made =
          IsNarrow(type.dtype()) ? MakeVar(param->name(), TensorType(type.static_shape(), kFloat64)) : param;
      InferType(made);
      params.push_back(made);
      wide_[param.get()] = made;
    }
    PostOrder(function->body(), [&](const Expr& expr) {
      if (wide_.contains(expr.get())) return;
      const Expr made = Widen(expr);
      InferType(made);
      wide_[expr.get()] = IsNarrow(made) ? CastTo(made, kFloat64) : made;
    });
    const Function result = MakeFunction(params, wide_.at(function->body().get()));
    InferType(result);
    return result;
  }

 private:
  Expr Widen(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kConstant: {
        const Tensor& value = As<ConstantNode>(expr)->value();
        return IsNarrow(value.dtype()) ? Expr(MakeConstant(value.Cast(kFloat64))) : expr;
      }
      case ExprKind::kTuple: {
        std::vector<Expr> fields;
        for (const Expr& field : As<TupleNode>(expr)->fields()) fields.push_back(wide_.at(field.get()));
        return MakeTuple(fields);
      }
      case ExprKind::kTupleGetItem: {
        const auto* item = As<TupleGetItemNode>(expr);
        return MakeTupleGetItem(wide_.at(item->tuple().get()), item->index());
      }
      case ExprKind::kCall: return WidenCall(*As<CallNode>(expr));
      default: return expr;
    }
  }

  Expr WidenCall(const CallNode& call) {
    Attrs attrs = call.attrs();
    for (const char* name : {"dtype", "out_dtype"}) {
      const AttrField* field = call.op()->FindAttr(name);
      if (field == nullptr || field->kind != AttrKind::kDType || attrs.String(name).empty()) continue;
      if (IsNarrow(attrs.Type(name))) attrs.Set(name, kFloat64);
    }
    std::vector<Expr> wide, narrow;
    for (const Expr& arg : call.args()) {
      wide.push_back(wide_.at(arg.get()));
      narrow.push_back(IsNarrow(arg) ? CastTo(wide.back(), AsTensorType(arg->checked_type())->dtype()) : wide.back());
    }
    try {
      const Expr made = MakeCall(call.op()->name, wide, attrs);
      InferType(made);
      return made;
    } catch (const Error&) {  // it wants its own types
      return MakeCall(call.op()->name, narrow, call.attrs());
    }
  }

  std::unordered_map<const ExprNode*, Expr> wide_;
};

/// The distance of 1 from the next number.
double Epsilon(DataType dtype) { return dtype == kBFloat16 ? 0x1p-7 : dtype == kFloat16 ? 0x1p-10 : 0x1p-23; }

bool Quantises(const Function& function) {
  bool found = false;
  PostOrder(function, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    found = found || (call != nullptr && call->op() != nullptr && call->op()->name == "qnn.quantize");
  });
  return found;
}

}  // namespace

Function Widened(const Function& function) { return Widener().Run(function); }

ExpectedResults::ExpectedResults(const Function& function, const std::vector<Tensor>& inputs)
    : results_(Evaluate(function, inputs)) {
  if (Quantises(function)) reference_.emplace(function, inputs);
  std::vector<Tensor> wide_inputs;
  for (const Tensor& input : inputs) wide_inputs.push_back(IsNarrow(input.dtype()) ? input.Cast(kFloat64) : input);
  const std::vector<Tensor> wide = Evaluate(Widened(function), wide_inputs);
  // Roundings of a kernel that holds everything in float32, whatever the result's type.
  constexpr double kOfReference = 12;
  constexpr double kPlaces = 60;
  // Squares of differences of equal numbers are what rounding left of them, in whatever type.
  constexpr double kLeast = 0x1p-46;
  for (size_t i = 0; i < results_.size(); ++i) {
    double lost = 0, largest = 0;
    for (int64_t k = 0; k < wide[i].num_elements(); ++k) {
      const double exact = wide[i].At(k);
      if (!std::isfinite(exact) || !std::isfinite(results_[i].At(k))) continue;
      lost = std::max(lost, std::abs(exact - results_[i].At(k)));
      largest = std::max(largest, std::abs(exact));
    }
    const DataType dtype = results_[i].dtype();
    const double relative = largest * (kPlaces * 0x1p-23 + 2 * Epsilon(dtype));
    allowed_.push_back(dtype.is_floating() ? std::max(kOfReference * lost + relative, kLeast) : 0);
  }
}

std::string ExpectedResults::Compare(size_t index, const Tensor& actual) const {
  const Tolerance tolerance{0, allowed_[index]};
  const Comparison comparison = reference_ ? reference_->Compare(index, actual, {0, std::max(tolerance.absolute, 1e-6)})
                                           : collage::Compare(actual, results_[index], tolerance);
  if (comparison.agrees) return "";
  return comparison.difference + " (allowed: " + std::to_string(allowed_[index]) + ")";
}

}  // namespace collage
