// plan_json.cc: plan ↔ JSON.
#include "runtime/plan_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace collage {
namespace {

using Json = nlohmann::json;
using Value = ExecutionPlan::Value;
using Step = ExecutionPlan::Step;

constexpr int64_t kLargestDimension = int64_t{1} << 40;
constexpr int64_t kArenaAlignment = 64;  // what kernels rely on

Json PortsToJson(const std::vector<ExecutionPlan::Port>& ports) {
  Json json = Json::array();
  for (const auto& port : ports) json.push_back({port.name, port.value});
  return json;
}

std::vector<ExecutionPlan::Port> PortsFromJson(const Json& json) {
  std::vector<ExecutionPlan::Port> ports;
  for (const Json& port : json) ports.push_back({port.at(0).get<std::string>(), port.at(1).get<int>()});
  return ports;
}

/// Of its memory.
int64_t Bytes(const Value& value) {
  return NumElements(value.shape) * static_cast<int64_t>(StoredType(value.layout, value.dtype).size_bytes());
}

class PlanChecker {
 public:
  PlanChecker(const ExecutionPlan& plan, size_t num_blobs) : plan_(plan), num_blobs_(num_blobs) {}

  std::string Find() {
    for (size_t i = 0; i < plan_.values.size() && problem_.empty(); ++i) CheckValue(static_cast<int>(i));
    CheckPorts(plan_.inputs, Value::Storage::kInput);
    CheckPorts(plan_.outputs, Value::Storage::kOutput);
    for (size_t i = 0; i < plan_.values.size() && problem_.empty(); ++i) CheckFitsPort(plan_.values[i]);
    for (const auto& kernel : plan_.kernels) {
      CheckIndex(kernel.blob, num_blobs_, "a kernel's blob");
      for (int constant : kernel.constants) CheckIndex(constant, plan_.constants.size(), "a kernel's constant");
    }
    for (const Step& step : plan_.steps) CheckStep(step);
    return problem_;
  }

 private:
  void CheckIndex(int64_t index, size_t count, const char* what) {
    if (index < 0 || index >= static_cast<int64_t>(count)) Problem(fmt::format("{} is out of range", what));
  }
  void Problem(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }

  bool IsInArena(int64_t offset, size_t bytes) const {
    return offset >= 0 && offset % kArenaAlignment == 0 && bytes <= plan_.arena_bytes &&
           static_cast<size_t>(offset) <= plan_.arena_bytes - bytes;
  }

  const Value& Root(int index) const {
    const Value* value = &plan_.values[static_cast<size_t>(index)];
    while (value->alias_of >= 0) value = &plan_.values[static_cast<size_t>(value->alias_of)];
    return *value;
  }

