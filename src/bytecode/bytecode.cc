// bytecode.cc: programs as text, and the checks that they are whole.
#include "bytecode/bytecode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bytecode/result_shapes.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "ir/tensor_types.h"

namespace collage::vm {
namespace {

constexpr int kMostThreads = 4096;

/// Operands of an opcode, for text and checks alike.
struct OpcodeInfo {
  const char* name;
  bool has_dst;
  bool has_target;
  int fewest_regs;
  int most_regs;  ///< -1: any number
};
constexpr std::array<OpcodeInfo, kNumOpcodes> kOpcodes{{
    {"move", true, false, 1, 1},         {"constant", true, false, 0, 0},    {"tuple", true, false, 0, -1},
    {"field", true, false, 1, 1},        {"data", true, false, 0, -1},       {"constructor", true, false, 0, 0},
    {"closure", true, false, 0, -1},     {"op", true, false, 0, -1},         {"kernel", true, false, 0, -1},
    {"call", true, false, 1, -1},        {"tail_call", false, false, 1, -1}, {"return", false, false, 1, 1},
    {"jump", false, true, 0, 0},         {"jump_unless", false, true, 1, 1}, {"jump_unless_is", false, true, 1, 1},
    {"jump_if_done", false, true, 1, 1}, {"new_ref", true, false, 1, 1},     {"read_ref", true, false, 1, 1},
    {"write_ref", true, false, 2, 2},    {"no_clause", false, false, 1, 1},  {"dynamic_kernel", true, false, 0, -1},
}};

const OpcodeInfo& InfoOf(Opcode opcode) { return kOpcodes[static_cast<size_t>(opcode)]; }

bool EndsFunction(Opcode opcode) {
  return opcode == Opcode::kReturn || opcode == Opcode::kTailCall || opcode == Opcode::kJump ||
         opcode == Opcode::kNoClause;
}

std::string Registers(const std::vector<int>& regs) {
  std::string text;
  for (int reg : regs) text += fmt::format("{}%{}", text.empty() ? "" : ", ", reg);
  return text;
}

/// Returns the text of an instruction's index.
std::string Operand(const Program& program, const Instruction& instruction) {
  const auto index = static_cast<size_t>(instruction.index);
  switch (instruction.opcode) {
    case Opcode::kConstant: {
      const Tensor& tensor = program.constants[index];
      return tensor.rank() == 0 ? fmt::format("{}:{}", tensor.At(0), tensor.dtype().ToString())
                                : ToString(TensorType(tensor.shape(), tensor.dtype())) + fmt::format(" #{}", index);
    }
    case Opcode::kField: return fmt::format(".{}", instruction.index);
    case Opcode::kData:
    case Opcode::kConstructor:
    case Opcode::kJumpUnlessIs: return program.constructors[index]->name();
    case Opcode::kClosure: return program.functions[index].name;
    case Opcode::kOperator: return program.op_calls[index].op->name;
    case Opcode::kKernel: return program.kernels[index].name;
    case Opcode::kDynamicKernel: return program.dynamic_kernels[index].name;
    default: return "";
  }
}

std::string AttrsOf(const Program& program, const Instruction& instruction) {
  if (instruction.opcode != Opcode::kOperator) return "";
  const OpCallEntry& call = program.op_calls[static_cast<size_t>(instruction.index)];
  // The printer leaves defaults out.
  const std::string text = PrintExpr(MakeCall(Expr(GetOp(call.op->name)), {}, call.attrs));
  const size_t open = text.find('(');
  const std::string inside = text.substr(open + 1, text.rfind(')') - open - 1);
  return inside.empty() ? "" : " {" + inside + "}";
}

[[noreturn]] void Corrupt(const std::string& source, const std::string& message) {
  throw Error(ErrorCategory::kCorrupt, message, source);
}

size_t TableSize(const Program& program, Opcode opcode) {
  switch (opcode) {
    case Opcode::kConstant: return program.constants.size();
    case Opcode::kData:
    case Opcode::kConstructor:
    case Opcode::kJumpUnlessIs: return program.constructors.size();
    case Opcode::kClosure: return program.functions.size();
    case Opcode::kOperator: return program.op_calls.size();
    case Opcode::kKernel: return program.kernels.size();
    case Opcode::kDynamicKernel: return program.dynamic_kernels.size();
    default: return 1u << 30;
  }
}

bool NeedsIndex(Opcode opcode) { return opcode == Opcode::kField || TableSize({}, opcode) == 0; }

bool TakesArguments(const OpDef& op, size_t count) {
  const size_t fewest = op.min_args < 0 ? op.args.size() : static_cast<size_t>(op.min_args);
  return count >= fewest && count <= op.args.size();
}

/// Results are put together as the kernel's type says.
void VerifyKernel(const KernelFunction& kernel, const std::string& source) {
  const auto fail = [&] {
    Corrupt(source, "kernel '" + kernel.name + "' does not give what the program takes from it");
  };
  if (kernel.result == nullptr || !HasTensorsOnly(kernel.result)) fail();
  const std::vector<Type> types = FlattenTensorTypes(kernel.result);
  const std::vector<PortInfo> outputs = kernel.executable.outputs();
  if (types.size() != outputs.size()) fail();
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorTypeNode& tensor = *AsTensorType(types[i]);
    if (!tensor.is_static() || tensor.static_shape() != outputs[i].shape || tensor.dtype() != outputs[i].dtype) fail();
  }
}

void VerifyInstruction(const Program& program, const VmFunction& function, size_t at, const std::string& source) {
  const Instruction& instruction = function.code[at];
  const auto fail = [&](const char* what) {
    Corrupt(source, fmt::format("{} instruction {} {}", function.name, at, what));
  };
  const auto is_register = [&](int reg) { return reg >= 0 && reg < function.num_registers; };
  if (static_cast<int>(instruction.opcode) >= kNumOpcodes) fail("has an unknown opcode");
  const OpcodeInfo& info = InfoOf(instruction.opcode);
  if (info.has_dst && !is_register(instruction.dst)) fail("writes a register that does not exist");
  for (int reg : instruction.regs) {
    if (!is_register(reg)) fail("reads a register that does not exist");
  }
  const int count = static_cast<int>(instruction.regs.size());
  if (count < info.fewest_regs || (info.most_regs >= 0 && count > info.most_regs))
    fail("has a wrong number of operands");
  if (info.has_target &&
      (instruction.target <= static_cast<int>(at) || instruction.target >= static_cast<int>(function.code.size()))) {
    fail("jumps to a place that it must not");
  }
  const bool is_in_table =
      instruction.index >= 0 && static_cast<size_t>(instruction.index) < TableSize(program, instruction.opcode);
  if (NeedsIndex(instruction.opcode) && !is_in_table) fail("names an entry that does not exist");
  if (instruction.opcode == Opcode::kClosure &&
      program.functions[static_cast<size_t>(instruction.index)].num_captured != count) {
    fail("captures another number of values than the function has");
  }
  const auto index = static_cast<size_t>(instruction.index);
  const size_t num_args = instruction.regs.size();
  if (instruction.opcode == Opcode::kDynamicKernel && program.dynamic_kernels[index].params.size() != num_args) {
    fail("gives a kernel another number of arguments than it has");
  }
  if (instruction.opcode == Opcode::kKernel && program.kernels[index].executable.plan().inputs.size() != num_args) {
    fail("gives a kernel another number of arguments than it has");
  }
  if (instruction.opcode == Opcode::kOperator && !TakesArguments(*program.op_calls[index].op, num_args)) {
    fail("gives an operator another number of arguments than it has");
  }
  if (instruction.opcode == Opcode::kData &&
      program.constructors[static_cast<size_t>(instruction.index)]->inputs().size() != instruction.regs.size()) {
    fail("gives a constructor another number of fields than it has");
  }
}

/// Checks that sizes refer to earlier ones only.
void VerifySizes(const DynamicKernel& kernel, const std::string& source) {
  const auto fail = [&] { Corrupt(source, "the shapes of kernel '" + kernel.name + "' are not those of operators"); };
  using Step = DynamicSizes::Step;
  size_t constants = 0, size_constants = 0;
  for (size_t i = 0; i < kernel.sizes.steps.size(); ++i) {
    const Step& step = kernel.sizes.steps[i];
    if ((step.kind == Step::kParameter) != (i < kernel.params.size())) fail();
    for (const int arg : step.args) {
      if (arg < 0 || static_cast<size_t>(arg) >= i) fail();
    }
    if (step.kind == Step::kField && (step.args.size() != 1 || step.field < 0)) fail();
    if (step.kind == Step::kCall && (step.op == nullptr || !TakesArguments(*step.op, step.args.size()))) fail();
    constants += step.kind == Step::kConstant ? 1 : 0;
    size_constants += step.kind == Step::kConstant && IsSizeConstant(step.type) ? 1 : 0;
  }
  const auto is_value = [&](int value) { return value >= 0 && static_cast<size_t>(value) < kernel.sizes.steps.size(); };
  if (!is_value(kernel.sizes.result)) fail();
  for (const DynamicSizes::Variable& variable : kernel.sizes.variables) {
    for (const DynamicSizes::Place& place : variable.places) {
      if (!is_value(place.value) || place.field < 0 || place.dim < 0) fail();
    }
  }
  for (const DynamicKernel::Code& code : kernel.codes) {
    for (const int constant : code.constants) {
      if (constant < 0 || static_cast<size_t>(constant) >= kernel.constants.size()) fail();
    }
    constexpr int64_t kMostBytes = int64_t{1} << 40;
    if (code.rows < 0 || code.workspace_bytes < 0 || code.workspace_bytes > kMostBytes) fail();
  }
  if (kernel.sizes.steps.size() < kernel.params.size()) fail();
  // One takes as many rows as there are, or some take fewer and fewer: whatever is left, the last one can do.
  if (kernel.codes.empty() || kernel.codes.back().rows > 1) fail();
  for (size_t i = 1; i < kernel.codes.size(); ++i) {
    if (kernel.codes[i].rows < 1 || kernel.codes[i].rows >= kernel.codes[i - 1].rows) fail();
  }
  if (kernel.takes_dimensions && (kernel.codes.size() != 1 || kernel.step_constants.size() != size_constants)) fail();
  if (kernel.num_threads < 1 || kernel.num_threads > kMostThreads) fail();
  const bool has_all = kernel.takes_dimensions || kernel.step_constants.empty();
  if (!has_all && kernel.step_constants.size() != constants) fail();
}

/// A function that computes another one for the shapes of its parameters takes what that one takes.
void VerifySpecialised(const Program& program, const VmFunction& function, const std::string& source) {
  if (function.specialises.empty()) return;
  const auto name = std::find(program.globals.begin(), program.globals.end(), function.specialises);
  if (name == program.globals.end()) Corrupt(source, function.name + " computes a function that is not there");
  const VmFunction& general = program.functions[static_cast<size_t>(name - program.globals.begin())];
  bool fits = general.specialises.empty() && general.params.size() == function.params.size();
  for (size_t i = 0; fits && i < function.params.size(); ++i) {
    const TensorTypeNode* own = AsTensorType(function.params[i]);
    const TensorTypeNode* wide = AsTensorType(general.params[i]);
    fits = own != nullptr && wide != nullptr && own->is_static() && own->dtype() == wide->dtype();
  }
  if (!fits) Corrupt(source, function.name + " takes other arguments than the function that it computes");
}

}  // namespace

