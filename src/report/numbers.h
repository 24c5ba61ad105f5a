// numbers.h: rows of numbers (driver/report/report_numbers.h) as facts.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/report/report_numbers.h"
#include "report/fact.h"

namespace collage {

/// A fact for each of `numbers` in `report`; durations are shown in `seconds`.
template <typename Report>
std::vector<Fact> FactsOfNumbers(std::span<const ReportNumber<Report>> numbers, const Report& report, Unit seconds) {
  std::vector<Fact> facts;
  for (const ReportNumber<Report>& number : numbers) {
    const auto* count = std::get_if<int64_t Report::*>(&number.field);
    const auto* amount = std::get_if<double Report::*>(&number.field);
    const auto* flag = std::get_if<bool Report::*>(&number.field);
    facts.push_back(count != nullptr    ? Fact::Count(number.key, number.label, report.**count)
                    : amount != nullptr ? Fact::Number(number.key, number.label, report.**amount,
                                                       number.is_share ? Unit::kShare : seconds)
                                        : Fact::Flag(number.key, number.label, report.**flag));
  }
  return facts;
}

}  // namespace collage
