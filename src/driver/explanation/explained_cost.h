// explained_cost.h: costs in explanations, and what they rest on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collage {

/// How fast the machine is at most: all threads together, per second. 0: not known.
struct ExplainedRates {
  double multiply_adds = 0;                                   ///< in float32
  double near_bytes = 0, shared_bytes = 0, memory_bytes = 0;  ///< read

  bool operator==(const ExplainedRates&) const = default;
};

/// A schedule that was tried.
struct ExplainedTrial {
  std::string schedule;
  std::optional<double> seconds = {};  ///< absent: it failed
  std::string reason = {};

  bool operator==(const ExplainedTrial&) const = default;
};

/// A cost that equal candidates share.
struct ExplainedCost {
  enum class State : uint8_t { kMeasured, kEstimated, kBound, kFailed };
  State state = State::kBound;
  std::optional<double> seconds = {};  ///< the cost, or its lower bound
  std::optional<double> p10 = {}, p25 = {}, p50 = {}, p75 = {}, p90 = {};
  std::optional<double> half_width = {};  ///< half the 95 % interval
  int64_t samples = 0;
  double error = 0;  ///< relative to the largest result; 0 = not known
  std::string schedule = {};
  std::vector<ExplainedTrial> trials = {};   ///< in their order
  std::string reason = {};                   ///< why it failed
  std::optional<double> least_seconds = {};  ///< no kernel on this machine takes less
  double multiply_adds = 0;
  double bytes = 0;  ///< read and written
};

constexpr std::array<const char*, 4> NamesOf(ExplainedCost::State) {
  return {"measured", "estimated", "bound", "failed"};
}

}  // namespace collage
