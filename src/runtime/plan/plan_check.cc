// plan_check.cc: every field of a plan against the others.
#include "runtime/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace collage {
namespace {

using Value = ExecutionPlan::Value;
using Step = ExecutionPlan::Step;

constexpr int64_t kMostElements = int64_t{1} << 40;  // no product of such a size and an element's overflows
constexpr size_t kArenaAlignment = 64;               // what kernels rely on

constexpr size_t kDeviceArenaAlignment = 256;  // how values on devices are placed

size_t Aligned(size_t bytes, Memory memory) {
  const size_t alignment = memory == Memory::kHost ? kArenaAlignment : kDeviceArenaAlignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The size of its memory.
int64_t Bytes(const Value& value) {
  return NumElements(value.shape) * static_cast<int64_t>(StoredType(value.layout, value.dtype).size_bytes());
}

/// Memory that a step reads or writes: bytes [begin, end) of an arena, or of an output.
struct Extent {
  int64_t space;  ///< an output's number; below 0: SpaceOf the memory that the arena is in
  int64_t begin;
  int64_t end;
};

int64_t SpaceOf(Memory memory) { return -1 - static_cast<int64_t>(memory); }

class PlanChecker {
 public:
  PlanChecker(const ExecutionPlan& plan, size_t num_blobs) : plan_(plan), num_blobs_(num_blobs) {}

  std::string Find() {
    for (size_t i = 0; i < plan_.values.size() && IsRight(); ++i) CheckValue(static_cast<int>(i));
    CheckPorts(plan_.inputs, Value::Storage::kInput);
    CheckPorts(plan_.outputs, Value::Storage::kOutput);
    for (size_t i = 0; i < plan_.values.size() && IsRight(); ++i) CheckFitsPort(plan_.values[i]);
    for (size_t i = 0; i < plan_.kernels.size() && IsRight(); ++i) CheckKernel(plan_.kernels[i]);
    is_run_.resize(plan_.kernels.size());
    for (size_t i = 0; i < plan_.steps.size() && IsRight(); ++i) CheckStep(plan_.steps[i]);
    if (IsRight() && std::ranges::find(is_run_, false) != is_run_.end()) Problem("no step runs one of the kernels");
    if (IsRight() && plan_.device_arena_bytes.contains(Memory::kHost)) Problem("the host's memory has two arenas");
    for (const Memory memory : AllMemories()) {
      if (IsRight() && ArenaBytes(memory) > Aligned(used_bytes_[memory], memory)) {
        Problem("the arena is larger than what lies in it");
      }
    }
    return problem_;
  }

 private:
  bool IsRight() const { return problem_.empty(); }
  void CheckIndex(int64_t index, size_t count, const char* what) {
    if (index < 0 || index >= static_cast<int64_t>(count)) Problem(fmt::format("{} is out of range", what));
  }
  void Problem(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  const Value& ValueAt(int index) const { return plan_.values[static_cast<size_t>(index)]; }

  size_t ArenaBytes(Memory memory) const {
    if (memory == Memory::kHost) return plan_.arena_bytes;
    const auto arena = plan_.device_arena_bytes.find(memory);
    return arena == plan_.device_arena_bytes.end() ? 0 : arena->second;
  }
  bool IsInArena(Memory memory, int64_t offset, size_t bytes) const {
    const size_t size = ArenaBytes(memory);
    return offset >= 0 && static_cast<size_t>(offset) % kArenaAlignment == 0 && bytes <= size &&
           static_cast<size_t>(offset) <= size - bytes && HasArena(memory);
  }
  bool HasArena(Memory memory) const { return memory == Memory::kHost || plan_.device_arena_bytes.contains(memory); }
  void UseArena(Memory memory, int64_t offset, size_t bytes) {
    used_bytes_[memory] = std::max(used_bytes_[memory], static_cast<size_t>(offset) + bytes);
  }

  /// Aliases are of values that have memory, so this is one step.
  const Value& Root(int index) const {
    const Value& value = ValueAt(index);
    return value.alias_of >= 0 ? ValueAt(value.alias_of) : value;
  }

  /// The value of graph input or output `i` must be the whole of memory number `i` of that kind.
  void CheckPorts(const std::vector<ExecutionPlan::Port>& ports, Value::Storage storage) {
    for (size_t i = 0; i < ports.size() && IsRight(); ++i) {
      CheckIndex(ports[i].value, plan_.values.size(), "the value of an input or output");
      if (!IsRight()) return;
      const Value& value = ValueAt(ports[i].value);
      const Value& root = Root(ports[i].value);
      if (root.storage != storage || root.offset_or_index != static_cast<int64_t>(i) || Bytes(root) != Bytes(value)) {
        Problem(fmt::format("'{}' is not where an input or output must be", ports[i].name));
      }
      if (value.layout != Layout::kPlain) Problem(fmt::format("input or output '{}' is not plain", ports[i].name));
    }
  }

  /// The memory of an input or output is as large as its port says; what is computed with must not be larger.
  void CheckFitsPort(const Value& value) {
    const bool is_input = value.storage == Value::Storage::kInput;
    if (value.alias_of >= 0 || (!is_input && value.storage != Value::Storage::kOutput)) return;
    const auto& port = (is_input ? plan_.inputs : plan_.outputs)[static_cast<size_t>(value.offset_or_index)];
    if (Bytes(value) > Bytes(ValueAt(port.value))) Problem(fmt::format("'{}' is smaller than what uses it", port.name));
  }

  static bool LayoutFits(const Value& value) {
    if (!IsLayout(static_cast<int64_t>(value.layout))) return false;
    if (NarrowType(value.layout) && value.dtype != kFloat32) return false;
    const size_t rank = value.shape.size();
    return !IsChannelsLast(value.layout) || (rank >= 3 && rank <= 5 && !value.dtype.is_vector());
  }

  void CheckValue(int index) {
    const Value& value = ValueAt(index);
    int64_t elements = 1;
    for (int64_t size : value.shape) {
      if (size < 0 || size > kMostElements || (size > 0 && elements > kMostElements / size)) {
        return Problem("a value's shape is out of range");
      }
      elements *= size;
    }
    if (!LayoutFits(value)) return Problem("a value's layout does not fit");
    if (value.alias_of >= 0) {
      if (value.alias_of >= index) return Problem("an alias stands before what it is an alias of");
      if (ValueAt(value.alias_of).alias_of >= 0) return Problem("an alias is of another alias");
      if (Bytes(ValueAt(value.alias_of)) < Bytes(value)) Problem("an alias is too large");
      if (MemoryOf(ValueAt(value.alias_of).layout) != MemoryOf(value.layout)) Problem("an alias is in another memory");
      return;
    }
    if (value.storage != Value::Storage::kArena && MemoryOf(value.layout) != Memory::kHost) {
      return Problem("an input, output or constant is not in the host's memory");
    }
    switch (value.storage) {
      case Value::Storage::kArena: {
        const auto bytes = static_cast<size_t>(Bytes(value));
        const Memory memory = MemoryOf(value.layout);
        if (!IsInArena(memory, value.offset_or_index, bytes)) return Problem("a value lies outside of the arena");
        return UseArena(memory, value.offset_or_index, bytes);
      }
      case Value::Storage::kInput: return CheckIndex(value.offset_or_index, plan_.inputs.size(), "an input's number");
      case Value::Storage::kOutput:
        return CheckIndex(value.offset_or_index, plan_.outputs.size(), "an output's number");
      case Value::Storage::kConstant:
        CheckIndex(value.offset_or_index, plan_.constants.size(), "a constant's number");
        if (IsRight() && plan_.constants[static_cast<size_t>(value.offset_or_index)].size_bytes() <
                             static_cast<size_t>(Bytes(value))) {
          Problem("a constant is too small");
        }
        break;
      default: Problem("a value's storage is unknown");
    }
  }

  void CheckKernel(const ExecutionPlan::KernelEntry& kernel) {
    CheckIndex(kernel.blob, num_blobs_, "a kernel's blob");
    for (int constant : kernel.constants) CheckIndex(constant, plan_.constants.size(), "a kernel's constant");
  }

  void CheckStep(const Step& step) {
    for (int value : step.inputs) CheckIndex(value, plan_.values.size(), "a step's input");
    for (int value : step.outputs) CheckIndex(value, plan_.values.size(), "a step's output");
    if (!IsRight()) return;
    size_t workspace = 0;
    Memory memory = Memory::kHost;
    if (step.kind == Step::kKernel) {
      CheckIndex(step.kernel, plan_.kernels.size(), "a step's kernel");
      if (!IsRight()) return;
      is_run_[static_cast<size_t>(step.kernel)] = true;
      workspace = plan_.kernels[static_cast<size_t>(step.kernel)].workspace_bytes;
      memory = plan_.kernels[static_cast<size_t>(step.kernel)].workspace_memory;
    } else if (step.kind > Step::kCopy || step.inputs.size() != 1 || step.outputs.size() != 1) {
      return Problem("a step is malformed");
    } else {
      const Value& from = ValueAt(step.inputs[0]);
      const Value& to = ValueAt(step.outputs[0]);
      if (from.shape != to.shape || from.dtype != to.dtype) return Problem("a copy changes the type");
      if (StepsBetween(from.layout, to.layout).size() > 1) return Problem("a copy changes memory and layout");
    }
    const bool has_place =
        workspace == 0 ? step.workspace_offset == -1 : IsInArena(memory, step.workspace_offset, workspace);
    if (!has_place) return Problem("a workspace lies outside of the arena");
    CheckMemory(step, memory, workspace);
  }

  Extent ExtentOf(const Value& root, int64_t bytes) const {
    if (root.storage == Value::Storage::kArena) {
      return {SpaceOf(MemoryOf(root.layout)), root.offset_or_index, root.offset_or_index + bytes};
    }
    return {root.offset_or_index, 0, bytes};
  }

  /// Kernels rely on it that nothing changes what they read, and that what they keep in their workspace stays.
  void CheckMemory(const Step& step, Memory memory, size_t workspace) {
    std::vector<Extent> written;
    for (int value : step.outputs) {
      const Value& root = Root(value);
      if (root.storage != Value::Storage::kArena && root.storage != Value::Storage::kOutput) {
        return Problem("a step writes an input or a constant");
      }
      written.push_back(ExtentOf(root, Bytes(ValueAt(value))));
    }
    if (workspace > 0) {
      written.push_back(
          {SpaceOf(memory), step.workspace_offset, step.workspace_offset + static_cast<int64_t>(workspace)});
      UseArena(memory, step.workspace_offset, workspace);
    }
    std::erase_if(written, [](const Extent& extent) { return extent.begin == extent.end; });
    const auto order = [](const Extent& extent) { return std::pair(extent.space, extent.begin); };
    std::ranges::sort(written, {}, order);
    for (size_t i = 1; i < written.size(); ++i) {
      if (Overlap(written[i - 1], written[i])) return Problem("a step writes memory twice");
    }
    for (int value : step.inputs) {
      const Value& root = Root(value);
      if (root.storage != Value::Storage::kArena && root.storage != Value::Storage::kOutput) continue;
      const Extent read = ExtentOf(root, Bytes(ValueAt(value)));
      if (read.begin == read.end) continue;
      // Written extents are disjoint: only the last that begins before the end of a read extent can reach into it.
      const auto after = std::ranges::lower_bound(written, std::pair(read.space, read.end), {}, order);
      if (after != written.begin() && Overlap(*std::prev(after), read)) return Problem("a step writes what it reads");
    }
  }

  static bool Overlap(const Extent& a, const Extent& b) {
    return a.space == b.space && a.begin < b.end && b.begin < a.end;
  }

  const ExecutionPlan& plan_;
  size_t num_blobs_;
  std::vector<bool> is_run_;             ///< by kernel
  std::map<Memory, size_t> used_bytes_;  ///< of each arena
  std::string problem_;
};

}  // namespace

std::string FindPlanProblem(const ExecutionPlan& plan, size_t num_blobs) { return PlanChecker(plan, num_blobs).Find(); }

}  // namespace collage
