// machine.cc: runs bytecode. Frames are on a stack of their own; a tail call takes its caller's frame.
#include <fmt/format.h>

#include <algorithm>

#include "bytecode/bytecode.h"
#include "bytecode/kernel_instances.h"
#include "bytecode/replay.h"
#include "bytecode/tensor_pool.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "ir/eval/random_draws.h"
#include "runtime/huge_pages.h"

namespace collage::vm {
namespace {

struct Frame {
  const VmFunction* function;
  std::vector<Value> registers;
  size_t next = 0;
  int dst = -1;  ///< the caller's register that gets the result
};

/// A global function that computes another one where the arguments have these shapes.
struct Specialised {
  int function;
  int general;
  std::vector<Shape> shapes;
};

std::vector<Specialised> FindSpecialised(const Program& program) {
  std::vector<Specialised> all;
  for (size_t i = 0; i < program.globals.size(); ++i) {
    const VmFunction& function = program.functions[i];
    if (function.specialises.empty()) continue;
    const auto general = std::find(program.globals.begin(), program.globals.end(), function.specialises);
    Specialised& one = all.emplace_back();
    one.function = static_cast<int>(i);
    one.general = static_cast<int>(general - program.globals.begin());
    for (const Type& param : function.params) one.shapes.push_back(AsTensorType(param)->static_shape());
  }
  return all;
}

/// Arguments of a global function that were seen before, by their types.
struct SeenArguments {
  int function;  ///< the function that was called
  int chosen;    ///< the function that computes it for these types
  std::vector<std::pair<Shape, DataType>> types;
  std::unique_ptr<Replay> replay;
  bool has_none = false;  ///< whether a replay was tried, in vain

  bool Fit(int called, const std::vector<Value>& args) const {
    return called == function && std::ranges::equal(args, types, [](const Value& arg, const auto& type) {
             return arg.kind() == Value::Kind::kTensor && arg.tensor().dtype() == type.second &&
                    arg.tensor().shape() == type.first;
           });
  }
};

/// Types of arguments that are remembered, at most. The latest ones are.
constexpr size_t kMostSeen = 16;

[[noreturn]] void Fail(const Instruction& instruction, const std::string& message) {
  throw Error(ErrorCategory::kInput, message, instruction.where);
}

}  // namespace

struct Machine::State {
  explicit State(Executable program)
      : executable(std::move(program)), specialised(FindSpecialised(Code())), kernels(Code()) {
    for (const Tensor& constant : Code().constants) Code().CheckConstant(constant);
  }

  const Program& Code() const { return executable.program(); }

  Value Invoke(std::string_view name, std::vector<Value> args, const RunOptions& run_options);
  int IndexOf(std::string_view name) const;
  void Check(const VmFunction& function, const std::vector<Value>& args) const;
  void Remember(int function, int chosen, const std::vector<Value>& args);
  std::optional<Value> RunReplay(SeenArguments& seen, const std::vector<Value>& args);
  Value Interpret(int function, std::vector<Value> args);

  int FunctionFor(int general, const std::vector<Value>& args) const;
  void Open(const Value& callee, std::vector<Value> args, int dst, const Instruction* call);
  void Return(Value value);
  void Step();
  Value Compute(const Instruction& instruction);
  Value Observed(const Instruction& instruction, const RunStep& at);
  RunStep AtOf(const Instruction& dynamic_kernel);
  Value Apply(const Instruction& instruction);
  Value RunKernel(const Instruction& instruction);
  void Call(const Instruction& instruction, bool is_tail);

  Value& Register(int index) { return stack.back().registers[static_cast<size_t>(index)]; }
  std::vector<Value> Registers(const std::vector<int>& indices) {
    std::vector<Value> values;
    values.reserve(indices.size());
    for (int index : indices) values.push_back(Register(index));
    return values;
  }

  Executable executable;
  std::vector<Specialised> specialised;
  KernelInstances kernels;
  TensorPool pool;  // of kernels' results
  std::vector<SeenArguments> seen_arguments;
  size_t next_seen = 0;              // the entry to replace next
  std::shared_ptr<std::byte> arena;  // of replays
  const Replay* latest = nullptr;    // that of the latest call; null: it was interpreted
  size_t arena_bytes = 0;
  std::vector<Frame> stack;
  RunOptions options;
  ReferencePool references;
  RandomDraws draws;  // of the run
  Value result;
};

int Machine::State::IndexOf(std::string_view name) const {
  const std::vector<std::string>& globals = Code().globals;
  const auto found = std::ranges::find(globals, name);
  if (found != globals.end()) return static_cast<int>(found - globals.begin());
  throw Error(ErrorCategory::kInput, fmt::format("the module has no function '@{}'", name));
}

/// Throws kInput unless `args` may be given to `function`, a global one.
void Machine::State::Check(const VmFunction& function, const std::vector<Value>& args) const {
  if (args.size() != function.params.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("'{}' has {} parameters, got {} arguments", function.name,
                                                   function.params.size(), args.size()));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Result<void> fits = CheckFits(args[i], function.params[i]);
    if (!fits.ok())
      throw Error(ErrorCategory::kInput,
                  fmt::format("parameter '{}' {}", function.param_names.at(i), fits.reason().text));
  }
  const Result<void> agree = function.dimensions.Check(args);
  if (!agree.ok()) throw Error(ErrorCategory::kInput, agree.reason().text);
}

