// to_mixed_precision.cc: contractions compute in 16 bits, what merely passes values on follows its arguments, and what
// loses too much keeps 32 bits. Casts are shared, and a cast back to 32 bits of what was cast down is what it was.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

enum class Precision : uint8_t {
  kAlways,  ///< arguments are cast down
  kFollow,  ///< in 16 bits when its arguments are
  kNever,   ///< arguments are cast back
};

Precision PrecisionOf(const OpDef& op) {
  static constexpr std::array kAlways{"nn.conv1d",           "nn.conv2d",           "nn.conv3d", "nn.conv1d_transpose",
                                      "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.dense",  "nn.matmul",
                                      "nn.batch_matmul"};
  // Element-wise operators whose error grows with the argument or that need range.
  static constexpr std::array kNever{"exp",   "log",   "sqrt",  "rsqrt", "erf",      "power", "sin",
                                     "cos",   "tan",   "asin",  "acos",  "atan",     "sinh",  "cosh",
                                     "asinh", "acosh", "atanh", "mod",   "floor_mod"};
  static constexpr std::array kFollow{"nn.max_pool1d", "nn.max_pool2d",
                                      "nn.max_pool3d", "nn.avg_pool1d",
                                      "nn.avg_pool2d", "nn.avg_pool3d",
                                      "max",           "min",
                                      "nn.pad",        "nn.prelu",
                                      "nn.bias_add",   "on_device",
                                      "device_copy",   "annotation.stop_fusion"};
  const auto in = [&](const auto& names) { return std::find(names.begin(), names.end(), op.name) != names.end(); };
  if (in(kAlways)) return Precision::kAlways;
  if (in(kNever)) return Precision::kNever;
  return in(kFollow) || op.pattern <= OpPatternKind::kInjective ? Precision::kFollow : Precision::kNever;
}

class MixedPrecision {
 public:
  explicit MixedPrecision(DataType mixed) : mixed_(mixed) {}

