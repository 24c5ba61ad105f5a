// winograd_model.cc: cycles are those of products and transforms, which threads share, and those of the bytes that come
// from beyond a core's first cache. Rates were measured on AMD's Zen 3 and Zen 4; what decides are their ratios, which
// differ little between processors.
#include "backends/native/description/winograd_model.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "support/machine.h"

namespace collage::native {
namespace {

constexpr double kFloat = sizeof(float);
constexpr double kBFloat = kFloat / 2;

// Cycles around the loop of a register tile: its sums are cleared and stored.
constexpr double kTileOverhead = 20;
// Share of the peak that products reach, with the loads and loops between them.
constexpr double kProductEfficiency = 0.9;
// Bytes per cycle from a core's own cache, from the last level, from memory. What prefetching hides is left out.
constexpr double kNearRate = 40;
constexpr double kSharedRate = 12;
constexpr double kMemoryRate = 6;
// The rates of data between the steps that are not near: lines are fetched to be written, and written back, too.
constexpr double kSharedBetweenRate = 4.5;
constexpr double kMemoryBetweenRate = 2.3;
// Cycles for one vector of a tile: to read it, to write it, and for an instruction of arithmetic between.
constexpr double kReadCycles = 0.5;
constexpr double kWriteCycles = 1;
constexpr double kStepCycles = 0.5;
// To round one to bfloat16 and write that.
constexpr double kRoundCycles = 1.1;
// Results differ more from exact ones than a direct convolution's: a gain that is hardly one is not worth it, and none
// is when errors may be larger than of tiles of 4x4x4 and 3x3x3 taps (496).
constexpr double kLeastGain = 1.1;
constexpr double kMostAmplification = 512;
// In bfloat16, what a model may be off is shared by its partitions as the squares of their errors add up. Tiles of 2x2
// take 3 times a direct convolution's share, of 2x2x2 5 times, of 4x4 23 times, which would leave others in float32
// that gain more by it: the 3x3 layers of ResNet-18 are 1.7 times as fast by tiles of 2 and 2.0 times by tiles of 4
// (Zen 4).
constexpr double kMostTypicalAmplification = 2.5;

double Ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
int64_t Parts(int64_t length, int64_t size) { return (length + size - 1) / size; }

/// Bytes of a factor of the products, and the steps of a sum over `depth` of them.
double FactorBytes(const PlainConvolution& conv) { return conv.in_bfloat16 ? kBFloat : kFloat; }
int64_t Steps(const PlainConvolution& conv, int64_t depth) { return conv.in_bfloat16 ? Parts(depth, 2) : depth; }

/// Cycles of `count` register tiles of `rows` rows, one panel each, summed over `depth`.
double TileCycles(const ProductMachine& machine, double count, int64_t rows, int64_t depth) {
  const double vectors = Ratio(machine.tile_width, machine.lanes);
  const auto height = static_cast<double>(rows);
  // Few rows are bound by loads: two a cycle.
  const double step = std::max(height * vectors / machine.units, (height + vectors) / 2);
  return count * (static_cast<double>(depth) * step / kProductEfficiency + kTileOverhead);
}

/// Whether what is read again and again stays in the last level: others use that, too.
bool StaysShared(double bytes, const ProductMachine& machine) { return bytes <= machine.shared_bytes / 2; }

/// Bytes per cycle of what takes `bytes` in all and is read again and again.
double RateOf(double bytes, const ProductMachine& machine) {
  return bytes <= machine.near_bytes ? kNearRate : StaysShared(bytes, machine) ? kSharedRate : kMemoryRate;
}

/// Cycles for weights that are read `times` times: first from memory, as a model leaves them there. In between `others`
/// bytes pass.
double WeightCycles(double bytes, double times, double others, const ProductMachine& machine) {
  const double again = bytes <= machine.near_bytes / 2        ? kNearRate
                       : StaysShared(bytes + others, machine) ? kSharedRate
                                                              : kMemoryRate;
  return bytes / kMemoryRate + bytes * std::max(times - 1, 0.0) / again;
}

/// Cycles to write and read `bytes` in blocks of `block` bytes, while `others` bytes pass: what a core's cache has no
/// room for comes from further away.
double BetweenCycles(double bytes, double block, double others, const ProductMachine& machine) {
  const double near = std::min(1.0, machine.near_bytes / block);
  const double far = StaysShared(block * machine.threads + others, machine) ? kSharedBetweenRate : kMemoryBetweenRate;
  return 2 * bytes * (near / kNearRate + (1 - near) / far);
}

/// Cycles to transform a tile of one vector of channels along all axes: data to positions, or the products at positions
/// to results.
double TransformCycles(const PlainConvolution& conv, const AxisTransforms& axes, bool is_data) {
  double steps = 0;
  auto vectors = static_cast<double>(NumPositions(axes));
  double moved = vectors;  // read and written
  for (size_t a = 0; a < kAxes; ++a) {
    const double side = axes[a]->side();
    if (side == 1) continue;
    const double pairs = (side - 2) / 2;
    // Two points share an even and an odd sum; 0 and infinity have one each.
    const double lines = vectors / side;
    steps += lines * (is_data ? pairs * (2 * pairs + 1) + 2 * pairs : pairs * (2 + axes[a]->tile));
    if (is_data) continue;
    vectors = lines * axes[a]->tile;
    moved += vectors;
  }
  const double write = is_data && conv.in_bfloat16 ? kRoundCycles : kWriteCycles;
  return steps * kStepCycles + moved * (kReadCycles + write);
}

/// One way to go: `plan` without its cycles.
double WinogradCycles(const PlainConvolution& conv, const ProductMachine& machine, const WinogradPlan& plan) {
  const AxisTransforms transforms = TransformsOf(conv, plan.tile);
  const auto positions = static_cast<double>(NumPositions(transforms));
  const int64_t tiles = NumTiles(conv, plan.tile);
  const int64_t blocks = Parts(tiles, plan.block);
  const int64_t panels = Parts(conv.channels_out, machine.tile_width);
  const auto all = static_cast<double>(tiles);
  // Register tiles are whole in all blocks but the last.
  const double register_tiles = static_cast<double>(Parts(tiles, plan.rows));
  const double products = positions * TileCycles(machine, register_tiles * static_cast<double>(panels), plan.rows,
                                                 Steps(conv, conv.channels_in));
  const double data = all * static_cast<double>(Parts(conv.channels_in, machine.lanes)) *
                      TransformCycles(conv, transforms, /*is_data=*/true) * static_cast<double>(plan.channel_parts);
  const double result = all * static_cast<double>(Parts(conv.channels_out, machine.lanes)) *
                        TransformCycles(conv, transforms, /*is_data=*/false);
  // Data between the steps are written and read once.
  const double factor_bytes = FactorBytes(conv);
  const double tile_bytes = positions * (static_cast<double>(conv.channels_in) * factor_bytes +
                                         static_cast<double>(conv.channels_out) * kFloat);
  const double block_bytes = tile_bytes * static_cast<double>(std::min(plan.block, tiles));
  const double weight_bytes =
      positions * static_cast<double>(conv.channels_in * panels * machine.tile_width) * factor_bytes;
  const double between = BetweenCycles(tile_bytes * all, block_bytes, blocks > 1 ? weight_bytes : 0, machine);
  const double weights =
      WeightCycles(weight_bytes, static_cast<double>(blocks), block_bytes * machine.threads, machine);
  // Threads get whole units: a block of tiles with a part of the channels.
  const int64_t units = blocks * plan.channel_parts;
  const double share = Ratio(Parts(units, machine.threads), units);
  return (products + data + result + between + weights) * share;
}

}  // namespace

int64_t NumTiles(const PlainConvolution& conv, const PerAxis& tile) {
  int64_t tiles = conv.images;
  for (size_t a = 0; a < kAxes; ++a) tiles *= Parts(conv.result[a], tile[a]);
  return tiles;
}

ProductMachine ThisMachine(int lanes, int units, int64_t tile_rows, int64_t tile_width, int threads) {
  static const int64_t near = CacheSize(2, int64_t{1} << 20);
  static const int64_t shared = CacheSize(3, int64_t{16} << 20);
  return {lanes, units, tile_rows, tile_width, threads, static_cast<double>(near), static_cast<double>(shared)};
}

AxisTransforms TransformsOf(const PlainConvolution& conv, const PerAxis& tile) {
  AxisTransforms transforms{};
  for (size_t a = 0; a < kAxes; ++a) {
    transforms[a] = &WinogradTransformsFor(static_cast<int>(tile[a]), static_cast<int>(conv.taps[a]));
  }
  return transforms;
}

bool HasWinograd(const PlainConvolution& conv) {
  return conv.num_taps() > 1 && std::all_of(conv.taps.begin(), conv.taps.end(),
                                            [](int64_t taps) { return taps == 1 || HasWinogradTransforms(taps); });
}

bool IsWithinBounds(const PlainConvolution& conv, const PerAxis& tile) {
  return Amplification(TransformsOf(conv, tile)) <= kMostAmplification;
}

bool MayBeChosen(const PlainConvolution& conv, const PerAxis& tile) {
  const bool is_typical = TypicalAmplification(TransformsOf(conv, tile)) <= kMostTypicalAmplification;
  return IsWithinBounds(conv, tile) && (!conv.in_bfloat16 || is_typical);
}

PerAxis TilesTold(const PlainConvolution& conv, int64_t told) {
  PerAxis tile{1, 1, 1};
  for (size_t a = kAxes; a-- > 0;) {
    if (conv.taps[a] > 1) tile[a] = told % 10;
    if (told >= 10) told /= 10;
  }
  return tile;
}

double DirectCycles(const PlainConvolution& conv, const ProductMachine& machine) {
  if (conv.in_bfloat16 && conv.channels_in % 2 != 0) {  // there is none in pairs
    PlainConvolution wide = conv;
    wide.in_bfloat16 = false;
    return DirectCycles(wide, machine);
  }
  const int64_t panels = Parts(conv.channels_out, machine.tile_width);
  const int64_t width = conv.result.back();
  const int64_t rows = Parts(width, Parts(width, machine.tile_rows));
  const int64_t register_tiles = conv.pixels() / width * Parts(width, rows) * panels;
  const int64_t depth = conv.num_taps() * conv.channels_in;
  const double products = TileCycles(machine, static_cast<double>(register_tiles), rows, Steps(conv, depth));
  const double weights = static_cast<double>(depth * panels * machine.tile_width) * FactorBytes(conv) / kMemoryRate;
  // All data pass for each panel.
  const double bytes = static_cast<double>(conv.pixels() * conv.channels_in) * FactorBytes(conv);
  const double data = static_cast<double>(panels) * bytes / RateOf(bytes, machine);
  return (products + weights + data) / machine.threads;
}

WinogradPlan PlanWinograd(const PlainConvolution& conv, const ProductMachine& machine, const PerAxis& tile) {
  const int64_t tiles = NumTiles(conv, tile);
  const int64_t panels = Parts(conv.channels_out, machine.tile_width);
  WinogradPlan best;
  for (int64_t rows = machine.tile_rows; rows * 2 > machine.tile_rows; --rows) {
    const int64_t most = Parts(tiles, rows);  // register tiles
    for (int64_t count = 1;; count = std::min(count + (count + 1) / 2, most)) {
      for (const int64_t parts : {int64_t{1}, std::min<int64_t>(machine.threads, panels)}) {
        WinogradPlan plan{tile, rows, rows * count, parts, 0};
        plan.cycles = WinogradCycles(conv, machine, plan);
        if (best.cycles == 0 || plan.cycles < best.cycles) best = plan;
      }
      if (count >= most) break;
    }
  }
  return best;
}

std::vector<PerAxis> PossibleTiles(const PlainConvolution& conv) {
  std::vector<PerAxis> possible;
  PerAxis tile{1, 1, 1};
  const std::function<void(size_t)> choose = [&](size_t axis) {
    if (axis == kAxes) {
      if (MayBeChosen(conv, tile)) possible.push_back(tile);
      return;
    }
    for (const int64_t side : conv.taps[axis] == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{2, 4}) {
      tile[axis] = side;
      choose(axis + 1);
    }
  };
  choose(0);
  return possible;
}

int64_t SideOf(int64_t algorithm) { return algorithm == Schedule::kWinograd2 ? 2 : 4; }

int64_t ToldSides(const NativeOptions& options) {
  const int64_t algorithm = options.schedule.algorithm;
  return algorithm == 0 ? options.winograd_tile : SideOf(algorithm);
}

std::optional<WinogradPlan> ChooseWinograd(const PlainConvolution& conv, const ProductMachine& machine) {
  std::optional<WinogradPlan> best;
  for (const PerAxis& tile : PossibleTiles(conv)) {
    const WinogradPlan plan = PlanWinograd(conv, machine, tile);
    if (!best || plan.cycles < best->cycles) best = plan;
  }
  const bool has_direct = !conv.in_bfloat16 || conv.channels_in % 2 == 0;
  if (best && has_direct && best->cycles * kLeastGain > DirectCycles(conv, machine)) return std::nullopt;
  return best;
}

}  // namespace collage::native
