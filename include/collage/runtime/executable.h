// executable.h: the file that runs a model. It is loaded with nothing but this library: constants are mapped, machine
// code is opened, and a toolchain's own library only when a kernel of its kind is in it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/layout.h"
#include "collage/runtime/run_observer.h"
#include "collage/runtime/tensor.h"

namespace collage {

class AtomicFile;  // src/support/file.h

/// Steps to run, their order and their memory.
struct ExecutionPlan {
  /// A tensor of the plan; `shape` is logical, `layout` says how it lies in which memory. Only values in an arena are
  /// in another memory than the host's.
  struct Value {
    enum class Storage : uint8_t {
      kArena,     ///< `offset_or_index` is a byte offset in the arena of its memory
      kInput,     ///< … the number of a graph input
      kOutput,    ///< … the number of a graph output
      kConstant,  ///< … the number of a constant
    };
    Shape shape;
    DataType dtype;
    Layout layout = Layout::kPlain;
    Storage storage = Storage::kArena;
    int64_t offset_or_index = 0;
    int alias_of = -1;  ///< an earlier value, no alias, whose memory this one is, under another shape
  };

  struct Step {
    enum Kind : uint8_t { kKernel, kConvertLayout, kCopy };
    Kind kind = kKernel;
    int kernel = -1;
    std::vector<int> inputs;        ///< values
    std::vector<int> outputs;       ///< values
    int64_t workspace_offset = -1;  ///< in the arena of the kernel's memory; -1 = none
  };

  /// Work of a kernel, whatever computes it (partition/work.h says what counts).
  struct KernelWork {
    double products = 0;                ///< products that are added up, each counted as one
    double multiply_adds = 0;           ///< products, those of narrow types counted as less
    double spared = 0;                  ///< multiply_adds that an algorithm may save
    double constant_bytes = 0;          ///< weights
    std::vector<double> node_products;  ///< products of each of the entry's nodes; empty: there are none
  };

  struct KernelEntry {
    std::string loader;
    int blob = -1;
    std::vector<int> constants;
    size_t workspace_bytes = 0;
    Memory workspace_memory = Memory::kHost;
    std::string toolchain;
    std::string schedule;            ///< by which the toolchain compiled it; empty: as it thought best
    std::string label;               ///< operators, joined by '+'
    std::vector<std::string> nodes;  ///< names of the model's nodes
    double estimated_seconds = 0;
    std::optional<KernelWork> work;  ///< unknown in files of earlier versions
  };

  struct Port {
    std::string name;
    int value;
  };

  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<KernelEntry> kernels;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> blobs;
  std::vector<Tensor> constants;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  size_t arena_bytes = 0;                       ///< bytes of the arena in the host's memory
  std::map<Memory, size_t> device_arena_bytes;  ///< bytes of arenas in other memories
  int num_threads = 1;
  /// JSON text for people and tools: model, machine, how the choice was made.
  std::string metadata_json = "{}";
};

/// Name, shape and dtype of a graph input or output.
struct PortInfo {
  std::string name;
  Shape shape;
  DataType dtype;
};

/// A compiled model. A handle: copies share everything. Immutable, safe to use from several threads.
class Executable {
 public:
  static Executable FromPlan(ExecutionPlan plan);

  /// Maps the file at `path`. Throws kInput when it cannot be opened, kCorrupt when it is damaged, kUnavailable when
  /// this processor cannot run it. Constants are checked when first used. It holds code: load only what you trust.
  static Executable Load(const std::filesystem::path& path);

  /// Uses the bytes of such a file where they lie: aligned to 64, not written to, and there for as long as `owner` is
  /// kept, which may be null if they are for ever. Throws kInput for others. Errors call them `name`.
  static Executable FromMemory(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name);

  /// Loads the bytes of such a file, which are copied. Errors call them `name`.
  static Executable FromBytes(std::span<const std::byte> bytes, const std::string& name = "memory");

  /// Writes the file, whole or not at all. Equal constants and blobs are stored once.
  void Save(const std::filesystem::path& path) const;
  /// Writes the same bytes as Save; the owner of `file` decides whether and when they appear.
  void WriteTo(AtomicFile& file) const;

  /// Reads the whole file and checks all checksums; throws kCorrupt. (Loading checks the plan and machine code only, so
  /// that it takes milliseconds however large the constants are.)
  static void Verify(const std::filesystem::path& path);

  const ExecutionPlan& plan() const;
  /// A kernel of the plan by itself, not bound; it holds on to nothing, so this handle or a copy must outlive it.
  /// Throws kUnavailable when its loader is missing, kCorrupt when its constants are damaged. With `in_place` nothing
  /// is done that only many runs repay, such as copying weights to where they are read fastest.
  std::unique_ptr<Kernel> LoadKernel(int kernel, bool in_place = false) const;
  /// The bytes that the loader of a kernel of the plan reads; they live as long as this handle or a copy.
  std::span<const std::byte> blob(int kernel) const;
  std::vector<PortInfo> inputs() const;
  std::vector<PortInfo> outputs() const;

  struct State;  // src/runtime/plan/executable_state.h
  explicit Executable(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// One execution of an executable: its arena, its kernels, its inputs and outputs. Not thread-safe; for several threads
/// make several instances, which share constants and code.
class ExecutionInstance {
 public:
  /// Loads the kernels, `in_place` as `Executable::LoadKernel`. Sets the process's number of threads to the plan's.
  explicit ExecutionInstance(Executable executable, bool in_place = false);
  ~ExecutionInstance();
  ExecutionInstance(ExecutionInstance&&) noexcept;

  /// Uses `tensor`'s memory as input `index`, without a copy if it is 64-byte aligned; only kernels that read it are
  /// bound again. Throws kInput when dtype or shape do not fit.
  void SetInput(size_t index, const Tensor& tensor);
  /// Lets the kernels write output `index` straight into `tensor`. An input's memory is allowed if `in_place`
  /// says so.
  void SetOutput(size_t index, const Tensor& tensor);
  /// The tensor that output `index` is written to: own memory unless `SetOutput` was called. Valid after `Run`,
  /// overwritten by the next.
  const Tensor& Output(size_t index) const;
  /// For each output that may be written to an input's memory, the numbers of both: a run then changes what differs and
  /// copies nothing, as a decoder wants it for keys and values of earlier tokens.
  const std::vector<InPlaceResult>& in_place() const;

  /// Runs the model once. All inputs must have been set. Throws kInput where an output lies in an input's memory and
  /// may not.
  void Run();
  /// Runs once, step by step, and tells `observer` of each, as one of the plan of kernel `plan` of a program. Waits for
  /// devices after each step.
  void Run(RunObserver& observer, int plan = -1);
  /// Runs once and returns seconds per step, in the order of the plan.
  std::vector<double> RunTimed();
  /// Runs once and calls `look` with each value that a step makes, as soon as it is made: what comes later may lie in
  /// the same memory. `data` is the host's: of a value in another memory it is a copy.
  void RunWatched(const std::function<void(const ExecutionPlan::Value& value, const void* data)>& look);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collage
