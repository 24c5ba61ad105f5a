// measure.cc: one candidate, from function to seconds.
#include "cost/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "ir/evaluate.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20220301;
constexpr size_t kReferencesKept = 64;
constexpr unsigned char kPoison = 0xC5;  // as float32 -6.3e3, as int a large negative number
constexpr int kCheckedRuns = 3;          // a kernel that is right only the first time is wrong
constexpr size_t kMarginBytes = 4096;    // around outputs; a multiple of their alignment

Tensor CopyOf(const Tensor& tensor) {
  const Tensor copy = Tensor::Empty(tensor.shape(), tensor.dtype());
  if (tensor.size_bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), tensor.size_bytes());
  return copy;
}

bool IsPoison(const unsigned char* bytes, size_t count) {
  return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == kPoison; });
}

/// Reference results of functions measured lately: one function is tried by several toolchains in several layouts.
std::vector<Tensor> ReferenceOutputs(const Function& function, const std::vector<Tensor>& inputs) {
  static std::deque<std::pair<std::string, std::vector<Tensor>>> known;
  std::string key = StructuralHash(function);
  for (const auto& [hash, outputs] : known) {
    if (hash == key) return outputs;
  }
  std::vector<Tensor> outputs = Evaluate(function, inputs);
  known.emplace_back(std::move(key), outputs);
  if (known.size() > kReferencesKept) known.pop_front();
  return outputs;
}

std::vector<Type> ParameterTypes(const Function& function) {
  std::vector<Type> types;
  for (const Var& param : function->params()) {
    for (const Type& type :
         FlattenTensorTypes(param->checked_type() ? param->checked_type() : param->type_annotation())) {
      types.push_back(type);
    }
  }
  return types;
}

}  // namespace

int64_t IntegerInputBound(const Function& function, size_t parameter) {
  int64_t bound = 2;
  const Var& param = function->params().at(parameter);
  // Where the parameter indexes something, stay within it; everywhere else small numbers do.
  bool indexes = false;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->args().size() < 2 || call->args()[1] != Expr(param)) return;
    const TensorTypeNode* data = AsTensorType(call->args()[0]->checked_type());
    if (data == nullptr || data->rank() == 0) return;
    const int64_t axis = call->attrs().IntOr("axis", 0);
    const int64_t size = data->shape()[static_cast<size_t>(axis < 0 ? axis + data->rank() : axis)].size();
    bound = indexes ? std::min(bound, size) : size;
    indexes = true;
  });
  return std::max<int64_t>(bound, 1);
}

PartitionBuffers::PartitionBuffers(const PartitionRequest& request) : layouts_(request.layouts) {
  const std::vector<Type> types = ParameterTypes(request.function);
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(types[i]);
    Tensor plain = Tensor::Empty(type->static_shape(), type->dtype());
    const int64_t bound = type->dtype().is_integer() && types.size() == request.function->params().size()
                              ? IntegerInputBound(request.function, i)
                              : 2;
    FillRandom(plain, kInputSeed + i, 0, bound - 1);
    Tensor physical = plain;
    if (layouts_.inputs[i] != Layout::kPlain) {
      physical = Tensor::Empty(PhysicalShape(plain.shape(), layouts_.inputs[i]), plain.dtype());
      ConvertLayout(plain.raw(), Layout::kPlain, physical.raw(), layouts_.inputs[i], plain.shape(),
                    plain.dtype().size_bytes());
    }
    plain_inputs_.push_back(std::move(plain));
    pristine_inputs_.push_back(CopyOf(physical));
    inputs_.push_back(std::move(physical));
  }
  output_types_ = FlattenTensorTypes(request.function->body()->checked_type());
  for (size_t i = 0; i < output_types_.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(output_types_[i]);
    const Shape shape = PhysicalShape(type->static_shape(), layouts_.outputs[i]);
    const auto bytes = static_cast<size_t>(NumElements(shape)) * type->dtype().size_bytes();
    const Tensor margin = Tensor::Empty({static_cast<int64_t>(bytes + 2 * kMarginBytes)}, kUInt8);
    std::memset(margin.raw(), kPoison, margin.size_bytes());
    margins_.push_back(margin);
    outputs_.push_back(Tensor::View(shape, type->dtype(), static_cast<std::byte*>(margin.raw()) + kMarginBytes,
                                    std::make_shared<Tensor>(margin)));
  }
}

std::string PartitionBuffers::FindStrayWrites() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto* begin = static_cast<const unsigned char*>(margins_[i].raw());
    const auto* end = begin + kMarginBytes + outputs_[i].size_bytes();
    if (!IsPoison(begin, kMarginBytes) || !IsPoison(end, kMarginBytes)) return fmt::format("wrote beyond result {}", i);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].size_bytes() == 0) continue;
    if (std::memcmp(inputs_[i].raw(), pristine_inputs_[i].raw(), inputs_[i].size_bytes()) != 0) {
      return fmt::format("wrote to input {}", i);
    }
  }
  return "";
}