  /// The value of graph input or output `i` must be the whole of memory number `i` of that kind.
  void CheckPorts(const std::vector<ExecutionPlan::Port>& ports, Value::Storage storage) {
    for (size_t i = 0; i < ports.size() && problem_.empty(); ++i) {
      CheckIndex(ports[i].value, plan_.values.size(), "the value of an input or output");
      if (!problem_.empty()) return;
      const Value& value = plan_.values[static_cast<size_t>(ports[i].value)];
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
    if (Bytes(value) > Bytes(plan_.values[static_cast<size_t>(port.value)])) {
      Problem(fmt::format("'{}' is smaller than what uses it", port.name));
    }
  }

  void CheckValue(int index) {
    const Value& value = plan_.values[static_cast<size_t>(index)];
    int64_t elements = 1;
    for (int64_t size : value.shape) {
      if (size < 0 || size > kLargestDimension || (size > 0 && elements > kLargestDimension / size)) {
        return Problem("a value's shape is out of range");
      }
      elements *= size;
    }
    const size_t rank = value.shape.size();
    const bool may_be_channels_last = rank >= 3 && rank <= 5;
    const bool fits = static_cast<size_t>(value.layout) < AllLayouts().size() &&
                      (may_be_channels_last || !IsChannelsLast(value.layout)) &&
                      (value.dtype == kFloat32 || !NarrowType(value.layout));
    if (!fits) return Problem("a value's layout does not fit");
    if (value.alias_of >= 0) {
      if (value.alias_of >= index) return Problem("an alias stands before what it is an alias of");
      if (Bytes(plan_.values[static_cast<size_t>(value.alias_of)]) < Bytes(value)) Problem("an alias is too large");
      return;
    }
    switch (value.storage) {
      case Value::Storage::kArena:
        if (!IsInArena(value.offset_or_index, static_cast<size_t>(Bytes(value))))
          Problem("a value lies outside of the arena");
        break;
      case Value::Storage::kInput: return CheckIndex(value.offset_or_index, plan_.inputs.size(), "an input's number");
      case Value::Storage::kOutput:
        return CheckIndex(value.offset_or_index, plan_.outputs.size(), "an output's number");
      case Value::Storage::kConstant:
        CheckIndex(value.offset_or_index, plan_.constants.size(), "a constant's number");
        if (problem_.empty() && plan_.constants[static_cast<size_t>(value.offset_or_index)].size_bytes() <
                                    static_cast<size_t>(Bytes(value))) {
          Problem("a constant is too small");
        }
        break;
      default: Problem("a value's storage is unknown");
    }
  }

  void CheckStep(const Step& step) {
    for (int value : step.inputs) CheckIndex(value, plan_.values.size(), "a step's input");
    for (int value : step.outputs) CheckIndex(value, plan_.values.size(), "a step's output");
    if (!problem_.empty()) return;
    if (step.kind == Step::kKernel) {
      CheckIndex(step.kernel, plan_.kernels.size(), "a step's kernel");
      if (!problem_.empty()) return;
      const size_t workspace = plan_.kernels[static_cast<size_t>(step.kernel)].workspace_bytes;
      if (workspace == 0) return;
      if (!IsInArena(step.workspace_offset, workspace)) Problem("a workspace lies outside of the arena");
      return;
    }
    if (step.kind > Step::kCopy || step.inputs.size() != 1 || step.outputs.size() != 1) {
      return Problem("a step is malformed");
    }
    const Value& from = plan_.values[static_cast<size_t>(step.inputs[0])];
    const Value& to = plan_.values[static_cast<size_t>(step.outputs[0])];
    if (from.shape != to.shape || from.dtype != to.dtype) Problem("a copy changes the type");
  }

  const ExecutionPlan& plan_;
  size_t num_blobs_;
  std::string problem_;
};

}  // namespace

Json PlanToJson(const ExecutionPlan& plan) {
  Json json;
  for (const Value& value : plan.values) {
    json["values"].push_back({value.shape, value.dtype.ToString(), static_cast<int>(value.layout),
                              static_cast<int>(value.storage), value.offset_or_index, value.alias_of});
  }
  for (const Step& step : plan.steps) {
    json["steps"].push_back(
        {static_cast<int>(step.kind), step.kernel, step.inputs, step.outputs, step.workspace_offset});
  }
  for (const auto& kernel : plan.kernels) {
    json["kernels"].push_back({{"loader", kernel.loader},
                               {"blob", kernel.blob},
                               {"constants", kernel.constants},
                               {"workspace_bytes", kernel.workspace_bytes},
                               {"toolchain", kernel.toolchain},
                               {"label", kernel.label},
                               {"nodes", kernel.nodes},
                               {"estimated_seconds", kernel.estimated_seconds}});
    if (!kernel.schedule.empty()) json["kernels"].back()["schedule"] = kernel.schedule;
  }
  json["inputs"] = PortsToJson(plan.inputs);
  json["outputs"] = PortsToJson(plan.outputs);
  json["arena_bytes"] = plan.arena_bytes;
  json["num_threads"] = plan.num_threads;
  json["metadata"] = plan.metadata_json;
  return json;
}

void PlanFromJson(const Json& json, ExecutionPlan& plan) {
  for (const Json& item : json.value("values", Json::array())) {
    Value value;
    value.shape = item.at(0).get<Shape>();
    const auto dtype = item.at(1).get<std::string>();
    if (!DataType::IsName(dtype)) throw Json::other_error::create(501, "unknown dtype", &json);
    value.dtype = DataType::FromString(dtype);
    value.layout = static_cast<Layout>(item.at(2).get<uint8_t>());
    value.storage = static_cast<Value::Storage>(item.at(3).get<uint8_t>());
    value.offset_or_index = item.at(4).get<int64_t>();
    value.alias_of = item.at(5).get<int>();
    plan.values.push_back(std::move(value));
  }
  for (const Json& item : json.value("steps", Json::array())) {
    Step step;
    step.kind = static_cast<Step::Kind>(item.at(0).get<uint8_t>());
    step.kernel = item.at(1).get<int>();
    step.inputs = item.at(2).get<std::vector<int>>();
    step.outputs = item.at(3).get<std::vector<int>>();
    step.workspace_offset = item.at(4).get<int64_t>();
    plan.steps.push_back(std::move(step));
  }
  for (const Json& item : json.value("kernels", Json::array())) {
    ExecutionPlan::KernelEntry kernel;
    kernel.loader = item.at("loader").get<std::string>();
    kernel.blob = item.at("blob").get<int>();
    kernel.constants = item.at("constants").get<std::vector<int>>();
    kernel.workspace_bytes = item.at("workspace_bytes").get<size_t>();
    kernel.toolchain = item.at("toolchain").get<std::string>();
    kernel.schedule = item.value("schedule", "");
    kernel.label = item.at("label").get<std::string>();
    kernel.nodes = item.at("nodes").get<std::vector<std::string>>();
    kernel.estimated_seconds = item.at("estimated_seconds").get<double>();
    plan.kernels.push_back(std::move(kernel));
  }
  plan.inputs = PortsFromJson(json.at("inputs"));
  plan.outputs = PortsFromJson(json.at("outputs"));
  plan.arena_bytes = json.at("arena_bytes").get<size_t>();
  plan.num_threads = json.at("num_threads").get<int>();
  plan.metadata_json = json.at("metadata").get<std::string>();
}

std::string FindPlanProblem(const ExecutionPlan& plan, size_t num_blobs) { return PlanChecker(plan, num_blobs).Find(); }

}  // namespace collage
