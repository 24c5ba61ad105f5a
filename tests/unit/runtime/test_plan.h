// test_plan.h: kernels that add, and plans made of them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

inline constexpr const char* kAddLoader = "test_add";

/// Counts of events of this loader's kernels, since the last reset.
struct AddCounts {
  int bound = 0;
  int run = 0;
};

inline AddCounts& Counts() {
  static AddCounts counts;
  return counts;
}

/// out[i] = in[i] + constants[0][0] over as many float32 as the blob, an int64, says. Writes to its workspace if it has
/// one.
class AddKernel : public Kernel {
 public:
  AddKernel(int64_t count, float amount) : count_(count), amount_(amount) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    in_ = static_cast<const float*>(inputs[0]);
    out_ = static_cast<float*>(outputs[0]);
    workspace_ = workspace;
    ++Counts().bound;
  }

  void Run() override {
    ++Counts().run;
    if (workspace_ != nullptr) std::memset(workspace_, 0xff, 64);
    for (int64_t i = 0; i < count_; ++i) out_[i] = in_[i] + amount_;
  }

 private:
  int64_t count_;
  float amount_;
  const float* in_ = nullptr;
  float* out_ = nullptr;
  void* workspace_ = nullptr;
};

class AddLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    int64_t count = 0;
    std::memcpy(&count, image.blob.data(), sizeof count);
    return std::make_unique<AddKernel>(count, image.constants[0].data<float>()[0]);
  }
};

inline void RegisterAddLoader() { AddKernelLoader(kAddLoader, std::make_unique<AddLoader>()); }

/// Writes plans down. Arena values get places one behind the other.
class PlanWriter {
 public:
  using Value = ExecutionPlan::Value;
  using Step = ExecutionPlan::Step;

  int AddInput(const std::string& name, Shape shape) {
    const int value = AddValue(std::move(shape), Value::Storage::kInput, static_cast<int64_t>(plan.inputs.size()));
    plan.inputs.push_back({name, value});
    return value;
  }

  int AddArenaValue(Shape shape, Layout layout = Layout::kPlain) {
    const auto element_bytes = static_cast<int64_t>(StoredType(layout, kFloat32).size_bytes());
    const int64_t place = Reserve(NumElements(shape) * element_bytes);
    return AddValue(std::move(shape), Value::Storage::kArena, place, layout);
  }

  int AddOutput(const std::string& name, Shape shape) {
    const int value = AddValue(std::move(shape), Value::Storage::kOutput, static_cast<int64_t>(plan.outputs.size()));
    plan.outputs.push_back({name, value});
    return value;
  }

  int AddConstant(const Tensor& tensor) {
    plan.constants.push_back(tensor);
    return AddValue(tensor.shape(), Value::Storage::kConstant, static_cast<int64_t>(plan.constants.size()) - 1);
  }

  int AddAlias(Shape shape, int of) {
    const int value = AddValue(std::move(shape), Value::Storage::kArena, 0);
    plan.values[static_cast<size_t>(value)].alias_of = of;
    return value;
  }

  /// A step that adds `amount`.
  void Add(int from, int to, float amount, size_t workspace_bytes = 0) {
    const int64_t count = NumElements(plan.values[static_cast<size_t>(from)].shape);
    std::vector<std::byte> blob(sizeof count);
    std::memcpy(blob.data(), &count, sizeof count);
    plan.blobs.push_back(std::make_shared<const std::vector<std::byte>>(std::move(blob)));
    const Tensor constant = Tensor::Zeros({1}, kFloat32);
    constant.Set(0, amount);
    plan.constants.push_back(constant);
    ExecutionPlan::KernelEntry kernel;
    kernel.loader = kAddLoader;
    kernel.blob = static_cast<int>(plan.blobs.size()) - 1;
    kernel.constants = {static_cast<int>(plan.constants.size()) - 1};
    kernel.workspace_bytes = workspace_bytes;
    kernel.toolchain = "test";
    kernel.label = "add";
    kernel.nodes = {"node \"" + std::to_string(plan.kernels.size()) + "\""};
    kernel.estimated_seconds = 1e-6;
    plan.kernels.push_back(std::move(kernel));
    Step step;
    step.kernel = static_cast<int>(plan.kernels.size()) - 1;
    step.inputs = {from};
    step.outputs = {to};
    if (workspace_bytes > 0) step.workspace_offset = Reserve(static_cast<int64_t>(workspace_bytes));
    plan.steps.push_back(std::move(step));
  }

  void Move(Step::Kind kind, int from, int to) {
    Step step;
    step.kind = kind;
    step.inputs = {from};
    step.outputs = {to};
    plan.steps.push_back(std::move(step));
  }

  ExecutionPlan plan;

 private:
  int AddValue(Shape shape, Value::Storage storage, int64_t place, Layout layout = Layout::kPlain) {
    Value value;
    value.shape = std::move(shape);
    value.dtype = kFloat32;
    value.layout = layout;
    value.storage = storage;
    value.offset_or_index = place;
    plan.values.push_back(std::move(value));
    return static_cast<int>(plan.values.size()) - 1;
  }

  int64_t Reserve(int64_t bytes) {
    const auto offset = static_cast<int64_t>(plan.arena_bytes);
    plan.arena_bytes += static_cast<size_t>((bytes + 63) / 64 * 64);
    return offset;
  }
};

/// x → x + 1 → … → x + length, over `count` floats.
inline ExecutionPlan ChainPlan(int length, int64_t count) {
  PlanWriter writer;
  int value = writer.AddInput("x", {count});
  const int slots[] = {writer.AddArenaValue({count}), writer.AddArenaValue({count})};
  for (int i = 0; i + 1 < length; ++i) {
    writer.Add(value, slots[i % 2], 1.0f);
    value = slots[i % 2];
  }
  writer.Add(value, writer.AddOutput("y", {count}), 1.0f);
  return writer.plan;
}

}  // namespace collage
