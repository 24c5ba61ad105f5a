// tiles.cc: tiles of CUTLASS's own list for compute capability 8.0, and an estimate of what blocks of a GPU need for
// them.
//
// A block multiplies m * n elements a step and brings m + n factors to shared memory for that. The estimate is this
// work, times the steps of a block, times the blocks that the busiest multiprocessor gets. It was not compared with
// times of a GPU: it orders what is measured.
#include "backends/cutlass/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "backends/cuda_driver/gpus.h"

namespace collage::cutlass {
namespace {

// Fields: tile of a block, tile of a warp, stages.
constexpr Tile kOfHalves[] = {{128, 128, 32, 64, 64, 4}, {256, 128, 32, 64, 64, 3}, {128, 256, 32, 64, 64, 3},
                              {128, 64, 32, 64, 32, 6},  {64, 128, 32, 32, 64, 6},  {64, 64, 64, 32, 32, 5}};
constexpr Tile kOfTf32[] = {{128, 128, 16, 64, 64, 5},
                            {256, 128, 16, 64, 64, 3},
                            {128, 64, 16, 64, 32, 6},
                            {64, 128, 16, 32, 64, 6},
                            {64, 64, 32, 32, 32, 5}};
constexpr Tile kOfThreeTf32[] = {{128, 64, 16, 64, 32, 4}, {64, 128, 16, 32, 64, 4}, {64, 64, 16, 32, 32, 4}};
constexpr Tile kOfScalars[] = {
    {128, 128, 8, 32, 64, 5}, {128, 64, 8, 64, 32, 5}, {64, 128, 8, 32, 64, 5}, {64, 64, 8, 32, 32, 5}};
constexpr Tile kOfBytes[] = {{128, 128, 64, 64, 64, 4},
                             {256, 128, 64, 64, 64, 3},
                             {128, 64, 64, 64, 32, 5},
                             {64, 128, 64, 32, 64, 5},
                             {64, 64, 64, 32, 32, 6}};

/// How many products an element of a tile's edge is worth: below it, bringing factors takes longer than to multiply.
constexpr double kProductsPerFactor = 64;
/// Multiplications by tensor cores for each by scalar arithmetic, with three products for one.
constexpr double kAdvantage = 2;

std::span<const Tile> TilesOf(Element element, Multiplier multiplier) {
  switch (multiplier) {
    case Multiplier::kScalar: return kOfScalars;
    case Multiplier::kTf32: return kOfTf32;
    case Multiplier::kThreeTf32: return kOfThreeTf32;
    case Multiplier::kTensor: break;
  }
  return element == Element::kInt8 ? std::span<const Tile>(kOfBytes) : std::span<const Tile>(kOfHalves);
}

int64_t Tiles(int64_t size, int64_t of_tile) { return (size + of_tile - 1) / of_tile; }

double Estimate(const Schedule& schedule, const ProductSizes& sizes, const cuda_driver::Gpu& gpu) {
  const Tile& tile = schedule.tile;
  const int64_t blocks = Tiles(sizes.m, tile.m) * Tiles(sizes.n, tile.n) * sizes.batch;
  const int64_t of_multiprocessor = Tiles(blocks, gpu.multiprocessors);
  const double work = static_cast<double>(tile.m) * tile.n + kProductsPerFactor * (tile.m + tile.n);
  const auto depth = static_cast<double>(Tiles(sizes.k, tile.k) * tile.k);
  const double multiplications = schedule.multiplier == Multiplier::kScalar ? kAdvantage : 1;
  return static_cast<double>(of_multiprocessor) * work * depth * multiplications;
}

}  // namespace

std::string Schedule::text() const {
  return fmt::format("{}:{}x{}x{}", NamesOf(multiplier)[static_cast<size_t>(multiplier)], tile.m, tile.n, tile.k);
}

void Apply(const Schedule& schedule, Instance& instance) {
  instance.multiplier = schedule.multiplier;
  instance.tile = schedule.tile;
  if (schedule.multiplier != Multiplier::kScalar) return;
  instance.alignment_a = instance.alignment_b = instance.alignment_result = 1;
}

int64_t SharedBytes(const Tile& tile, Element element) {
  return static_cast<int64_t>(tile.m + tile.n) * tile.k * tile.stages * BytesOf(element);
}

std::vector<Schedule> RankSchedules(Element element, const std::vector<Multiplier>& multipliers,
                                    const ProductSizes& sizes, const std::string& architecture) {
  const cuda_driver::Gpu& gpu = cuda_driver::GpuLike(architecture);
  std::vector<Schedule> schedules;
  for (const Multiplier multiplier : multipliers) {
    for (const Tile& tile : TilesOf(element, multiplier)) {
      if (SharedBytes(tile, element) <= gpu.shared_bytes) schedules.push_back({multiplier, tile});
    }
  }
  std::ranges::stable_sort(schedules, {}, [&](const Schedule& one) { return Estimate(one, sizes, gpu); });
  return schedules;
}

}  // namespace collage::cutlass
