// replay.h: a function at arguments of certain shapes, planned so that running it again does nothing but launch
// kernels.
//
//   %3 = shape_of(%0)                 known: it follows from shapes
//   %4 = take(%3, 1)                  known
//   %5 = dynamic_kernel f(%0)         a launch, its result at byte 0 of the arena
//   %6 = dyn.reshape(%5, [%4, 4])     %5 under another shape
//   %7 = dynamic_kernel g(%6)         a launch, into the result
//   return %7
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bytecode/bytecode.h"
#include "bytecode/kernel_instances.h"
#include "bytecode/tensor_pool.h"
#include "collage/ir/value.h"
#include "collage/vm/vm.h"

namespace collage::vm {

/// Values that follow from shapes alone are computed once and kept; all others have their place in an arena. Not
/// thread-safe.
class Replay {
 public:
  /// Plans `function`, of `program`, for arguments of the types of `args`. Null if it does more than compute tensors in
  /// one straight line, calls included, if sizes depend on data, or if it would fail. Both programs and `kernels` must
  /// outlive it.
  static std::unique_ptr<Replay> Make(const Program& program, const VmFunction& function,
                                      const std::vector<Value>& args, KernelInstances& kernels);

  /// Calls that may be open at once where it was planned, at most.
  static constexpr size_t kDeepest = 32;
  /// The instructions that it stands for.
  uint64_t num_instructions() const { return num_instructions_; }

  /// Bytes of the arena that `Run` works in.
  size_t arena_bytes() const { return arena_bytes_; }

  /// The values in the arena, by the steps in which they live.
  const std::vector<ArenaPlace>& arena() const { return arena_; }

  /// Runs it on arguments of the planned types. A result is written to that of `destinations`, which may be fewer, if
  /// it has the bytes that are needed and none that an argument has, unless a plan writes it in that one's place;
  /// others are in memory of `pool`. Nothing if an operator failed, or gave another shape than planned: the function is
  /// to be interpreted. `observer`, if it is not null, is told of each step.
  std::optional<Value> Run(const std::vector<Value>& args, std::byte* arena, TensorPool& pool,
                           std::span<const Tensor> destinations, RunObserver* observer = nullptr);

 private:
  friend class ReplayPlanner;

  /// Memory that views share.
  struct Root {
    enum Where : uint8_t { kArgument, kKnown, kArena, kResult, kEvaluated };
    Where where = kArena;
    size_t index = 0;  ///< number of the argument; byte offset in the arena
    Shape shape;
    DataType dtype;
    Tensor tensor;         ///< a known value; in a run an evaluated one, or a result
    int destination = -1;  ///< place among the tensors of the result; -1: none, or several
    int replaces = -1;     ///< the argument in whose memory a result may lie
  };
  /// A register: a known value, a tensor, a tuple, or a function and what it captured.
  struct Planned {
    Value known;
    int root = -1;  ///< set for a tensor
    Shape shape;
    std::vector<Planned> fields;
    bool is_tuple = false;
    int function = -1;
  };
  struct Step {
    enum Kind : uint8_t { kCode, kRows, kPlan, kEvaluate };
    Kind kind = kCode;
    RunStep at;                   ///< for observers
    std::vector<Planned> args;    ///< set for kEvaluate
    std::vector<Planned> inputs;  ///< tensors
    std::vector<int> outputs;     ///< roots
    DynamicInstance* dynamic = nullptr;
    ExecutionInstance* instance = nullptr;
    Tensor sizes;  ///< set for kCode
    std::function<Value(const std::vector<Value>&, TensorPool&)> evaluate;
  };

  void* Address(int root, const std::vector<Value>& args, std::byte* arena) const;
  Tensor TensorOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const;
  Value ResultOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const;
  /// The tensor of a root under its own shape.
  Tensor WholeOf(int root, std::byte* arena) const;
  Value ValueOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const;
  void TakeResults(const std::vector<Value>& args, TensorPool& pool, std::span<const Tensor> destinations);
  bool Launch(Step& step, const std::vector<Value>& args, std::byte* arena, TensorPool& pool, RunObserver* observer);
  bool LaunchObserved(Step& step, const std::vector<Value>& args, std::byte* arena, TensorPool& pool,
                      RunObserver& observer);

  std::vector<Root> roots_;
  std::vector<Step> steps_;
  Planned result_;
  size_t arena_bytes_ = 0;
  std::vector<ArenaPlace> arena_;
  uint64_t num_instructions_ = 0;
  std::vector<void*> sources_, targets_;
};

}  // namespace collage::vm
