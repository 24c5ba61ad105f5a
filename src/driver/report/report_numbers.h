// report_numbers.h: the numbers of a compilation's report, one row each: what adds up reports and what shows them reads
// these rows.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "collage/compile.h"

namespace collage {

/// How a program's number follows from those of its regions. A flag is set if that of any region is.
enum class Total : uint8_t { kSum, kMost, kWhole };

/// A field of `Report`, CompileReport or a part of it. Doubles are seconds, or shares.
template <typename Report>
struct ReportNumber {
  const char* key;    ///< in JSON and Python
  const char* label;  ///< in text
  std::variant<int64_t Report::*, double Report::*, bool Report::*> field;
  Total total = Total::kSum;
  bool is_share = false;
};

/// Counts of the search.
std::span<const ReportNumber<CompileReport>> SearchNumbers();
/// Durations of a compilation's phases; PlayOffNumbers has the parts of its play-off.
std::span<const ReportNumber<CompileReport>> SecondsNumbers();
std::span<const ReportNumber<PlayOffSeconds>> PlayOffNumbers();
std::span<const ReportNumber<TuningReport>> TuningNumbers();

/// Adds the report of a region, which a program has `num_equal` times, to the report of the program: numbers by their
/// rows, failures by kind. Machine and toolchains become those of the region.
void AddRegion(const CompileReport& region, int num_equal, CompileReport& program);

}  // namespace collage
