// expr.h: Relay's expressions. Immutable, shared nodes; a graph of them is a program. Sharing a node means computing it
// once. Chains may be 100,000 nodes deep: nothing here or elsewhere recurses once per node, destruction included.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/ir/type.h"
#include "collage/runtime/tensor.h"

namespace collage {

struct OpDef;

enum class ExprKind : uint8_t {
  kVar,
  kGlobalVar,
  kConstant,
  kTuple,
  kTupleGetItem,
  kCall,
  kFunction,
  kLet,
  kIf,
  kOp,
  kConstructor,
  kMatch,
  kRefCreate,
  kRefRead,
  kRefWrite,
};

/// Origin of an expression: the name of the model's node, or file, line and column of a text.
struct Span {
  std::string source;  ///< file or ONNX node name; empty when unknown
  int line = 0;
  int column = 0;
};

/// Device that computes or keeps a value (RFC 0.81, Phase 1; TVM's VirtualDevice). Empty means unconstrained.
struct VirtualDevice {
  int device_type = 0;  ///< DLDeviceType; 0 = unconstrained
  int device_id = -1;
  std::string target;
  std::string memory_scope;
  bool operator==(const VirtualDevice&) const = default;
};

class ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

/// Base of all expressions. The checked type is a cache that type inference fills; it is a function of the node alone.
class ExprNode {
 public:
  virtual ~ExprNode() = default;
  ExprNode(const ExprNode&) = delete;
  ExprNode& operator=(const ExprNode&) = delete;

  ExprKind kind() const { return kind_; }
  /// Null until inferred (see InferType).
  const Type& checked_type() const { return checked_type_; }
  void set_checked_type(Type type) const { checked_type_ = std::move(type); }
  const Span& span() const { return span_ ? *span_ : kNoSpan; }
  void set_span(Span span) const { span_ = std::make_shared<const Span>(std::move(span)); }
  void share_span(const ExprNode& other) const { span_ = other.span_; }
  const VirtualDevice& virtual_device() const { return virtual_device_ ? *virtual_device_ : kNoDevice; }
  void set_virtual_device(VirtualDevice device) const {
    virtual_device_ = std::make_shared<const VirtualDevice>(std::move(device));
  }

 protected:
  explicit ExprNode(ExprKind kind) : kind_(kind) {}
  /// Releases a child without recursion: the last owner of a deep chain frees it in a loop.
  static void Release(Expr child);
  static void ReleaseAll(std::vector<Expr>& children);

 private:
  static const Span kNoSpan;
  static const VirtualDevice kNoDevice;

  ExprKind kind_;
  mutable Type checked_type_;
  mutable std::shared_ptr<const Span> span_;
  mutable std::shared_ptr<const VirtualDevice> virtual_device_;
};

/// A local variable: a function parameter, let-bound, or free. Identity is the node, the name is only a hint.
class VarNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kVar;
  VarNode(std::string name, Type type) : ExprNode(kKind), name_(std::move(name)), type_(std::move(type)) {}
  const std::string& name() const { return name_; }
  /// The annotation; null when none was written.
  const Type& type_annotation() const { return type_; }

 private:
  std::string name_;
  Type type_;
};
using Var = std::shared_ptr<const VarNode>;

/// A reference to a function of the module, by name.
class GlobalVarNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kGlobalVar;
  explicit GlobalVarNode(std::string name) : ExprNode(kKind), name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};
using GlobalVar = std::shared_ptr<const GlobalVarNode>;

class ConstantNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kConstant;
  explicit ConstantNode(Tensor value);
  const Tensor& value() const { return value_; }
  bool is_scalar() const { return value_.rank() == 0; }

 private:
  Tensor value_;
};
using Constant = std::shared_ptr<const ConstantNode>;

class TupleNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kTuple;
  explicit TupleNode(std::vector<Expr> fields) : ExprNode(kKind), fields_(std::move(fields)) {}
  ~TupleNode() override { ReleaseAll(fields_); }
  const std::vector<Expr>& fields() const { return fields_; }

 private:
  std::vector<Expr> fields_;
};

