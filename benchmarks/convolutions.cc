// convolutions.cc: native 3x3 convolutions with stride 1, direct and by Winograd's algorithm with tiles of 2x2 and 4x4
// results: the layers of some networks, channels-last, with a bias. Times are medians of runs interleaved within one
// process; errors are those of results drawn at random against sums in double, relative to the layer's largest result.
//
//   bench_convolutions [--threads N] [--seconds S]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/worker/measure.h"
#include "cost/worker/timing.h"
#include "run_main.h"

namespace collage {
namespace {

struct Setting {
  int threads = 1;
  double seconds = 0.5;  ///< for each layer
};

struct Layer {
  int64_t in, out, size;  ///< channels, and side of the image
  int times;              ///< in the network
};

struct Network {
  const char* name;
  std::vector<Layer> layers;
};

const std::vector<Network>& Networks() {
  static const std::vector<Network> networks{
      {"VGG-16, 224x224",
       {{3, 64, 224, 1},
        {64, 64, 224, 1},
        {64, 128, 112, 1},
        {128, 128, 112, 1},
        {128, 256, 56, 1},
        {256, 256, 56, 2},
        {256, 512, 28, 1},
        {512, 512, 28, 2},
        {512, 512, 14, 3}}},
      {"ResNet-18, 224x224", {{64, 64, 56, 4}, {128, 128, 28, 3}, {256, 256, 14, 3}, {512, 512, 7, 3}}},
      {"ResNet-50, 224x224", {{64, 64, 56, 3}, {128, 128, 28, 3}, {256, 256, 14, 5}, {512, 512, 7, 2}}},
      {"U-Net, 256x256",
       {{3, 64, 256, 1},
        {64, 64, 256, 2},
        {128, 64, 256, 1},
        {64, 128, 128, 1},
        {128, 128, 128, 2},
        {256, 128, 128, 1},
        {128, 256, 64, 1},
        {256, 256, 64, 2},
        {512, 256, 64, 1},
        {256, 512, 32, 1},
        {512, 512, 32, 2},
        {1024, 512, 32, 1},
        {512, 1024, 16, 1},
        {1024, 1024, 16, 1}}},
  };
  return networks;
}

Tensor Random(const Shape& shape, double largest, uint32_t seed) {
  Tensor tensor = Tensor::Empty(shape, kFloat32);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(-largest), static_cast<float>(largest));
  for (float& value : tensor.span<float>()) value = uniform(generator);
  return tensor;
}

/// A layer with its weights; results are about as large as the data.
struct Problem {
  Tensor weight;
  Tensor bias;
  PartitionRequest request;

  Problem(const Layer& layer, int threads)
      : weight(Random({layer.out, layer.in, 3, 3}, std::sqrt(1.0 / (3.0 * static_cast<double>(layer.in))), 1)),
        bias(Random({layer.out, 1, 1}, 1, 2)) {
    const Var x = MakeVar("x", TensorType(Shape{1, layer.in, layer.size, layer.size}, kFloat32));
    const Expr conv = MakeCall("nn.conv2d", {x, MakeConstant(weight)}, {{"padding", std::vector<int64_t>{1, 1}}});
    const Function function = MakeFunction({x}, MakeCall("add", {conv, MakeConstant(bias)}));
    InferType(function);
    request = {function, {{Layout::kChannelsLast}, {Layout::kChannelsLast}}, threads};
  }

  /// One result in double.
  double At(const Tensor& data, int64_t channel, int64_t y, int64_t x) const {
    const Shape& shape = data.shape();
    double sum = bias.At(channel);
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t i = std::max<int64_t>(0, 1 - y); i < std::min<int64_t>(3, shape[2] + 1 - y); ++i) {
        for (int64_t j = std::max<int64_t>(0, 1 - x); j < std::min<int64_t>(3, shape[3] + 1 - x); ++j) {
          sum += static_cast<double>(weight.data<float>()[((channel * shape[1] + c) * 3 + i) * 3 + j]) *
                 static_cast<double>(data.data<float>()[(c * shape[2] + y + i - 1) * shape[3] + x + j - 1]);
        }
      }
    }
    return sum;
  }
};

/// The largest of some errors, relative to the largest result.
double ErrorOf(const Problem& problem, const Tensor& data, const Tensor& result) {
  constexpr int kSamples = 4000;
  std::mt19937 random(3);
  const Shape& shape = result.shape();
  const auto draw = [&](size_t axis) { return std::uniform_int_distribution<int64_t>(0, shape[axis] - 1)(random); };
  double error = 0;
  for (int i = 0; i < kSamples; ++i) {
    const int64_t channel = draw(1), y = draw(2), x = draw(3);
    const double got = result.data<float>()[(channel * shape[2] + y) * shape[3] + x];
    error = std::max(error, std::abs(got - problem.At(data, channel, y, x)));
  }
  double largest = 0;
  for (const float value : result.span<float>()) largest = std::max(largest, static_cast<double>(std::abs(value)));
  return error / largest;
}

