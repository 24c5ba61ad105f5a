// program.cc: which engines there are for a graph, and plans as JSON.
#include "program.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace standin::cudnn {
namespace {

using nlohmann::json;

constexpr int kFallback = 2, kBest = 3;
constexpr int kUsesTensorCores = 0, kUsesWinograd = 5;
// Numbers of engines.
constexpr int kSimple = 0, kWithWorkspace = 1, kOfTensorCores = 2, kOfWinograd = 3, kWithoutPlan = 4;
constexpr int kFloatData = 0;

bool IsConvolution(const Descriptor& operation) {
  return operation.kind == kConvolutionForward || operation.kind == kConvolutionBackwardData;
}

/// Whether the channels of a tensor lie innermost, or there is but one pixel.
bool IsChannelsLast(const Descriptor& tensor) {
  const auto dims = tensor.All<int64_t>(902), strides = tensor.All<int64_t>(903);
  return strides[1] == 1 || std::all_of(dims.begin() + 2, dims.end(), [](int64_t size) { return size == 1; });
}

/// Whether plain images are behind one of the functions that only engines for channels-last images compute.
bool IsUnknownPattern(const Descriptor& graph) {
  const Descriptor& first = *graph.others.at(801).front();
  if (!IsConvolution(first)) return false;
  const Descriptor& x = first.Other(first.kind == kConvolutionForward ? 704 : 711);
  if (IsChannelsLast(x)) return false;
  if (first.kind == kConvolutionBackwardData && graph.others.at(801).size() > 1) return true;
  constexpr int kGelu = 104, kSwish = 106, kGeluTanh = 107;
  return std::ranges::any_of(graph.others.at(801), [](const auto& operation) {
    if (operation->kind != kPointwiseOperation) return false;
    const int mode = operation->Other(750).template One<int>(0);
    return mode == kGelu || mode == kSwish || mode == kGeluTanh || operation->Other(750).Has(5) ||
           operation->Other(750).template One<double>(3) != 0;
  });
}

/// Numbers of an operation's own attributes, and of the descriptors that it names.
void AddNumbers(const Descriptor& descriptor, Operation& operation) {
  for (const auto& [name, attribute] : descriptor.attributes) {
    std::vector<double>& numbers = operation.numbers[name];
    switch (attribute.type) {
      case kDescriptor: operation.numbers.erase(name); break;
      case kFloat: break;
      case kDouble: numbers = descriptor.All<double>(name); break;
      case kInt64:
      case kFraction:
        for (const int64_t number : descriptor.All<int64_t>(name)) numbers.push_back(static_cast<double>(number));
        break;
      default: numbers = {static_cast<double>(descriptor.One<int>(name))};
    }
  }
  for (const auto& [name, others] : descriptor.others) {
    if (others.front()->kind == kTensor) {
      operation.tensors[name] = others.front()->One<int64_t>(906);
    } else {
      AddNumbers(*others.front(), operation);
    }
  }
}

bool IsResult(int name) {
  constexpr int kResults[] = {705, 710, 753, 1522, 1611, 1711, 2013, 2803};
  return std::ranges::find(kResults, name) != std::end(kResults);
}

}  // namespace

Engine EngineOf(int number) {
  constexpr int64_t kBytes = 1024;
  switch (number) {
    case kSimple: return {number};
    case kWithWorkspace: return {number, {}, kBytes};
    case kOfTensorCores: return {number, {kUsesTensorCores}};
    case kOfWinograd: return {number, {kUsesWinograd}};
    case kWithoutPlan: return {number, {}, 0, false};
    default: throw Failure{kBadParam, "Reason: there is no such engine"};
  }
}

std::vector<Engine> EnginesFor(const Descriptor& graph, int mode) {
  const Descriptor& first = *graph.others.at(801).front();
  std::vector<int> numbers;
  const bool multiplies = first.kind == kMatmulOperation || first.kind == kSdpaForward;
  if (IsUnknownPattern(graph)) return {};
  if (mode == kFallback && IsConvolution(first)) numbers = {kOfWinograd};
  if (mode == kBest) {
    numbers = {kOfTensorCores, kSimple, kWithWorkspace};
    const int factor = first.kind == kSdpaForward ? 2800 : 1520;
    if (multiplies && first.Other(factor).One<int>(901) == kFloatData) numbers = {kOfTensorCores};
    if (first.kind == kNormForward) numbers = {kWithoutPlan, kSimple};
    if (first.kind == kResampleForward) numbers = {kSimple, kWithWorkspace};
  }
  std::vector<Engine> engines;
  for (const int number : numbers) engines.push_back(EngineOf(number));
  return engines;
}

