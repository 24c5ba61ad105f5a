// replay.cc: a walk over the instructions with the types of values in place of values, then a plan of their memory.
#include "bytecode/replay.h"

#include <algorithm>
#include <set>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "ir/ops/dynamic.h"
#include "ir/ops/random/random.h"
#include "ir/tensor_types.h"
#include "runtime/plan/memory_planner.h"

namespace collage::vm {
namespace {

/// Values that are kept, at most: masks and tables made of sizes.
constexpr size_t kMostKnownBytes = size_t{16} << 20;

/// Instructions that are planned, at most; functions that call each other may have many more.
constexpr uint64_t kMostInstructions = 1'000'000;

/// Thrown by the planner where it gives up.
struct CannotPlan {};

/// Whether a function has no jumps and references, and one return.
bool IsStraight(const VmFunction& function) {
  const auto computes = [](const Instruction& instruction) {
    switch (instruction.opcode) {
      case Opcode::kMove:
      case Opcode::kConstant:
      case Opcode::kTuple:
      case Opcode::kField:
      case Opcode::kOperator:
      case Opcode::kKernel:
      case Opcode::kDynamicKernel:
      case Opcode::kClosure:
      case Opcode::kCall: return true;
      default: return false;
    }
  };
  if (function.code.empty() || function.self >= 0) return false;
  const Opcode last = function.code.back().opcode;
  return (last == Opcode::kReturn || last == Opcode::kTailCall) &&
         std::all_of(function.code.begin(), function.code.end() - 1, computes);
}

}  // namespace

class ReplayPlanner {
 public:
  ReplayPlanner(const Program& program, const VmFunction& function, KernelInstances& kernels, Replay& made)
      : program_(program), function_(function), kernels_(kernels), made_(made) {}

  /// Throws CannotPlan.
  void Run(const std::vector<Value>& args) {
    std::vector<Planned> planned;
    for (const Value& arg : args) {
      const Tensor& tensor = arg.tensor();
      planned.push_back(NewTensor(Root::kArgument, tensor.shape(), tensor.dtype()));
      made_.roots_.back().index = planned.size() - 1;
    }
    made_.result_ = PlanFunction(function_, std::move(planned));
    PlaceValues();
  }

 private:
  using Planned = Replay::Planned;
  using Root = Replay::Root;
  using Step = Replay::Step;

  /// The result of `function`, planned in the place of its call.
  Planned PlanFunction(const VmFunction& function, std::vector<Planned> args) {
    const bool fits = args.size() == static_cast<size_t>(function.num_params + function.num_captured);
    if (!IsStraight(function) || !fits || depth_ >= Replay::kDeepest) throw CannotPlan();
    args.resize(static_cast<size_t>(function.num_registers));
    std::swap(args, registers_);
    ++depth_;
    Planned result;
    for (const Instruction& instruction : function.code) {
      if (++made_.num_instructions_ > kMostInstructions) throw CannotPlan();
      result = Plan(instruction);
      if (instruction.dst >= 0) registers_[static_cast<size_t>(instruction.dst)] = result;
      for (const int reg : instruction.dead) registers_[static_cast<size_t>(reg)] = {};
    }
    --depth_;
    std::swap(args, registers_);
    return result;
  }

  const Planned& At(int reg) const {
    const Planned& planned = registers_[static_cast<size_t>(reg)];
    if (planned.root < 0 && !planned.is_tuple) throw CannotPlan();  // empty, or a function
    return planned;
  }
  std::vector<Planned> At(const std::vector<int>& regs) const {
    std::vector<Planned> values;
    for (const int reg : regs) values.push_back(At(reg));
    return values;
  }

