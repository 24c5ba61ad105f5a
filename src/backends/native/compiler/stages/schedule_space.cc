// schedule_space.cc: one step from a schedule: other algorithms first, since they differ most, then the order of loops,
// tiles, and what belongs to single loops.
#include "backends/native/compiler/stages/schedule_space.h"

#include <algorithm>

#include "backends/native/compiler/stages/target_info.h"
#include "support/machine.h"

namespace collage::native {
namespace {

/// The fewest sums of a warp of tensor cores: 16 rows of 16 columns.
constexpr int64_t kSmallestPart = 256;

/// Collects schedules, each once.
class Collector {
 public:
  Collector(const ScheduleSpace& space, const Schedule& base) : space_(space), base_(base), all_{base} {
    // Other tiles are not to make the model choose another algorithm.
    if (!space.algorithms.empty() && space.product) base_.algorithm = chosen().algorithm;
  }

  std::vector<Schedule> Run() {
    if (space_.product && product().block_bytes > 0) {
      AddBlockTiles();
    } else if (space_.product) {
      AddAlgorithms();
      AddBlocks();
      AddTiles();
      AddDepth();
      if (space_.product->may_pack) Add({.pack = Schedule::kYes});
    }
    // All warps take part, and none has fewer threads.
    const bool is_warp = space_.lanes == kWarpLanes;
    if (space_.num_threads > 1 && !is_warp) Add({.parallel = space_.is_parallel ? Schedule::kNo : Schedule::kYes});
    constexpr int kLeastLanes = 8;
    if (space_.lanes > kLeastLanes && !is_warp) {
      // Tiles were chosen for the wider vectors.
      Schedule narrow = base_;
      narrow.rows = narrow.width = 0;
      AddWhole(narrow.With({.lanes = space_.lanes / 2}));
    } else if (base_.lanes != 0) {
      Schedule widest = base_;
      widest.lanes = widest.rows = widest.width = 0;
      AddWhole(widest);
    }
    all_.erase(all_.begin());
    return std::move(all_);
  }

 private:
  void Add(const Schedule& change) { AddWhole(base_.With(change)); }
  void AddWhole(const Schedule& schedule) {
    if (std::find(all_.begin(), all_.end(), schedule) == all_.end()) all_.push_back(schedule);
  }

  const ProductSpace& product() const { return *space_.product; }
  const Schedule& chosen() const { return space_.product->chosen; }

  /// Another algorithm has other tiles and blocks: its own model's.
  void AddAlgorithms() {
    for (const int64_t algorithm : space_.algorithms) {
      if (algorithm == chosen().algorithm) continue;
      Schedule other;
      other.algorithm = algorithm;
      other.lanes = base_.lanes;
      AddWhole(other);
    }
  }

  void AddBlocks() {
    if (!product().has_block) return;
    if (!product().blocks.empty()) return AddNextBlocks();
    const int64_t tiles = product().tiles;
    const auto add = [&](int64_t block) {
      block = std::clamp<int64_t>(block, 1, tiles);
      if (block != chosen().block) Add({.block = block});
    };
    if (product().is_winograd) {
      add(chosen().block * 2);
      add(chosen().block / 2);
      const bool has_parts = space_.num_threads > 1 && product().channels > chosen().width * product().lanes;
      if (has_parts) Add({.parts = chosen().parts == 1 ? space_.num_threads : 1});
      return;
    }
    // A panel alone has no order.
    if (product().channels < 2 * chosen().width * product().lanes) return;
    static const int64_t near = CacheSize(2, int64_t{1} << 20);
    const int64_t fits = std::max<int64_t>(near / 2 / std::max<int64_t>(product().row_bytes, 1), 1);
    if (base_.block == 0) {
      if (fits < tiles) add(fits);
      if (space_.num_threads > 1) add((tiles + space_.num_threads - 1) / space_.num_threads);
      add(1);
    } else {
      add(base_.block * 4);
      add(base_.block / 4);
    }
  }

  /// The next larger one and the next smaller one.
  void AddNextBlocks() {
    const std::vector<int64_t>& blocks = product().blocks;
    const auto larger = std::upper_bound(blocks.begin(), blocks.end(), chosen().block);
    const auto smaller = std::lower_bound(blocks.begin(), blocks.end(), chosen().block);
    if (larger != blocks.end()) Add({.block = *larger});
    if (smaller != blocks.begin()) Add({.block = *(smaller - 1)});
  }

  void AddTiles() {
    if (product().is_library) return AddLibraryTiles();
    // Registers hold the sums, the panel's vectors and what a row is multiplied with.
    const int64_t registers = (space_.lanes >= 16 ? 32 : 16) / product().registers;
    const int64_t rows = chosen().rows;
    const int64_t width = chosen().width;
    const auto add = [&](int64_t new_rows, int64_t new_width) {
      const bool is_same = new_rows == rows && new_width == width;
      const bool is_whole = product().channels > (new_width - 1) * product().lanes || new_width == 1;
      if (is_same || new_rows < 1 || new_rows > product().rows || !is_whole) return;
      if (new_rows * new_width + new_width + 1 > registers) return;
      Add(product().has_width ? Schedule{.rows = new_rows, .width = new_width} : Schedule{.rows = new_rows});
    };
    const auto most_rows = [&](int64_t of_width) { return (registers - 1 - of_width) / of_width; };
    if (product().has_width) {
      for (const int64_t other : {width + 1, width - 1}) {
        if (other < 1) continue;
        // As even as the rows allow.
        const int64_t most = std::min(most_rows(other), product().rows);
        if (most < 1) continue;  // too wide for the registers
        const int64_t parts = (product().rows + most - 1) / most;
        add((product().rows + parts - 1) / parts, other);
      }
    }
    for (const int64_t step : {1, -1, 2, -2}) add(rows + step, width);
    add(std::min(most_rows(width), product().rows), width);
  }

