// legacy_records.h: records as stores of schema 5 and files of version 1 have them, where all keys are six texts.
#pragma once

#include <map>
#include <string>

#include "collage/support/result.h"
#include "cost/database/tuning_record.h"

namespace collage {

struct LegacyRecord {
  std::string workload;
  std::string layouts;
  std::string toolchain;
  std::string version;
  std::string machine;
  int num_threads = 1;
  TuningRecord record;  ///< its label may hold schedules, one a line, or a contender's result as JSON
};

/// Translates records into today's form. All records of a store go through one translator, in the order of their
/// workloads: it can read a comparison of rivals only after the rivals' own records.
class LegacyTranslator {
 public:
  Result<TuningEntry> Translate(const LegacyRecord& old);

 private:
  Result<ComparisonKey> ReadComparison(const LegacyRecord& old) const;

  struct LongestFirst {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  /// Partitions so far, one for each "TOOLCHAIN VERSION/METHOD".
  std::map<std::string, PartitionKey, LongestFirst> contenders_;
};

}  // namespace collage
