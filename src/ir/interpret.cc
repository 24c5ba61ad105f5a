// interpret.cc: one frame per activation of a function, branch or clause; a frame remembers what was computed in it, so
// that a shared node is computed once, and sees the frames around it. Within a frame an explicit stack: chains may be
// deep.
#include "ir/interpret.h"

#include <fmt/format.h>

#include <deque>
#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/evaluate.h"

namespace collage {

struct Frame {
  const Frame* parent = nullptr;
  std::unordered_map<const ExprNode*, Value> values;

  const Value* Find(const ExprNode* node) const {
    for (const Frame* frame = this; frame != nullptr; frame = frame->parent) {
      auto it = frame->values.find(node);
      if (it != frame->values.end()) return &it->second;
    }
    return nullptr;
  }
};

struct Closure {
  const FunctionNode* function;
  const Frame* frame;  ///< in which the function was made; null for global ones
};

namespace {

Value TensorValue(Tensor tensor) {
  Value value;
  value.kind = Value::Kind::kTensor;
  value.tensor = std::move(tensor);
  return value;
}

Value ClosureValue(const FunctionNode* function, const Frame* frame) {
  Value value;
  value.kind = Value::Kind::kClosure;
  value.closure = std::make_shared<Closure>(Closure{function, frame});
  return value;
}

Type TypeOf(const Value& value) {
  if (value.kind == Value::Kind::kTensor) return TensorType(value.tensor.shape(), value.tensor.dtype());
  if (value.kind != Value::Kind::kTuple)
    throw Error(ErrorCategory::kInput, "an operator gets something other than tensors");
  std::vector<Type> fields;
  for (const Value& field : value.fields) fields.push_back(TypeOf(field));
  return TupleType(std::move(fields));
}

void Flatten(const Value& value, std::vector<Tensor>& tensors) {
  if (value.kind == Value::Kind::kTensor) return tensors.push_back(value.tensor);
  if (value.kind != Value::Kind::kTuple) {
    throw Error(ErrorCategory::kUnsupported, "the result holds something other than tensors and tuples");
  }
  for (const Value& field : value.fields) Flatten(field, tensors);
}

/// The next of `tensors` as a value of `type`.
Value Unflatten(const Type& type, std::span<const Tensor> tensors, size_t& next) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    Value value;
    for (const Type& field : tuple->fields()) value.fields.push_back(Unflatten(field, tensors, next));
    return value;
  }
  const TensorTypeNode* wanted = AsTensorType(type);
  if (wanted == nullptr) throw Error(ErrorCategory::kUnsupported, "an input of type " + ToString(type));
  if (next >= tensors.size()) throw Error(ErrorCategory::kInput, "too few inputs");
  const Tensor& tensor = tensors[next++];
  if (tensor.dtype() != wanted->dtype() || (wanted->is_static() && wanted->static_shape() != tensor.shape())) {
    throw Error(ErrorCategory::kInput, fmt::format("an input must be {}, got {} {}", ToString(type),
                                                   tensor.dtype().ToString(), ToString(tensor.shape())));
  }
  return TensorValue(tensor);
}

class Interpreter {
 public:
  explicit Interpreter(const IRModule& module) : module_(module) {}

  Value CallClosure(const Closure& closure, std::vector<Value> args) {
    Frame& frame = frames_.emplace_back(Frame{closure.frame, {}});
    const std::vector<Var>& params = closure.function->params();
    if (args.size() != params.size())
      throw Error(ErrorCategory::kInput, "a function is called with the wrong number of arguments");
    for (size_t i = 0; i < params.size(); ++i) frame.values[params[i].get()] = std::move(args[i]);
    return Run(closure.function->body(), frame);
  }

 private:
  /// One step: compute `expr`, whose operands (`stage` 0) are pushed first; a let has three stages.
  struct Task {
    const ExprNode* expr;
    int stage;
  };

