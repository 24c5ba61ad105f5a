// bytecode.h: programs of the virtual machine. A function has registers; instructions read some and write one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/module.h"
#include "collage/ir/named_dimensions.h"
#include "collage/ir/op.h"
#include "collage/ir/strings.h"
#include "collage/ir/value.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/tensor.h"

namespace collage {
class LazyPieces;  // runtime/plan/piece_file.h
}

namespace collage::vm {

enum class Opcode : uint8_t {
  kMove,           ///< dst = regs[0]
  kConstant,       ///< dst = constants[index]
  kTuple,          ///< dst = (regs…)
  kField,          ///< dst = field `index` of regs[0], a tuple or data
  kData,           ///< dst = constructors[index](regs…)
  kConstructor,    ///< dst = constructors[index] as a function
  kClosure,        ///< dst = functions[index] with regs captured
  kOperator,       ///< dst = op_calls[index](regs…); its shape function runs on the shapes at hand
  kKernel,         ///< dst = kernels[index](regs…)
  kCall,           ///< dst = regs[0](regs[1…])
  kTailCall,       ///< return regs[0](regs[1…])
  kReturn,         ///< return regs[0]
  kJump,           ///< go on at `target`
  kJumpUnless,     ///< … if regs[0] is false
  kJumpUnlessIs,   ///< … if regs[0] was not made by constructors[index]
  kJumpIfDone,     ///< … if regs[0] has a value: a shared node that another branch may have evaluated
  kNewRef,         ///< dst = a cell that holds regs[0]
  kReadRef,        ///< dst = what cell regs[0] holds
  kWriteRef,       ///< dst = (); cell regs[0] holds regs[1] now
  kNoClause,       ///< no clause of a match fits regs[0]
  kDynamicKernel,  ///< dst = dynamic_kernels[index](regs…), whose shapes are those at hand
};
inline constexpr int kNumOpcodes = static_cast<int>(Opcode::kDynamicKernel) + 1;

struct Instruction {
  Opcode opcode;
  int dst = -1;
  int index = -1;
  int target = -1;  ///< target of a jump, always forward
  std::vector<int> regs;
  std::string where;      ///< the expression's place in the source, for errors
  std::vector<int> dead;  ///< registers that nothing mentions behind this; see FindDeadRegisters
};

/// Parameters are in the first registers, what was captured behind them, the function itself in `self` when it calls
/// itself.
struct VmFunction {
  std::string name;  ///< a global function's name, "@main"; for others their place: "@main/fn1"
  /// Annotations of a global function that outside arguments are checked against; null where there are none.
  std::vector<Type> params;
  std::vector<std::string> param_names;  ///< set for global functions
  NamedDimensions dimensions;            ///< set for global functions
  StringTensors strings;                 ///< set for global functions
  /// Result type of a global function that returns a tensor or a tuple of tensors; null for others.
  Type result;
  std::vector<std::string> result_names;  ///< names of the result's tensors, if the function has them
  std::string specialises;                ///< another global function, see kAttrSpecialises; empty for most
  std::vector<TypeVar> type_params;
  int num_params = 0;
  int num_captured = 0;
  int self = -1;
  int num_registers = 0;
  std::vector<Instruction> code;
};

struct OpCallEntry {
  const OpDef* op;
  Attrs attrs;
};

/// A Primitive function as an execution plan: a result or several, flattened.
struct KernelFunction {
  std::string name;
  collage::Executable executable;
  Type result;
};

/// A Primitive function of tensors whose shapes a run knows: one kernel that takes them (Toolchain's
/// SupportsDynamicShapes, or HasSymbolicSizes), or some for certain numbers of rows, which are called until all rows
/// are done.
struct DynamicKernel {
  struct Code {
    int64_t rows = 0;  ///< 0: as many as there are, it takes the shapes
    std::string loader;
    std::vector<std::byte> blob;
    std::vector<int> constants;  ///< numbers of the kernel's
    int64_t workspace_bytes = 0;
  };
  std::string name;
  std::string toolchain;           ///< its compiler's name
  std::vector<std::string> nodes;  ///< names of the model's nodes; none in files of earlier versions
  std::vector<Type> params;        ///< types of tensors, with `?`
  DynamicSizes sizes;
  std::vector<Code> codes;  ///< for many rows first; the last one for one row, or any number
  std::vector<Tensor> constants;
  int num_threads = 1;
  /// Whether its last input has all dimensions of its parameters and results (collage/target/symbolic_sizes.h): it runs
  /// whatever these are. Else the values of `sizes`' variables.
  bool takes_dimensions = false;
  /// Constants of `sizes.steps`, in order, if a run may find that `sizes` do not hold; else empty. Operators are then
  /// evaluated one by one. If it takes dimensions: those of a few integers, of which sizes are made.
  std::vector<Tensor> step_constants;
};

struct Program {
  std::vector<VmFunction> functions;
  std::vector<std::string> globals;  ///< names of the first functions, "main"
  std::vector<Tensor> constants;
  std::vector<OpCallEntry> op_calls;
  std::vector<KernelFunction> kernels;
  std::vector<DynamicKernel> dynamic_kernels;
  IRModule types;  ///< data types alone
  std::vector<Constructor> constructors;
  std::string file;                          ///< the file that it was loaded from; empty for one made in memory
  std::shared_ptr<const LazyPieces> pieces;  ///< constants in the file; null as above
  Tensor explanation;                        ///< bytes of the file's; undefined where there is none

  /// Throws kCorrupt unless the bytes of `constant`, one of these or of a kernel's, are those that were written. They
  /// are read the first time that somebody asks. Thread-safe.
  void CheckConstant(const Tensor& constant) const;
};

std::string Disassemble(const Program& program);

/// Refuses programs that read or write outside of tables and registers, jump backwards or run past a function's end,
/// call operators and kernels with a wrong number of arguments, or take wrong results from kernels: throws kCorrupt,
/// naming `source`, function and instruction. The kind of a register's value is checked when an instruction reads it,
/// which fails with kInput; an empty register has no kind.
///
/// Within a function all jumps go forward, so that each call of it ends; a recursion may not.
void Verify(const Program& program, const std::string& source);

/// Fills in Instruction::dead.
void FindDeadRegisters(VmFunction* function);

}  // namespace collage::vm