  Planned NewTensor(Root::Where where, const Shape& shape, DataType dtype) {
    Root& root = made_.roots_.emplace_back();
    root.where = where;
    root.shape = shape;
    root.dtype = dtype;
    Planned planned;
    planned.root = static_cast<int>(made_.roots_.size()) - 1;
    planned.shape = shape;
    return planned;
  }
  Planned TupleOf(std::vector<Planned> fields) const {
    Planned planned;
    planned.is_tuple = true;
    planned.fields = std::move(fields);
    if (std::ranges::all_of(planned.fields, IsKnown)) {
      std::vector<Value> values;
      for (const Planned& field : planned.fields) values.push_back(field.known);
      planned.known = Value::Tuple(std::move(values));
    }
    return planned;
  }
  /// A value that is the same in every run.
  Planned Known(const Value& value) {
    if (value.kind() == Value::Kind::kTuple) {
      std::vector<Planned> fields;
      for (const Value& field : value.fields()) fields.push_back(Known(field));
      return TupleOf(std::move(fields));
    }
    if (value.kind() != Value::Kind::kTensor) throw CannotPlan();
    const Tensor& tensor = value.tensor();
    Planned planned = NewTensor(Root::kKnown, tensor.shape(), tensor.dtype());
    made_.roots_.back().tensor = tensor;
    planned.known = value;
    return planned;
  }
  Planned Computed(const Value& value) {
    for (const Tensor& tensor : FlattenTensors(value)) known_bytes_ += tensor.size_bytes();
    if (known_bytes_ > kMostKnownBytes) throw CannotPlan();
    return Known(value);
  }
  static bool IsKnown(const Planned& planned) { return planned.known.defined(); }

  const Root& RootOf(const Planned& planned) const { return made_.roots_[static_cast<size_t>(planned.root)]; }
  Type TypeOf(const Planned& planned) const {
    if (!planned.is_tuple) return TensorType(planned.shape, RootOf(planned).dtype);
    std::vector<Type> fields;
    for (const Planned& field : planned.fields) fields.push_back(TypeOf(field));
    return TupleType(std::move(fields));
  }
  /// A value of the type of `planned`, with zeros where nothing is known.
  Value Stand(const Planned& planned) const {
    if (IsKnown(planned)) return planned.known;
    if (!planned.is_tuple) return Tensor::Zeros(planned.shape, RootOf(planned).dtype);
    std::vector<Value> fields;
    for (const Planned& field : planned.fields) fields.push_back(Stand(field));
    return Value::Tuple(std::move(fields));
  }
  std::vector<Value> Stand(const std::vector<Planned>& args) const {
    std::vector<Value> values;
    for (const Planned& arg : args) values.push_back(Stand(arg));
    return values;
  }

  // ---- instructions ----

  Planned Plan(const Instruction& instruction) {
    const auto index = static_cast<size_t>(instruction.index);
    switch (instruction.opcode) {
      case Opcode::kMove:
      case Opcode::kReturn: return At(instruction.regs[0]);
      case Opcode::kConstant: return Known(Value(program_.constants[index]));
      case Opcode::kTuple: return TupleOf(At(instruction.regs));
      case Opcode::kField: {
        const Planned& tuple = At(instruction.regs[0]);
        if (!tuple.is_tuple || index >= tuple.fields.size()) throw CannotPlan();
        return tuple.fields[index];
      }
      case Opcode::kOperator: return PlanOperator(instruction.index, At(instruction.regs));
      case Opcode::kKernel: return PlanKernel(index, At(instruction.regs));
      case Opcode::kDynamicKernel: return PlanDynamic(index, At(instruction.regs));
      case Opcode::kClosure: {
        Planned closure;
        closure.function = instruction.index;
        closure.fields = At(instruction.regs);
        return closure;
      }
      case Opcode::kCall:
      case Opcode::kTailCall: {
        const Planned callee = registers_[static_cast<size_t>(instruction.regs[0])];
        if (callee.function < 0) throw CannotPlan();
        std::vector<Planned> args = At({instruction.regs.begin() + 1, instruction.regs.end()});
        args.insert(args.end(), callee.fields.begin(), callee.fields.end());
        return PlanFunction(program_.functions[static_cast<size_t>(callee.function)], std::move(args));
      }
      default: throw CannotPlan();
    }
  }

