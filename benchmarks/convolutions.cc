// convolutions.cc: native convolutions with stride 1, direct and by Winograd's algorithm with tiles of 2, of 4, and for
// three axes of 2x4x4 results: the layers of some networks, channels-last, with a bias. Times are medians of runs
// interleaved within one process; errors are those of results drawn at random against sums in double: the largest,
// relative to the layer's largest result, and their root mean square, relative to that of results. In bf16, factors are
// rounded to bfloat16, and fewer tiles may be chosen.
//
//   bench_convolutions [--threads N] [--seconds S] [--network PART_OF_ITS_NAME] [--precision f32|bf16]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/measure.h"
#include "cost/measure/timing.h"
#include "random_tensor.h"
#include "run_main.h"

namespace collage {
namespace {

struct Setting {
  int threads = 1;
  double seconds = 0.5;  ///< for each layer
  std::string network;   ///< part of its name
  std::string precision = "f32";
};

struct Layer {
  int64_t in, out;  ///< channels
  Shape size;       ///< of the image
  Shape taps;
  int times;  ///< in the network

  std::string Name() const {
    return fmt::format("{} to {}, {}, taps {}, {} x", in, out, fmt::join(size, "x"), fmt::join(taps, "x"), times);
  }
};

struct Network {
  const char* name;
  std::vector<Layer> layers;
};

/// 3x3 taps on an image of a square.
Layer Square(int64_t in, int64_t out, int64_t size, int times) { return {in, out, {size, size}, {3, 3}, times}; }

const std::vector<Network>& Networks() {
  static const std::vector<Network> networks{
      {"VGG-16, 224x224",
       {Square(3, 64, 224, 1), Square(64, 64, 224, 1), Square(64, 128, 112, 1), Square(128, 128, 112, 1),
        Square(128, 256, 56, 1), Square(256, 256, 56, 2), Square(256, 512, 28, 1), Square(512, 512, 28, 2),
        Square(512, 512, 14, 3)}},
      {"ResNet-18, 224x224",
       {Square(64, 64, 56, 4), Square(128, 128, 28, 3), Square(256, 256, 14, 3), Square(512, 512, 7, 3)}},
      {"ResNet-50, 224x224",
       {Square(64, 64, 56, 3), Square(128, 128, 28, 3), Square(256, 256, 14, 5), Square(512, 512, 7, 2)}},
      {"U-Net, 256x256",
       {Square(3, 64, 256, 1), Square(64, 64, 256, 2), Square(128, 64, 256, 1), Square(64, 128, 128, 1),
        Square(128, 128, 128, 2), Square(256, 128, 128, 1), Square(128, 256, 64, 1), Square(256, 256, 64, 2),
        Square(512, 256, 64, 1), Square(256, 512, 32, 1), Square(512, 512, 32, 2), Square(1024, 512, 32, 1),
        Square(512, 1024, 16, 1), Square(1024, 1024, 16, 1)}},
      {"Inception-v3, 299x299, 1x3 to 1x7",
       {{128, 128, {17, 17}, {1, 7}, 2},
        {128, 128, {17, 17}, {7, 1}, 2},
        {128, 192, {17, 17}, {1, 7}, 1},
        {128, 192, {17, 17}, {7, 1}, 1},
        {160, 160, {17, 17}, {1, 7}, 4},
        {160, 160, {17, 17}, {7, 1}, 4},
        {160, 192, {17, 17}, {1, 7}, 2},
        {160, 192, {17, 17}, {7, 1}, 2},
        {192, 192, {17, 17}, {1, 7}, 4},
        {192, 192, {17, 17}, {7, 1}, 4},
        {384, 384, {8, 8}, {1, 3}, 4},
        {384, 384, {8, 8}, {3, 1}, 4}}},
      {"Inception-v3, 299x299, 3x3 and 5x5",
       {{32, 64, {147, 147}, {3, 3}, 1},
        {48, 64, {35, 35}, {5, 5}, 3},
        {64, 96, {35, 35}, {3, 3}, 4},
        {96, 96, {35, 35}, {3, 3}, 3},
        {448, 384, {8, 8}, {3, 3}, 2}}},
      {"3D-ResNet-18, 16x112x112",
       {{64, 64, {16, 56, 56}, {3, 3, 3}, 4},
        {128, 128, {8, 28, 28}, {3, 3, 3}, 3},
        {256, 256, {4, 14, 14}, {3, 3, 3}, 3},
        {512, 512, {2, 7, 7}, {3, 3, 3}, 3}}},
      {"series of 1024, 3 and 5 taps",
       {{64, 64, {1024}, {3}, 1}, {128, 128, {1024}, {3}, 1}, {128, 128, {1024}, {5}, 1}, {256, 256, {1024}, {3}, 1}}},
  };
  return networks;
}

/// A layer with its weights; results are about as large as the data.
struct Problem {
  Shape taps;
  Tensor weight;
  Tensor bias;
  PartitionRequest request;

