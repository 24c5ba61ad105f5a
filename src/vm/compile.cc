// compile.cc: Relay to bytecode. One bytecode function for each function, closures taking along what ScopeAnalysis
// says. Expressions are compiled with an explicit stack; only branches within branches use the machine's own.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/place.h"
#include "ir/tensor_types.h"
#include "vm/program_builder.h"

namespace collage::vm {
namespace {

constexpr int kDeepestBranches = 1000;

/// As models that were imported name their outputs.
std::vector<std::string> ResultNames(const Attrs& attrs) {
  std::vector<std::string> names;
  const AttrValue* list = attrs.Find("output_names");
  if (list == nullptr || list->as_list() == nullptr) return names;
  for (const AttrValue& name : *list->as_list()) {
    if (name.as_string() != nullptr) names.push_back(*name.as_string());
  }
  return names;
}

class FunctionCompiler {
 public:
  FunctionCompiler(ProgramBuilder& builder, const ProgramBuilder::Waiting& work)
      : builder_(builder), index_(work.index), function_(work.function), scopes_(work.scopes) {}

  void Run() {
    VmFunction result = std::move(builder_.function(index_));
    result.num_params = static_cast<int>(function_->params().size());
    result.type_params = function_->type_params();
    for (const Var& param : function_->params()) {
      result.params.push_back(param->type_annotation());
      result.param_names.push_back(param->name());
      Define(*param, NewRegister());
    }
    if (HasTensorsOnly(function_->body()->checked_type())) {
      result.result = function_->body()->checked_type();
      result.result_names = ResultNames(function_->attrs());
    }
    result.dimensions = NamedDimensions(function_->attrs(), result.param_names);
    result.strings = StringTensors(function_->attrs());
    result.specialises = function_->attrs().StringOr(kAttrSpecialises, "");
    const std::vector<Expr>& captures = scopes_->Captures(*function_);
    result.num_captured = static_cast<int>(captures.size());
    for (const Expr& captured : captures) Define(*captured, NewRegister());
    if (const VarNode* self = scopes_->SelfOf(*function_)) {
      result.self = NewRegister();
      Define(*self, result.self);
    }
    name_ = result.name;
    CompileTail(function_->body(), /*dst=*/-1);
    result.num_registers = num_registers_;
    result.code = std::move(code_);
    FindDeadRegisters(&result);
    builder_.function(index_) = std::move(result);
  }

 private:
  // ---- registers and instructions ----

  int NewRegister() { return num_registers_++; }

  /// `node`'s value is in `reg` from here to the end of the innermost region.
  void Define(const ExprNode& node, int reg) {
    available_[&node] = reg;
    defined_.push_back(&node);
  }
  size_t BeginRegion() const { return defined_.size(); }
  void EndRegion(size_t size) {
    for (; defined_.size() > size; defined_.pop_back()) available_.erase(defined_.back());
  }

  Instruction& Emit(Opcode opcode, int dst, std::vector<int> regs, const ExprNode& expr) {
    Instruction& instruction = code_.emplace_back();
    instruction.opcode = opcode;
    instruction.dst = dst;
    instruction.regs = std::move(regs);
    instruction.where = PlaceOf(expr.span());
    return instruction;
  }
  size_t EmitJump(Opcode opcode, std::vector<int> regs, const ExprNode& expr) {
    Emit(opcode, -1, std::move(regs), expr);
    return code_.size() - 1;
  }
  void Land(size_t jump) { code_[jump].target = static_cast<int>(code_.size()); }

  // ---- expressions ----

  static bool IsBlock(const Expr& expr) {
    return expr->kind() == ExprKind::kLet || expr->kind() == ExprKind::kIf || expr->kind() == ExprKind::kMatch;
  }

  /// Costs nothing to evaluate again.
  static bool IsLeaf(const Expr& expr) {
    return expr->kind() == ExprKind::kConstant || expr->kind() == ExprKind::kGlobalVar ||
           expr->kind() == ExprKind::kConstructor;
  }