void Machine::State::Remember(int function, int chosen, const std::vector<Value>& args) {
  SeenArguments seen{function, chosen, {}, nullptr};
  for (const Value& arg : args) {
    if (arg.kind() != Value::Kind::kTensor) return;
    seen.types.emplace_back(arg.tensor().shape(), arg.tensor().dtype());
  }
  if (seen_arguments.size() < kMostSeen) {
    seen_arguments.push_back(std::move(seen));
    return;
  }
  seen_arguments[next_seen] = std::move(seen);
  next_seen = (next_seen + 1) % kMostSeen;
}

std::optional<Value> Machine::State::RunReplay(SeenArguments& seen, const std::vector<Value>& args) {
  const bool is_within_limits = seen.replay != nullptr && options.max_depth >= Replay::kDeepest &&
                                options.max_instructions >= seen.replay->num_instructions();
  if (!is_within_limits) return std::nullopt;
  if (seen.replay->arena_bytes() > arena_bytes) {
    arena = AllocateHugePages(seen.replay->arena_bytes());
    arena_bytes = arena == nullptr ? 0 : seen.replay->arena_bytes();
    if (arena == nullptr) throw std::bad_alloc();
  }
  latest = seen.replay.get();
  std::optional<Value> value = seen.replay->Run(args, arena.get(), pool, options.destinations, options.observer);
  if (value) return value;
  latest = nullptr;
  seen.replay = nullptr;
  seen.has_none = true;
  return std::nullopt;
}

Value Machine::State::Invoke(std::string_view name, std::vector<Value> args, const RunOptions& run_options) {
  options = run_options;
  latest = nullptr;
  draws = options.random_seed ? RandomDraws(*options.random_seed) : RandomDraws();
  const int index = IndexOf(name);
  const auto fit = [&](const SeenArguments& seen) { return seen.Fit(index, args); };
  auto seen = std::ranges::find_if(seen_arguments, fit);
  if (seen == seen_arguments.end()) {
    Check(Code().functions[static_cast<size_t>(index)], args);
    const int chosen = FunctionFor(index, args);
    Remember(index, chosen, args);
    return Interpret(chosen, std::move(args));
  }
  const VmFunction& function = Code().functions[static_cast<size_t>(seen->chosen)];
  if (seen->replay == nullptr && !seen->has_none) {
    seen->replay = Replay::Make(Code(), function, args, kernels);
    seen->has_none = seen->replay == nullptr;
  }
  std::optional<Value> value = RunReplay(*seen, args);
  return value ? std::move(*value) : Interpret(seen->chosen, std::move(args));
}

/// Instruction by instruction.
Value Machine::State::Interpret(int function, std::vector<Value> args) {
  stack.clear();
  result = Value();
  Open(Value::Function(nullptr, function, {}), std::move(args), -1, nullptr);
  for (uint64_t count = 0; !stack.empty(); ++count) {
    if (count == options.max_instructions) {
      throw Error(ErrorCategory::kResource, fmt::format("the program takes more than {} instructions", count));
    }
    Step();
  }
  references.EmptyAllBut(result);
  return std::exchange(result, Value());
}

/// The function that was compiled for the shapes of `args`, which fit those of `general`; else that one.
int Machine::State::FunctionFor(int general, const std::vector<Value>& args) const {
  for (const Specialised& one : specialised) {
    if (one.general != general) continue;
    const auto has_shape = [](const Value& arg, const Shape& shape) { return arg.tensor().shape() == shape; };
    if (std::ranges::equal(args, one.shapes, has_shape)) return one.function;
  }
  return general;
}

