// winograd_model.cc: cycles are those of products and transforms, which threads share, and those of the bytes that come
// from beyond a core's first cache. Rates were measured on AMD's Zen 3; what decides are their ratios, which differ
// little between processors.
#include "backends/native/compiler/winograd_model.h"

#include <algorithm>

#include "backends/native/compiler/winograd_transforms.h"
#include "support/machine.h"

namespace collage::native {
namespace {

constexpr double kFloat = sizeof(float);

/// Multiply-add instructions per cycle: two of 32 bytes, or one of 64.
double VectorProductsPerCycle(int lanes) { return lanes > 8 ? 1 : 2; }

// Cycles around the loop of a register tile: its sums are cleared and stored.
constexpr double kTileOverhead = 20;
// Of the products' peak: loads and loops between them.
constexpr double kProductEfficiency = 0.9;
// Bytes per cycle from a core's own cache, from the last level, from memory. What prefetching hides is left out.
constexpr double kNearRate = 40;
constexpr double kSharedRate = 12;
constexpr double kMemoryRate = 6;
// Cycles for one vector of a tile: data read, transformed and written, and the same for the products.
constexpr double kDataCycles[] = {28, 100};
constexpr double kResultCycles[] = {30, 90};
// Results differ more from exact ones than a direct convolution's: a gain that is hardly one is not worth it.
constexpr double kLeastGain = 1.1;

double Ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
int64_t Parts(int64_t length, int64_t size) { return (length + size - 1) / size; }

/// Cycles of `count` register tiles of `rows` rows, one panel each, summed over `depth`.
double TileCycles(const ProductMachine& machine, double count, int64_t rows, int64_t depth) {
  const double vectors = Ratio(machine.tile_width, machine.lanes);
  const auto height = static_cast<double>(rows);
  // Few rows are bound by loads: two a cycle.
  const double step = std::max(height * vectors / VectorProductsPerCycle(machine.lanes), (height + vectors) / 2);
  return count * (static_cast<double>(depth) * step / kProductEfficiency + kTileOverhead);
}

/// Bytes per cycle of what takes `bytes` in all and is read again and again.
double RateOf(double bytes, const ProductMachine& machine) {
  if (bytes <= machine.near_bytes) return kNearRate;
  return bytes <= machine.shared_bytes / 2 ? kSharedRate : kMemoryRate;
}

/// Cycles for weights that are read `times` times: first from memory, as a model leaves them there.
double WeightCycles(double bytes, double times, const ProductMachine& machine) {
  return bytes / kMemoryRate + bytes * std::max(times - 1, 0.0) / RateOf(bytes * 2, machine);
}

/// One way to go: `plan` without its cycles.
double WinogradCycles(const Convolution3x3& conv, const ProductMachine& machine, const WinogradPlan& plan) {
  const WinogradTransforms& transforms = WinogradTransformsFor(plan.tile);
  const auto positions = static_cast<double>(transforms.positions());
  const size_t kind = plan.tile == 2 ? 0 : 1;
  const int64_t tiles = conv.images * Parts(conv.height, plan.tile) * Parts(conv.width, plan.tile);
  const int64_t blocks = Parts(tiles, plan.block);
  const int64_t panels = Parts(conv.channels_out, machine.tile_width);
  const auto all = static_cast<double>(tiles);
  // Register tiles are whole in all blocks but the last.
  const double register_tiles = static_cast<double>(Parts(tiles, plan.rows));
  const double products =
      positions * TileCycles(machine, register_tiles * static_cast<double>(panels), plan.rows, conv.channels_in);
  const double data = all * static_cast<double>(Parts(conv.channels_in, machine.lanes)) * kDataCycles[kind] *
                      static_cast<double>(plan.channel_parts);
  const double result = all * static_cast<double>(Parts(conv.channels_out, machine.lanes)) * kResultCycles[kind];
  // What is between the steps is written and read once.
  const double floats = positions * static_cast<double>(conv.channels_in + conv.channels_out);
  const double block_bytes = floats * static_cast<double>(std::min(plan.block, tiles)) * kFloat;
  const double between = 2 * floats * all * kFloat / RateOf(block_bytes, machine);
  const double weights =
      WeightCycles(positions * static_cast<double>(conv.channels_in * panels * machine.tile_width) * kFloat,
                   static_cast<double>(blocks), machine);
  // Threads get whole units: a block of tiles with a part of the channels.
  const int64_t units = blocks * plan.channel_parts;
  const double share = Ratio(Parts(units, machine.threads), units);
  return (products + data + result + between + weights) * share;
}

}  // namespace

ProductMachine ThisMachine(int lanes, int64_t tile_rows, int64_t tile_width, int threads) {
  static const int64_t near = CacheSize(2, int64_t{1} << 20);
  static const int64_t shared = CacheSize(3, int64_t{16} << 20);
  return {lanes, tile_rows, tile_width, threads, static_cast<double>(near), static_cast<double>(shared)};
}

double DirectCycles(const Convolution3x3& conv, const ProductMachine& machine) {
  const int64_t panels = Parts(conv.channels_out, machine.tile_width);
  const int64_t rows = Parts(conv.width, Parts(conv.width, machine.tile_rows));
  const int64_t register_tiles = conv.images * conv.height * Parts(conv.width, rows) * panels;
  const double products = TileCycles(machine, static_cast<double>(register_tiles), rows, 9 * conv.channels_in);
  const double weights =
      WeightCycles(9 * static_cast<double>(conv.channels_in * panels * machine.tile_width) * kFloat, 1, machine);
  // All data pass for each panel.
  const double bytes = static_cast<double>(conv.images * conv.height * conv.width * conv.channels_in) * kFloat;
  const double data = static_cast<double>(panels) * bytes / RateOf(bytes, machine);
  return (products + weights + data) / machine.threads;
}

WinogradPlan PlanWinograd(const Convolution3x3& conv, const ProductMachine& machine, int tile) {
  const int64_t tiles = conv.images * Parts(conv.height, tile) * Parts(conv.width, tile);
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

std::optional<WinogradPlan> ChooseWinograd(const Convolution3x3& conv, const ProductMachine& machine) {
  const WinogradPlan two = PlanWinograd(conv, machine, 2);
  const WinogradPlan four = PlanWinograd(conv, machine, 4);
  const WinogradPlan& best = four.cycles < two.cycles ? four : two;
  if (best.cycles * kLeastGain > DirectCycles(conv, machine)) return std::nullopt;
  return best;
}

}  // namespace collage::native
