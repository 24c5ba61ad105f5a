// schedules.cc: lists of tiles, in the order of an estimate of what blocks of a GPU need for them. The estimate was not
// compared with times of a GPU: it orders what is measured.
//
// A block multiplies m * n elements a step and brings m + n factors to shared memory for that. The estimate is this
// work, times the steps of a block, times the blocks that the busiest multiprocessor gets.
#include "backends/triton/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "backends/cuda_driver/gpus.h"
#include "backends/triton/operators.h"

namespace collage::triton {
namespace {

using cuda_driver::Gpu;
using M = Multiplier;

// Fields: multiplier, m, n, k, warps, stages. Tiles of scalar arithmetic are smaller: threads have more of them in
// registers.
constexpr Schedule kProducts[] = {{M::kExact, 128, 128, 32, 8, 3}, {M::kExact, 128, 64, 32, 4, 4},
                                  {M::kExact, 64, 128, 32, 4, 4},  {M::kExact, 64, 64, 64, 4, 3},
                                  {M::kExact, 64, 32, 32, 4, 4},   {M::kExact, 32, 32, 64, 4, 4},
                                  {M::kExact, 16, 64, 64, 4, 4}};
constexpr Schedule kScalarProducts[] = {{M::kExact, 128, 64, 16, 8, 3},
                                        {M::kExact, 64, 64, 16, 8, 3},
                                        {M::kExact, 32, 64, 32, 4, 3},
                                        {M::kExact, 32, 32, 32, 4, 3}};
constexpr Schedule kAttentions[] = {
    {M::kExact, 128, 64, 0, 8, 3}, {M::kExact, 64, 64, 0, 4, 3}, {M::kExact, 32, 32, 0, 4, 2}};
constexpr Schedule kSmallAttentions[] = {
    {M::kExact, 64, 32, 0, 8, 2}, {M::kExact, 32, 32, 0, 8, 2}, {M::kExact, 16, 32, 0, 4, 2}};
constexpr Schedule kElements[] = {
    {M::kExact, 1024, 0, 0, 4}, {M::kExact, 512, 0, 0, 4}, {M::kExact, 2048, 0, 0, 8}, {M::kExact, 256, 0, 0, 2}};

/// How many products an element of a tile's edge is worth: below it, bringing factors takes longer than to multiply.
constexpr double kProductsPerFactor = 64;
/// Rows are computed so many elements at a time.
constexpr int64_t kElementsOfRows = 2048;
/// A thread has about so many elements of a row.
constexpr int64_t kElementsPerThread = 16;

int64_t Tiles(int64_t size, int64_t of_tile) { return (size + of_tile - 1) / of_tile; }

int64_t PowerOfTwo(int64_t least) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least))); }

/// Dimensions of products of tensor cores.
int64_t BlockOf(int64_t size) { return std::max<int64_t>(PowerOfTwo(size), 16); }

int64_t SharedBytes(const Schedule& s, const Instance& instance) {
  const auto element = static_cast<int64_t>(instance.factor.size_bytes());
  if (instance.program == Program::kProduct) return int64_t{s.m + s.n} * s.k * s.stages * element;
  const int64_t depth = BlockOf(instance.sizes.k), width = BlockOf(instance.sizes.width);
  return (s.m * depth + s.n * (depth + width) * s.stages) * element;
}

double Estimate(const Schedule& schedule, const Instance& instance, const Gpu& gpu) {
  const Sizes& sizes = instance.sizes;
  const bool is_product = instance.program == Program::kProduct;
  const int64_t blocks = Tiles(sizes.m, schedule.m) * (is_product ? Tiles(sizes.n, schedule.n) : 1) * sizes.batch;
  const double work = static_cast<double>(schedule.m) * schedule.n + kProductsPerFactor * (schedule.m + schedule.n);
  const int64_t steps = is_product ? Tiles(sizes.k, schedule.k) * schedule.k : Tiles(sizes.n, schedule.n) * sizes.k;
  return static_cast<double>(Tiles(blocks, gpu.multiprocessors)) * work * static_cast<double>(steps);
}

std::span<const Schedule> TilesOf(const Instance& instance, Multiplier multiplier) {
  const bool is_scalar = multiplier == M::kExact && instance.factor == kFloat32;
  if (instance.program == Program::kProduct) {
    return is_scalar ? std::span<const Schedule>(kScalarProducts) : std::span<const Schedule>(kProducts);
  }
  // Factors in parts take registers, too: the largest tile has none left for them.
  if (multiplier == M::kThreeTf32) return std::span(kSmallAttentions).subspan(1);
  return is_scalar ? std::span<const Schedule>(kSmallAttentions) : std::span<const Schedule>(kAttentions);
}

std::vector<Schedule> RankProducts(const Description& description, const Gpu& gpu) {
  const Instance& instance = description.instance;
  std::vector<Schedule> all;
  for (const Multiplier multiplier : description.multipliers) {
    std::vector<Schedule> ranked;
    for (Schedule schedule : TilesOf(instance, multiplier)) {
      schedule.multiplier = multiplier;
      // Three products of parts need as much room again.
      const int64_t bytes = SharedBytes(schedule, instance) * (multiplier == M::kThreeTf32 ? 2 : 1);
      if (bytes <= gpu.shared_bytes) ranked.push_back(schedule);
    }
    std::ranges::stable_sort(ranked, {}, [&](const Schedule& one) { return Estimate(one, instance, gpu); });
    // The best of each multiplier come first.
    for (size_t i = 0; i < ranked.size(); ++i) {
      all.insert(
          all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), multiplier == M::kThreeTf32 ? 2 * i + 1 : i)),
          ranked[i]);
    }
  }
  return all;
}