/// `tuple.index`, a projection.
class TupleGetItemNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kTupleGetItem;
  TupleGetItemNode(Expr tuple, int index) : ExprNode(kKind), tuple_(std::move(tuple)), index_(index) {}
  ~TupleGetItemNode() override { Release(std::move(tuple_)); }
  const Expr& tuple() const { return tuple_; }
  int index() const { return index_; }

 private:
  Expr tuple_;
  int index_;
};

/// A call of an operator, a function, a constructor or anything of function type.
class CallNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kCall;
  CallNode(Expr callee, std::vector<Expr> args, Attrs attrs, std::vector<Type> type_args)
      : ExprNode(kKind),
        callee_(std::move(callee)),
        args_(std::move(args)),
        attrs_(std::move(attrs)),
        type_args_(std::move(type_args)) {}
  ~CallNode() override {
    Release(std::move(callee_));
    ReleaseAll(args_);
  }
  const Expr& callee() const { return callee_; }
  const std::vector<Expr>& args() const { return args_; }
  const Attrs& attrs() const { return attrs_; }
  const std::vector<Type>& type_args() const { return type_args_; }
  /// The operator's definition when this calls an operator, else null.
  const OpDef* op() const;

 private:
  Expr callee_;
  std::vector<Expr> args_;
  Attrs attrs_;
  std::vector<Type> type_args_;
};
using Call = std::shared_ptr<const CallNode>;

/// `fn [A] (%x: T, …) -> R { body }` with attributes such as Primitive, Compiler, Composite, global_symbol.
class FunctionNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kFunction;
  FunctionNode(std::vector<Var> params, Expr body, Type result_type, std::vector<TypeVar> type_params, Attrs attrs)
      : ExprNode(kKind),
        params_(std::move(params)),
        body_(std::move(body)),
        result_type_(std::move(result_type)),
        type_params_(std::move(type_params)),
        attrs_(std::move(attrs)) {}
  ~FunctionNode() override { Release(std::move(body_)); }
  const std::vector<Var>& params() const { return params_; }
  const Expr& body() const { return body_; }
  /// The annotation; null when none.
  const Type& result_type() const { return result_type_; }
  const std::vector<TypeVar>& type_params() const { return type_params_; }
  const Attrs& attrs() const { return attrs_; }

 private:
  std::vector<Var> params_;
  Expr body_;
  Type result_type_;
  std::vector<TypeVar> type_params_;
  Attrs attrs_;
};
using Function = std::shared_ptr<const FunctionNode>;

/// `let var = value; body`.
class LetNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kLet;
  LetNode(Var var, Expr value, Expr body)
      : ExprNode(kKind), var_(std::move(var)), value_(std::move(value)), body_(std::move(body)) {}
  ~LetNode() override {
    Release(std::move(value_));
    Release(std::move(body_));
  }
  const Var& var() const { return var_; }
  const Expr& value() const { return value_; }
  const Expr& body() const { return body_; }

 private:
  Var var_;
  Expr value_;
  Expr body_;
};

class IfNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kIf;
  IfNode(Expr condition, Expr then_branch, Expr else_branch)
      : ExprNode(kKind),
        condition_(std::move(condition)),
        then_(std::move(then_branch)),
        else_(std::move(else_branch)) {}
  ~IfNode() override {
    Release(std::move(condition_));
    Release(std::move(then_));
    Release(std::move(else_));
  }
  const Expr& condition() const { return condition_; }
  const Expr& then_branch() const { return then_; }
  const Expr& else_branch() const { return else_; }

 private:
  Expr condition_;
  Expr then_;
  Expr else_;
};

/// An operator of the op table; one node per operator, so identity is equality.
class OpNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kOp;
  explicit OpNode(const OpDef* def) : ExprNode(kKind), def_(def) {}
  const OpDef& def() const { return *def_; }
  const std::string& name() const;

 private:
  const OpDef* def_;
};
using Op = std::shared_ptr<const OpNode>;

/// A constructor of an algebraic data type.
class ConstructorNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kConstructor;
  ConstructorNode(std::string name, std::vector<Type> inputs, GlobalTypeVar belongs_to)
      : ExprNode(kKind), name_(std::move(name)), inputs_(std::move(inputs)), belongs_to_(std::move(belongs_to)) {}
  const std::string& name() const { return name_; }
  const std::vector<Type>& inputs() const { return inputs_; }
  const GlobalTypeVar& belongs_to() const { return belongs_to_; }

 private:
  std::string name_;
  std::vector<Type> inputs_;
  GlobalTypeVar belongs_to_;
};
using Constructor = std::shared_ptr<const ConstructorNode>;

