// plan_devices.cc: every value gets a device. `on_device` says where a value must be computed; an operator's arguments
// and result share a device, and so do a parameter and what is passed for it, a variable and its value, a tuple and its
// fields. Values that nothing constrains go to the fallback device, if there is one; parameters and results that have a
// device keep it. Where a value is needed elsewhere, `device_copy` moves it, unless copies are left to partitioning;
// on_device vanishes. Domains of values that share a device are found by unification.
#include <fmt/format.h>

#include <numeric>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/place.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

constexpr int kCpu = 1;
constexpr const char* kFallback = "relay.fallback_device_type";
constexpr const char* kInsertsCopies = "relay.PlanDevices.insert_copies";

VirtualDevice DeviceOf(const Attrs& attrs, const std::string& prefix) {
  return {static_cast<int>(attrs.Int(prefix + "device_type")), static_cast<int>(attrs.Int(prefix + "device_id")),
          attrs.String(prefix + "target"), attrs.String(prefix + "memory_scope")};
}

void SetDevice(Attrs& attrs, const std::string& prefix, const VirtualDevice& device) {
  attrs.Set(prefix + "device_type", device.device_type);
  attrs.Set(prefix + "device_id", device.device_id);
  attrs.Set(prefix + "target", device.target);
  attrs.Set(prefix + "memory_scope", device.memory_scope);
}

/// Joins both constraints; returns false if they contradict each other.
bool Join(VirtualDevice& a, const VirtualDevice& b) {
  const auto join = [](auto& x, const auto& y, const auto& any) {
    if (x == any) x = y;
    return y == any || x == y;
  };
  return join(a.device_type, b.device_type, 0) && join(a.device_id, b.device_id, -1) &&
         join(a.target, b.target, std::string()) && join(a.memory_scope, b.memory_scope, std::string());
}

/// Whether a value of one is one of the other: targets say who computes, not where values are.
bool IsSameMemory(VirtualDevice a, const VirtualDevice& b) {
  a.target = b.target;
  return a == b;
}

bool IsOnDevice(const CallNode& call) { return call.op() != nullptr && call.op()->name == "on_device"; }
bool IsCopy(const CallNode& call) { return call.op() != nullptr && call.op()->name == "device_copy"; }

class Planner {
 public:
  Planner(const IRModule& module, const PassContext& context)
      : module_(module), inserts_copies_(context.ConfigBool(kInsertsCopies)) {
    fallback_.device_type = static_cast<int>(context.ConfigInt(kFallback));
    for (const auto& [name, function] : module.functions()) {
      if (IsOrdinary(*function)) FindConstraints(function);
    }
  }

  Function Rewritten(const Function& function) {
    return AsShared<FunctionNode>(RewriteNodes(
        function, IsOrdinary, [&](const Expr& original, const Expr& expr, const collage::Rewritten& done) -> Expr {
          const CallNode* call = As<CallNode>(original);
          if (call != nullptr && (IsOnDevice(*call) || IsCopy(*call)))
            return Move(original, done.at(call->args()[0].get()));
          if (const FunctionNode* inner = As<FunctionNode>(original)) {
            return IsOrdinary(*inner) ? Annotated(*inner, *As<FunctionNode>(expr)) : expr;
          }
          return Placed(original, expr);
        }));
  }

 private:
  // ---- domains ----

  int DomainOf(const ExprNode* expr) {
    const auto [it, is_new] = domain_of_.emplace(expr, static_cast<int>(parent_.size()));
    if (is_new) {
      parent_.push_back(it->second);
      devices_.emplace_back();
    }
    return Top(it->second);
  }

  int Top(int domain) {
    while (parent_[domain] != domain) {
      domain = parent_[domain] = parent_[parent_[domain]];
    }
    return domain;
  }

