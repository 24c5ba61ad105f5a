// winograd.cc: which convolutions Winograd's algorithm computes, by which tiles, and the stage that does. A block of
// tiles at a time goes through the three steps of winograd_steps.h; the steps' memory belongs to the thread that works
// on the block.
#include "backends/native/compiler/convolution/winograd.h"

#include <algorithm>

#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/convolution/winograd_steps.h"

namespace collage::native {
namespace {

// ---- whether and how ----

PlainConvolution SizesOf(const ConvolutionGeometry& conv, bool in_bfloat16) {
  PlainConvolution sizes{conv.result[0], conv.data[1], conv.result[1], {1, 1, 1}, {1, 1, 1}, in_bfloat16};
  for (size_t d = 0; d < conv.rank; ++d) {
    sizes.result[kAxes - conv.rank + d] = conv.result[d + 2];
    sizes.taps[kAxes - conv.rank + d] = conv.weight[d + 2];
  }
  return sizes;
}

bool IsSummedInFloat32(const Expr& expr) {
  const DataType dtype = TensorTypeOf(expr).dtype();
  return dtype.is_floating() && SumType(dtype) == kFloat32;
}

bool IsCandidate(const CallNode& call, const ConvolutionGeometry& conv) {
  const auto is_one = [](int64_t value) { return value == 1; };
  return conv.rank <= kAxes && conv.groups == 1 && conv.data[1] > 0 &&
         HasWinograd(SizesOf(conv, /*in_bfloat16=*/false)) &&
         std::all_of(conv.stride.begin(), conv.stride.end(), is_one) &&
         std::all_of(conv.dilation.begin(), conv.dilation.end(), is_one) && IsSummedInFloat32(call.args()[0]) &&
         IsSummedInFloat32(call.args()[1]);
}

/// Replaces the model's choices by those of the schedule. There are `tiles` tiles and `panels` panels.
void Apply(const Schedule& schedule, int64_t tiles, int64_t panels, WinogradPlan& plan) {
  const int64_t register_tiles = plan.block / plan.rows;
  if (schedule.rows > 0) plan.rows = schedule.rows;
  const int64_t all = (tiles + plan.rows - 1) / plan.rows;
  plan.block = plan.rows * std::min(schedule.block > 0 ? schedule.block : register_tiles, all);
  if (schedule.parts > 0) plan.channel_parts = std::min(schedule.parts, panels);
}

/// Returns the plan that the options ask for, else the model's; nothing where another algorithm is faster.
std::optional<WinogradPlan> PlanOf(const PartitionState& state, const PlainConvolution& sizes,
                                   const ProductMachine& machine) {
  const int64_t wanted = ToldSides(state.options);
  std::optional<WinogradPlan> plan;
  if (wanted == 0) {
    plan = ChooseWinograd(sizes, machine);
  } else if (const PerAxis tile = TilesTold(sizes, wanted); IsWithinBounds(sizes, tile)) {
    plan = PlanWinograd(sizes, machine, tile);
  }
  if (plan) {
    const int64_t panels = (sizes.channels_out + machine.tile_width - 1) / machine.tile_width;
    Apply(state.schedule(), NumTiles(sizes, plan->tile), panels, *plan);
  }
  return plan;
}

// ---- choices of schedules ----

/// Returns the algorithm that has such tiles; 0 where they are not the same along all axes.
int64_t AlgorithmOf(const PlainConvolution& sizes, const PerAxis& tile) {
  for (const int64_t algorithm : {Schedule::kWinograd2, Schedule::kWinograd4}) {
    if (tile == TilesTold(sizes, SideOf(algorithm))) return algorithm;
  }
  return 0;
}

void NoteAlgorithms(PartitionState& state, const PlainConvolution& sizes) {
  state.space.algorithms = {Schedule::kDirect};
  for (const int64_t algorithm : {Schedule::kWinograd2, Schedule::kWinograd4}) {
    if (MayBeChosen(sizes, TilesTold(sizes, SideOf(algorithm)))) state.space.algorithms.push_back(algorithm);
  }
}

void NoteSpace(PartitionState& state, const PlainConvolution& sizes, const WinogradBlocks& blocks, double flops) {
  const int64_t vectors = blocks.width / blocks.lanes;
  ProductSpace space;
  space.is_winograd = true;
  space.chosen = state.schedule().With({.algorithm = AlgorithmOf(sizes, blocks.tiles.tile),
                                        .rows = blocks.rows,
                                        .width = vectors,
                                        .block = blocks.block / blocks.rows,
                                        .parts = blocks.channel_parts});
  space.flops = flops;
  space.rows = blocks.tiles.count;
  space.channels = blocks.channels_out;
  space.depth = blocks.depth;
  space.chains =
      ChainsOf(blocks.rows * std::min(vectors, (space.channels + blocks.lanes - 1) / blocks.lanes), space.depth);
  space.tiles = (blocks.tiles.count + blocks.rows - 1) / blocks.rows;
  space.lanes = static_cast<int>(blocks.lanes);
  state.space.Note(space);
}

// ---- the stage ----

/// Writes the stage: slots share units of work, each a block of tiles and a part of the output channels.
void EmitBlocks(PartitionState& state, const WinogradBlocks& blocks, const WinogradMemory& memory,
                const StageOutput& output) {
  Emitter& e = state.emitter;
  const std::vector<int64_t> units{blocks.NumBlocks(), blocks.channel_parts};
  EmitShares(state, blocks.slots, NumElements(units), [&](const I64& slot, const I64& unit, const I64&) {
    const I64s parts = Delinearise(e, unit, units);
    const I64 first = e.MulInt(parts[0], blocks.block);
    const I64 left = e.IntOp("subi", e.Int(blocks.tiles.count), first);
    const I64 count = e.IntOp("minsi", e.Int(blocks.block), left);
    const WinogradStep step{state, blocks, memory, slot};
    WinogradInput(step).Emit(first, count);
    WinogradProducts(step).Emit(count, parts[1]);
    WinogradOutput(step, output).Emit(first, count, parts[1]);
  });
}

}  // namespace

bool EmitWinograd(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output) {
  if (state.options.is_exact || !IsCandidate(call, conv) || !IsSummedInFloat32(output.result)) return false;
  const int threads = state.IsParallel(conv.flops()) ? state.num_threads : 1;
  const std::optional<Tensor> taps = ConstantValue(call.args()[1]);
  if (!taps) return false;
  const ProductMachine machine = ThisMachine(state.emitter.lanes(), MultipliersOf(state), MostTileRows(state, kFloat32),
                                             PanelWidth(state, kFloat32), threads);
  const PlainConvolution sizes = SizesOf(conv, IsNarrowed(state, call));
  NoteAlgorithms(state, sizes);
  if (!state.schedule().MayBeWinograd()) return false;
  const std::optional<WinogradPlan> plan = PlanOf(state, sizes, machine);
  if (!plan) return false;
  state.num_narrow += sizes.in_bfloat16 ? 1 : 0;
  const WinogradBlocks blocks(state, conv, sizes, *plan, threads);
  const WinogradMemory memory(state, call, blocks, sizes, taps->Cast(kFloat32));
  NoteSpace(state, sizes, blocks, conv.flops());
  EmitBlocks(state, blocks, memory, output);
  return true;
}

}  // namespace collage::native
