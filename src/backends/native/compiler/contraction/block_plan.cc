// block_plan.cc: a model of how many rounds of blocks a GPU needs, and how well each tile uses its tensor cores.
#include "backends/native/compiler/contraction/block_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/native/compiler/contraction/tensor_functions.h"
#include "backends/native/compiler/contraction/tensor_product.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

constexpr int64_t kBank = 32;       ///< words of shared memory that are accessed at once
constexpr int64_t kMostSums = 128;  ///< half of a thread's registers
constexpr int64_t kGroupWarps = 4;
constexpr int64_t kGroup = 8;  ///< words of a row that an instruction multiplies

/// A tile, its warps, and the share of the tensor cores' time that it uses, about: large tiles read each word of shared
/// memory for more products.
struct Choice {
  int64_t rows, columns, warps;
  double use;
};
/// Likewise for groups of four warps, which read columns from shared memory for 64 rows at a time.
constexpr std::array kGroupChoices{Choice{128, 256, 8, 1.8}, Choice{128, 128, 8, 1.6}, Choice{64, 256, 4, 1.4},
                                   Choice{64, 128, 4, 1.2}, Choice{64, 64, 4, 0.9}};
constexpr std::array kChoices{Choice{128, 128, 8, 1.0}, Choice{128, 64, 4, 0.85}, Choice{64, 128, 4, 0.85},
                              Choice{64, 64, 4, 0.7},   Choice{32, 128, 4, 0.55}, Choice{32, 64, 4, 0.45},
                              Choice{16, 64, 4, 0.3}};

int64_t Rounded(int64_t count, int64_t to) { return (count + to - 1) / to; }

/// The warps of a plan in a rectangle whose parts are as square as they can be; 0 x 0 where there is none.
void Arrange(BlockPlan& plan, int64_t warps) {
  if (plan.has_groups) {
    const bool is_even = plan.rows == warps * TensorProduct::kRows && warps % kGroupWarps == 0;
    plan.down = is_even ? warps : 0;
    plan.across = 1;
    return;
  }
  int64_t best = std::numeric_limits<int64_t>::max();
  plan.down = plan.across = 0;
  for (int64_t down = 1; down <= warps; down *= 2) {
    const int64_t across = warps / down;
    const int64_t rows = plan.rows / down, columns = plan.columns / across;
    if (rows < TensorProduct::kRows || columns < 2 * TensorProduct::kColumns || rows + columns >= best) continue;
    best = rows + columns;
    plan.down = down;
    plan.across = across;
  }
}

/// Fewer stages where the memory is small, but two at least.
void LimitStages(BlockPlan& plan, int64_t shared_bytes) {
  while (plan.stages > 2 && plan.SharedBytes() > shared_bytes) --plan.stages;
}

/// Tiles of the product.
double TilesOf(const Contraction& form, const BlockPlan& plan) {
  return static_cast<double>(Rounded(form.rows, plan.rows) * Rounded(form.channels, plan.columns) *
                             NumElements(form.outer));
}

/// The relative time of `plan`: rounds of blocks, as many as there are processors at a time, and the sums that parts
/// leave for another stage.
double TimeOf(const PartitionState& state, const Contraction& form, const BlockPlan& plan, double use) {
  constexpr double kSumSteps = 4;  // to write and to read a partial sum costs as much as so many steps
  const auto processors = static_cast<double>(state.target.processors);
  const double blocks = TilesOf(form, plan) * static_cast<double>(plan.parts);
  const auto steps = static_cast<double>(Rounded(NumSteps(form, plan.depth), plan.parts));
  const auto area = static_cast<double>(plan.rows * plan.columns);
  const double rounds = std::max(blocks / processors, 1.0);
  const double more = plan.parts == 1 ? 0 : kSumSteps * blocks / processors + kSumSteps;
  return area / use * (std::ceil(rounds) * steps + more);
}

}  // namespace

int64_t BlockPlan::Pitch() const { return Rounded(columns, kBank) * kBank + kSumsPitch; }

int64_t BlockPlan::SharedBytes() const { return std::max(stages * StageBytes(), rows * Pitch() * 4); }

bool BlockPlan::Fits(int64_t shared_bytes) const {
  return down > 0 && warp_rows() * warp_columns() <= kMostSums * kWarpLanes && SharedBytes() <= shared_bytes;
}

int64_t NumSteps(const Contraction& form, int64_t depth) {
  const int64_t last = form.inner.back();
  return last == 0 ? 0 : NumElements(form.inner) / last * Rounded(last, depth);
}