  void Constrain(const ExprNode* expr, const VirtualDevice& device, const ExprNode& at) {
    VirtualDevice& known = devices_[DomainOf(expr)];
    const VirtualDevice before = known;
    if (!Join(known, device)) Refuse(before, device, at);
  }

  void Unify(const ExprNode* a, const ExprNode* b, const ExprNode& at) {
    const int x = DomainOf(a);
    const int y = DomainOf(b);
    if (x == y) return;
    const VirtualDevice before = devices_[x];
    if (!Join(devices_[x], devices_[y])) {
      Refuse(before, devices_[y], at);
    }
    parent_[y] = x;
  }

  [[noreturn]] static void Refuse(const VirtualDevice& a, const VirtualDevice& b, const ExprNode& at) {
    throw Error(ErrorCategory::kInput, fmt::format("a value must be on {} and on {}", ToString(a), ToString(b)),
                PlaceOf(at.span()), "on_device with constrain_result=False lets the result be copied");
  }

  VirtualDevice DeviceOfExpr(const ExprNode* expr) {
    VirtualDevice device = devices_[DomainOf(expr)];
    if (device.device_type == 0) device.device_type = fallback_.device_type;
    return device;
  }

  // ---- constraints ----

  void FindConstraints(const Function& root) {
    PostOrder(root, [&](const Expr& expr) {
      if (const LetNode* let = As<LetNode>(expr)) functions_[let->var().get()] = let->value();
    });
    PostOrder(root, [&](const Expr& expr) { Visit(expr); });
  }

  /// A function's device is its result's.
  void VisitFunction(const FunctionNode& function) {
    for (const Var& param : function.params()) Constrain(param.get(), param->virtual_device(), function);
    Constrain(function.body().get(), function.virtual_device(), function);
  }