  Problem(const Layer& layer, int threads) : taps(layer.taps) {
    const auto depth = static_cast<double>(layer.in * NumElements(taps));
    Shape shape{layer.out, layer.in};
    shape.insert(shape.end(), taps.begin(), taps.end());
    weight = Random(shape, std::sqrt(3.0 / depth), 1);
    shape = {layer.out};
    shape.resize(1 + taps.size(), 1);
    bias = Random(shape, 1, 2);
    Shape data{1, layer.in};
    data.insert(data.end(), layer.size.begin(), layer.size.end());
    const Var x = MakeVar("x", TensorType(data, kFloat32));
    std::vector<int64_t> padding;
    for (const int64_t length : taps) padding.push_back(length / 2);
    const Expr conv =
        MakeCall(fmt::format("nn.conv{}d", taps.size()), {x, MakeConstant(weight)}, {{"padding", padding}});
    const Function function = MakeFunction({x}, MakeCall("add", {conv, MakeConstant(bias)}));
    InferType(function);
    request = {function, {{Layout::kChannelsLast}, {Layout::kChannelsLast}}, threads};
  }

  /// One result in double; `at` is its pixel.
  double At(const Tensor& data, int64_t channel, const Shape& at) const {
    const Shape size(data.shape().begin() + 2, data.shape().end());
    const int64_t num_taps = NumElements(taps);
    double sum = bias.At(channel);
    for (int64_t tap = 0; tap < num_taps; ++tap) {
      int64_t pixel = 0;
      bool exists = true;
      int64_t below = num_taps;
      for (size_t d = 0; d < taps.size(); ++d) {
        below /= taps[d];
        const int64_t from = at[d] + tap / below % taps[d] - taps[d] / 2;
        exists = exists && from >= 0 && from < size[d];
        pixel = pixel * size[d] + from;
      }
      for (int64_t c = 0; exists && c < data.shape()[1]; ++c) {
        sum += static_cast<double>(weight.data<float>()[(channel * data.shape()[1] + c) * num_taps + tap]) *
               static_cast<double>(data.data<float>()[c * NumElements(size) + pixel]);
      }
    }
    return sum;
  }
};

/// Of some results.
struct Errors {
  double largest = 0;           ///< relative to the largest result
  double root_mean_square = 0;  ///< relative to that of the results
};

Errors ErrorsOf(const Problem& problem, const Tensor& data, const Tensor& result) {
  constexpr int kSamples = 4000;
  std::mt19937 random(3);
  const Shape& shape = result.shape();
  const auto draw = [&](size_t axis) { return std::uniform_int_distribution<int64_t>(0, shape[axis] - 1)(random); };
  Errors errors;
  double squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    const int64_t channel = draw(1);
    Shape at;
    int64_t offset = channel;
    for (size_t d = 2; d < shape.size(); ++d) {
      at.push_back(draw(d));
      offset = offset * shape[d] + at.back();
    }
    const double wanted = problem.At(data, channel, at);
    const double error = std::abs(result.data<float>()[offset] - wanted);
    errors.largest = std::max(errors.largest, error);
    errors.root_mean_square += error * error;
    squares += wanted * wanted;
  }
  double largest = 0;
  for (const float value : result.span<float>()) largest = std::max(largest, static_cast<double>(std::abs(value)));
  return {errors.largest / largest, std::sqrt(errors.root_mean_square / squares)};
}

/// How a layer may be computed: by which target option; "as chosen" is timed where it is none of the others.
struct Way {
  const char* name;
  const char* schedule;
  int tile;
};
enum : size_t { kDirect, kMixed = 3, kChosen, kNumWays };
constexpr std::array<Way, kNumWays> kWays{
    {{"direct", "algorithm=direct", 0}, {"2", "", 2}, {"4", "", 4}, {"2x4x4", "", 244}, {"another", "", 0}}};

struct Outcome {
  std::array<double, kNumWays> seconds{};  ///< 0 where it was not tried
  std::array<Errors, kNumWays> errors{};
  size_t chosen = kChosen;
};

std::unique_ptr<const Toolchain> Configured(const Toolchain& native, const Way& way, const Setting& setting) {
  return native.WithOptions({{"accuracy", "standard"},
                             {"winograd_tile", way.tile},
                             {"schedule", way.schedule},
                             {"inference_precision", setting.precision}});
}

template <typename T>
T Checked(Result<T> result) {
  if (!result.ok()) throw Error(ErrorCategory::kUnavailable, result.reason().text);
  return std::move(*result);
}

/// Nothing where the native toolchain does not compute the layer in that precision.
std::optional<Outcome> Try(const Toolchain& native, const Layer& layer, const Setting& setting) {
  const Problem problem(layer, setting.threads);
  PartitionBuffers buffers(problem.request);
  if (!Configured(native, kWays[kDirect], setting)->RelayToTIR(problem.request).ok()) return std::nullopt;
  const std::string by_itself = Checked(Configured(native, kWays[kChosen], setting)->RelayToTIR(problem.request)).mlir;
  Outcome outcome;
  std::vector<size_t> tried;
  std::vector<std::unique_ptr<LoadedPartition>> kernels;
  std::vector<std::function<void()>> runs;
  for (size_t way = 0; way < kNumWays; ++way) {
    if (way == kMixed && layer.taps.size() < 3) continue;
    if (way == kChosen && outcome.chosen != kChosen) continue;
    CompiledPartition compiled = Checked(Configured(native, kWays[way], setting)->RelayToRuntime(problem.request));
    if (compiled.source == by_itself) outcome.chosen = way;
    kernels.push_back(std::make_unique<LoadedPartition>(std::move(compiled), setting.threads));
    kernels.back()->Bind(buffers);
    Kernel& kernel = kernels.back()->kernel();
    kernel.Run();
    outcome.errors[way] = ErrorsOf(problem, buffers.plain_inputs()[0], buffers.PlainOutputs()[0]);
    tried.push_back(way);
    runs.emplace_back([&kernel] { kernel.Run(); });
  }
  double round = 0;
  for (const Samples& samples : TimeInterleaved(runs, 3)) round += samples.p50();
  const int rounds = std::clamp(static_cast<int>(setting.seconds / round), 7, 2000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds);
  for (size_t i = 0; i < tried.size(); ++i) outcome.seconds[tried[i]] = samples[i].p50();
  return outcome;
}

std::string Cell(double value, const char* form) { return value == 0 ? "" : fmt::format(fmt::runtime(form), value); }

void PrintRow(const std::string& name, const Outcome& outcome, const std::string& chosen, double chosen_seconds) {
  std::string row = fmt::format("| {} |", name);
  for (size_t way = 0; way < kChosen; ++way) row += " " + Cell(outcome.seconds[way] * 1e3, "{:.3f} ms") + " |";
  row += fmt::format(" {} | {:.2f} |", chosen, outcome.seconds[kDirect] / chosen_seconds);
  for (size_t way = 0; way < kChosen; ++way) row += " " + Cell(outcome.errors[way].largest, "{:.1e}") + " |";
  for (size_t way = 0; way < kChosen; ++way) row += " " + Cell(outcome.errors[way].root_mean_square, "{:.1e}") + " |";
  fmt::print("{}\n", row);
  std::fflush(stdout);
}

/// A row for each layer, and their sum, each as often as the network has it.
void PrintNetwork(const Toolchain& native, const Network& network, const Setting& setting) {
  Outcome sum;
  double chosen = 0;
  for (const Layer& layer : network.layers) {
    const std::optional<Outcome> tried = Try(native, layer, setting);
    if (!tried) {
      fmt::print("| {} | not in {} |\n", layer.Name(), setting.precision);
      continue;
    }
    const Outcome& outcome = *tried;
    const double best = outcome.seconds[outcome.chosen];
    for (size_t way = 0; way < kNumWays; ++way) {
      sum.seconds[way] += layer.times * outcome.seconds[way];
      Errors& worst = sum.errors[way];
      worst.largest = std::max(worst.largest, outcome.errors[way].largest);
      worst.root_mean_square = std::max(worst.root_mean_square, outcome.errors[way].root_mean_square);
    }
    chosen += layer.times * best;
    std::string name = kWays[outcome.chosen].name;
    if (outcome.chosen == kChosen) name += fmt::format(" ({:.3f} ms)", best * 1e3);
    PrintRow(layer.Name(), outcome, name, best);
  }
  PrintRow(fmt::format("**{}**", network.name), sum, fmt::format("{:.3f} ms", chosen * 1e3), chosen);
}

Setting Parse(int argc, char** argv) {
  Setting setting;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) setting.threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) setting.seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--network") == 0) setting.network = argv[i + 1];
    if (std::strcmp(argv[i], "--precision") == 0) setting.precision = argv[i + 1];
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
      "| layer | direct | tiles of 2 | of 4 | of 2x4x4 | chosen | direct to chosen | largest error, direct | 2 | 4 | "
      "2x4x4 | root mean square, direct | 2 | 4 | 2x4x4 |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Network& network : Networks()) {
    if (std::string(network.name).find(setting.network) != std::string::npos) PrintNetwork(*native, network, setting);
  }
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