std::vector<Schedule> RankRows(const Sizes& sizes) {
  const int64_t columns = PowerOfTwo(sizes.n);
  const int64_t rows = std::min(PowerOfTwo(sizes.m), std::max<int64_t>(kElementsOfRows / columns, 1));
  const auto warps_for = [](int64_t elements) {
    return static_cast<int>(std::clamp<int64_t>(PowerOfTwo(elements / (kElementsPerThread * 32)), 1, 16));
  };
  const int warps = warps_for(rows * columns);
  std::vector<Schedule> all{{M::kExact, static_cast<int>(rows), 0, 0, warps}};
  for (const int other : {warps * 2, warps / 2}) {
    if (other >= 1 && other <= 32) all.push_back({M::kExact, static_cast<int>(rows), 0, 0, other});
  }
  if (rows > 1) all.push_back({M::kExact, static_cast<int>(rows / 2), 0, 0, warps_for(rows * columns / 2)});
  return all;
}

std::vector<Schedule> RankElements(const Sizes& sizes, const Gpu& gpu) {
  std::vector<Schedule> all(std::begin(kElements), std::end(kElements));
  // Small tensors are shared out among all multiprocessors first.
  std::ranges::stable_sort(
      all, {}, [&](const Schedule& one) { return Tiles(Tiles(sizes.m, one.m), gpu.multiprocessors) * one.m; });
  return all;
}

using Numbers = std::vector<std::pair<std::string, std::string>>;

Numbers NumbersOf(const Schedule& schedule, const Instance& instance) {
  const auto number = [](const char* name, int64_t value) {
    return std::pair<std::string, std::string>(name, std::to_string(value));
  };
  const auto precision = std::pair<std::string, std::string>(
      "PRECISION", fmt::format("\"{}\"", NamesOf(schedule.multiplier)[static_cast<size_t>(schedule.multiplier)]));
  switch (instance.program) {
    case Program::kProduct:
      return {precision, number("BLOCK_M", schedule.m), number("BLOCK_N", schedule.n), number("BLOCK_K", schedule.k),
              number("GROUP", 8)};
    case Program::kAttention:
      return {precision, number("BLOCK_M", schedule.m), number("BLOCK_N", schedule.n),
              number("BLOCK_DEPTH", BlockOf(instance.sizes.k)), number("BLOCK_WIDTH", BlockOf(instance.sizes.width))};
    case Program::kRows:
      return {number("BLOCK_ROWS", schedule.m), number("BLOCK_COLUMNS", PowerOfTwo(instance.sizes.n))};
    case Program::kElements: break;
  }
  return {number("BLOCK", schedule.m)};
}

}  // namespace

std::string Schedule::text() const {
  std::string text = multiplier == M::kExact
                         ? std::to_string(m)
                         : fmt::format("{}:{}", NamesOf(multiplier)[static_cast<size_t>(multiplier)], m);
  if (n > 0) text += fmt::format("x{}", n);
  if (k > 0) text += fmt::format("x{}", k);
  text += fmt::format("/w{}", warps);
  return stages > 1 ? text + fmt::format("/s{}", stages) : text;
}

std::vector<Schedule> RankSchedules(const Description& description, const std::string& architecture) {
  const Gpu& gpu = cuda_driver::GpuLike(architecture);
  const Instance& instance = description.instance;
  if (instance.program == Program::kRows) return RankRows(instance.sizes);
  if (instance.program == Program::kElements) return RankElements(instance.sizes, gpu);
  return RankProducts(description, gpu);
}

std::array<int64_t, 2> GridOf(const Instance& instance, const Schedule& schedule) {
  const Sizes& sizes = instance.sizes;
  const int64_t rows = Tiles(sizes.m, schedule.m);
  return {instance.program == Program::kProduct ? rows * Tiles(sizes.n, schedule.n) : rows, sizes.batch};
}

std::string GeneratedText(const Instance& instance, const Schedule& schedule) {
  std::string named, others, numbers;
  for (const Parameter& parameter : instance.parameters) {
    const std::string type = PointerType(parameter.dtype);
    if (parameter.name.empty()) {
      others += fmt::format("\"{}\", ", type);
    } else {
      named += fmt::format("\"{}\": \"{}\", ", parameter.name, type);
    }
  }
  for (const auto& [name, value] : instance.constants) numbers += fmt::format("\"{}\": {}, ", name, value);
  for (const auto& [name, value] : NumbersOf(schedule, instance)) numbers += fmt::format("\"{}\": {}, ", name, value);
  return fmt::format(
      R"(import triton
import triton.language as tl
from triton.language.extra import libdevice

SIGNATURE = {{{}"others": ({}), "result": "{}"}}
CONSTANTS = {{{}}}
WARPS = {}
STAGES = {}


{})",
      named, others, PointerType(instance.result), numbers, schedule.warps, schedule.stages, instance.behind);
}

std::string PointerType(DataType dtype) { return fmt::format("*{}", TypeName(dtype)); }

}  // namespace collage::triton
