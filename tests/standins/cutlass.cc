// cutlass.cc: kernels of CUTLASS by the loops of their definition. Assumptions about the real ones:
//
//   - collage_prepare writes how collage_run is launched; the parameters that it makes are opaque to the host.
//   - A launch has a block for each tile of the result, and shared memory for the tiles of all stages.
//   - Addresses and rows of factors and of the result are multiples of what is read or written at a time.
//   - Sums are those of float32 (here wider), or int32; 3xtf32 leaves out the product of what TF32 rounds away from
//     both factors.
//   - collage_move moves images, with zeros in channels that there are not.
//   - Behind a sum come bias, function, other tensor, and end, in this order; the result is rounded once.
//
// tests/conformance/gpu/cutlass_device_test.cc compares what follows a sum, and launches, with CUTLASS's own code,
// compiled for the host. Kernels have been compared with none: docs/gpus.md has the list of assumptions.
#include "cutlass.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "backends/cutlass/arguments.h"
#include "numbers.h"
#include "support/numbers.h"

namespace standin {
namespace {

using collage::cutlass_interface::Arguments;
using collage::cutlass_interface::Move;
using collage::cutlass_interface::Prepared;
using collage::cutlass_interface::Problem;

constexpr std::string_view kBegin = "instance of CUTLASS: ";

/// Ends a kernel.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Element : uint8_t { kFloat32, kFloat16, kBFloat16, kInt8 };
enum class Multiplier : uint8_t { kAsTheyAre, kTf32, kThreeTf32 };

struct Instance {
  bool is_product = true, transposes_a = false, transposes_b = false;
  Element element = Element::kFloat32;
  Multiplier multiplier = Multiplier::kAsTheyAre;
  int64_t alignment_a = 1, alignment_b = 1, alignment_result = 1;
  std::string function, combination, end;
  uint32_t tile_m = 0, tile_n = 0, tile_k = 0, warp_m = 0, warp_n = 0, stages = 0;

  bool is_integer() const { return element == Element::kInt8; }
  size_t element_bytes() const { return element == Element::kFloat32 ? 4 : is_integer() ? 1 : 2; }
  size_t result_bytes() const { return element == Element::kFloat32 || is_integer() ? 4 : 2; }
};

Instance InstanceFrom(const nlohmann::json& json) {
  const std::map<std::string, Element> elements{{"float32", Element::kFloat32},
                                                {"float16", Element::kFloat16},
                                                {"bfloat16", Element::kBFloat16},
                                                {"int8", Element::kInt8}};
  const std::map<std::string, Multiplier> multipliers{{"scalar", Multiplier::kAsTheyAre},
                                                      {"tensor", Multiplier::kAsTheyAre},
                                                      {"tf32", Multiplier::kTf32},
                                                      {"3xtf32", Multiplier::kThreeTf32}};
  Instance instance;
  instance.is_product = json.at("operation") == "product";
  instance.transposes_a = json.at("transposes_a");
  instance.transposes_b = json.at("transposes_b");
  instance.element = elements.at(json.at("element"));
  instance.multiplier = multipliers.at(json.at("multiplier"));
  instance.alignment_a = json.at("alignment_a");
  instance.alignment_b = json.at("alignment_b");
  instance.alignment_result = json.at("alignment_result");
  instance.function = json.at("function");
  instance.combination = json.at("combination");
  instance.end = json.at("end");
  const nlohmann::json& tile = json.at("tile");
  instance.tile_m = tile.at("m");
  instance.tile_n = tile.at("n");
  instance.tile_k = tile.at("k");
  instance.warp_m = tile.at("warp_m");
  instance.warp_n = tile.at("warp_n");
  instance.stages = tile.at("stages");
  return instance;
}

/// The instance, and the sizes of one call, as matrices.
class Call {
 public:
  Call(const Instance& instance, const Arguments& arguments, const FindMemory& find)
      : instance_(instance), arguments_(arguments), find_(find) {
    if (instance.is_product) {
      batch_ = problem_.batch;
      m_ = problem_.m;
      n_ = problem_.n;
      k_ = problem_.k;
    } else {
      m_ = problem_.images * problem_.result_height * problem_.result_width;
      n_ = problem_.filters;
      k_ = problem_.kernel_height * problem_.kernel_width * problem_.channels;
    }
    if (batch_ < 1 || m_ < 1 || n_ < 1 || k_ < 1) throw Failure("a size is less than 1");
  }

