// compiled_group.cc: runs executables by the C API, for which plans and programs with symbolic sizes are one thing.
#include "backends/onnxruntime/provider/compiled_group.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

namespace collage::onnxruntime {
namespace {

void Check(collage_status status) {
  if (status == COLLAGE_OK) return;
  const collage_error* error = collage_last_error();
  for (const ErrorCategory category : {ErrorCategory::kInput, ErrorCategory::kUnsupported, ErrorCategory::kUnavailable,
                                       ErrorCategory::kCorrupt, ErrorCategory::kResource}) {
    if (ExitCode(category) == status) throw Error(category, error->message, error->where, error->hint);
  }
  throw Error(ErrorCategory::kInternal, error->message, error->where, error->hint);
}

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % COLLAGE_ALIGNMENT == 0; }

size_t RoundedUp(size_t bytes) { return (bytes / COLLAGE_ALIGNMENT + 1) * COLLAGE_ALIGNMENT; }

using Find = collage_status (*)(const collage_executable*, const char* name, size_t* index);
using Describe = collage_status (*)(const collage_executable*, size_t index, collage_tensor_info*, size_t info_size);

collage_tensor_info InfoOf(const collage_executable* executable, const std::string& name, Find find, Describe describe,
                           size_t& index) {
  if (find(executable, name.c_str(), &index) != COLLAGE_OK) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("the executable has no '{}': it is another model's", name));
  }
  collage_tensor_info info{};
  Check(describe(executable, index, &info, sizeof info));
  return info;
}

}  // namespace

collage_executable* LoadExecutable(const std::filesystem::path& path) {
  collage_executable* executable = nullptr;
  Check(collage_executable_load(path.c_str(), &executable));
  return executable;
}

collage_executable* LoadExecutable(const std::string& bytes, const std::string& name) {
  collage_executable* executable = nullptr;
  Check(collage_executable_load_memory(bytes.data(), bytes.size(), name.c_str(), &executable));
  return executable;
}

CompiledGroup::CompiledGroup(const ProviderApi& api, collage_executable* executable,
                             const std::vector<std::string>& inputs, const std::vector<std::string>& outputs)
    : api_(api), executable_(executable) {
  const auto add = [&](const std::vector<std::string>& names, Find find, Describe describe, std::vector<Port>& ports) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      size_t index = 0;
      const collage_tensor_info info = InfoOf(executable_, names[i], find, describe, index);
      const bool is_open = std::any_of(info.shape, info.shape + info.ndim, [](int64_t size) { return size < 0; });
      ports.push_back({i, index, is_open, {info.shape, info.shape + info.ndim}, is_open ? 0 : info.size_bytes});
    }
  };
  add(inputs, &collage_executable_find_input, &collage_executable_get_input, inputs_);
  add(outputs, &collage_executable_find_output, &collage_executable_get_output, outputs_);
  create_state = [](NodeComputeTable* self, NodeComputeContext*, void** state) -> Status* {
    *state = self;
    return nullptr;
  };
  compute = [](NodeComputeTable* self, void*, KernelContext* context) -> Status* {
    auto* group = static_cast<CompiledGroup*>(self);
    try {
      group->Compute(context);
      return nullptr;
    } catch (const std::exception& error) {
      return group->api_.ToStatus(error);
    }
  };
  release_state = [](NodeComputeTable*, void*) {};
}

CompiledGroup::~CompiledGroup() {
  idle_.clear();
  collage_executable_release(executable_);
}

CompiledGroup::Run CompiledGroup::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Run run = std::move(idle_.back());
      idle_.pop_back();
      return run;
    }
  }
  collage_instance* made = nullptr;
  Check(collage_instance_create(executable_, &made));
  return {.instance = std::unique_ptr<collage_instance, Release>(made)};
}

void CompiledGroup::GiveBack(Run run) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(run));
}

void CompiledGroup::BindInputs(KernelContext* context, collage_instance* instance) const {
  for (const Port& port : inputs_) {
    const Value* value = nullptr;
    api_.Ask<KernelContextGetInput>(static_cast<const KernelContext*>(context), port.of_node, &value);
    const void* data = nullptr;
    api_.Ask<GetTensorMutableData>(const_cast<Value*>(value), const_cast<void**>(&data));
    size_t bytes = port.bytes;
    if (port.is_open) {
      ShapeInfo* info = nullptr;
      api_.Ask<GetTensorTypeAndShape>(value, &info);
      std::vector<int64_t> shape(port.shape.size());
      size_t rank = 0;
      api_.Ask<GetDimensionsCount>(static_cast<const ShapeInfo*>(info), &rank);
      shape.resize(rank);
      if (rank > 0) api_.Ask<GetDimensions>(static_cast<const ShapeInfo*>(info), shape.data(), rank);
      api_.Call<ReleaseShapeInfo>(info);
      Check(collage_instance_set_input_shape(instance, port.of_executable, shape.data(), static_cast<int32_t>(rank)));
      api_.Ask<GetTensorSizeInBytes>(value, &bytes);
    }
    const auto give = IsAligned(data) ? &collage_instance_bind_input : &collage_instance_copy_input;
    Check(give(instance, port.of_executable, data, bytes));
  }
}

std::vector<std::pair<const CompiledGroup::Port*, void*>> CompiledGroup::BindOutputs(KernelContext* context,
                                                                                     Run& run) const {
  std::vector<std::pair<const Port*, void*>> to_copy;
  for (const Port& port : outputs_) {
    if (port.is_open) continue;
    Value* value = nullptr;
    api_.Ask<KernelContextGetOutput>(context, port.of_node, port.shape.data(), port.shape.size(), &value);
    void* data = nullptr;
    api_.Ask<GetTensorMutableData>(value, &data);
    if (!IsAligned(data)) {
      to_copy.emplace_back(&port, data);
      auto& own = run.aligned[port.of_executable];
      if (own == nullptr) own.reset(std::aligned_alloc(COLLAGE_ALIGNMENT, RoundedUp(port.bytes)));
      if (own == nullptr) throw std::bad_alloc();
      data = own.get();
    }
    Check(collage_instance_bind_output(run.instance.get(), port.of_executable, data, port.bytes));
  }
  return to_copy;
}

void CompiledGroup::CopyOpenOutput(KernelContext* context, collage_instance* instance, const Port& port) const {
  collage_tensor_info info{};
  Check(collage_instance_get_output_info(instance, port.of_executable, &info, sizeof info));
  Value* value = nullptr;
  api_.Ask<KernelContextGetOutput>(context, port.of_node, info.shape, static_cast<size_t>(info.ndim), &value);
  void* data = nullptr;
  api_.Ask<GetTensorMutableData>(value, &data);
  Check(collage_instance_copy_output(instance, port.of_executable, data, info.size_bytes));
}

void CompiledGroup::Compute(KernelContext* context) {
  Run run = Take();
  BindInputs(context, run.instance.get());
  const auto to_copy = BindOutputs(context, run);
  Check(collage_instance_run(run.instance.get()));
  for (const auto& [port, data] : to_copy) {
    Check(collage_instance_copy_output(run.instance.get(), port->of_executable, data, port->bytes));
  }
  for (const Port& port : outputs_) {
    if (port.is_open) CopyOpenOutput(context, run.instance.get(), port);
  }
  GiveBack(std::move(run));
}

}  // namespace collage::onnxruntime