/// A pattern of `match`: wildcard `_`, variable, constructor or tuple with sub-patterns.
struct Pattern {
  enum class Kind : uint8_t { kWildcard, kVar, kConstructor, kTuple };
  Kind kind = Kind::kWildcard;
  Var var;                            ///< kVar
  Constructor constructor;            ///< kConstructor
  std::vector<Pattern> sub_patterns;  ///< kConstructor, kTuple
};

struct Clause {
  Pattern pattern;
  Expr body;
};

/// `match (data) { pattern => { body }, … }`; `match?` when the clauses need not be complete.
class MatchNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kMatch;
  MatchNode(Expr data, std::vector<Clause> clauses, bool complete)
      : ExprNode(kKind), data_(std::move(data)), clauses_(std::move(clauses)), complete_(complete) {}
  ~MatchNode() override {
    Release(std::move(data_));
    for (Clause& clause : clauses_) Release(std::move(clause.body));
  }
  const Expr& data() const { return data_; }
  const std::vector<Clause>& clauses() const { return clauses_; }
  bool complete() const { return complete_; }

 private:
  Expr data_;
  std::vector<Clause> clauses_;
  bool complete_;
};

class RefCreateNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kRefCreate;
  explicit RefCreateNode(Expr value) : ExprNode(kKind), value_(std::move(value)) {}
  ~RefCreateNode() override { Release(std::move(value_)); }
  const Expr& value() const { return value_; }

 private:
  Expr value_;
};

class RefReadNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kRefRead;
  explicit RefReadNode(Expr ref) : ExprNode(kKind), ref_(std::move(ref)) {}
  ~RefReadNode() override { Release(std::move(ref_)); }
  const Expr& ref() const { return ref_; }

 private:
  Expr ref_;
};

class RefWriteNode : public ExprNode {
 public:
  static constexpr ExprKind kKind = ExprKind::kRefWrite;
  RefWriteNode(Expr ref, Expr value) : ExprNode(kKind), ref_(std::move(ref)), value_(std::move(value)) {}
  ~RefWriteNode() override {
    Release(std::move(ref_));
    Release(std::move(value_));
  }
  const Expr& ref() const { return ref_; }
  const Expr& value() const { return value_; }

 private:
  Expr ref_;
  Expr value_;
};

/// Downcast by kind; null when `expr` is null or of another kind: `if (auto* call = As<CallNode>(e))`.
template <typename T>
const T* As(const Expr& expr) {
  return expr && expr->kind() == T::kKind ? static_cast<const T*>(expr.get()) : nullptr;
}
/// Casts like the above, and keeps ownership.
template <typename T>
std::shared_ptr<const T> AsShared(const Expr& expr) {
  return expr && expr->kind() == T::kKind ? std::static_pointer_cast<const T>(expr) : nullptr;
}

Var MakeVar(std::string name, Type type = nullptr);
Constant MakeConstant(Tensor value);
/// A rank-0 constant.
Constant MakeScalar(double value, DataType dtype);
Expr MakeTuple(std::vector<Expr> fields);
Expr MakeTupleGetItem(Expr tuple, int index);
/// A call of any callee. For an operator, prefer the overload by name, which checks attributes and fills in defaults.
Expr MakeCall(Expr callee, std::vector<Expr> args, Attrs attrs = {}, std::vector<Type> type_args = {});
/// A call of operator `op_name`: attributes checked against its schema and completed with defaults.
/// Throws kInput for an unknown operator or attribute, or a value of the wrong kind.
Expr MakeCall(std::string_view op_name, std::vector<Expr> args, Attrs attrs = {});
Function MakeFunction(std::vector<Var> params, Expr body, Type result_type = nullptr, Attrs attrs = {},
                      std::vector<TypeVar> type_params = {});
/// `function` with attribute `name` set.
Function WithAttr(const Function& function, std::string name, AttrValue value);

}  // namespace collage