  std::vector<Expr> Operands(const Expr& expr) const {
    switch (expr->kind()) {
      case ExprKind::kFunction: return scopes_->Captures(static_cast<const FunctionNode&>(*expr));
      case ExprKind::kLet: return {};
      case ExprKind::kIf: return {static_cast<const IfNode&>(*expr).condition()};
      case ExprKind::kMatch: return {static_cast<const MatchNode&>(*expr).data()};
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        std::vector<Expr> operands = call.args();
        const bool is_direct = call.op() != nullptr || call.callee()->kind() == ExprKind::kConstructor ||
                               builder_.KernelIndex(AsShared<FunctionNode>(call.callee())) ||
                               builder_.DynamicKernelIndex(AsShared<FunctionNode>(call.callee()));
        if (!is_direct) operands.insert(operands.begin(), call.callee());
        return operands;
      }
      default: return Children(expr);
    }
  }

  bool IsAvailable(const Expr& expr) const { return available_.count(expr.get()) != 0; }
  int RegisterOf(const Expr& expr) const { return available_.at(expr.get()); }
  std::vector<int> RegistersOf(const std::vector<Expr>& exprs) const {
    std::vector<int> regs;
    for (const Expr& expr : exprs) regs.push_back(RegisterOf(expr));
    return regs;
  }

  /// Evaluates `root`, what it needs first; returns the register of its value.
  int Compile(const Expr& root) {
    struct Frame {
      Expr expr;
      std::vector<Expr> operands;
      size_t next = 0;
      std::optional<size_t> guard = std::nullopt;  // jump over the evaluation when it was done before
      size_t region = 0;
    };
    std::vector<Frame> stack;
    const auto push = [&](const Expr& expr) {
      Frame frame{expr, Operands(expr)};
      auto home = homes_.find(expr.get());
      if (home != homes_.end()) {
        frame.guard = EmitJump(Opcode::kJumpIfDone, {home->second}, *expr);
        frame.region = BeginRegion();
      }
      stack.push_back(std::move(frame));
    };
    if (!IsAvailable(root)) push(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.operands.size()) {
        const Expr operand = frame.operands[frame.next++];
        if (!IsAvailable(operand)) push(operand);
        continue;
      }
      const Frame done = std::move(frame);
      stack.pop_back();
      int reg = -1;
      if (!IsAvailable(done.expr)) {
        auto home = homes_.find(done.expr.get());
        reg = home != homes_.end() ? home->second : NewRegister();
        if (scopes_->IsShared(*done.expr) && !IsLeaf(done.expr)) homes_[done.expr.get()] = reg;
        EmitNode(done.expr, reg);
      }
      if (done.guard) {
        EndRegion(done.region);
        Land(*done.guard);
      }
      if (reg >= 0) Define(*done.expr, reg);
    }
    return RegisterOf(root);
  }

  /// One node whose operands are available.
  void EmitNode(const Expr& expr, int dst) {
    switch (expr->kind()) {
      case ExprKind::kConstant:
        Emit(Opcode::kConstant, dst, {}, *expr).index = builder_.ConstantIndex(static_cast<const ConstantNode&>(*expr));
        return;
      case ExprKind::kGlobalVar:
        Emit(Opcode::kClosure, dst, {}, *expr).index = builder_.GlobalIndex(static_cast<const GlobalVarNode&>(*expr));
        return;
      case ExprKind::kConstructor:
        Emit(Opcode::kConstructor, dst, {}, *expr).index = builder_.ConstructorIndex(AsShared<ConstructorNode>(expr));
        return;
      case ExprKind::kTuple: Emit(Opcode::kTuple, dst, RegistersOf(Children(expr)), *expr); return;
      case ExprKind::kTupleGetItem:
        Emit(Opcode::kField, dst, RegistersOf(Children(expr)), *expr).index =
            static_cast<const TupleGetItemNode&>(*expr).index();
        return;
      case ExprKind::kRefCreate: Emit(Opcode::kNewRef, dst, RegistersOf(Children(expr)), *expr); return;
      case ExprKind::kRefRead: Emit(Opcode::kReadRef, dst, RegistersOf(Children(expr)), *expr); return;
      case ExprKind::kRefWrite: Emit(Opcode::kWriteRef, dst, RegistersOf(Children(expr)), *expr); return;
      case ExprKind::kFunction: EmitClosure(expr, dst); return;
      case ExprKind::kCall: EmitCall(static_cast<const CallNode&>(*expr), dst); return;
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kMatch: {
        const size_t region = BeginRegion();
        CompileBlock(expr, dst);
        EndRegion(region);
        return;
      }
      case ExprKind::kVar:
        throw Error(ErrorCategory::kInput,
                    fmt::format("variable '%{}' has no value here", static_cast<const VarNode&>(*expr).name()));
      case ExprKind::kOp:
        throw Error(ErrorCategory::kInput,
                    fmt::format("operator '{}' is used as a value", static_cast<const OpNode&>(*expr).name()));
    }
  }

