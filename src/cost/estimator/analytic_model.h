// analytic_model.h: what a partition takes by a formula: the products that it adds up, the elements that it computes
// and the bytes that it moves, each at the rate that a toolchain shows in a probe (probes.h).
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "cost/machine/roofline.h"

namespace collage {

/// Operators that are about as fast as each other.
enum class WorkKind { kProduct, kConvolution, kGroupedConvolution, kElements, kReduction };
inline constexpr size_t kNumWorkKinds = 5;

/// A partition's work by kind.
struct WorkByKind {
  Work work;
  /// Products of contractions, float32 ones as in `Work`; elements written by all others,
  /// or read by reductions if those are more.
  std::array<double, kNumWorkKinds> amounts = {};
};

/// Counts the work of a closed, typed function of static shapes.
WorkByKind WorkByKindOf(const Function& function);

/// A toolchain on this machine.
///
///     seconds = call + max(products, moving) + elements
///
/// where `products` are those of contractions, by kind, `moving` is what the roofline says of bytes, divided by the
/// share of its rates that the toolchain reaches, and `elements` are those of all other operators. A kind whose probe
/// the toolchain does not take is as fast as one that does it with `kUnknownEfficiency`.
class AnalyticModel {
 public:
  static constexpr double kUnknownEfficiency = 0.25;

  /// `probe` gives the seconds that the toolchain takes for the probe of a name; nothing when it does not take it.
  AnalyticModel(const std::function<std::optional<double>(const std::string&)>& probe, const MachineRates& rates,
                int num_threads, CacheLevel operands);

  double Seconds(const WorkByKind& work) const;

 private:
  double Moving(const Work& work) const { return MovingSeconds(work, rates_, num_threads_, operands_); }

  MachineRates rates_;
  int num_threads_;
  CacheLevel operands_;
  double call_ = 0;                                  ///< seconds
  double moving_share_ = kUnknownEfficiency;         ///< share of the roofline's rates
  std::array<double, kNumWorkKinds> per_unit_ = {};  ///< seconds
};

}  // namespace collage
