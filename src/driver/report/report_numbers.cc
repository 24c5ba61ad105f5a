// report_numbers.cc: the numbers of a compilation's report.
#include "driver/report/report_numbers.h"

#include <algorithm>
#include <type_traits>

namespace collage {
namespace {

template <typename Report>
void AddNumbers(std::span<const ReportNumber<Report>> numbers, const Report& region, Report& program) {
  for (const ReportNumber<Report>& number : numbers) {
    if (number.total == Total::kWhole) continue;
    std::visit(
        [&](auto field) {
          auto& all = program.*field;
          const auto one = region.*field;
          if constexpr (std::is_same_v<decltype(one), const bool>) {
            all = all || one;
          } else {
            all = number.total == Total::kMost ? std::max(all, one) : all + one;
          }
        },
        number.field);
  }
}

}  // namespace

std::span<const ReportNumber<CompileReport>> SearchNumbers() {
  static constexpr ReportNumber<CompileReport> kNumbers[] = {
      {"candidates", "candidates", &CompileReport::num_candidates},
      {"variants", "with formats", &CompileReport::num_variants},
      {"states", "states of the search", &CompileReport::num_states},
      {"distinct", "different costs", &CompileReport::num_distinct},
      {"measured", "measured", &CompileReport::num_measured},
      {"remeasured", "measured again", &CompileReport::num_remeasured},
      {"from_database", "from the database", &CompileReport::num_from_database},
      {"failed", "failed", &CompileReport::num_failed},
      {"below_bound", "below their bound", &CompileReport::num_below_bound},
      {"checkpoints", "executables written before the end", &CompileReport::num_checkpoints},
      {"stopped", "stopped: the best so far was written", &CompileReport::is_stopped},
      {"budget_spent", "the budget was spent: run again to measure more", &CompileReport::budget_spent},
  };
  return kNumbers;
}

std::span<const ReportNumber<CompileReport>> SecondsNumbers() {
  static constexpr ReportNumber<CompileReport> kNumbers[] = {
      {"import", "import", &CompileReport::import_seconds},
      {"search", "search", &CompileReport::search_seconds},
      {"play_off", "play-off", &CompileReport::play_off_seconds},
      {"total", "total", &CompileReport::total_seconds, Total::kWhole},
  };
  return kNumbers;
}

std::span<const ReportNumber<PlayOffSeconds>> PlayOffNumbers() {
  static constexpr ReportNumber<PlayOffSeconds> kNumbers[] = {
      {"build", "build", &PlayOffSeconds::build},
      {"check", "check", &PlayOffSeconds::check},
      {"timing", "timing", &PlayOffSeconds::timing},
      {"write", "write", &PlayOffSeconds::write},
  };
  return kNumbers;
}

std::span<const ReportNumber<TuningReport>> TuningNumbers() {
  static constexpr ReportNumber<TuningReport> kNumbers[] = {
      {"partitions", "partitions", &TuningReport::partitions},
      {"faster", "faster", &TuningReport::faster},
      {"trials", "trials", &TuningReport::trials},
      {"known_trials", "known trials", &TuningReport::known_trials},
      {"seconds", "time", &TuningReport::seconds},
      // A share of one region's time.
      {"gain", "gain", &TuningReport::gain, Total::kMost, /*is_share=*/true},
      {"budget_spent", "the budget was spent: run again to try more", &TuningReport::budget_spent},
  };
  return kNumbers;
}

void AddRegion(const CompileReport& region, int num_equal, CompileReport& program) {
  program.machine = region.machine;
  program.num_threads = region.num_threads;
  program.toolchains = region.toolchains;
  program.precision_variants = region.precision_variants;
  program.no_precision_variants = region.no_precision_variants;
  program.num_operators += region.num_operators * num_equal;
  program.num_parameters += region.num_parameters;
  AddNumbers(SearchNumbers(), region, program);
  AddNumbers(SecondsNumbers(), region, program);
  AddNumbers(PlayOffNumbers(), region.play_off_parts, program.play_off_parts);
  AddNumbers(TuningNumbers(), region.tuning, program.tuning);
  for (const auto& [kind, failure] : region.failures) {
    auto& [count, example] = program.failures[kind];
    if (count == 0) example = failure.second;
    count += failure.first;
  }
}

}  // namespace collage