std::string Disassemble(const Program& program) {
  std::string text;
  for (const VmFunction& function : program.functions) {
    std::string params;
    for (int i = 0; i < function.num_params; ++i) params += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    text += fmt::format("{}{}({})", text.empty() ? "" : "\n", function.name, params);
    if (function.num_captured > 0) {
      const int last = function.num_params + function.num_captured - 1;
      text += fmt::format(" captured %{}", function.num_params);
      if (function.num_captured > 1) text += fmt::format("-%{}", last);
    }
    if (function.self >= 0) text += fmt::format(" self %{}", function.self);
    text += fmt::format(" registers {}\n", function.num_registers);
    for (size_t at = 0; at < function.code.size(); ++at) {
      const Instruction& instruction = function.code[at];
      const OpcodeInfo& info = InfoOf(instruction.opcode);
      const std::string operand = Operand(program, instruction);
      text += fmt::format("{:4}: {}{}", at, info.has_dst ? fmt::format("%{} = ", instruction.dst) : "", info.name);
      if (!operand.empty()) text += " " + operand;
      if (!instruction.regs.empty() || info.most_regs != 0) text += "(" + Registers(instruction.regs) + ")";
      text += AttrsOf(program, instruction);
      if (info.has_target) text += fmt::format(" -> {}", instruction.target);
      text += "\n";
    }
  }
  return text;
}