void Machine::State::Open(const Value& callee, std::vector<Value> args, int dst, const Instruction* call) {
  const auto index = static_cast<size_t>(callee.index());
  if (index >= Code().functions.size() ||
      callee.fields().size() != static_cast<size_t>(Code().functions[index].num_captured)) {
    throw Error(ErrorCategory::kInput, "a function of another program is called", call == nullptr ? "" : call->where);
  }
  const VmFunction& function = Code().functions[index];
  if (stack.size() >= options.max_depth) {
    throw Error(ErrorCategory::kResource, fmt::format("calls nest more than {} deep", options.max_depth),
                call == nullptr ? "" : call->where, "recursion in tail position needs no depth");
  }
  if (args.size() != static_cast<size_t>(function.num_params)) {
    throw Error(
        ErrorCategory::kInput,
        fmt::format("a function of {} parameters is called with {} arguments", function.num_params, args.size()),
        call == nullptr ? "" : call->where);
  }
  Frame frame{&function, std::move(args), 0, dst};
  const std::vector<Value>& captured = callee.fields();
  frame.registers.insert(frame.registers.end(), captured.begin(), captured.end());
  frame.registers.resize(static_cast<size_t>(function.num_registers));
  if (function.self >= 0) frame.registers[static_cast<size_t>(function.self)] = callee;
  stack.push_back(std::move(frame));
}

void Machine::State::Return(Value value) {
  const int dst = stack.back().dst;
  stack.pop_back();
  if (stack.empty()) {
    result = std::move(value);
  } else {
    Register(dst) = std::move(value);
  }
}

void Machine::State::Step() {
  Frame& frame = stack.back();
  const Instruction& instruction = frame.function->code[frame.next++];
  const auto jump_if = [&](bool condition) {
    if (condition) frame.next = static_cast<size_t>(instruction.target);
  };
  switch (instruction.opcode) {
    case Opcode::kCall: Call(instruction, /*is_tail=*/false); return;
    case Opcode::kTailCall: Call(instruction, /*is_tail=*/true); return;
    case Opcode::kReturn: Return(Register(instruction.regs[0])); return;
    case Opcode::kJump: jump_if(true); break;
    case Opcode::kJumpUnless: {
      const Value& condition = Register(instruction.regs[0]);
      if (condition.kind() != Value::Kind::kTensor || condition.tensor().num_elements() != 1) {
        Fail(instruction, "the condition of 'if' must be bool, got " + ToString(condition));
      }
      jump_if(condition.tensor().At(0) == 0);
      break;
    }
    case Opcode::kJumpUnlessIs: {
      const Value& data = Register(instruction.regs[0]);
      if (data.kind() != Value::Kind::kData) Fail(instruction, "a constructor is matched with " + ToString(data));
      jump_if(data.constructor()->name() != Code().constructors[static_cast<size_t>(instruction.index)]->name());
      break;
    }
    case Opcode::kJumpIfDone: jump_if(Register(instruction.regs[0]).defined()); break;
    case Opcode::kNoClause: Fail(instruction, "no clause of 'match' fits " + ToString(Register(instruction.regs[0])));
    default: {
      Value value = Compute(instruction);
      Register(instruction.dst) = std::move(value);
    }
  }
  for (int reg : instruction.dead) Register(reg) = Value();
}

void Machine::State::Call(const Instruction& instruction, bool is_tail) {
  std::vector<Value> args = Registers(instruction.regs);
  const Value callee = std::move(args.front());
  args.erase(args.begin());
  if (callee.kind() != Value::Kind::kFunction) {
    Fail(instruction, "calls something that is no function: " + ToString(callee));
  }
  for (int reg : instruction.dead) Register(reg) = Value();
  if (Constructor constructor = AsShared<ConstructorNode>(callee.code())) {
    Value data = Value::Data(std::move(constructor), std::move(args));
    if (is_tail) return Return(std::move(data));
    Register(instruction.dst) = std::move(data);
    return;
  }
  int dst = instruction.dst;
  if (is_tail) {
    dst = stack.back().dst;
    stack.pop_back();
  }
  Open(callee, std::move(args), dst, &instruction);
}

