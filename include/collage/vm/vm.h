// vm.h: runs modules with control flow, closures, data and shapes known only at run time, where an execution plan
// (runtime/plan/executable.h) would not do: a module becomes bytecode, a register machine runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/named_dimensions.h"
#include "collage/ir/strings.h"
#include "collage/ir/value.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/run_observer.h"
#include "collage/runtime/tensor.h"
#include "collage/target/toolchain.h"

namespace collage::vm {

struct Program;  // src/bytecode/bytecode.h

/// Attribute of a global function: the name of another one, which it computes for arguments of just the shapes that its
/// own parameters have, all of them tensors of static shapes. Calls from outside choose it where the shapes fit.
inline constexpr const char* kAttrSpecialises = "specialises";

/// A module as bytecode. A handle: copies share; immutable, safe to use from several threads.
class Executable {
 public:
  explicit Executable(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  /// The parameters of a global function, with their type annotations, which may be null. Throws kInput when there is
  /// no such function.
  std::vector<Var> Parameters(std::string_view function) const;
  /// Names and ranges of the dimensions of these parameters; none of a function that the program has not.
  NamedDimensions Dimensions(std::string_view function) const;

  /// Which of its parameters and results are tensors of strings; none of a function that the program has not.
  StringTensors Strings(std::string_view function) const;

  /// The names of the tensors in the result of a global function, flattened, as the function has them in attribute
  /// `output_names`; others are output_0, output_1, … by their place. Empty where the result is not known to be
  /// tensors. Throws kInput when there is no such function.
  std::vector<std::string> ResultNames(std::string_view function) const;

  /// The threads that its kernels use, at most.
  int num_threads() const;

  /// Whether `path` begins as bytecode does, of this format or another; false when it cannot be read.
  static bool IsBytecode(const std::filesystem::path& path);

  /// The bytecode as text, one function behind the other: `  3: %4 = op add(%1, %2)`.
  std::string Disassemble() const;

  /// Writes the file, whole or not at all. Equal constants are stored once, those of its kernels, too.
  void Save(const std::filesystem::path& path) const;
  /// Maps the file. Throws kInput when it cannot be read, kCorrupt when it is damaged or no bytecode. Constants are
  /// checked when first used.
  static Executable Load(const std::filesystem::path& path);
  /// Returns the bytes that `Save` writes.
  std::string Serialize() const;
  /// Loads such bytes, which are copied. Errors call them `name`.
  static Executable Deserialize(std::string_view bytes, const std::string& name = "bytecode");
  /// Loads such bytes, which `owner` keeps alive, without a copy. They are aligned to 64 bytes.
  static Executable Deserialize(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name);
  /// Reads constants of a loaded file that nobody has used yet; throws kCorrupt when they are damaged.
  void CheckConstants() const;

  const Program& program() const { return *program_; }

 private:
  std::shared_ptr<const Program> program_;
};

struct CompileOptions {
  /// Compiles Primitive functions of static types into kernels with these toolchains (attribute Compiler; none: the
  /// native one). Null: they run as any other function, operators by their reference evaluation.
  const ToolchainRegistry* toolchains = nullptr;
  int num_threads = 1;
  /// Kernels that were made elsewhere: asked for each Primitive function of static types before `toolchains`. Inputs
  /// and outputs are those of the function, flattened. Empty, or an answer of nothing: there is none.
  std::function<std::optional<collage::Executable>(const Function&)> find_kernel;
  /// Compiles Primitive functions of tensors whose types have `?`, into kernels that are told the shapes (Toolchain's
  /// SupportsDynamicShapes). Null, or where it declines: they run as any other function.
  const Toolchain* for_dynamic_shapes = nullptr;
  /// Compile Primitive functions of such tensors that have their names as attribute Compiler (collage/target/
  /// symbolic_sizes.h). A module that one declines does not compile.
  std::vector<const Toolchain*> for_symbolic_sizes;
  /// Told of each partition of dynamic shapes that a toolchain compiles. May be empty.
  std::function<void(const Toolchain& toolchain, const PartitionRequest& request, const CompiledPartition& compiled)>
      on_partition;
  /// Told of each Primitive function that `for_dynamic_shapes` declines, and why. May be empty.
  std::function<void(const Function& function, const std::string& reason)> on_declined;
};

/// Compiles all functions of a typed `module`. The meaning is `Interpret`'s (src/ir/eval/interpreter.h): strict, from
/// left to right, a shared node is evaluated once per call and only when needed; calls in tail position take no room.
///
/// Throws kUnsupported when branches nest deeper than a thousand levels or a toolchain declines a partition.
Executable Compile(const IRModule& module, const CompileOptions& options = {});

struct RunOptions {
  /// Calls that may be open at once; beyond it `Invoke` fails with kResource.
  size_t max_depth = 100000;
  /// Limit of instructions of one `Invoke`, which fails with kResource beyond it. For programs that may not end.
  uint64_t max_instructions = std::numeric_limits<uint64_t>::max();
  /// Memory for the tensors of the result, in order, flattened; may be fewer, or undefined ones. Results are written
  /// there if that spares a copy: compare addresses.
  std::span<const Tensor> destinations = {};
  /// Seed of random numbers that the program gives no seed; nothing: a new one.
  std::optional<uint64_t> random_seed;
  /// Told of each kernel and each operator that is evaluated. Null: of none.
  RunObserver* observer = nullptr;
};

/// A value in the working memory of a program: where it lies, and in which steps of a run, from the first to the last.
struct ArenaPlace {
  int64_t offset = 0;
  int64_t bytes = 0;
  int first_step = 0;
  int last_step = 0;
  Shape shape;
  DataType dtype;
};

/// Runs functions of an executable. Not thread-safe: holds the instances of its kernels, and for the latest types of
/// arguments what does not depend on their elements.
class Machine {
 public:
  explicit Machine(Executable executable);
  ~Machine();
  Machine(Machine&&) noexcept;

  /// Calls function `name`. Errors are those of `Interpret`. Shapes of operators whose types have `?` are found when
  /// they run, from the shapes at hand.
  Value Invoke(std::string_view name, std::vector<Value> args, const RunOptions& options = {});

  /// The working memory of calls of the types that the latest call had, if they are planned: types that were seen
  /// before, and a function of one straight line. Else empty.
  std::vector<ArenaPlace> Arena() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collage::vm
