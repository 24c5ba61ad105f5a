// instance.cc: running a plan: addresses are resolved when something is bound, a run is a row of calls.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "runtime/huge_pages.h"
#include "runtime/plan/device_stretches.h"
#include "runtime/plan/executable_state.h"
#include "runtime/plan/in_place.h"

namespace collage {
namespace {

using Value = ExecutionPlan::Value;
using Step = ExecutionPlan::Step;

constexpr uintptr_t kAlignment = 64;

/// Changes the layout of a value, or copies it, to another memory perhaps.
class MoveKernel : public Kernel {
 public:
  MoveKernel(const Value& from, const Value& to) : from_(from), to_(to) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    source_ = inputs[0];
    target_ = outputs[0];
  }
  void Run() override {
    ConvertLayout(source_, from_.layout, target_, to_.layout, from_.shape, from_.dtype.size_bytes());
  }

 private:
  const Value& from_;
  const Value& to_;
  const void* source_ = nullptr;
  void* target_ = nullptr;
};

struct BoundStep {
  std::unique_ptr<Kernel> kernel;
  const Step* step;
};

}  // namespace

struct ExecutionInstance::State {
  Executable executable;
  bool constants_in_place;
  std::shared_ptr<std::byte> arena;
  std::map<Memory, DeviceBuffer> device_arenas;
  std::vector<BoundStep> steps;
  DeviceStretches stretches;
  std::vector<std::vector<int>> readers;  ///< steps that touch graph input i
  std::vector<std::vector<int>> writers;  ///< steps that touch graph output i
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<InPlaceResult> in_place;
  bool is_checked = false;  ///< since something was set

  State(Executable the_executable, bool reads_constants_in_place)
      : executable(std::move(the_executable)),
        constants_in_place(reads_constants_in_place),
        stretches(executable.plan()) {}

  const ExecutionPlan& plan() const { return executable.plan(); }

  /// The value whose memory `value` lies in. No alias refers to another alias.
  const Value& Root(int value) const {
    const Value& own = plan().values[static_cast<size_t>(value)];
    return own.alias_of >= 0 ? plan().values[static_cast<size_t>(own.alias_of)] : own;
  }

  void* InArena(Memory memory, int64_t offset) const {
    if (memory == Memory::kHost) return arena.get() + offset;
    return static_cast<std::byte*>(device_arenas.at(memory).address()) + offset;
  }

  /// Null for an input that has not been set.
  void* Address(int value) const {
    const Value& root = Root(value);
    const auto place = static_cast<size_t>(root.offset_or_index);
    switch (root.storage) {
      case Value::Storage::kArena: return InArena(MemoryOf(root.layout), root.offset_or_index);
      case Value::Storage::kInput: return inputs[place].defined() ? inputs[place].raw() : nullptr;
      case Value::Storage::kOutput: return outputs[place].raw();
      case Value::Storage::kConstant: return plan().constants[place].raw();
    }
    return nullptr;
  }

  void Bind(size_t index) {
    const Step& step = *steps[index].step;
    std::vector<void*> sources;
    std::vector<void*> targets;
    for (int value : step.inputs) {
      sources.push_back(Address(value));
      if (sources.back() == nullptr) return;  // bound once the input is set
    }
    for (int value : step.outputs) targets.push_back(Address(value));
    void* workspace = nullptr;
    if (step.workspace_offset >= 0) {
      workspace = InArena(plan().kernels[static_cast<size_t>(step.kernel)].workspace_memory, step.workspace_offset);
    }
    steps[index].kernel->Bind(sources, targets, workspace);
    stretches.Forget(index);
  }

  void AllocateArenas() {
    for (const auto& [memory, bytes] : plan().device_arena_bytes) {
      device_arenas.emplace(memory, DeviceBuffer(memory, bytes));
    }
    // Some even for values of no elements: they need an address.
    const bool has_values = std::ranges::any_of(plan().values, [](const Value& v) {
      return v.storage == Value::Storage::kArena && MemoryOf(v.layout) == Memory::kHost;
    });
    if (!has_values && plan().arena_bytes == 0) return;  // a workspace lies there, too
    arena = AllocateHugePages(plan().arena_bytes);
    if (!arena) {
      throw Error(ErrorCategory::kResource,
                  fmt::format("cannot allocate {} bytes of working memory", plan().arena_bytes));
    }
    std::memset(arena.get(), 0, plan().arena_bytes);  // touched now, not in the first run
  }

  std::unique_ptr<Kernel> MakeKernel(const Step& step) const {
    if (step.kind != Step::kKernel) {
      return std::make_unique<MoveKernel>(plan().values[static_cast<size_t>(step.inputs[0])],
                                          plan().values[static_cast<size_t>(step.outputs[0])]);
    }
    return executable.LoadKernel(step.kernel, constants_in_place);
  }

  void NoteUses(const std::vector<int>& values, int step) {
    for (int value : values) {
      const Value& root = Root(value);
      if (root.storage == Value::Storage::kConstant) {
        executable.state().CheckConstant(static_cast<size_t>(root.offset_or_index));
      }
      if (root.storage == Value::Storage::kInput) readers[static_cast<size_t>(root.offset_or_index)].push_back(step);
      if (root.storage == Value::Storage::kOutput) writers[static_cast<size_t>(root.offset_or_index)].push_back(step);
    }
  }