void Verify(const Program& program, const std::string& source) {
  for (const KernelFunction& kernel : program.kernels) VerifyKernel(kernel, source);
  for (const DynamicKernel& kernel : program.dynamic_kernels) VerifySizes(kernel, source);
  if (program.globals.size() > program.functions.size()) Corrupt(source, "more names of functions than functions");
  for (const VmFunction& function : program.functions) {
    // Each instruction writes one register, so more than these could not have a purpose.
    const int64_t given = static_cast<int64_t>(function.num_params) + function.num_captured;
    const bool has_room = function.num_params >= 0 && function.num_captured >= 0 && given <= function.num_registers &&
                          function.num_registers <= given + 1 + static_cast<int64_t>(function.code.size());
    if (!has_room || function.self < -1 || function.self >= function.num_registers) {
      Corrupt(source, function.name + " has too few or too many registers");
    }
    if (function.code.empty() || !EndsFunction(function.code.back().opcode) ||
        function.code.back().opcode == Opcode::kJump) {
      Corrupt(source, function.name + " has no end");
    }
    for (size_t at = 0; at < function.code.size(); ++at) VerifyInstruction(program, function, at, source);
  }
  for (size_t i = 0; i < program.globals.size(); ++i) {
    const VmFunction& function = program.functions[i];
    if (function.num_captured != 0) Corrupt(source, function.name + " is global but captures");
    const auto num_params = static_cast<size_t>(function.num_params);
    if (function.params.size() != num_params || function.param_names.size() != num_params) {
      Corrupt(source, function.name + " has another number of parameters than of their types");
    }
    VerifySpecialised(program, function, source);
  }
}

void FindDeadRegisters(VmFunction* function) {
  // Jumps only go forward: what is not mentioned behind an instruction is not needed behind it, whichever way was
  // taken.
  std::vector<size_t> last(static_cast<size_t>(function->num_registers), 0);
  const auto mention = [&](int reg, size_t at) { last[static_cast<size_t>(reg)] = at; };
  for (size_t at = 0; at < function->code.size(); ++at) {
    const Instruction& instruction = function->code[at];
    for (int reg : instruction.regs) mention(reg, at);
    if (InfoOf(instruction.opcode).has_dst) mention(instruction.dst, at);
  }
  for (size_t at = 0; at < function->code.size(); ++at) {
    Instruction& instruction = function->code[at];
    instruction.dead.clear();
    if (EndsFunction(instruction.opcode)) continue;
    for (int reg : instruction.regs) {
      const bool is_known = !instruction.dead.empty() && instruction.dead.back() == reg;
      if (last[static_cast<size_t>(reg)] == at && reg != instruction.dst && !is_known) instruction.dead.push_back(reg);
    }
  }
}

}  // namespace collage::vm