std::vector<Tensor> PartitionBuffers::PlainOutputs() const {
  std::vector<Tensor> result;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(output_types_[i]);
    Tensor plain = Tensor::Empty(type->static_shape(), type->dtype());
    ConvertLayout(outputs_[i].raw(), layouts_.outputs[i], plain.raw(), Layout::kPlain, plain.shape(),
                  plain.dtype().size_bytes());
    result.push_back(std::move(plain));
  }
  return result;
}

void PartitionBuffers::PoisonOutputs() {
  for (Tensor& output : outputs_) std::memset(output.raw(), kPoison, output.size_bytes());
}

void PartitionBuffers::ReadThroughBoundary() const {
  for (const Tensor& output : outputs_) ReadThrough(output.raw(), output.size_bytes());
  for (const Tensor& input : inputs_) ReadThrough(input.raw(), input.size_bytes());
}

std::vector<void*> PartitionBuffers::InputAddresses() const {
  std::vector<void*> result;
  for (const Tensor& tensor : inputs_) result.push_back(tensor.raw());
  return result;
}

std::vector<void*> PartitionBuffers::OutputAddresses() const {
  std::vector<void*> result;
  for (const Tensor& tensor : outputs_) result.push_back(tensor.raw());
  return result;
}

LoadedPartition::LoadedPartition(CompiledPartition compiled, int num_threads) : compiled_(std::move(compiled)) {
  if (compiled_.workspace_bytes > 0) {
    workspace_ = Tensor::Zeros({static_cast<int64_t>(compiled_.workspace_bytes)}, kUInt8);
  }
  kernel_ = GetKernelLoader(compiled_.loader).Load({compiled_.blob, compiled_.constants, num_threads});
}

void LoadedPartition::Bind(const PartitionBuffers& buffers) {
  const std::vector<void*> inputs = buffers.InputAddresses();
  const std::vector<void*> outputs = buffers.OutputAddresses();
  kernel_->Bind(inputs, outputs, workspace_.defined() ? workspace_.raw() : nullptr);
}

namespace {

/// Compares what a run left with what it should have; empty when right.
std::string FindDifference(const PartitionBuffers& buffers, const std::vector<Tensor>& expected, double* max_error) {
  const std::vector<Tensor> actual = buffers.PlainOutputs();
  if (actual.size() != expected.size()) return "the number of results differs";
  for (size_t i = 0; i < actual.size(); ++i) {
    const Comparison comparison = Compare(actual[i], expected[i], ToleranceFor(expected[i]));
    *max_error = std::max(*max_error, comparison.max_relative_error);
    if (!comparison.agrees) return fmt::format("wrong result {}, {}", i, comparison.difference);
  }
  return buffers.FindStrayWrites();
}

}  // namespace

Result<CompiledPartition> CompilePartition(const Toolchain& toolchain, const PartitionRequest& request) {
  SetNumThreads(request.num_threads);
  Result<CompiledPartition> compiled = toolchain.RelayToRuntime(request);
  if (!compiled.ok()) return Reason{"declined: " + compiled.reason().text, compiled.reason().origin};
  return compiled;
}

TuningRecord MeasureCompiled(CompiledPartition compiled, const PartitionRequest& request, const TimingOptions& timing) {
  TuningRecord record;
  SetNumThreads(request.num_threads);
  LoadedPartition partition(std::move(compiled), request.num_threads);
  PartitionBuffers buffers(request);
  partition.Bind(buffers);
  const std::vector<Tensor> expected = ReferenceOutputs(request.function, buffers.plain_inputs());
  for (int run = 0; run < kCheckedRuns && record.reason.empty(); ++run) {
    buffers.PoisonOutputs();
    partition.kernel().Run();
    record.reason = FindDifference(buffers, expected, &record.max_error);
  }
  if (!record.reason.empty()) return record;
  const Samples samples = TimeRuns([&] { partition.kernel().Run(); }, timing, [&] { buffers.ReadThroughBoundary(); });
  // Once more: what is wrong every now and then was run often meanwhile.
  record.reason = FindDifference(buffers, expected, &record.max_error);
  if (!record.reason.empty()) return record;
  record.ok = true;
  record.minimum = samples.minimum();
  record.p50 = samples.p50();
  record.p90 = samples.p90();
  record.num_samples = static_cast<int64_t>(samples.size());
  return record;
}

TuningRecord MeasurePartition(const Toolchain& toolchain, const PartitionRequest& request,
                              const TimingOptions& timing) {
  Result<CompiledPartition> compiled = CompilePartition(toolchain, request);
  if (compiled.ok()) return MeasureCompiled(std::move(*compiled), request, timing);
  TuningRecord record;
  record.reason = compiled.reason().text;
  return record;
}

Samples MeasureConversion(const Shape& shape, DataType dtype, Layout from, Layout to, int num_threads) {
  SetNumThreads(num_threads);
  const Tensor source = Tensor::Zeros(shape, dtype);
  const Tensor target = Tensor::Zeros(shape, dtype);
  return TimeRuns([&] { ConvertLayout(source.raw(), from, target.raw(), to, shape, dtype.size_bytes()); });
}

}  // namespace collage
