// plan_json.cc: plan ↔ JSON.
#include "runtime/plan/plan_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collage/support/error.h"

namespace collage {
namespace {

using Json = nlohmann::json;
using Value = ExecutionPlan::Value;
using Step = ExecutionPlan::Step;

constexpr int64_t kMostThreads = 4096;
constexpr int kLargestInt = std::numeric_limits<int>::max();
constexpr int64_t kLargestInt64 = std::numeric_limits<int64_t>::max();

[[noreturn]] void Fail(const std::string& what) { throw Error(ErrorCategory::kCorrupt, what); }

/// An index; -1, where it may be, stands for none.
int IndexFrom(const Json& json, const char* what, int least = 0) {
  return static_cast<int>(IntegerFrom(json, least, kLargestInt, what));
}

const Json& ArrayFrom(const Json& json, const char* what) {
  if (!json.is_array()) Fail(fmt::format("{} are no list", what));
  return json;
}

std::vector<int> IndicesFrom(const Json& json, const char* what) {
  std::vector<int> indices;
  for (const Json& index : ArrayFrom(json, what)) indices.push_back(IndexFrom(index, what));
  return indices;
}

/// A list of that name; none where it is missing.
const Json& ListOf(const Json& json, const char* name) {
  static const Json& none = *new Json(Json::array());
  const auto found = json.find(name);
  return found == json.end() ? none : ArrayFrom(*found, name);
}

/// Whether brackets outside of strings open more than `deepest` levels: what reads JSON recurses once for each.
bool NestsDeeper(std::string_view text, int deepest) {
  int depth = 0;
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        is_string = false;
      continue;
    }
    if (text[i] == '"') is_string = true;
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
    if (depth > deepest) return true;
  }
  return false;
}

Json PortsToJson(const std::vector<ExecutionPlan::Port>& ports) {
  Json json = Json::array();
  for (const auto& port : ports) json.push_back({port.name, port.value});
  return json;
}

std::vector<ExecutionPlan::Port> PortsFromJson(const Json& json) {
  std::vector<ExecutionPlan::Port> ports;
  for (const Json& port : ArrayFrom(json, "inputs and outputs")) {
    ports.push_back({port.at(0).get<std::string>(), IndexFrom(port.at(1), "the value of an input or output")});
  }
  return ports;
}

Value ValueFrom(const Json& item) {
  Value value;
  value.shape = ShapeFrom(item.at(0));
  value.dtype = DTypeFrom(item.at(1), "a value");
  const int64_t layout = IntegerFrom(item.at(2), 0, kLargestInt, "a value's layout");
  if (!IsLayout(layout)) Fail("a value's layout is out of range");
  value.layout = static_cast<Layout>(layout);
  constexpr auto kLastStorage = static_cast<int64_t>(Value::Storage::kConstant);
  value.storage = static_cast<Value::Storage>(IntegerFrom(item.at(3), 0, kLastStorage, "a value's storage"));
  value.offset_or_index = IntegerFrom(item.at(4), -1, kLargestInt64, "a value's place");
  value.alias_of = IndexFrom(item.at(5), "what a value is an alias of", -1);
  return value;
}

Step StepFrom(const Json& item) {
  Step step;
  step.kind = static_cast<Step::Kind>(IntegerFrom(item.at(0), 0, Step::kCopy, "the kind of a step"));
  step.kernel = IndexFrom(item.at(1), "a step's kernel", -1);
  step.inputs = IndicesFrom(item.at(2), "a step's inputs");
  step.outputs = IndicesFrom(item.at(3), "a step's outputs");
  step.workspace_offset = IntegerFrom(item.at(4), -1, kLargestInt64, "the place of a workspace");
  return step;
}

Memory MemoryFrom(const Json& item) {
  const auto last = static_cast<int64_t>(AllMemories().size()) - 1;
  return static_cast<Memory>(IntegerFrom(item, 0, last, "the number of a memory"));
}

double AmountFrom(const Json& json) {
  const auto amount = json.get<double>();
  if (!(amount >= 0)) Fail("the work of a kernel is out of range");
  return amount;
}

Json WorkToJson(const ExecutionPlan::KernelWork& work) {
  return {work.products, work.multiply_adds, work.spared, work.constant_bytes, work.node_products};
}

ExecutionPlan::KernelWork WorkFrom(const Json& item) {
  ExecutionPlan::KernelWork work;
  work.products = AmountFrom(item.at(0));
  work.multiply_adds = AmountFrom(item.at(1));
  work.spared = AmountFrom(item.at(2));
  work.constant_bytes = AmountFrom(item.at(3));
  for (const Json& products : ArrayFrom(item.at(4), "the products of nodes")) {
    work.node_products.push_back(AmountFrom(products));
  }
  return work;
}