  /// Tiles of groups of four warps.
  void AddGroups(const Schedule& tile) {
    constexpr int64_t kRows = 16, kWordBytes = 4, kGroup = 8;
    const auto add = [&](const Schedule& change) {
      const Schedule one = tile.With(change);
      const int64_t bytes = one.stages * (one.rows + kWarpLanes * one.width) * kGroup * one.unroll * kWordBytes;
      const bool fits = one.stages >= 2 && one.parts <= product().steps && bytes <= product().block_bytes;
      if (fits && one != tile) AddWhole(base_.With(change));
    };
    for (const int64_t warps : {4, 8}) {
      for (const int64_t width : {2, 4, 8}) add({.rows = kRows * warps, .width = width, .warps = warps});
    }
    for (const int64_t stages : {tile.stages + 1, tile.stages - 1}) add({.stages = stages});
    add({.unroll = tile.unroll == 2 ? 4 : 2});
    for (const int64_t parts : {tile.parts * 2, tile.parts / 2}) {
      if (parts >= 1) add({.parts = parts});
    }
  }

  /// Tiles of a GPU's blocks of warps, in powers of two: their sums fit the threads' registers, their words the memory
  /// that the threads share.
  void AddBlockTiles() {
    constexpr int64_t kLeastRows = 16, kMostRows = 256, kMostWidth = 8, kLeastWarps = 2, kMostWarps = 8, kSums = 128;
    constexpr int64_t kWordBytes = 4, kGroup = 8;
    const Schedule tile = chosen();
    if (product().may_group) {
      const bool has_groups = tile.algorithm == Schedule::kWarpgroups;
      AddWhole({.algorithm = has_groups ? Schedule::kDirect : Schedule::kWarpgroups});
      // Each of such warps has 16 rows and all columns.
      base_.algorithm = tile.algorithm;
      if (has_groups) return AddGroups(tile);
    }
    const auto add = [&](const Schedule& change) {
      const Schedule one = tile.With(change);
      const bool is_known = one.rows >= kLeastRows && one.rows <= kMostRows && one.width >= 1 &&
                            one.width <= kMostWidth && one.warps >= kLeastWarps && one.warps <= kMostWarps &&
                            one.stages >= 2 && one.parts <= product().steps;
      const int64_t bytes = one.stages * (one.rows + kWarpLanes * one.width) * kGroup * one.unroll * kWordBytes;
      const bool fits = one.rows * one.width <= kSums * one.warps && bytes <= product().block_bytes &&
                        one.rows * one.width * kWarpLanes >= one.warps * kSmallestPart;
      // Width, for which weights are packed, and rows decide what else is best.
      if (is_known && fits && one != tile) AddWhole(base_.With(change));
    };
    for (const int64_t rows : {tile.rows * 2, tile.rows / 2}) {
      add({.rows = rows, .width = tile.width, .warps = tile.warps});
    }
    for (const int64_t width : {tile.width * 2, tile.width / 2}) {
      add({.rows = tile.rows, .width = width, .warps = tile.warps});
    }
    for (const int64_t warps : {tile.warps * 2, tile.warps / 2}) {
      add({.rows = tile.rows, .width = tile.width, .warps = warps});
    }
    for (const int64_t stages : {tile.stages + 1, tile.stages - 1}) add({.stages = stages});
    add({.unroll = tile.unroll == 2 ? 4 : 2});
    for (const int64_t parts : {tile.parts * 2, tile.parts / 2}) {
      if (parts >= 1) add({.parts = parts});
    }
    for (const int64_t block : {int64_t{1}, product().tiles}) add({.block = block});
  }

  /// A library has its own registers: tiles are what fits the nearest cache.
  void AddLibraryTiles() {
    constexpr int64_t kMostRows = 64;
    constexpr int64_t kLeastRows = 8;
    for (const int64_t rows : {chosen().rows * 2, chosen().rows / 2}) {
      const int64_t possible = std::min({rows, kMostRows, product().rows});
      if (possible >= kLeastRows && possible != chosen().rows) Add({.rows = possible});
    }
    for (const int64_t width : {chosen().width * 2, chosen().width / 2}) {
      constexpr int64_t kMostWidth = 8;
      if (width < 1 || width > kMostWidth) continue;
      // Narrower panels are others, wider ones where there are as many channels.
      const bool is_other = product().channels > std::min(width, chosen().width) * product().lanes;
      if (is_other) Add({.rows = chosen().rows, .width = width});
    }
  }

  void AddDepth() {
    if (product().is_library) return;
    const int64_t now = std::max<int64_t>(base_.unroll, 1);
    for (const int64_t unroll : {now * 2, now / 2}) {
      constexpr int64_t kMost = 8;
      if (unroll < 1 || unroll > kMost || product().depth % (unroll * product().chains) != 0) continue;
      Schedule other = base_;
      other.unroll = unroll == 1 ? 0 : unroll;
      AddWhole(other);
    }
  }

  const ScheduleSpace& space_;
  Schedule base_;
  std::vector<Schedule> all_;
};

}  // namespace

std::vector<Schedule> Neighbours(const ScheduleSpace& space, const Schedule& base) {
  return Collector(space, base).Run();
}

}  // namespace collage::native