namespace {

/// Whether groups of warps, which read columns as they lie in shared memory, multiply what they should: TensorFloat-32
/// is rounded before, which constants are.
bool HasExactColumns(const PartitionState& state, const Contraction& form) {
  return form.factors != DotKind::kOne || state.quads.contains(form.b_constant);
}

/// Throws where a schedule asks for what blocks of tensor cores do not have.
void CheckSchedule(const Schedule& schedule) {
  const auto is_power = [](int64_t value) { return std::has_single_bit(static_cast<uint64_t>(value)); };
  const bool is_right = (schedule.rows == 0 || (schedule.rows >= TensorProduct::kRows && is_power(schedule.rows))) &&
                        (schedule.width == 0 || is_power(schedule.width)) &&
                        (schedule.unroll == 0 || schedule.unroll == 2 || schedule.unroll == 4) &&
                        (schedule.warps == 0 || (schedule.warps > 1 && is_power(schedule.warps))) &&
                        schedule.stages != 1;
  if (is_right) return;
  throw Error(ErrorCategory::kUnsupported, "tensor cores have no schedule '" + schedule.ToString() + "'", "",
              "rows=16 to 256, width=1 to 8 and warps=2 to 8 are powers of two, unroll is 2 or 4, stages at least 2");
}

}  // namespace

BlockPlan PlanOf(const PartitionState& state, const Contraction& form) {
  const Schedule& schedule = state.schedule();
  CheckSchedule(schedule);
  const int64_t shared_bytes = state.target.block_shared_bytes;
  const int64_t panel = PanelWidth(state, form.dtype);
  BlockPlan best;
  double least = std::numeric_limits<double>::max();
  const auto consider = [&](const Choice& choice, bool has_groups) {
    BlockPlan plan;
    plan.has_groups = has_groups;
    plan.rows = schedule.rows == 0 ? choice.rows : schedule.rows;
    // Panels that lie anywhere are met one by one.
    plan.columns = schedule.width != 0 || form.b_panel_stride == 0 ? panel : choice.columns;
    if (schedule.unroll != 0) plan.depth = schedule.unroll * kGroup;
    if (schedule.stages != 0) plan.stages = schedule.stages;
    Arrange(plan, schedule.warps == 0 ? choice.warps : schedule.warps);
    if (plan.down == 0) Arrange(plan, 2);
    LimitStages(plan, shared_bytes);
    if (!plan.Fits(shared_bytes)) return;
    constexpr int64_t kMostParts = 32;
    for (int64_t parts = 1; parts <= std::clamp<int64_t>(NumSteps(form, plan.depth), 1, kMostParts); parts *= 2) {
      plan.parts = schedule.parts == 0 ? parts : schedule.parts;
      const double time = TimeOf(state, form, plan, choice.use);
      if (time >= least) continue;
      least = time;
      best = plan;
    }
  };
  const bool may_group = state.target.has_warpgroups && HasExactColumns(state, form) &&
                         (state.target.prefers_warpgroups || schedule.algorithm == Schedule::kWarpgroups);
  if (schedule.algorithm != Schedule::kWarpgroups) {
    for (const Choice& choice : kChoices) consider(choice, /*has_groups=*/false);
  }
  if (may_group && schedule.algorithm != Schedule::kDirect) {
    for (const Choice& choice : kGroupChoices) consider(choice, /*has_groups=*/true);
  }
  if (least == std::numeric_limits<double>::max()) {
    throw Error(ErrorCategory::kUnsupported,
                "no tile of schedule '" + schedule.ToString() + "' fits a block of threads", "",
                "fewer rows, width or stages, or more warps");
  }
  best.parts = std::clamp<int64_t>(NumSteps(form, best.depth), 1, best.parts);
  return best;
}

ProductSpace SpaceOf(const PartitionState& state, const Contraction& form, const BlockPlan& plan) {
  ProductSpace space = SpaceOf(state, form, plan.rows, Rounded(form.rows, plan.rows) * NumElements(form.outer));
  space.chosen.width = plan.columns / kWarpLanes;
  space.chosen.unroll = plan.depth / kGroup;
  space.chosen.warps = plan.warps();
  space.chosen.stages = plan.stages;
  space.chosen.parts = plan.parts;
  space.chosen.algorithm = plan.has_groups ? Schedule::kWarpgroups : Schedule::kDirect;
  space.may_group = state.target.prefers_warpgroups && HasExactColumns(state, form);
  space.steps = NumSteps(form, plan.depth);
  space.block_bytes = state.target.block_shared_bytes;
  return space;
}

}  // namespace collage::native