  /// How the kernel is to be launched.
  Prepared Launch() const {
    const auto tiles = [](int64_t all, uint32_t of_tile) {
      return static_cast<uint32_t>((all + of_tile - 1) / of_tile);
    };
    const Instance& i = instance_;
    Prepared prepared{};
    prepared.grid[0] = tiles(m_, i.tile_m);
    prepared.grid[1] = tiles(n_, i.tile_n);
    prepared.grid[2] = static_cast<uint32_t>(batch_);
    prepared.threads = i.tile_m / i.warp_m * (i.tile_n / i.warp_n) * 32;
    prepared.shared_bytes = (i.tile_m + i.tile_n) * i.tile_k * i.stages * static_cast<uint32_t>(i.element_bytes());
    prepared.parameter_bytes = sizeof arguments_;
    std::memcpy(prepared.parameters, &arguments_, sizeof arguments_);
    return prepared;
  }

  void Run() {
    CheckRows();
    const size_t of_factor = instance_.element_bytes(), of_result = instance_.result_bytes();
    const auto all = static_cast<size_t>(batch_ * m_ * n_);
    const std::byte* a = Find(arguments_.a, AElements(), of_factor, instance_.alignment_a, "factor A");
    const std::byte* b = Find(arguments_.b, BElements(), of_factor, instance_.alignment_b, "factor B");
    const auto find = [&](const void* address, size_t elements, const char* what) -> std::byte* {
      return Find(address, elements, of_result, instance_.alignment_result, what);
    };
    std::byte* result = find(arguments_.result, all, "the result");
    const bool combines = instance_.combination != "none";
    const std::byte* other = combines ? find(arguments_.other, all, "the other tensor") : nullptr;
    const bool has_bias = arguments_.bias != nullptr;
    const std::byte* bias = has_bias ? find(arguments_.bias, static_cast<size_t>(n_), "the bias") : nullptr;
    for (int64_t i = 0; i < batch_; ++i) {
      for (int64_t row = 0; row < m_; ++row) {
        for (int64_t column = 0; column < n_; ++column) {
          const int64_t at = (i * m_ + row) * n_ + column;
          double value = Sum(a, b, i, row, column);
          if (bias != nullptr) value += Result(bias, column);
          value = Apply(instance_.function, value);
          if (combines) value = Combine(value, Result(other, at));
          Store(result, at, Apply(instance_.end, value));
        }
      }
    }
  }

 private:
  void CheckRows() const {
    const auto check = [&](int64_t row, int64_t alignment) {
      if (row % alignment == 0) return;
      throw Failure("a row of " + std::to_string(row) + " is no multiple of " + std::to_string(alignment));
    };
    const bool is_product = instance_.is_product;
    check(n_, instance_.alignment_result);
    check(is_product ? problem_.lda : problem_.channels, instance_.alignment_a);
    check(is_product ? problem_.ldb : problem_.channels, instance_.alignment_b);
  }

  size_t AElements() const {
    if (!instance_.is_product) {
      return static_cast<size_t>(problem_.images * problem_.height * problem_.width * problem_.channels);
    }
    const bool transposes = instance_.transposes_a;
    return static_cast<size_t>(problem_.stride_a * (batch_ - 1) + ((transposes ? k_ : m_) - 1) * problem_.lda +
                               (transposes ? m_ : k_));
  }
  size_t BElements() const {
    if (!instance_.is_product) return static_cast<size_t>(n_ * k_);
    const bool transposes = instance_.transposes_b;
    return static_cast<size_t>(problem_.stride_b * (batch_ - 1) + ((transposes ? n_ : k_) - 1) * problem_.ldb +
                               (transposes ? k_ : n_));
  }

  std::byte* Find(const void* address, size_t elements, size_t bytes, int64_t alignment, const char* what) const {
    const auto number = reinterpret_cast<uint64_t>(address);
    if (number % (static_cast<size_t>(alignment) * bytes) != 0) throw Failure(std::string(what) + " is misaligned");
    std::byte* place = find_(number, elements * bytes);
    if (place == nullptr) throw Failure(std::string(what) + " is not within an allocation");
    return place;
  }

  /// A factor.
  double Factor(const std::byte* place, int64_t at) const {
    return instance_.is_integer() ? Read<int8_t>(place, at) : Result(place, at);
  }