ExecutionPlan::KernelEntry KernelFrom(const Json& item) {
  ExecutionPlan::KernelEntry kernel;
  kernel.loader = item.at("loader").get<std::string>();
  kernel.blob = IndexFrom(item.at("blob"), "a kernel's code");
  kernel.constants = IndicesFrom(item.at("constants"), "a kernel's constants");
  kernel.workspace_bytes =
      static_cast<size_t>(IntegerFrom(item.at("workspace_bytes"), 0, kLargestInt64, "the size of a workspace"));
  if (item.contains("workspace_memory")) kernel.workspace_memory = MemoryFrom(item.at("workspace_memory"));
  kernel.toolchain = item.at("toolchain").get<std::string>();
  kernel.schedule = item.value("schedule", "");
  kernel.label = item.at("label").get<std::string>();
  kernel.nodes = ArrayFrom(item.at("nodes"), "a kernel's nodes").get<std::vector<std::string>>();
  kernel.estimated_seconds = item.at("estimated_seconds").get<double>();
  if (item.contains("work")) kernel.work = WorkFrom(item.at("work"));
  return kernel;
}

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
    if (kernel.work) json["kernels"].back()["work"] = WorkToJson(*kernel.work);
    if (kernel.workspace_memory != Memory::kHost)
      json["kernels"].back()["workspace_memory"] = static_cast<int>(kernel.workspace_memory);
  }
  json["inputs"] = PortsToJson(plan.inputs);
  json["outputs"] = PortsToJson(plan.outputs);
  json["arena_bytes"] = plan.arena_bytes;
  for (const auto& [memory, bytes] : plan.device_arena_bytes) {
    json["device_arenas"].push_back({static_cast<int>(memory), bytes});
  }
  json["num_threads"] = plan.num_threads;
  json["metadata"] = plan.metadata_json;
  return json;
}

int64_t IntegerFrom(const Json& json, int64_t least, int64_t most, const char* what) {
  const bool is_large = json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(kLargestInt64);
  if (!json.is_number_integer() || is_large) Fail(fmt::format("{} is out of range", what));
  const auto number = json.get<int64_t>();
  if (number < least || number > most) Fail(fmt::format("{} is out of range", what));
  return number;
}

uint64_t ChecksumFrom(const Json& json) {
  if (!json.is_number_unsigned()) Fail("a checksum is none");
  return json.get<uint64_t>();
}

Shape ShapeFrom(const Json& json) {
  Shape shape;
  for (const Json& size : ArrayFrom(json, "the dimensions of a shape")) {
    shape.push_back(IntegerFrom(size, 0, kLargestInt64, "a dimension of a shape"));
  }
  return shape;
}

DataType DTypeFrom(const Json& json, const char* what) {
  const auto name = json.get<std::string>();
  if (!DataType::IsName(name)) Fail(fmt::format("the dtype of {} is unknown: '{}'", what, name));
  return DataType::FromString(name);
}

void PlanFromJson(const Json& json, ExecutionPlan& plan) {
  for (const Json& item : ListOf(json, "values")) plan.values.push_back(ValueFrom(item));
  for (const Json& item : ListOf(json, "steps")) plan.steps.push_back(StepFrom(item));
  for (const Json& item : ListOf(json, "kernels")) plan.kernels.push_back(KernelFrom(item));
  plan.inputs = PortsFromJson(json.at("inputs"));
  plan.outputs = PortsFromJson(json.at("outputs"));
  plan.arena_bytes = static_cast<size_t>(IntegerFrom(json.at("arena_bytes"), 0, kLargestInt64, "the arena's size"));
  for (const Json& item : ListOf(json, "device_arenas")) {
    const int64_t bytes = IntegerFrom(item.at(1), 0, kLargestInt64, "the arena's size");
    plan.device_arena_bytes[MemoryFrom(item.at(0))] = static_cast<size_t>(bytes);
  }
  plan.num_threads = static_cast<int>(IntegerFrom(json.at("num_threads"), 1, kMostThreads, "the number of threads"));
  plan.metadata_json = json.at("metadata").get<std::string>();
  constexpr int kDeepest = 100;
  if (NestsDeeper(plan.metadata_json, kDeepest) || !Json::accept(plan.metadata_json)) {
    Fail("the metadata are no JSON, or nest too deep");
  }
}

}  // namespace collage