  Function Run(const Function& function, bool keep_result) {
    return AsShared<FunctionNode>(
        RewriteNodes(function, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten&) -> Expr {
          const CallNode* call = As<CallNode>(expr);
          if (call != nullptr && call->op() != nullptr) return RewriteCall(*call, expr);
          if (original == Expr(function) && !keep_result) return WithoutResultType(*As<FunctionNode>(expr));
          switch (expr->kind()) {
            case ExprKind::kTuple:
            case ExprKind::kTupleGetItem: return expr;
            default: return KeepTypes(original, expr);
          }
        }));
  }

 private:
  static Expr WithoutResultType(const FunctionNode& function) {
    const Function result =
        MakeFunction(function.params(), function.body(), nullptr, function.attrs(), function.type_params());
    result->share_span(function);
    return result;
  }

  /// Everything but operators, tuples and projections sees values of the types that it had: what a variable, a branch
  /// or a function promises stays true.
  Expr KeepTypes(const Expr& original, const Expr& expr) {
    if (expr == original) return expr;
    const std::vector<Expr> before = Children(original);
    std::vector<Expr> children = Children(expr);
    for (size_t i = 0; i < children.size(); ++i) {
      if (before[i]->checked_type()) children[i] = CastToType(children[i], before[i]->checked_type());
    }
    return WithChildren(expr, children);
  }

  Expr CastToType(const Expr& expr, const Type& type) {
    if (const TensorTypeNode* tensor = AsTensorType(type))
      return tensor->dtype() == kFloat32 ? CastTo(expr, kFloat32) : expr;
    const TupleTypeNode* tuple = AsTupleType(type);
    if (tuple == nullptr || TypeEqual(InferType(expr), type)) return expr;
    std::vector<Expr> fields;
    for (size_t i = 0; i < tuple->fields().size(); ++i) {
      const TupleNode* known = As<TupleNode>(expr);
      const Expr field = known != nullptr ? known->fields()[i] : MakeTupleGetItem(expr, static_cast<int>(i));
      fields.push_back(CastToType(field, tuple->fields()[i]));
    }
    return MakeTuple(std::move(fields));
  }

  /// A floating tensor as `dtype`; anything else as it is.
  Expr CastTo(const Expr& expr, DataType dtype) {
    const TensorTypeNode* type = AsTensorType(InferType(expr));
    if (type == nullptr || type->dtype() == dtype || (type->dtype() != kFloat32 && type->dtype() != mixed_))
      return expr;
    Expr& cast = casts_[expr.get()];
    if (!cast) {
      cast = TypedCall("cast", {expr}, *expr, {{"dtype", dtype}});
      kept_.push_back(expr);
      if (dtype == mixed_) casts_[cast.get()] = expr;  // the way back
    }
    return cast;
  }

  /// A tensor, or a tuple whose tensors are cast.
  Expr CastArgument(const Expr& expr, DataType dtype) {
    const TupleTypeNode* type = AsTupleType(InferType(expr));
    if (type == nullptr) return CastTo(expr, dtype);
    const TupleNode* tuple = As<TupleNode>(expr);
    std::vector<Expr> fields;
    bool changed = false;
    for (size_t i = 0; i < type->fields().size(); ++i) {
      const Expr field = tuple != nullptr ? tuple->fields()[i] : MakeTupleGetItem(expr, static_cast<int>(i));
      fields.push_back(CastArgument(field, dtype));
      changed = changed || fields.back() != field;
    }
    return changed ? MakeTuple(std::move(fields)) : expr;
  }

  /// Whether the floating tensors among the arguments are of the mixed type already, but for constants, of which there
  /// must not only be such.
  bool ArgumentsAreMixed(const CallNode& call) const {
    bool some = false;
    for (const Expr& arg : call.args()) {
      const TupleNode* tuple = As<TupleNode>(arg);
      for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
        if (leaf->kind() == ExprKind::kConstant) continue;
        for (const Type& type : FlattenTensorTypes(InferType(leaf))) {
          const DataType dtype = AsTensorType(type)->dtype();
          if (dtype.is_floating() && dtype != mixed_) return false;
          some = some || dtype == mixed_;
        }
      }
    }
    return some;
  }

  Expr RewriteCall(const CallNode& call, const Expr& expr) {
    if (call.op()->name == "cast") return expr;
    Precision precision = PrecisionOf(*call.op());
    if (precision == Precision::kFollow) precision = ArgumentsAreMixed(call) ? Precision::kAlways : Precision::kNever;
    const DataType dtype = precision == Precision::kAlways ? mixed_ : kFloat32;
    std::vector<Expr> args = call.args();
    for (Expr& arg : args) arg = CastArgument(arg, dtype);
    Attrs attrs = call.attrs();
    if (dtype == mixed_ && attrs.Has("out_dtype") && attrs.String("out_dtype") == "float32") attrs.Set("out_dtype", "");
    if (args == call.args() && attrs == call.attrs()) return expr;
    const Expr result = MakeCall(call.callee(), std::move(args), std::move(attrs));
    result->share_span(call);
    return result;
  }

  const DataType mixed_;
  std::unordered_map<const ExprNode*, Expr> casts_;  ///< to the other type
  std::vector<Expr> kept_;                           ///< so that keys stay alive
};

}  // namespace

IRModule ToMixedPrecision(IRModule module, const PassContext& context) {
  const std::string& name = context.ConfigString("relay.ToMixedPrecision.dtype");
  if (name != "float16" && name != "bfloat16") {
    throw Error(ErrorCategory::kInput,
                fmt::format("pass option 'relay.ToMixedPrecision.dtype' must be float16 or bfloat16, not '{}'", name));
  }
  const bool keep = context.ConfigBool("relay.ToMixedPrecision.keep_orig_output_dtype");
  IRModule result = module;
  for (const auto& [function_name, function] : module.functions()) {
    if (!IsOrdinary(*function)) continue;
    // Only the entry is called from outside, where another dtype is what was asked for.
    const bool keep_result = keep || function_name != "main";
    result.Set(function_name, MixedPrecision(DataType::FromString(name)).Run(function, keep_result));
  }
  return result;
}

}  // namespace collage