enum Way : size_t { kDirect, kTwo, kFour, kNumWays };

struct Outcome {
  std::array<double, kNumWays> seconds{};
  std::array<double, kNumWays> errors{};
  size_t chosen = kDirect;
};

std::unique_ptr<const Toolchain> Configured(const Toolchain& native, size_t way) {
  const char* accuracy = way == kDirect ? "exact" : "standard";
  return native.WithOptions({{"accuracy", accuracy}, {"winograd_tile", way == kDirect ? 0 : way == kTwo ? 2 : 4}});
}

template <typename T>
T Checked(Result<T> result) {
  if (!result.ok()) throw Error(ErrorCategory::kUnavailable, result.reason().text);
  return std::move(*result);
}

Outcome Try(const Toolchain& native, const Layer& layer, const Setting& setting) {
  const Problem problem(layer, setting.threads);
  PartitionBuffers buffers(problem.request);
  const std::string by_itself = Checked(native.RelayToTIR(problem.request)).mlir;
  Outcome outcome;
  std::vector<std::unique_ptr<LoadedPartition>> kernels;
  std::vector<std::function<void()>> runs;
  for (size_t way = 0; way < kNumWays; ++way) {
    CompiledPartition compiled = Checked(Configured(native, way)->RelayToRuntime(problem.request));
    if (compiled.source == by_itself) outcome.chosen = way;
    kernels.push_back(std::make_unique<LoadedPartition>(std::move(compiled), setting.threads));
    kernels.back()->Bind(buffers);
    Kernel& kernel = kernels.back()->kernel();
    kernel.Run();
    outcome.errors[way] = ErrorOf(problem, buffers.plain_inputs()[0], buffers.PlainOutputs()[0]);
    runs.emplace_back([&kernel] { kernel.Run(); });
  }
  double round = 0;
  for (const Samples& samples : TimeInterleaved(runs, 3)) round += samples.p50();
  const int rounds = std::clamp(static_cast<int>(setting.seconds / round), 7, 2000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds);
  for (size_t way = 0; way < kNumWays; ++way) outcome.seconds[way] = samples[way].p50();
  return outcome;
}

void PrintRow(const std::string& name, const Outcome& outcome, const std::string& chosen, double chosen_seconds) {
  const auto& [seconds, errors, ignored] = outcome;
  fmt::print("| {} | {:.3f} ms | {:.3f} ms | {:.3f} ms | {} | {:.2f} | {:.1e} | {:.1e} | {:.1e} |\n", name,
             seconds[kDirect] * 1e3, seconds[kTwo] * 1e3, seconds[kFour] * 1e3, chosen,
             seconds[kDirect] / chosen_seconds, errors[kDirect], errors[kTwo], errors[kFour]);
  std::fflush(stdout);
}

/// A row for each layer, and their sum, each as often as the network has it.
void PrintNetwork(const Toolchain& native, const Network& network, const Setting& setting) {
  constexpr std::array kNames{"direct", "2x2", "4x4"};
  Outcome sum;
  double chosen = 0;
  for (const Layer& layer : network.layers) {
    const Outcome outcome = Try(native, layer, setting);
    const double best = outcome.seconds[outcome.chosen];
    for (size_t way = 0; way < kNumWays; ++way) {
      sum.seconds[way] += layer.times * outcome.seconds[way];
      sum.errors[way] = std::max(sum.errors[way], outcome.errors[way]);
    }
    chosen += layer.times * best;
    PrintRow(fmt::format("{} to {}, {}x{}, {} x", layer.in, layer.out, layer.size, layer.size, layer.times), outcome,
             kNames[outcome.chosen], best);
  }
  PrintRow(fmt::format("**{}**", network.name), sum, fmt::format("{:.3f} ms", chosen * 1e3), chosen);
}

Setting Parse(int argc, char** argv) {
  Setting setting;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) setting.threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) setting.seconds = std::atof(argv[i + 1]);
  }
  return setting;
}

int Main(int argc, char** argv) {
  const Setting setting = Parse(argc, argv);
  SetNumThreads(setting.threads);
  ProbeToolchains();
  const Toolchain* native = ToolchainRegistry::Global().Find("native");
  if (native == nullptr || !native->Probe().available) {
    throw Error(ErrorCategory::kUnavailable, "there is no native toolchain");
  }
  fmt::print(
      "| layer | direct | tiles of 2x2 | of 4x4 | chosen | direct to chosen | error, direct | 2x2 | 4x4 |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Network& network : Networks()) PrintNetwork(*native, network, setting);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
