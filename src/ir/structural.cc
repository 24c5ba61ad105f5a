// structural.cc: nodes are numbered in post-order; a digest of that numbered listing identifies the structure.
#include "collage/ir/structural.h"

#include <unordered_map>
#include <unordered_set>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/attr_visitor.h"
#include "ir/node_map.h"
#include "ir/type_vars.h"
#include "support/hash.h"

namespace collage {
namespace {

/// Adds attribute values to a digest. The numbers before values keep kinds apart; digests are keys of stored costs, so
/// they never change.
struct AttrDigest {
  Hasher& hasher;

  void None() { hasher.AddInt(0); }
  void Bool(bool flag) { hasher.AddInt(flag ? 2 : 1); }
  void Int(int64_t number) {
    hasher.AddInt(3);
    hasher.AddInt(number);
  }
  void Double(double number) {
    hasher.AddInt(4);
    hasher.Add(&number, sizeof number);
  }
  void Text(const std::string& text) {
    hasher.AddInt(5);
    hasher.Add(text);
  }
  void List(const AttrValue::List& list) {
    hasher.AddInt(6);
    hasher.AddInt(static_cast<int64_t>(list.size()));
    for (const AttrValue& item : list) VisitAttr(item, *this);
  }
};

void AddAttrs(Hasher& hasher, const Attrs& attrs) {
  hasher.AddInt(static_cast<int64_t>(attrs.size()));
  for (const auto& [name, value] : attrs) {
    hasher.Add(name);
    VisitAttr(value, AttrDigest{hasher});
  }
}

class Digest {
 public:
  explicit Digest(const StructuralHashOptions& options) : options_(options) {}

  std::string Of(const Expr& root) {
    PostOrder(root, [this](const Expr& expr) { Add(expr); });
    return hasher_.Hex();
  }

 private:
  /// Nodes are numbered when they first occur. Leaves that are nothing but their content (scalars, names) have one
  /// number for all nodes of equal content: computing them twice costs nothing.
  int NumberOf(const ExprNode* node) {
    auto [number, is_new] = numbers_.Emplace(node, next_number_);
    if (!is_new) return *number;
    const std::string content = ContentOf(*node);
    if (!content.empty()) *number = leaves_.emplace(content, next_number_).first->second;
    if (*number == next_number_) ++next_number_;
    return *number;
  }

  static std::string ContentOf(const ExprNode& node) {
    switch (node.kind()) {
      case ExprKind::kGlobalVar: return "@" + static_cast<const GlobalVarNode&>(node).name();
      case ExprKind::kConstructor: return "|" + static_cast<const ConstructorNode&>(node).name();
      case ExprKind::kConstant: {
        const Tensor& value = static_cast<const ConstantNode&>(node).value();
        if (value.rank() != 0) return "";
        return value.dtype().ToString() + ":" + std::string(value.data<char>(), value.size_bytes());
      }
      default: return "";
    }
  }