  Value Run(const Expr& root, Frame& frame) {
    std::vector<Task> tasks{{root.get(), 0}};
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      if (task.stage == 0 && frame.Find(task.expr) != nullptr) continue;
      Step(task, frame, tasks);
    }
    return *frame.Find(root.get());
  }

  void Step(const Task& task, Frame& frame, std::vector<Task>& tasks) {
    const ExprNode* expr = task.expr;
    if (expr->kind() == ExprKind::kLet) {
      const auto& let = static_cast<const LetNode&>(*expr);
      if (task.stage == 0) {
        tasks.push_back({expr, 1});
        tasks.push_back({let.value().get(), 0});
      } else if (task.stage == 1) {
        frame.values[let.var().get()] = Get(frame, let.value());
        tasks.push_back({expr, 2});
        tasks.push_back({let.body().get(), 0});
      } else {
        frame.values[expr] = Get(frame, let.body());
      }
      return;
    }
    if (task.stage == 0) {
      const std::vector<const ExprNode*> operands = Operands(*expr);
      if (!operands.empty()) {
        tasks.push_back({expr, 1});
        for (auto it = operands.rbegin(); it != operands.rend(); ++it) tasks.push_back({*it, 0});
        return;
      }
    }
    Value value = Compute(*expr, frame);
    frame.values[expr] = std::move(value);
  }

  static std::vector<const ExprNode*> Operands(const ExprNode& expr) {
    std::vector<const ExprNode*> operands;
    switch (expr.kind()) {
      case ExprKind::kTuple:
        for (const Expr& field : static_cast<const TupleNode&>(expr).fields()) operands.push_back(field.get());
        break;
      case ExprKind::kTupleGetItem: operands = {static_cast<const TupleGetItemNode&>(expr).tuple().get()}; break;
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(expr);
        if (call.op() == nullptr) operands.push_back(call.callee().get());
        for (const Expr& arg : call.args()) operands.push_back(arg.get());
        break;
      }
      case ExprKind::kIf: operands = {static_cast<const IfNode&>(expr).condition().get()}; break;
      case ExprKind::kMatch: operands = {static_cast<const MatchNode&>(expr).data().get()}; break;
      case ExprKind::kRefCreate: operands = {static_cast<const RefCreateNode&>(expr).value().get()}; break;
      case ExprKind::kRefRead: operands = {static_cast<const RefReadNode&>(expr).ref().get()}; break;
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(expr);
        operands = {write.ref().get(), write.value().get()};
        break;
      }
      default: break;
    }
    return operands;
  }

  static const Value& Get(const Frame& frame, const Expr& expr) {
    const Value* value = frame.Find(expr.get());
    COLLAGE_CHECK(value != nullptr) << "an operand was not computed";
    return *value;
  }

  Value Compute(const ExprNode& expr, Frame& frame) {
    switch (expr.kind()) {
      case ExprKind::kVar:
        throw Error(ErrorCategory::kInput,
                    fmt::format("free variable '%{}' has no value", static_cast<const VarNode&>(expr).name()));
      case ExprKind::kGlobalVar:
        return ClosureValue(module_.Lookup(static_cast<const GlobalVarNode&>(expr).name()).get(), nullptr);
      case ExprKind::kConstant: return TensorValue(static_cast<const ConstantNode&>(expr).value());
      case ExprKind::kFunction: return ClosureValue(static_cast<const FunctionNode*>(&expr), &frame);
      case ExprKind::kConstructor: {
        const auto& constructor = static_cast<const ConstructorNode&>(expr);
        Value value;
        value.kind = constructor.inputs().empty() ? Value::Kind::kData : Value::Kind::kClosure;
        value.constructor =
            std::make_shared<ConstructorNode>(constructor.name(), constructor.inputs(), constructor.belongs_to());
        return value;
      }
      case ExprKind::kTuple: {
        Value value;
        for (const Expr& field : static_cast<const TupleNode&>(expr).fields())
          value.fields.push_back(Get(frame, field));
        return value;
      }
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(expr);
        return Get(frame, item.tuple()).fields.at(static_cast<size_t>(item.index()));
      }
      case ExprKind::kCall: return Call(static_cast<const CallNode&>(expr), frame);
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(expr);
        Frame& inner = frames_.emplace_back(Frame{&frame, {}});
        return Run(Get(frame, branch.condition()).tensor.At(0) != 0 ? branch.then_branch() : branch.else_branch(),
                   inner);
      }
      case ExprKind::kMatch: return Match(static_cast<const MatchNode&>(expr), frame);
      case ExprKind::kRefCreate: {
        Value value;
        value.kind = Value::Kind::kReference;
        value.reference = std::make_shared<Value>(Get(frame, static_cast<const RefCreateNode&>(expr).value()));
        return value;
      }
      case ExprKind::kRefRead: return *Get(frame, static_cast<const RefReadNode&>(expr).ref()).reference;
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(expr);
        *Get(frame, write.ref()).reference = Get(frame, write.value());
        return {};
      }
      default: throw Error(ErrorCategory::kUnsupported, "an operator that is not called has no value");
    }
  }

  Value Call(const CallNode& call, Frame& frame) {
    std::vector<Value> args;
    for (const Expr& arg : call.args()) args.push_back(Get(frame, arg));
    if (const OpDef* op = call.op()) return CallOp(*op, call.attrs(), args);
    const Value& callee = Get(frame, call.callee());
    if (callee.constructor) {
      Value value;
      value.kind = Value::Kind::kData;
      value.constructor = callee.constructor;
      value.fields = std::move(args);
      return value;
    }
    return CallClosure(*callee.closure, std::move(args));
  }

  static Value CallOp(const OpDef& op, const Attrs& attrs, const std::vector<Value>& args) {
    std::vector<Tensor> inputs;
    std::vector<Type> types;
    for (const Value& arg : args) {
      types.push_back(TypeOf(arg));
      Flatten(arg, inputs);
    }
    const std::vector<Tensor> outputs = EvaluateOp(op, attrs, types, inputs);
    size_t next = 0;
    return Unflatten(*op.relation({types, attrs}), outputs, next);
  }

  Value Match(const MatchNode& match, Frame& frame) {
    const Value data = Get(frame, match.data());
    for (const Clause& clause : match.clauses()) {
      Frame& inner = frames_.emplace_back(Frame{&frame, {}});
      if (Bind(clause.pattern, data, inner)) return Run(clause.body, inner);
    }
    throw Error(ErrorCategory::kInput, "no clause of a match fits");
  }

  static bool Bind(const Pattern& pattern, const Value& value, Frame& frame) {
    if (pattern.kind == Pattern::Kind::kVar) frame.values[pattern.var.get()] = value;
    if (pattern.kind == Pattern::Kind::kWildcard || pattern.kind == Pattern::Kind::kVar) return true;
    if (pattern.kind == Pattern::Kind::kConstructor && pattern.constructor->name() != value.constructor->name())
      return false;
    for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) {
      if (!Bind(pattern.sub_patterns[i], value.fields.at(i), frame)) return false;
    }
    return true;
  }

  const IRModule& module_;
  std::deque<Frame> frames_;  ///< closures refer to frames, so all live as long as this
};

}  // namespace

std::vector<Tensor> Interpret(const IRModule& module, std::string_view name, std::span<const Tensor> inputs) {
  const Function& function = module.Lookup(name);
  std::vector<Value> args;
  size_t next = 0;
  for (const Var& param : function->params()) {
    args.push_back(
        Unflatten(param->type_annotation() ? param->type_annotation() : param->checked_type(), inputs, next));
  }
  Interpreter interpreter(module);
  std::vector<Tensor> results;
  Flatten(interpreter.CallClosure({function.get(), nullptr}, std::move(args)), results);
  return results;
}

}  // namespace collage