  void EmitClosure(const Expr& expr, int dst) {
    const Function function = AsShared<FunctionNode>(expr);
    auto [it, is_new] = inner_.emplace(expr.get(), -1);
    if (is_new) it->second = builder_.AddFunction(name_, function, scopes_);
    Emit(Opcode::kClosure, dst, RegistersOf(scopes_->Captures(*function)), *expr).index = it->second;
  }

  void EmitCall(const CallNode& call, int dst) {
    std::vector<int> regs = RegistersOf(call.args());
    if (call.op() != nullptr) {
      Emit(Opcode::kOperator, dst, std::move(regs), call).index = builder_.OpCallIndex(call);
    } else if (Constructor constructor = AsShared<ConstructorNode>(call.callee())) {
      Emit(Opcode::kData, dst, std::move(regs), call).index = builder_.ConstructorIndex(constructor);
    } else if (const auto kernel = builder_.KernelIndex(AsShared<FunctionNode>(call.callee()))) {
      Emit(Opcode::kKernel, dst, std::move(regs), call).index = *kernel;
    } else if (const auto shaped = builder_.DynamicKernelIndex(AsShared<FunctionNode>(call.callee()))) {
      Emit(Opcode::kDynamicKernel, dst, std::move(regs), call).index = *shaped;
    } else {
      regs.insert(regs.begin(), RegisterOf(call.callee()));
      Emit(Opcode::kCall, dst, std::move(regs), call);
    }
  }

  // ---- blocks ----

  /// Leaves the value of `expr` in `dst`, or returns it when `dst` is -1.
  void CompileTail(const Expr& expr, int dst) {
    if (IsBlock(expr) && !scopes_->IsShared(*expr)) return CompileBlock(expr, dst);
    const CallNode* call = dst < 0 && !scopes_->IsShared(*expr) ? As<CallNode>(expr) : nullptr;
    const bool is_function_call = call != nullptr && call->op() == nullptr &&
                                  call->callee()->kind() != ExprKind::kConstructor &&
                                  !builder_.KernelIndex(AsShared<FunctionNode>(call->callee())) &&
                                  !builder_.DynamicKernelIndex(AsShared<FunctionNode>(call->callee()));
    if (is_function_call) {
      std::vector<int> regs;
      for (const Expr& operand : Operands(expr)) regs.push_back(Compile(operand));
      Emit(Opcode::kTailCall, -1, std::move(regs), *expr);
      return;
    }
    const int value = Compile(expr);
    if (dst < 0) {
      Emit(Opcode::kReturn, -1, {value}, *expr);
    } else {
      Emit(Opcode::kMove, dst, {value}, *expr);
    }
  }