Program ProgramOf(const Descriptor& graph) {
  Program program;
  std::set<int64_t> made;
  std::map<int64_t, const Descriptor*> known;
  for (const auto& operation : graph.others.at(801)) {
    Operation& added = program.operations.emplace_back();
    added.kind = operation->kind;
    AddNumbers(*operation, added);
    for (const auto& [name, others] : operation->others) {
      const Descriptor& tensor = *others.front();
      if (tensor.kind != kTensor) continue;
      const auto id = tensor.One<int64_t>(906);
      if (tensor.One<char>(907) != 0 && !IsResult(name) && !made.contains(id)) {
        throw Failure{kBadParam, "Reason: an operation reads a virtual tensor that none before has made"};
      }
      const auto [place, is_new] = known.emplace(id, &tensor);
      if (!is_new && place->second->All<int64_t>(902) != tensor.All<int64_t>(902)) {
        throw Failure{kBadParam, "Reason: two tensors have one id"};
      }
      if (is_new) {
        program.tensors.push_back({id, tensor.One<int>(901), tensor.All<int64_t>(902), tensor.All<int64_t>(903),
                                   tensor.One<int64_t>(900), tensor.One<char>(907) != 0, tensor.One<char>(908) != 0});
      }
    }
    for (const auto& [name, id] : added.tensors) {
      if (IsResult(name)) made.insert(id);
    }
  }
  return program;
}

std::string ToText(const SavedPlan& plan) {
  json tensors = json::array(), operations = json::array();
  for (const Tensor& one : plan.program.tensors) {
    tensors.push_back({one.id, one.type, one.dims, one.strides, one.alignment, one.is_virtual, one.is_by_value});
  }
  for (const Operation& one : plan.program.operations) {
    json operation{{"kind", one.kind}, {"tensors", json::array()}, {"numbers", json::array()}};
    for (const auto& [name, id] : one.tensors) operation["tensors"].push_back({name, id});
    for (const auto& [name, numbers] : one.numbers) operation["numbers"].push_back(json::array({name, numbers}));
    operations.push_back(std::move(operation));
  }
  return json{
      {"standin", plan.device_version}, {"engine", plan.engine}, {"tensors", tensors}, {"operations", operations}}
      .dump();
}

SavedPlan FromText(const std::string& text) {
  try {
    const json plan = json::parse(text);
    SavedPlan read{plan.at("standin"), plan.at("engine"), {}};
    for (const json& one : plan.at("tensors")) {
      read.program.tensors.push_back({one.at(0), one.at(1), one.at(2), one.at(3), one.at(4), one.at(5), one.at(6)});
    }
    for (const json& one : plan.at("operations")) {
      Operation& operation = read.program.operations.emplace_back();
      operation.kind = one.at("kind");
      for (const json& tensor : one.at("tensors")) operation.tensors[tensor.at(0)] = tensor.at(1);
      for (const json& numbers : one.at("numbers"))
        operation.numbers[numbers.at(0)] = numbers.at(1).get<std::vector<double>>();
    }
    read.program.rounds_factors = read.engine == kOfTensorCores;
    return read;
  } catch (const json::exception&) {
    throw Failure{kBadParam, "Reason: the text is none of a plan"};
  }
}

int DeviceVersion(const std::string& properties) {
  constexpr const char* kNames[] = {"maxGridSize",
                                    "maxBlockSize",
                                    "regsPerBlock",
                                    "multiProcessorCount",
                                    "warpSize",
                                    "maxSharedMemoryPerBlock",
                                    "maxSharedMemoryPerBlockOptin",
                                    "reservedSharedMemoryPerBlock",
                                    "maxRegistersPerSM",
                                    "maxCtasPerSM",
                                    "maxThreadsPerBlock",
                                    "maxThreadsPerSM",
                                    "pciDeviceId",
                                    "isTccDriver",
                                    "supportCoopLaunch",
                                    "smClockRateKHz",
                                    "memClockRateKHz",
                                    "l2CacheSize",
                                    "deviceName",
                                    "deviceVer",
                                    "totalGlobalMem",
                                    "cudaDeviceId",
                                    "driverVer"};
  const json device = json::parse(properties, nullptr, /*allow_exceptions=*/false);
  for (const char* name : kNames) {
    if (!device.is_object() || !device.contains(name)) {
      throw Failure{kBadParam, std::string("Reason: a device has no ") + name};
    }
  }
  return device.at("deviceVer").get<int>();
}

}  // namespace standin::cudnn
