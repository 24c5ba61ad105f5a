// arena_map.cc: live ranges of a plan's values, as they follow from its steps.
#include "profile/arena_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace collage {
namespace {

using Value = ExecutionPlan::Value;

int64_t StoredBytes(const Value& value) {
  return NumElements(value.shape) * static_cast<int64_t>(StoredType(value.layout, value.dtype).size_bytes());
}

std::string TypeOf(const Value& value) {
  std::string type = fmt::format("{}{}", value.dtype.ToString(), ToString(value.shape));
  if (value.layout != Layout::kPlain) type += fmt::format(" {}", ToString(value.layout));
  return type;
}

/// Gathers values and workspaces by memory, while it walks over the steps.
class Gathering {
 public:
  explicit Gathering(const ExecutionPlan& plan) : plan_(plan) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const ExecutionPlan::Step& step = plan.steps[i];
      const auto at = static_cast<int64_t>(i);
      for (const int value : step.inputs) Touch(value, at);
      for (const int value : step.outputs) Touch(value, at);
      if (step.workspace_offset < 0) continue;
      const ExecutionPlan::KernelEntry& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
      found_[kernel.workspace_memory].push_back(
          {std::nullopt, step.workspace_offset, static_cast<int64_t>(kernel.workspace_bytes), at, at, "workspace"});
    }
  }

  std::vector<ArenaValue> In(Memory memory) { return std::move(found_[memory]); }

 private:
  void Touch(int value, int64_t step) {
    const int alias = plan_.values[static_cast<size_t>(value)].alias_of;
    const int root = alias >= 0 ? alias : value;
    const Value& owner = plan_.values[static_cast<size_t>(root)];
    if (owner.storage != Value::Storage::kArena) return;
    std::vector<ArenaValue>& values = found_[MemoryOf(owner.layout)];
    const auto [known, is_new] = places_.emplace(root, values.size());
    if (is_new) values.push_back({root, owner.offset_or_index, StoredBytes(owner), step, step, TypeOf(owner)});
    values[known->second].last_step = step;
  }

  const ExecutionPlan& plan_;
  std::map<Memory, std::vector<ArenaValue>> found_;
  std::map<int, size_t> places_;  ///< by root: its place among the values of its memory
};

}  // namespace

ArenaMap ArenaOf(const std::vector<vm::ArenaPlace>& places) {
  ArenaMap arena{"@main", std::string(ToString(Memory::kHost)), 0, 0, {}};
  int64_t steps = 0;
  for (const vm::ArenaPlace& place : places) {
    arena.values.push_back({std::nullopt, place.offset, place.bytes, place.first_step, place.last_step,
                            place.dtype.ToString() + ToString(place.shape)});
    arena.bytes = std::max(arena.bytes, place.offset + place.bytes);
    steps = std::max<int64_t>(steps, place.last_step + 1);
  }
  arena.used_bytes = std::ranges::max(UsedBytes(arena, static_cast<size_t>(steps)));
  return arena;
}

std::vector<int64_t> UsedBytes(const ArenaMap& arena, size_t num_steps) {
  std::vector<int64_t> used(num_steps);
  for (const ArenaValue& value : arena.values) {
    for (int64_t step = value.first_step; step <= value.last_step; ++step) {
      used[static_cast<size_t>(step)] += value.bytes;
    }
  }
  return used;
}

std::vector<ArenaMap> ArenasOf(const NamedPlan& plan) {
  Gathering gathering(*plan.plan);
  std::vector<ArenaMap> arenas;
  const auto add = [&](Memory memory, size_t bytes) {
    if (bytes == 0) return;
    ArenaMap arena{plan.name, std::string(ToString(memory)), static_cast<int64_t>(bytes), 0, gathering.In(memory)};
    const std::vector<int64_t> used = UsedBytes(arena, plan.plan->steps.size());
    if (!used.empty()) arena.used_bytes = *std::ranges::max_element(used);
    arenas.push_back(std::move(arena));
  };
  add(Memory::kHost, plan.plan->arena_bytes);
  for (const auto& [memory, bytes] : plan.plan->device_arena_bytes) add(memory, bytes);
  return arenas;
}

}  // namespace collage