  double Result(const std::byte* place, int64_t at) const {
    switch (instance_.element) {
      case Element::kFloat32: return Read<float>(place, at);
      case Element::kFloat16: return collage::HalfToFloat(Read<uint16_t>(place, at));
      case Element::kBFloat16: return collage::BFloat16ToFloat(Read<uint16_t>(place, at));
      case Element::kInt8: break;
    }
    return Read<int32_t>(place, at);
  }

  void Store(std::byte* place, int64_t at, double value) const {
    const auto single = static_cast<float>(value);
    switch (instance_.element) {
      case Element::kFloat32: return Write(place, at, single);
      case Element::kFloat16: return Write(place, at, collage::FloatToHalf(single));
      case Element::kBFloat16: return Write(place, at, collage::FloatToBFloat16(single));
      case Element::kInt8: return Write(place, at, static_cast<int32_t>(value));
    }
  }

  template <typename T>
  static T Read(const std::byte* place, int64_t at) {
    T value;
    std::memcpy(&value, place + at * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  }
  template <typename T>
  static void Write(std::byte* place, int64_t at, T value) {
    std::memcpy(place + at * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }

  double Multiply(double a, double b) const {
    if (instance_.multiplier == Multiplier::kAsTheyAre) return a * b;
    return MultiplyInTf32(static_cast<float>(a), static_cast<float>(b), instance_.multiplier == Multiplier::kThreeTf32);
  }

  double Sum(const std::byte* a, const std::byte* b, int64_t i, int64_t row, int64_t column) const {
    double sum = 0;
    if (!instance_.is_product) {
      ForWindow(row, [&](int64_t pixel, int64_t tap) {
        for (int64_t c = 0; c < problem_.channels; ++c) {
          sum +=
              Multiply(Factor(a, pixel * problem_.channels + c), Factor(b, column * k_ + tap * problem_.channels + c));
        }
      });
      return sum;
    }
    const bool transposes_a = instance_.transposes_a, transposes_b = instance_.transposes_b;
    for (int64_t k = 0; k < k_; ++k) {
      const int64_t in_a = transposes_a ? k * problem_.lda + row : row * problem_.lda + k;
      const int64_t in_b = transposes_b ? column * problem_.ldb + k : k * problem_.ldb + column;
      sum += Multiply(Factor(a, i * problem_.stride_a + in_a), Factor(b, i * problem_.stride_b + in_b));
    }
    return sum;
  }

  /// Calls `visit` with each pixel of the data in the window of a pixel of the result, and its place in the window.
  void ForWindow(int64_t row, const std::function<void(int64_t pixel, int64_t tap)>& visit) const {
    const Problem& p = problem_;
    const int64_t image = row / (p.result_height * p.result_width);
    const int64_t y = row / p.result_width % p.result_height, x = row % p.result_width;
    for (int64_t r = 0; r < p.kernel_height; ++r) {
      const int64_t in_y = y * p.stride_height - p.before_height + r * p.dilation_height;
      if (in_y < 0 || in_y >= p.height) continue;
      for (int64_t s = 0; s < p.kernel_width; ++s) {
        const int64_t in_x = x * p.stride_width - p.before_width + s * p.dilation_width;
        if (in_x >= 0 && in_x < p.width) visit((image * p.height + in_y) * p.width + in_x, r * p.kernel_width + s);
      }
    }
  }

  double Combine(double value, double other) const {
    return instance_.combination == "add" ? value + other : value * other;
  }

  double Apply(const std::string& function, double x) const {
    if (function == "none") return x;
    if (function == "relu") return x < 0 ? 0 : x;
    if (function == "clip") return x < arguments_.low ? arguments_.low : std::min<double>(x, arguments_.high);
    if (function == "sigmoid") return 1 / (1 + std::exp(-x));
    if (function == "tanh") return std::tanh(x);
    if (function == "swish") return x / (1 + std::exp(-x));
    if (function == "gelu") return x * (1 + std::erf(x * std::sqrt(0.5))) / 2;
    if (function == "gelu_tanh") return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    if (function == "hardswish") return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    throw Failure("there is no function " + function);
  }

  const Instance& instance_;
  Arguments arguments_;
  const Problem& problem_ = arguments_.problem;
  const FindMemory& find_;
  int64_t batch_ = 1, m_ = 1, n_ = 1, k_ = 1;
};

void MoveImages(const Grid& grid, const Move& move, const FindMemory& find) {
  const auto tiles = [](int64_t size) { return static_cast<uint32_t>((size + Move::kEdge - 1) / Move::kEdge); };
  if (grid.blocks != tiles(move.pixels) || grid.rows != tiles(move.stored) || grid.layers != move.images ||
      grid.threads != Move::kThreads) {
    throw Failure("images are not moved by a block for each tile");
  }
  const auto bytes = static_cast<size_t>(move.element_bytes);
  const auto of_plain = static_cast<size_t>(move.images * move.channels * move.pixels) * bytes;
  const auto of_last = static_cast<size_t>(move.images * move.stored * move.pixels) * bytes;
  const bool widens = move.to_channels_last != 0;
  const std::byte* from = find(reinterpret_cast<uint64_t>(move.from), widens ? of_plain : of_last);
  std::byte* to = find(reinterpret_cast<uint64_t>(move.to), widens ? of_last : of_plain);
  if (from == nullptr || to == nullptr) throw Failure("images that are moved are not within an allocation");
  if (widens) std::memset(to, 0, of_last);
  for (int64_t i = 0; i < move.images; ++i) {
    for (int64_t c = 0; c < move.channels; ++c) {
      for (int64_t p = 0; p < move.pixels; ++p) {
        const auto plain = static_cast<size_t>((i * move.channels + c) * move.pixels + p) * bytes;
        const auto last = static_cast<size_t>((i * move.pixels + p) * move.stored + c) * bytes;
        std::memcpy(to + (widens ? last : plain), from + (widens ? plain : last), bytes);
      }
    }
  }
}

Arguments ArgumentsIn(const std::vector<std::byte>& parameter) {
  Arguments arguments{};
  std::memcpy(&arguments, parameter.data(), sizeof arguments);
  return arguments;
}

/// `work` as a kernel, whose failures are told.
EmulatedKernel::Whole Guarded(std::function<void(const Grid&, const Parameters&, const FindMemory&)> work) {
  return [work = std::move(work)](const Grid& grid, const Parameters& parameters, const FindMemory& find) {
    try {
      work(grid, parameters, find);
      return std::string();
    } catch (const std::exception& failure) {
      return "a kernel of CUTLASS: " + std::string(failure.what());
    }
  };
}

}  // namespace

std::vector<std::unique_ptr<EmulatedKernel>> OpenInstance(const void* image) {
  std::vector<std::unique_ptr<EmulatedKernel>> kernels;
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, kBegin.data(), kBegin.size()) != 0) return kernels;
  const auto instance = std::make_shared<const Instance>(InstanceFrom(nlohmann::json::parse(text + kBegin.size())));
  const auto add = [&](const char* name, std::vector<uint64_t> sizes, EmulatedKernel::Whole whole) {
    auto kernel = std::make_unique<EmulatedKernel>();
    kernel->name = name;
    kernel->parameter_sizes = std::move(sizes);
    kernel->whole = std::move(whole);
    kernels.push_back(std::move(kernel));
  };
  add("collage_prepare", {sizeof(Arguments), sizeof(uint64_t)},
      Guarded([instance](const Grid& grid, const Parameters& parameters, const FindMemory& find) {
        if (grid.blocks != 1 || grid.threads != 1) throw Failure("more than one thread prepares");
        const Prepared prepared = Call(*instance, ArgumentsIn(parameters.at(0)), find).Launch();
        uint64_t address = 0;
        std::memcpy(&address, parameters.at(1).data(), sizeof address);
        std::byte* target = find(address, sizeof prepared);
        if (target == nullptr) throw Failure("there is no room for what is prepared");
        std::memcpy(target, &prepared, sizeof prepared);
      }));
  add("collage_run", {sizeof(Arguments)},
      Guarded([instance](const Grid& grid, const Parameters& parameters, const FindMemory& find) {
        Call call(*instance, ArgumentsIn(parameters.at(0)), find);
        const Prepared wanted = call.Launch();
        const bool is_wanted = grid.blocks == wanted.grid[0] && grid.rows == wanted.grid[1] &&
                               grid.layers == wanted.grid[2] && grid.threads == wanted.threads &&
                               grid.shared_bytes == wanted.shared_bytes;
        if (!is_wanted) throw Failure("it is not launched as it was prepared");
        call.Run();
      }));
  add("collage_move", {sizeof(Move)},
      Guarded([](const Grid& grid, const Parameters& parameters, const FindMemory& find) {
        Move move{};
        std::memcpy(&move, parameters.at(0).data(), sizeof move);
        MoveImages(grid, move, find);
      }));
  return kernels;
}

}  // namespace standin