  Planned PlanOperator(int index, std::vector<Planned> args) {
    const OpCallEntry& call = program_.op_calls[static_cast<size_t>(index)];
    if (DrawsNumbers(*call.op)) throw CannotPlan();  // each run has numbers of its own
    if (ReadsShapeAlone(*call.op) || std::ranges::all_of(args, IsKnown)) {
      return Computed(ApplyOp(*call.op, call.attrs, Stand(args)));
    }
    const OpDef* op = call.op;
    Attrs attrs = call.attrs;
    if (const DynamicOp* dynamic = FindDynamicOp(op->name)) {
      // With sizes that are known it is the operator that takes them as attributes.
      std::vector<Tensor> values;
      for (const Planned& value : ValuesOf(*dynamic, std::span<const Planned>(args))) {
        if (!IsKnown(value) || value.is_tuple) throw CannotPlan();
        values.push_back(value.known.tensor());
      }
      op = &GetOp(dynamic->static_name)->def();
      attrs = StaticAttrs(*dynamic, std::move(attrs), values);
      args = DataOf(*dynamic, std::span<const Planned>(args));
    }
    std::vector<Type> types;
    for (const Planned& arg : args) types.push_back(TypeOf(arg));
    const Result<Type> type = op->relation({types, attrs});
    if (!type.ok() || !HasStaticTensorsOnly(*type)) throw CannotPlan();
    if (op->is_reshape && !args[0].is_tuple && AsTensorType(*type) != nullptr) {
      Planned view = args[0];
      view.known = {};
      view.shape = AsTensorType(*type)->static_shape();
      if (NumElements(view.shape) != NumElements(args[0].shape)) throw CannotPlan();
      return view;
    }
    return PlanEvaluation(
        {RunStep::kEvaluation, -1, index}, *type, args,
        [op, attrs](const std::vector<Value>& values, TensorPool&) { return ApplyOp(*op, attrs, values); });
  }

  Planned PlanEvaluation(const RunStep& at, const Type& result, const std::vector<Planned>& args,
                         std::function<Value(const std::vector<Value>&, TensorPool&)> evaluate) {
    Step step;
    step.kind = Step::kEvaluate;
    step.at = at;
    step.args = args;
    step.evaluate = std::move(evaluate);
    for (const Planned& arg : args) Flatten(arg, step.inputs);
    return Add(std::move(step), result, Root::kEvaluated);
  }

  Planned PlanKernel(size_t index, const std::vector<Planned>& args) {
    const KernelFunction& kernel = program_.kernels[index];
    const std::vector<PortInfo> inputs = kernel.executable.inputs();
    Step step;
    step.kind = Step::kPlan;
    step.at.plan = static_cast<int>(index);
    step.instance = &kernels_.Static(index);
    step.inputs = args;
    if (inputs.size() != args.size()) throw CannotPlan();
    for (size_t i = 0; i < args.size(); ++i) {
      const bool fits =
          !args[i].is_tuple && args[i].shape == inputs[i].shape && RootOf(args[i]).dtype == inputs[i].dtype;
      if (!fits) throw CannotPlan();
    }
    return Add(std::move(step), kernel.result, Root::kArena);
  }

  Planned PlanDynamic(size_t index, const std::vector<Planned>& args) {
    DynamicInstance& instance = kernels_.Dynamic(index);
    std::vector<Value> values;
    for (const Planned& arg : args) {
      if (arg.is_tuple) throw CannotPlan();
      values.push_back(IsKnown(arg) ? arg.known : Value(Tensor::View(arg.shape, RootOf(arg).dtype, nullptr, nullptr)));
    }
    const DynamicInstance::Shapes& shapes = instance.ShapesFor(instance.CheckArguments(values));
    if (std::ranges::all_of(args, IsKnown)) {
      TensorPool pool;
      return Computed(instance.Run(Stand(args), pool));
    }
    if (!instance.is_by_rows() && shapes.is_evaluated) {
      return PlanEvaluation(
          {RunStep::kEvaluatedKernel, -1, static_cast<int>(index)}, shapes.result, args,
          [&instance](const std::vector<Value>& values, TensorPool& pool) { return instance.Run(values, pool); });
    }
    Step step;
    step.at = {RunStep::kAnySize, -1, static_cast<int>(index)};
    step.kind = instance.is_by_rows() ? Step::kRows : Step::kCode;
    step.dynamic = &instance;
    step.inputs = args;
    if (!instance.is_by_rows()) step.sizes = *shapes.sizes;
    return Add(std::move(step), Type(shapes.result), Root::kArena);
  }

  static void Flatten(const Planned& planned, std::vector<Planned>& tensors) {
    if (!planned.is_tuple) return tensors.push_back(planned);
    for (const Planned& field : planned.fields) Flatten(field, tensors);
  }

  Planned Add(Step step, const Type& result, Root::Where where) {
    if (!HasStaticTensorsOnly(result)) throw CannotPlan();
    const Planned planned = Outputs(result, where, step);
    made_.steps_.push_back(std::move(step));
    return planned;
  }
  Planned Outputs(const Type& type, Root::Where where, Step& step) {
    if (const TupleTypeNode* tuple = AsTupleType(type)) {
      std::vector<Planned> fields;
      for (const Type& field : tuple->fields()) fields.push_back(Outputs(field, where, step));
      return TupleOf(std::move(fields));
    }
    const TensorTypeNode& tensor = *AsTensorType(type);
    const Planned planned = NewTensor(where, tensor.static_shape(), tensor.dtype());
    step.outputs.push_back(planned.root);
    return planned;
  }