  void CompileBlock(Expr expr, int dst) {
    if (++depth_ > kDeepestBranches) {
      throw Error(ErrorCategory::kUnsupported, fmt::format("branches nest more than {} deep", kDeepestBranches));
    }
    // The value of a shared node further in must be kept, which CompileTail sees to.
    const Expr first = expr;
    const auto is_ours = [&] { return expr == first || !scopes_->IsShared(*expr); };
    while (As<LetNode>(expr) != nullptr && is_ours()) {
      const auto& let = static_cast<const LetNode&>(*expr);
      Define(*let.var(), Compile(let.value()));
      expr = Expr(let.body());
    }
    if (const IfNode* branch = As<IfNode>(expr); branch != nullptr && is_ours()) {
      CompileIf(*branch, dst);
    } else if (const MatchNode* match = As<MatchNode>(expr); match != nullptr && is_ours()) {
      CompileMatch(*match, dst);
    } else {
      CompileTail(expr, dst);
    }
    --depth_;
  }

  void CompileIf(const IfNode& branch, int dst) {
    const int condition = Compile(branch.condition());
    const size_t to_else = EmitJump(Opcode::kJumpUnless, {condition}, branch);
    CompileBranch(branch.then_branch(), dst);
    std::optional<size_t> to_end;
    if (dst >= 0) to_end = EmitJump(Opcode::kJump, {}, branch);
    Land(to_else);
    CompileBranch(branch.else_branch(), dst);
    if (to_end) Land(*to_end);
  }

  void CompileBranch(const Expr& expr, int dst) {
    const size_t region = BeginRegion();
    CompileTail(expr, dst);
    EndRegion(region);
  }

  void CompileMatch(const MatchNode& match, int dst) {
    const int data = Compile(match.data());
    std::vector<size_t> to_end;
    for (const Clause& clause : match.clauses()) {
      const size_t region = BeginRegion();
      std::vector<size_t> to_next;
      CompilePattern(clause.pattern, data, match, &to_next);
      CompileTail(clause.body, dst);
      if (dst >= 0) to_end.push_back(EmitJump(Opcode::kJump, {}, match));
      EndRegion(region);
      for (size_t jump : to_next) Land(jump);
    }
    Emit(Opcode::kNoClause, -1, {data}, match);
    for (size_t jump : to_end) Land(jump);
  }

  /// Binds the pattern's variables to the parts of `value`; adds the jumps that are taken when it does not fit.
  void CompilePattern(const Pattern& pattern, int value, const MatchNode& match, std::vector<size_t>* misfits) {
    if (pattern.kind == Pattern::Kind::kWildcard) return;
    if (pattern.kind == Pattern::Kind::kVar) return Define(*pattern.var, value);
    if (pattern.kind == Pattern::Kind::kConstructor) {
      misfits->push_back(EmitJump(Opcode::kJumpUnlessIs, {value}, match));
      code_.back().index = builder_.ConstructorIndex(pattern.constructor);
    }
    for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) {
      if (pattern.sub_patterns[i].kind == Pattern::Kind::kWildcard) continue;
      const int field = NewRegister();
      Emit(Opcode::kField, field, {value}, match).index = static_cast<int>(i);
      CompilePattern(pattern.sub_patterns[i], field, match, misfits);
    }
  }

  ProgramBuilder& builder_;
  int index_;
  Function function_;
  std::shared_ptr<const ScopeAnalysis> scopes_;
  std::string name_;
  std::vector<Instruction> code_;
  int num_registers_ = 0;
  int depth_ = 0;
  std::unordered_map<const ExprNode*, int> available_;  // node → register that surely holds its value here
  std::vector<const ExprNode*> defined_;                // keys of available_, innermost region last
  std::unordered_map<const ExprNode*, int> homes_;      // shared node → register that may hold its value
  std::unordered_map<const ExprNode*, int> inner_;      // function literal → its number
};

}  // namespace

Executable Compile(const IRModule& module, const CompileOptions& options) {
  ProgramBuilder builder(module, options);
  while (const auto work = builder.TakeWaiting()) FunctionCompiler(builder, *work).Run();
  Program program = builder.Finish();
  Verify(program, "compiled bytecode");
  return Executable(std::make_shared<const Program>(std::move(program)));
}

}  // namespace collage::vm
