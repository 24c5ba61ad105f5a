// partition_buffers.cc: filling, sending, fetching and looking at the buffers of one partition.
#include "cost/measure/partition_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "cost/measure/timing.h"

namespace collage {
namespace {

constexpr size_t kMarginBytes = 4096;  // around outputs; a multiple of their alignment

/// Memory for what is laid out so, where that is not the host's.
std::optional<DeviceBuffer> BufferIn(Layout layout, size_t bytes) {
  if (MemoryOf(layout) == Memory::kHost) return std::nullopt;
  return DeviceBuffer(MemoryOf(layout), bytes);
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

PartitionBuffers::PartitionBuffers(const PartitionRequest& request, std::optional<BlockPlacement> guarded)
    : function_(request.function), layouts_(request.layouts) {
  const std::vector<Type> types = ParameterTypes(function_);
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(types[i]);
    Tensor input = Tensor::Empty(PhysicalShape(type->static_shape(), layouts_.inputs[i]),
                                 StoredType(layouts_.inputs[i], type->dtype()));
    input_blocks_.emplace_back();
    if (guarded && MemoryOf(layouts_.inputs[i]) == Memory::kHost) {
      input_blocks_.back() = std::make_shared<GuardedBlock>(input.size_bytes(), *guarded);
      input = TensorIn(input_blocks_.back(), input.shape(), input.dtype());
    }
    device_inputs_.push_back(BufferIn(layouts_.inputs[i], input.size_bytes()));
    inputs_.push_back(std::move(input));
  }
  Fill(Draw::kUnit);
  output_types_ = FlattenTensorTypes(request.function->body()->checked_type());
  for (size_t i = 0; i < output_types_.size(); ++i) AddOutput(output_types_[i], layouts_.outputs[i], guarded);
  Send(margins_, device_margins_);
}

/// On a device there are margins in any case: its memory has no guards.
void PartitionBuffers::AddOutput(const Type& type, Layout layout, std::optional<BlockPlacement> guarded) {
  const TensorTypeNode* tensor = AsTensorType(type);
  const Shape shape = PhysicalShape(tensor->static_shape(), layout);
  const DataType stored = StoredType(layout, tensor->dtype());
  const auto bytes = static_cast<size_t>(NumElements(shape)) * stored.size_bytes();
  if (guarded && MemoryOf(layout) == Memory::kHost) {
    output_blocks_.push_back(std::make_shared<GuardedBlock>(bytes, *guarded));
    outputs_.push_back(TensorIn(output_blocks_.back(), shape, stored));
    margins_.emplace_back();
    device_margins_.emplace_back();
    return;
  }
  const Tensor margin = Tensor::Empty({static_cast<int64_t>(bytes + 2 * kMarginBytes)}, kUInt8);
  std::memset(margin.raw(), kPoison, margin.size_bytes());
  output_blocks_.emplace_back();
  margins_.push_back(margin);
  device_margins_.push_back(BufferIn(layout, margin.size_bytes()));
  outputs_.push_back(Tensor::View(shape, stored, static_cast<std::byte*>(margin.raw()) + kMarginBytes,
                                  std::make_shared<Tensor>(margin)));
}

void PartitionBuffers::Send(const std::vector<Tensor>& copies,
                            const std::vector<std::optional<DeviceBuffer>>& buffers) const {
  for (size_t i = 0; i < copies.size(); ++i) {
    if (buffers[i]) buffers[i]->device().CopyIn(buffers[i]->address(), copies[i].raw(), copies[i].size_bytes());
  }
}

void PartitionBuffers::Fetch() const {
  const auto fetch = [](const std::vector<Tensor>& copies, const std::vector<std::optional<DeviceBuffer>>& buffers) {
    for (size_t i = 0; i < copies.size(); ++i) {
      if (buffers[i]) buffers[i]->device().CopyOut(copies[i].raw(), buffers[i]->address(), copies[i].size_bytes());
    }
  };
  fetch(inputs_, device_inputs_);
  fetch(margins_, device_margins_);
}

Memory PartitionBuffers::CommonMemory() const {
  std::set<Memory> memories;
  for (const std::vector<Layout>* layouts : {&layouts_.inputs, &layouts_.outputs}) {
    for (const Layout layout : *layouts) memories.insert(MemoryOf(layout));
  }
  return memories.size() == 1 ? *memories.begin() : Memory::kHost;
}

void PartitionBuffers::Synchronize() const {
  for (const auto* buffers : {&device_inputs_, &device_margins_}) {
    for (const std::optional<DeviceBuffer>& buffer : *buffers) {
      if (buffer) buffer->device().Synchronize();
    }
  }
}

void PartitionBuffers::Fill(Draw draw) {
  plain_inputs_ = SampleInputs(function_, draw);
  pristine_inputs_.clear();
  SetInputsReadOnly(false);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& plain = plain_inputs_[i];
    Tensor physical = plain;
    const Layout layout = In(Memory::kHost, layouts_.inputs[i]);
    if (layout != Layout::kPlain) {
      const size_t bytes = plain.dtype().size_bytes();
      physical = Tensor::Empty(inputs_[i].shape(), inputs_[i].dtype());
      ConvertLayout(plain.raw(), Layout::kPlain, physical.raw(), layout, plain.shape(), bytes);
      // Rounding an input is not the kernel's error.
      ConvertLayout(physical.raw(), layout, plain.raw(), Layout::kPlain, plain.shape(), bytes);
    }
    if (physical.size_bytes() > 0) std::memcpy(inputs_[i].raw(), physical.raw(), physical.size_bytes());
    pristine_inputs_.push_back(std::move(physical));
  }
  SetInputsReadOnly(true);
  Send(inputs_, device_inputs_);
}

void PartitionBuffers::SetInputsReadOnly(bool are_read_only) {
  for (const auto& block : input_blocks_) {
    if (block != nullptr) block->SetReadOnly(are_read_only);
  }
}

std::string PartitionBuffers::FindFault() const {
  const auto find = [](const std::vector<std::shared_ptr<GuardedBlock>>& blocks, const char* what) -> std::string {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const std::string fault = blocks[i] == nullptr ? "" : blocks[i]->Fault();
      if (!fault.empty()) return fmt::format("{} {} {}", fault, what, i);
    }
    return "";
  };
  const std::string fault = find(input_blocks_, "input");
  return fault.empty() ? find(output_blocks_, "result") : fault;
}