  void Visit(const Expr& node) {
    const ExprNode& expr = *node;
    // A device that is planned already stays.
    if (expr.kind() != ExprKind::kFunction) Constrain(&expr, expr.virtual_device(), expr);
    switch (expr.kind()) {
      case ExprKind::kFunction: return VisitFunction(static_cast<const FunctionNode&>(expr));
      case ExprKind::kTuple:
        for (const Expr& field : static_cast<const TupleNode&>(expr).fields()) Unify(&expr, field.get(), expr);
        return;
      case ExprKind::kTupleGetItem: return Unify(&expr, static_cast<const TupleGetItemNode&>(expr).tuple().get(), expr);
      case ExprKind::kCall: return VisitCall(static_cast<const CallNode&>(expr));
      case ExprKind::kLet: {
        const auto& let = static_cast<const LetNode&>(expr);
        Unify(let.var().get(), let.value().get(), expr);
        return Unify(&expr, let.body().get(), expr);
      }
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(expr);
        // The processor decides which way control goes.
        Constrain(branch.condition().get(), {.device_type = kCpu}, expr);
        Unify(&expr, branch.then_branch().get(), expr);
        return Unify(&expr, branch.else_branch().get(), expr);
      }
      case ExprKind::kMatch: {
        const auto& match = static_cast<const MatchNode&>(expr);
        for (const Clause& clause : match.clauses()) {
          UnifyPattern(clause.pattern, match);
          Unify(&expr, clause.body.get(), expr);
        }
        return;
      }
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        for (const Expr& child : Children(node)) Unify(&expr, child.get(), expr);
        return;
      default: return;
    }
  }

  void UnifyPattern(const Pattern& pattern, const MatchNode& match) {
    if (pattern.var) Unify(pattern.var.get(), match.data().get(), match);
    for (const Pattern& sub : pattern.sub_patterns) UnifyPattern(sub, match);
  }

  void VisitCall(const CallNode& call) {
    if (IsOnDevice(call)) {
      const VirtualDevice device = DeviceOf(call.attrs(), "");
      if (call.attrs().Bool("constrain_body")) Constrain(call.args()[0].get(), device, call);
      if (call.attrs().Bool("constrain_result")) Constrain(&call, device, call);
      return;
    }
    if (IsCopy(call)) {
      Constrain(call.args()[0].get(), DeviceOf(call.attrs(), "src_"), call);
      return Constrain(&call, DeviceOf(call.attrs(), "dst_"), call);
    }
    if (const FunctionNode* callee = Callee(call); callee != nullptr && IsOrdinary(*callee)) {
      for (size_t i = 0; i < call.args().size(); ++i) Unify(callee->params()[i].get(), call.args()[i].get(), call);
      return Unify(&call, callee->body().get(), call);
    }
    for (const Expr& arg : call.args()) Unify(&call, arg.get(), call);
  }

  /// The function that is called, if it is known.
  const FunctionNode* Callee(const CallNode& call) const {
    Expr callee = call.callee();
    if (const GlobalVarNode* global = As<GlobalVarNode>(callee); global != nullptr && module_.Has(global->name())) {
      return module_.Lookup(global->name()).get();
    }
    auto it = functions_.find(callee.get());
    return As<FunctionNode>(it == functions_.end() ? callee : it->second);
  }

  // ---- rewriting ----

  /// `expr` with its device noted; a copy, where it is not a variable or an operator.
  Expr Placed(const Expr& original, const Expr& expr) {
    if (original->kind() == ExprKind::kOp || original->kind() == ExprKind::kGlobalVar) return expr;
    const std::vector<Expr> children = Children(original);
    const Expr placed = expr == original && !children.empty() ? WithChildren(original, children) : expr;
    placed->set_virtual_device(DeviceOfExpr(original.get()));
    return placed;
  }

  Expr Move(const Expr& original, const Expr& value) {
    const CallNode& call = *As<CallNode>(original);
    const VirtualDevice from = DeviceOfExpr(call.args()[0].get());
    const VirtualDevice to = DeviceOfExpr(original.get());
    if (!inserts_copies_ || IsSameMemory(from, to)) return value;
    Attrs attrs;
    SetDevice(attrs, "src_", from);
    SetDevice(attrs, "dst_", to);
    const Expr copy = MakeCall("device_copy", {value}, std::move(attrs));
    copy->share_span(*original);
    copy->set_virtual_device(to);
    return copy;
  }

  Expr Annotated(const FunctionNode& original, const FunctionNode& function) {
    for (const Var& param : original.params()) param->set_virtual_device(DeviceOfExpr(param.get()));
    const Function result = MakeFunction(function.params(), function.body(), function.result_type(), function.attrs(),
                                         function.type_params());
    result->set_virtual_device(DeviceOfExpr(original.body().get()));
    result->share_span(original);
    return result;
  }

  const IRModule& module_;
  VirtualDevice fallback_;
  bool inserts_copies_;
  std::unordered_map<const ExprNode*, int> domain_of_;
  std::vector<int> parent_;                              ///< union-find over domains
  std::vector<VirtualDevice> devices_;                   ///< of each domain, at its top
  std::unordered_map<const ExprNode*, Expr> functions_;  ///< values of let variables
};

}  // namespace

bool NamesDevices(const IRModule& module, const PassContext& context) {
  if (context.ConfigInt(kFallback) != kCpu) return true;
  bool names = false;
  for (const auto& [name, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      names = names || !(expr->virtual_device() == VirtualDevice()) ||
              (call != nullptr && (IsOnDevice(*call) || IsCopy(*call)));
    });
  }
  return names;
}

IRModule PlanDevices(IRModule module, const PassContext& context) {
  // Variables get devices, and those of the module before are shared with it.
  const IRModule before = module;
  for (const auto& [name, function] : before.functions()) {
    if (IsOrdinary(*function)) module.Set(name, WithFreshVars(function));
  }
  module = InferTypes(std::move(module));
  Planner planner(module, context);
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) {
    if (IsOrdinary(*function)) result.Set(name, planner.Rewritten(function));
  }
  return result;
}

}  // namespace collage