Value Machine::State::Compute(const Instruction& instruction) {
  const auto index = static_cast<size_t>(instruction.index);
  switch (instruction.opcode) {
    case Opcode::kMove: return Register(instruction.regs[0]);
    case Opcode::kConstant: return Value(Code().constants[index]);
    case Opcode::kTuple: return Value::Tuple(Registers(instruction.regs));
    case Opcode::kField: {
      const Value& value = Register(instruction.regs[0]);
      const bool has_fields = value.kind() == Value::Kind::kTuple || value.kind() == Value::Kind::kData;
      if (!has_fields || index >= value.fields().size()) {
        Fail(instruction, fmt::format("field {} of {} does not exist", instruction.index, ToString(value)));
      }
      return value.fields()[index];
    }
    case Opcode::kData: return Value::Data(Code().constructors[index], Registers(instruction.regs));
    case Opcode::kConstructor: return Value::Function(Code().constructors[index], -1, {});
    case Opcode::kClosure: return Value::Function(nullptr, instruction.index, Registers(instruction.regs));
    case Opcode::kOperator: return Observed(instruction, {RunStep::kEvaluation, -1, instruction.index});
    case Opcode::kKernel: return RunKernel(instruction);
    case Opcode::kDynamicKernel: return Observed(instruction, AtOf(instruction));
    case Opcode::kNewRef: return references.Create(Register(instruction.regs[0]));
    case Opcode::kReadRef:
    case Opcode::kWriteRef: {
      const Value& cell = Register(instruction.regs[0]);
      if (cell.kind() != Value::Kind::kReference) Fail(instruction, "expected a reference, got " + ToString(cell));
      if (instruction.opcode == Opcode::kReadRef) return cell.content();
      cell.set_content(Register(instruction.regs[1]));
      return Value::Tuple({});
    }
    default: COLLAGE_CHECK(false) << "an opcode that computes nothing"; return {};
  }
}

Value Machine::State::RunKernel(const Instruction& instruction) {
  const auto index = static_cast<size_t>(instruction.index);
  const KernelFunction& kernel = Code().kernels[index];
  ExecutionInstance& instance = kernels.Static(index);
  for (size_t i = 0; i < instruction.regs.size(); ++i) {
    const Value& arg = Register(instruction.regs[i]);
    if (arg.kind() != Value::Kind::kTensor)
      Fail(instruction, fmt::format("'{}' is called with {}", kernel.name, ToString(arg)));
    instance.SetInput(i, arg.tensor());
  }
  // The kernel's own outputs would be overwritten by its next call.
  std::vector<Tensor> outputs;
  for (const PortInfo& port : kernel.executable.outputs()) {
    outputs.push_back(pool.Take(port.shape, port.dtype));
    instance.SetOutput(outputs.size() - 1, outputs.back());
  }
  if (options.observer == nullptr) {
    instance.Run();
  } else {
    instance.Run(*options.observer, instruction.index);
  }
  size_t next = 0;
  return UnflattenTensors(kernel.result, [&] { return outputs[next++]; });
}

/// Runs an operator, or a kernel for dynamic shapes.
Value Machine::State::Apply(const Instruction& instruction) {
  const auto index = static_cast<size_t>(instruction.index);
  try {
    if (instruction.opcode == Opcode::kDynamicKernel)
      return kernels.Dynamic(index).Run(Registers(instruction.regs), pool);
    const OpCallEntry& call = Code().op_calls[index];
    return ApplyOp(*call.op, call.attrs, Registers(instruction.regs), {.draws = &draws});
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.category(), error.message(), instruction.where, error.hint());
  }
}

/// As Apply, and tells the observer, if there is one.
Value Machine::State::Observed(const Instruction& instruction, const RunStep& at) {
  if (options.observer == nullptr) return Apply(instruction);
  std::vector<Tensor> inputs;
  for (const Value& arg : Registers(instruction.regs)) {
    if (arg.kind() == Value::Kind::kTensor) inputs.push_back(arg.tensor());
  }
  options.observer->Begin(at, inputs);
  Value value = Apply(instruction);
  options.observer->End();
  return value;
}

/// A kernel for dynamic shapes, which observers want to know whether code computes it.
RunStep Machine::State::AtOf(const Instruction& dynamic_kernel) {
  RunStep at{RunStep::kAnySize, -1, dynamic_kernel.index};
  if (options.observer == nullptr) return at;
  DynamicInstance& instance = kernels.Dynamic(static_cast<size_t>(dynamic_kernel.index));
  if (instance.is_by_rows()) return at;
  try {
    const std::vector<Tensor> inputs = instance.CheckArguments(Registers(dynamic_kernel.regs));
    if (instance.ShapesFor(inputs).is_evaluated) at.kind = RunStep::kEvaluatedKernel;
  } catch (const Error&) {
    // The run itself says what is wrong, and where.
  }
  return at;
}

Machine::Machine(Executable executable) : state_(std::make_unique<State>(std::move(executable))) {}
Machine::~Machine() = default;
Machine::Machine(Machine&&) noexcept = default;

std::vector<ArenaPlace> Machine::Arena() const {
  return state_->latest == nullptr ? std::vector<ArenaPlace>() : state_->latest->arena();
}

Value Machine::Invoke(std::string_view name, std::vector<Value> args, const RunOptions& options) {
  return state_->Invoke(name, std::move(args), options);
}

}  // namespace collage::vm