std::string PartitionBuffers::FindStrayAccesses() const {
  Fetch();
  if (std::string fault = FindFault(); !fault.empty()) return fault;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (output_blocks_[i] != nullptr) continue;
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
  Fetch();
  std::vector<Tensor> result;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(output_types_[i]);
    Tensor plain = Tensor::Empty(type->static_shape(), type->dtype());
    ConvertLayout(outputs_[i].raw(), In(Memory::kHost, layouts_.outputs[i]), plain.raw(), Layout::kPlain, plain.shape(),
                  plain.dtype().size_bytes());
    result.push_back(std::move(plain));
  }
  return result;
}

bool PartitionBuffers::OutputsArePoisoned() const {
  Fetch();
  return std::ranges::all_of(outputs_, [](const Tensor& one) { return IsPoison(one.raw(), one.size_bytes()); });
}

std::vector<std::byte> PartitionBuffers::OutputBytes(size_t index) const {
  Fetch();
  const auto* begin = static_cast<const std::byte*>(outputs_[index].raw());
  return {begin, begin + outputs_[index].size_bytes()};
}

void PartitionBuffers::PoisonOutputs() {
  for (Tensor& output : outputs_) std::memset(output.raw(), kPoison, output.size_bytes());
  Send(margins_, device_margins_);
}

void PartitionBuffers::ReadThroughBoundary() const {
  const auto read = [](const std::vector<Tensor>& tensors, const std::vector<std::optional<DeviceBuffer>>& elsewhere) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!elsewhere[i]) ReadThrough(tensors[i].raw(), tensors[i].size_bytes());
    }
  };
  read(outputs_, device_margins_);
  read(inputs_, device_inputs_);
}

std::vector<Tensor> PartitionBuffers::HostInputs() const {
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!device_inputs_[i]) result.push_back(inputs_[i]);
  }
  return result;
}

std::vector<void*> PartitionBuffers::InputAddresses() const {
  std::vector<void*> result;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    result.push_back(device_inputs_[i] ? device_inputs_[i]->address() : inputs_[i].raw());
  }
  return result;
}

std::vector<void*> PartitionBuffers::OutputAddresses() const {
  std::vector<void*> result;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::optional<DeviceBuffer>& elsewhere = device_margins_[i];
    result.push_back(elsewhere ? static_cast<std::byte*>(elsewhere->address()) + kMarginBytes : outputs_[i].raw());
  }
  return result;
}

uint64_t PartitionBuffers::OutputDigest() const {
  Fetch();
  // Four sums side by side, so that reading is what it costs.
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15;
  std::array<uint64_t, 4> sums{1, 2, 3, 4};
  const auto add = [&](size_t i, uint64_t word) { sums[i] = (sums[i] ^ word) * kPrime; };
  for (const Tensor& output : outputs_) {
    const auto* bytes = static_cast<const unsigned char*>(output.raw());
    const size_t size = output.size_bytes();
    size_t i = 0;
    for (; i + sizeof sums <= size; i += sizeof sums) {
      std::array<uint64_t, 4> words;
      std::memcpy(words.data(), bytes + i, sizeof words);
      for (size_t lane = 0; lane < words.size(); ++lane) add(lane, words[lane]);
    }
    for (; i < size; ++i) add(i % 4, bytes[i]);
  }
  uint64_t digest = 0;
  for (const uint64_t sum : sums) digest = (digest ^ (sum ^ (sum >> 29U))) * kPrime;
  return digest;
}

}  // namespace collage
