// tuning_record.h: the values of the tuning database: times, other results, and how compilations ended.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "cost/database/tuning_key.h"

namespace collage {

/// A time as records have it: UTC, "2026-01-31 23:59:59".
std::string UtcText(std::time_t time);

/// One measurement: quantiles of the samples in seconds, or why there are none. A `ResultRecord` holds any other
/// result.
struct TuningRecord {
  bool ok = false;
  bool is_skipped = false;  ///< neither measured nor failed: there was no time; never stored
  double minimum = 0;
  double p10 = 0;  ///< this, p25, p75, p99: 0 = not known, as in records of older versions
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double p90 = 0;
  double p99 = 0;
  int64_t num_samples = 0;
  double half_width = 0;    ///< half the width of the 95 % interval of its percentile, seconds; 0 = not known
  double drift = 0;         ///< how much slower than usual the machine was, as a ratio; 0 = not known
  double max_error = 0;     ///< largest |result - reference|, relative to the largest |reference|
  std::string label;        ///< the operators, for people
  std::string reason;       ///< when not ok: what failed
  std::string schedule;     ///< schedule (PartitionRequest::schedule); empty: the toolchain's own choice
  std::string measured_at;  ///< UTC, "2026-01-31 23:59:59"; empty = now

  /// Seconds at `fraction`, 0 <= fraction <= 1, linear between the quantiles that are known; beyond the last of them
  /// it.
  double Quantile(double fraction) const;
};

/// A result that is no time.
struct ResultRecord {
  bool ok = true;
  std::string value;        ///< as its kind of key says; empty where being there is all
  std::string measured_at;  ///< UTC; empty = now
};

/// A record with its key.
using TuningEntry = std::variant<std::pair<TuningKey, TuningRecord>, std::pair<ResultKey, ResultRecord>>;

/// How one compilation ended: whether sums of partitions are honest is seen over many of them (RFC 0.81, Drawbacks).
struct CompilationRecord {
  std::string model;
  std::string machine;
  int num_threads = 1;
  std::string versions;  ///< versions of the toolchains that took part
  std::string winner;
  double seconds = 0;         ///< p50 of the winner
  double additive_error = 0;  ///< measured minus estimated seconds of the best mix; 0 when there is none
  std::string apparent_loss;  ///< JSON: partitioning without a search → winner's seconds minus its own
  std::string compiled_at;    ///< UTC; empty = now
  /// Seconds of the best cover that a search chose minus those of the best of all; nothing: not all were tried, as they
  /// were too many, or by a version that did not note it.
  std::optional<double> optimality_loss;
};

}  // namespace collage
