// device.cc: the device, which this example imitates: reads commands and carries them out.
#include <collage/runtime/kernel.h>
#include <collage/runtime/thread_pool.h>
#include <collage/support/error.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "commands.h"

namespace ethos_n_like {
namespace {

[[noreturn]] void Damaged(const char* how) {
  throw collage::Error(collage::ErrorCategory::kCorrupt,
                       std::string("commands for 'ethos-n-like' are damaged: ") + how);
}

class Commands : public collage::Kernel {
 public:
  Commands(std::vector<Command> commands, std::vector<collage::Tensor> weights)
      : commands_(std::move(commands)), weights_(std::move(weights)) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    layers_.clear();
    for (size_t i = 0; i < commands_.size(); ++i) {
      const auto address = [&](const Place& place) -> void* {
        if (place.kind == Place::kMemory) return static_cast<std::byte*>(workspace) + place.at;
        const auto values = place.kind == Place::kInput ? inputs : outputs;
        if (place.at < 0 || static_cast<size_t>(place.at) >= values.size()) Damaged("a value is no input or output");
        return values[static_cast<size_t>(place.at)];
      };
      layers_.push_back({commands_[i], static_cast<const float*>(address(commands_[i].from)), weights_[i].data<float>(),
                         static_cast<float*>(address(commands_[i].to))});
    }
  }

  void Run() override {
    for (Layer& layer : layers_) {
      collage::ParallelFor(layer.command.num_rows * NumBlocks(layer.command), &RunBlocks, &layer);
    }
  }

 private:
  struct Layer {
    Command command;
    const float* from;
    const float* weights;
    float* to;
  };

  /// Some of the blocks of outputs of all rows, on one of the threads that the whole process shares.
  static void RunBlocks(void* context, int64_t begin, int64_t end) {
    const Layer& layer = *static_cast<const Layer*>(context);
    const Command& command = layer.command;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / NumBlocks(command), block = i % NumBlocks(command);
      const float* from = layer.from + row * command.num_inputs;
      const float* weights = layer.weights + block * (command.num_inputs + 1) * kBlock;
      float sums[kBlock];
      std::copy_n(weights + command.num_inputs * kBlock, kBlock, sums);
      for (int64_t input = 0; input < command.num_inputs; ++input) {
        for (int64_t o = 0; o < kBlock; ++o) sums[o] += from[input] * weights[input * kBlock + o];
      }
      float* to = layer.to + row * command.num_outputs + block * kBlock;
      const int64_t count = std::min(kBlock, command.num_outputs - block * kBlock);
      for (int64_t o = 0; o < count; ++o) to[o] = command.has_relu != 0 ? std::max(sums[o], 0.0F) : sums[o];
    }
  }

  std::vector<Command> commands_;
  std::vector<collage::Tensor> weights_;
  std::vector<Layer> layers_;
};

class Device : public collage::KernelLoader {
 public:
  std::unique_ptr<collage::Kernel> Load(const collage::KernelImage& image) override {
    if (image.blob.size() % sizeof(Command) != 0) Damaged("the last one is cut off");
    std::vector<Command> commands(image.blob.size() / sizeof(Command));
    std::memcpy(commands.data(), image.blob.data(), image.blob.size());
    if (commands.size() != image.constants.size()) Damaged("each has weights");
    for (size_t i = 0; i < commands.size(); ++i) {
      const Command& command = commands[i];
      if (command.num_rows < 0 || command.num_inputs < 0 || command.num_outputs < 0) Damaged("a size is negative");
      if (image.constants[i].num_elements() != NumWeights(command)) Damaged("weights have another size");
    }
    return std::make_unique<Commands>(std::move(commands),
                                      std::vector<collage::Tensor>(image.constants.begin(), image.constants.end()));
  }
};

}  // namespace
}  // namespace ethos_n_like

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new ethos_n_like::Device; }