  void CheckFits(const Tensor& tensor, const std::vector<ExecutionPlan::Port>& ports, size_t index,
                 const char* what) const {
    if (index >= ports.size()) throw Error(ErrorCategory::kInput, fmt::format("there is no {} {}", what, index));
    const Value& value = plan().values[static_cast<size_t>(ports[index].value)];
    if (tensor.defined() && tensor.dtype() == value.dtype && tensor.shape() == value.shape) return;
    const std::string got =
        tensor.defined() ? tensor.dtype().ToString() + " " + ToString(tensor.shape()) : "an empty tensor";
    throw Error(ErrorCategory::kInput, fmt::format("{} '{}' wants {} {}, got {}", what, ports[index].name,
                                                   value.dtype.ToString(), ToString(value.shape), got));
  }

  /// Whether all may run on what was set.
  void Check() {
    if (is_checked) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].defined()) continue;
      throw Error(ErrorCategory::kInput, fmt::format("input '{}' has not been set", plan().inputs[i].name));
    }
    for (size_t i = 0; i < outputs.size(); ++i) CheckPlace(i);
    is_checked = true;
  }

  void CheckPlace(size_t output) const {
    const Tensor& to = outputs[output];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!Overlap(inputs[i], to)) continue;
      const InPlaceResult pair{static_cast<int>(i), static_cast<int>(output)};
      if (inputs[i].raw() == to.raw() && std::ranges::find(in_place, pair) != in_place.end()) continue;
      throw Error(ErrorCategory::kInput,
                  fmt::format("output '{}' lies in the memory of input '{}', which is read when it is written",
                              plan().outputs[output].name, plan().inputs[i].name));
    }
  }
};

ExecutionInstance::ExecutionInstance(Executable executable, bool in_place)
    : state_(std::make_unique<State>(std::move(executable), in_place)) {
  const ExecutionPlan& plan = state_->plan();
  SetNumThreads(plan.num_threads);
  state_->AllocateArenas();
  state_->inputs.resize(plan.inputs.size());
  state_->readers.resize(plan.inputs.size());
  state_->writers.resize(plan.outputs.size());
  for (const PortInfo& port : state_->executable.outputs()) {
    state_->outputs.push_back(Tensor::Zeros(port.shape, port.dtype));
  }
  for (const Step& step : plan.steps) {
    const int index = static_cast<int>(state_->steps.size());
    state_->steps.push_back({state_->MakeKernel(step), &step});
    state_->NoteUses(step.inputs, index);
    state_->NoteUses(step.outputs, index);
    state_->Bind(static_cast<size_t>(index));
  }
  std::vector<std::vector<InPlaceResult>> of_kernels;
  for (const BoundStep& step : state_->steps) of_kernels.push_back(step.kernel->in_place());
  state_->in_place = InPlaceOutputs(plan, of_kernels);
}

ExecutionInstance::~ExecutionInstance() = default;
ExecutionInstance::ExecutionInstance(ExecutionInstance&&) noexcept = default;

void ExecutionInstance::SetInput(size_t index, const Tensor& tensor) {
  state_->CheckFits(tensor, state_->plan().inputs, index, "input");
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment == 0;
  const void* before = state_->inputs[index].raw();
  state_->inputs[index] = aligned ? tensor : tensor.Clone();
  if (state_->inputs[index].raw() == before) return;
  state_->is_checked = false;
  for (int step : state_->readers[index]) state_->Bind(static_cast<size_t>(step));
}

void ExecutionInstance::SetOutput(size_t index, const Tensor& tensor) {
  const std::vector<ExecutionPlan::Port>& ports = state_->plan().outputs;
  state_->CheckFits(tensor, ports, index, "output");
  if (reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment != 0) {
    throw Error(ErrorCategory::kInput,
                fmt::format("the memory of output '{}' is not 64-byte aligned", ports[index].name));
  }
  const void* before = state_->outputs[index].raw();
  state_->outputs[index] = tensor;
  if (tensor.raw() == before) return;
  state_->is_checked = false;
  for (int step : state_->writers[index]) state_->Bind(static_cast<size_t>(step));
}

const Tensor& ExecutionInstance::Output(size_t index) const { return state_->outputs.at(index); }
const std::vector<InPlaceResult>& ExecutionInstance::in_place() const { return state_->in_place; }

void ExecutionInstance::Run() {
  state_->Check();
  state_->stretches.Run([&](size_t step) { state_->steps[step].kernel->Run(); });
}

void ExecutionInstance::RunWatched(const std::function<void(const Value& value, const void* data)>& look) {
  state_->Check();
  for (const BoundStep& step : state_->steps) {
    step.kernel->Run();
    for (const int index : step.step->outputs) {
      const Value& value = state_->plan().values[static_cast<size_t>(index)];
      const void* data = state_->Address(index);
      Tensor copy;
      if (MemoryOf(value.layout) != Memory::kHost) {
        copy = Tensor::Empty(PhysicalShape(value.shape, value.layout), StoredType(value.layout, value.dtype));
        ConvertLayout(data, value.layout, copy.raw(), In(Memory::kHost, value.layout), value.shape,
                      value.dtype.size_bytes());
        data = copy.raw();
      }
      look(value, data);
    }
  }
}

void ExecutionInstance::Run(RunObserver& observer, int plan) {
  state_->Check();
  RunStep at{RunStep::kPlanStep, plan, 0};
  for (const BoundStep& step : state_->steps) {
    observer.Begin(at, {});
    step.kernel->Run();
    for (const auto& [memory, buffer] : state_->device_arenas) buffer.device().Synchronize();
    observer.End();
    ++at.index;
  }
}

std::vector<double> ExecutionInstance::RunTimed() {
  struct Clock : RunObserver {
    std::vector<double> seconds;
    std::chrono::steady_clock::time_point begin;
    void Begin(const RunStep&, std::span<const Tensor>) override { begin = std::chrono::steady_clock::now(); }
    void End() override {
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  } clock;
  clock.seconds.reserve(state_->steps.size());
  Run(clock);
  return std::move(clock.seconds);
}

}  // namespace collage