  // ---- memory ----

  /// Results get memory of their own, other values a place in the arena.
  void PlaceValues() {
    std::vector<Planned> results;
    Flatten(made_.result_, results);
    std::set<int> seen;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].root < 0) throw CannotPlan();
      Root& root = made_.roots_[static_cast<size_t>(results[i].root)];
      if (root.where == Root::kArena) root.where = Root::kResult;
      root.destination = seen.insert(results[i].root).second ? static_cast<int>(i) : -1;
    }
    std::vector<int> first(made_.roots_.size(), -1), last(made_.roots_.size(), -1);
    for (size_t i = 0; i < made_.steps_.size(); ++i) {
      const Step& step = made_.steps_[i];
      for (const int output : step.outputs) first[static_cast<size_t>(output)] = static_cast<int>(i);
      for (const int output : step.outputs) last[static_cast<size_t>(output)] = static_cast<int>(i);
      for (const Planned& input : step.inputs) last[static_cast<size_t>(input.root)] = static_cast<int>(i);
    }
    FindReplaced(last);
    std::vector<LiveRange> ranges;
    std::vector<size_t> in_arena;
    for (size_t i = 0; i < made_.roots_.size(); ++i) {
      const Root& root = made_.roots_[i];
      if (root.where != Root::kArena) continue;
      const std::optional<size_t> bytes = CheckedBytes(root.shape, root.dtype);
      if (!bytes) throw CannotPlan();
      constexpr size_t kAligned = TensorPool::kAlignment;
      const auto rounded = static_cast<int64_t>((*bytes / kAligned + 1) * kAligned);
      ranges.push_back({rounded, first[i], last[i]});
      in_arena.push_back(i);
    }
    const ArenaPlan plan = PlanArena(ranges);
    for (size_t i = 0; i < in_arena.size(); ++i) {
      const Root& root = made_.roots_[in_arena[i]];
      made_.roots_[in_arena[i]].index = static_cast<size_t>(plan.offsets[i]);
      made_.arena_.push_back(
          {plan.offsets[i], ranges[i].bytes, ranges[i].first_use, ranges[i].last_use, root.shape, root.dtype});
    }
    made_.arena_bytes_ = plan.total_bytes;
  }

  /// Results that plans may write where arguments are, which nobody reads later. `last` step that uses each root.
  void FindReplaced(const std::vector<int>& last) {
    std::vector<Planned> results;
    Flatten(made_.result_, results);
    for (size_t i = 0; i < made_.steps_.size(); ++i) {
      const Step& step = made_.steps_[i];
      if (step.kind != Step::kPlan) continue;
      for (const auto [input, output] : step.instance->in_place()) {
        Root& result = made_.roots_[static_cast<size_t>(step.outputs[static_cast<size_t>(output)])];
        const int source = step.inputs[static_cast<size_t>(input)].root;
        const Root& argument = made_.roots_[static_cast<size_t>(source)];
        const auto reads = [&](const Planned& planned) { return planned.root == source; };
        const bool is_last = last[static_cast<size_t>(source)] == static_cast<int>(i) &&
                             std::ranges::count_if(step.inputs, reads) == 1 && std::ranges::none_of(results, reads);
        if (result.where != Root::kResult || argument.where != Root::kArgument || !is_last) continue;
        result.replaces = static_cast<int>(argument.index);
      }
    }
  }

  const Program& program_;
  const VmFunction& function_;
  KernelInstances& kernels_;
  Replay& made_;
  std::vector<Planned> registers_;  ///< registers of the function that is being planned
  size_t depth_ = 0;
  size_t known_bytes_ = 0;
};

std::unique_ptr<Replay> Replay::Make(const Program& program, const VmFunction& function, const std::vector<Value>& args,
                                     KernelInstances& kernels) {
  if (!IsStraight(function)) return nullptr;  // before kernels are loaded in vain
  auto replay = std::make_unique<Replay>();
  try {
    ReplayPlanner(program, function, kernels, *replay).Run(args);
  } catch (const CannotPlan&) {
    return nullptr;
  } catch (const Error&) {
    return nullptr;  // it is the interpreter's to say what is wrong, and where
  }
  return replay;
}

}  // namespace collage::vm