  void Add(const Expr& expr) {
    const int number = NumberOf(expr.get());
    if (!ContentOf(*expr).empty() && !added_leaves_.insert(number).second) return;
    hasher_.AddInt(static_cast<int64_t>(expr->kind()) + 1000);
    hasher_.AddInt(number);
    for (size_t i = 0; const Expr* child = ChildAt(*expr, i); ++i) {
      hasher_.AddInt(*child ? NumberOf(child->get()) : -1);
    }
    switch (expr->kind()) {
      case ExprKind::kVar: {
        const auto& var = static_cast<const VarNode&>(*expr);
        AddType(var.type_annotation() ? var.type_annotation() : var.checked_type());
        AddDevice(var);
        break;
      }
      case ExprKind::kGlobalVar: hasher_.Add(static_cast<const GlobalVarNode&>(*expr).name()); break;
      case ExprKind::kOp: hasher_.Add(static_cast<const OpNode&>(*expr).name()); break;
      case ExprKind::kConstructor: hasher_.Add(static_cast<const ConstructorNode&>(*expr).name()); break;
      case ExprKind::kConstant: AddConstant(static_cast<const ConstantNode&>(*expr).value()); break;
      case ExprKind::kTupleGetItem: hasher_.AddInt(static_cast<const TupleGetItemNode&>(*expr).index()); break;
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        AddAttrs(hasher_, call.attrs());
        for (const Type& type : call.type_args()) AddType(type);
        break;
      }
      case ExprKind::kFunction: {
        const auto& function = static_cast<const FunctionNode&>(*expr);
        for (const Var& param : function.params()) {
          hasher_.AddInt(NumberOf(param.get()));
          AddType(param->type_annotation() ? param->type_annotation() : param->checked_type());
          AddDevice(*param);
        }
        for (const TypeVar& param : function.type_params()) {
          hasher_.Add(Numbered(param)->name());
          type_vars_.erase(param);  // another function may bind it, too
        }
        AddAttrs(hasher_, function.attrs());
        AddDevice(function);
        break;
      }
      case ExprKind::kLet: hasher_.AddInt(NumberOf(static_cast<const LetNode&>(*expr).var().get())); break;
      case ExprKind::kMatch: AddPatterns(static_cast<const MatchNode&>(*expr)); break;
      default: break;
    }
  }

  /// Type variables count by who binds them, not by name.
  void AddType(const Type& type) {
    if (!type || type->kind() == TypeKind::kTensor) return hasher_.Add(ToString(type));
    hasher_.Add(ToString(RenameTypeVars(type, naming_)));
  }

  /// Numbered in the order in which they first occur below the function that binds them.
  TypeVar Numbered(const TypeVar& var) {
    TypeVar& numbered = type_vars_[var];
    if (!numbered) numbered = std::make_shared<TypeVarNode>("type " + std::to_string(next_type_var_++));
    return numbered;
  }

  /// Adds devices where text shows them: at variables and functions.
  void AddDevice(const ExprNode& expr) {
    const VirtualDevice& device = expr.virtual_device();
    if (device == VirtualDevice()) return;
    hasher_.AddInt(device.device_type);
    hasher_.AddInt(device.device_id);
    hasher_.Add(device.target);
    hasher_.Add(device.memory_scope);
  }

  void AddConstant(const Tensor& value) {
    hasher_.Add(value.dtype().ToString());
    hasher_.Add(ToString(value.shape()));
    if (!options_.constants_by_shape || value.rank() == 0) hasher_.Add(value.raw(), value.size_bytes());
  }

  void AddPatterns(const MatchNode& match) {
    hasher_.AddInt(match.complete() ? 1 : 0);
    for (const Clause& clause : match.clauses()) AddPattern(clause.pattern);
  }

  void AddPattern(const Pattern& pattern) {
    hasher_.AddInt(static_cast<int64_t>(pattern.kind));
    if (pattern.var) hasher_.AddInt(NumberOf(pattern.var.get()));
    if (pattern.constructor) hasher_.Add(pattern.constructor->name());
    hasher_.AddInt(static_cast<int64_t>(pattern.sub_patterns.size()));
    for (const Pattern& sub : pattern.sub_patterns) AddPattern(sub);
  }

  StructuralHashOptions options_;
  Hasher hasher_;
  NodeMap<int> numbers_;
  std::unordered_map<std::string, int> leaves_;
  std::unordered_set<int> added_leaves_;
  std::unordered_map<TypeVar, TypeVar> type_vars_;
  int next_type_var_ = 0;
  const TypeVarNaming naming_{
      [this](const TypeVar& var) { return Numbered(var); },
      [](const TypeVar&, const TypeVarScope& around) { return "bound " + std::to_string(around.size()); }};
  int next_number_ = 0;
};

}  // namespace

std::string StructuralHash(const Expr& expr, const StructuralHashOptions& options) { return Digest(options).Of(expr); }

bool StructuralEqual(const Expr& a, const Expr& b) { return a == b || StructuralHash(a) == StructuralHash(b); }

}  // namespace collage
