// libcudnn.cc: cuDNN's backend API for tests on machines without a GPU. Plans are programs as JSON, which are run by
// loops, on streams of the stand-in for the driver. It refuses what the documentation forbids: attributes of another
// type or number, descriptors that are not final, sizes that do not fit, plans for other GPUs, memory that is not the
// device's or not aligned, calls from threads without a context.
//
// It takes for granted: heuristics announce more engines than they give; engines that are ranked may have no plan;
// float32 matrices are multiplied on tensor cores only, rounded to TF32; images behind GELU, swish and leaky ReLU lie
// channels-last. tests/conformance/gpu/cudnn_plans_test.cc has tests of the last two on the real library, which makes
// plans without a GPU. Execution has been compared with none: docs/gpus.md has the list of what is assumed.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "cudnn/descriptor.h"
#include "cudnn/evaluation.h"
#include "cudnn/program.h"
#include "standin_cuda.h"

namespace {

using namespace standin::cudnn;  // NOLINT: all of it is about that

struct Handle {
  void* stream = nullptr;
};

thread_local std::string last_error;

/// Calls `function`, and returns the status of its failure.
template <typename Function>
int Guarded(Function function) {
  try {
    function();
    last_error.clear();
    return kSuccess;
  } catch (const Failure& failure) {
    last_error = failure.text;
    return failure.status;
  }
}

Descriptor& Of(void* descriptor) {
  if (descriptor == nullptr) throw Failure{kNullPointer, "Reason: there is no descriptor"};
  return *static_cast<Descriptor*>(descriptor);
}

std::vector<Engine> RankedBy(const Descriptor& heuristic) {
  return EnginesFor(heuristic.Other(201), heuristic.One<int>(200));
}

void Finalize(Descriptor& descriptor) {
  CheckFinal(descriptor);
  if (descriptor.kind == kGraph) ProgramOf(descriptor);
  if (descriptor.kind == kDeviceProperties && descriptor.Has(2702)) DeviceVersion(descriptor.Characters(2702));
  if (descriptor.kind == kPlan && descriptor.Has(405)) {
    descriptor.text = descriptor.Characters(405);
    SavedPlan plan = FromText(descriptor.text);
    if (plan.device_version != 0) throw Failure{kArchitectureMismatch, "Reason: the plan is for another GPU"};
    descriptor.engine = EngineOf(plan.engine).number;
    descriptor.program = std::make_shared<Program>(std::move(plan.program));
  } else if (descriptor.kind == kPlan) {
    const Descriptor& configuration = descriptor.Other(401);
    const Engine engine = EngineOf(configuration.engine);
    if (!engine.has_plan) throw Failure{kNotSupported, "Reason: the engine has no plan for this"};
    const Descriptor& device = descriptor.Other(407);
    SavedPlan plan{device.Has(2702) ? DeviceVersion(device.Characters(2702)) : 0, engine.number, {}};
    plan.program = ProgramOf(configuration.Other(201));
    descriptor.engine = engine.number;
    descriptor.text = ToText(plan);
  }
  descriptor.is_final = true;
}

/// Puts what a heuristic gives into descriptors that the caller has made.
int64_t GetRanked(const Descriptor& heuristic, int64_t most, void** targets) {
  const std::vector<Engine> engines = RankedBy(heuristic);
  if (targets == nullptr) return static_cast<int64_t>(engines.size()) + 1;  // one more than there are
  const int64_t count = std::min<int64_t>(most, static_cast<int64_t>(engines.size()));
  for (int64_t i = 0; i < count; ++i) {
    Descriptor& configuration = Of(targets[i]);
    if (configuration.kind != kConfiguration) throw Failure{kBadParam, "Reason: not a configuration"};
    configuration.engine = engines[static_cast<size_t>(i)].number;
    configuration.others[201] = heuristic.others.at(201);
    configuration.is_final = true;
  }
  return count;
}

/// Copies `values` where there is room for them.
template <typename T>
void Give(const std::vector<T>& values, int64_t most, int64_t* count, void* elements) {
  *count = static_cast<int64_t>(values.size());
  const size_t given = std::min(values.size(), static_cast<size_t>(most));
  if (elements != nullptr) std::memcpy(elements, values.data(), given * sizeof(T));
}

void Get(const Descriptor& descriptor, int attribute, int type, int64_t most, int64_t* count, void* elements) {
  if (!descriptor.is_final) throw Failure{kNotFinalized, "Reason: the descriptor is not final yet"};
  if (descriptor.kind == kHeuristic && attribute == 202 && type == kDescriptor) {
    *count = GetRanked(descriptor, most, static_cast<void**>(elements));
  } else if (descriptor.kind == kConfiguration && attribute == 300 && type == kDescriptor && elements != nullptr) {
    Descriptor& engine = Of(*static_cast<void**>(elements));
    engine.engine = descriptor.engine;
    engine.is_final = true;
    *count = 1;
  } else if (descriptor.kind == kEngine && attribute == 1303 && type == kNumericalNote) {
    Give(EngineOf(descriptor.engine).notes, most, count, elements);
  } else if (descriptor.kind == kPlan && attribute == 402 && type == kInt64) {
    Give(std::vector<int64_t>{EngineOf(descriptor.engine).workspace}, most, count, elements);
  } else if (descriptor.kind == kPlan && attribute == 405 && type == kChar) {
    Give(std::vector<char>(descriptor.text.begin(), descriptor.text.end()), most, count, elements);
  } else {
    throw Failure{kBadParam, "Reason: there is no such attribute"};
  }
}

/// The places of all tensors of a plan that are not virtual. Numbers are copied into `numbers`.
std::map<int64_t, std::byte*> PlacesOf(const Program& program, const Descriptor& pack, std::vector<float>& numbers) {
  const auto ids = pack.All<int64_t>(1000);
  const auto pointers = pack.All<std::byte*>(1001);
  std::map<int64_t, std::byte*> places;
  numbers.reserve(program.tensors.size());
  for (const Tensor& tensor : program.tensors) {
    if (tensor.is_virtual) continue;
    const auto at = std::ranges::find(ids, tensor.id);
    if (at == ids.end()) throw Failure{kBadParam, "Reason: a tensor has no address"};
    std::byte* pointer = pointers[static_cast<size_t>(at - ids.begin())];
    if (pointer == nullptr) throw Failure{kNullPointer, "Reason: a tensor has no address"};
    if (tensor.is_by_value) {
      std::memcpy(&numbers.emplace_back(), pointer, sizeof(float));
      continue;
    }
    if (reinterpret_cast<uintptr_t>(pointer) % static_cast<size_t>(tensor.alignment) != 0) {
      throw Failure{kMisaligned, "Reason: an address is not aligned"};
    }
    auto* place = static_cast<std::byte*>(standin_cuda_within(pointer, tensor.bytes()));
    if (place == nullptr) throw Failure{kBadParam, "Reason: a tensor is not in the memory of the device"};
    places[tensor.id] = place;
  }
  return places;
}

void Execute(const Handle* handle, const Descriptor& plan, const Descriptor& pack) {
  if (handle == nullptr || !plan.is_final || !pack.is_final)
    throw Failure{kNotFinalized, "Reason: something is not final"};
  const std::shared_ptr<const Program> program = plan.program;
  if (program == nullptr) throw Failure{kBadParam, "Reason: the plan was made without a handle"};
  const auto numbers = std::make_shared<std::vector<float>>();
  std::map<int64_t, std::byte*> places = PlacesOf(*program, pack, *numbers);
  size_t next = 0;
  for (const Tensor& tensor : program->tensors) {
    if (tensor.is_by_value) places[tensor.id] = reinterpret_cast<std::byte*>(&(*numbers)[next++]);
  }
  const auto bytes = static_cast<size_t>(EngineOf(plan.engine).workspace);
  void* workspace = standin_cuda_within(pack.One<void*>(1003), bytes);
  if (bytes > 0 && workspace == nullptr)
    throw Failure{kBadParam, "Reason: the workspace is not in the device's memory"};
  std::function<void()> work = [program, places, numbers, workspace, bytes] {
    if (bytes > 0) std::memset(workspace, 0xAB, bytes);
    Evaluate(*program, places);
  };
  if (!standin_cuda_enqueue(handle->stream, &work)) {
    throw Failure{kExecutionFailed, "Reason: the thread has no context, or the stream is none"};
  }
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91900; }

const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "CUDNN_STATUS_SUCCESS";
    case kBadParam: return "CUDNN_STATUS_BAD_PARAM";
    case kNotFinalized: return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case kMisaligned: return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case kShapeMismatch: return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case kAttributeType: return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case kNotSupported: return "CUDNN_STATUS_NOT_SUPPORTED";
    case kArchitectureMismatch: return "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH";
    case kExecutionFailed: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "unknown status";
  }
}

void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes == 0) return;
  const size_t length = std::min(bytes - 1, last_error.size());
  std::memcpy(text, last_error.data(), length);
  text[length] = '\0';
}

int cudnnCreate(Handle** handle) {
  *handle = new Handle;
  return kSuccess;
}

int cudnnDestroy(Handle* handle) {
  delete handle;
  return kSuccess;
}

int cudnnSetStream(Handle* handle, void* stream) {
  handle->stream = stream;
  return kSuccess;
}

int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  *descriptor = new Descriptor{.kind = kind};
  return kSuccess;
}

int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return kSuccess;
}

int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count, const void* elements) {
  return Guarded([&] { Set(Of(descriptor), attribute, type, count, elements); });
}

int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t most, int64_t* count, void* elements) {
  return Guarded([&] { Get(Of(descriptor), attribute, type, most, count, elements); });
}

int cudnnBackendFinalize(void* descriptor) {
  return Guarded([&] { Finalize(Of(descriptor)); });
}

int cudnnBackendExecute(Handle* handle, void* plan, void* pack) {
  return Guarded([&] { Execute(handle, Of(plan), Of(pack)); });
}

}  // extern "C"
