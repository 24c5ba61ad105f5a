// verdict.cc: what a reader wants to know first.
#include "report/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "report/units.h"

namespace collage {
namespace {

// Less is no difference that two runs of the play-off would agree on.
constexpr double kTie = 0.005;

constexpr std::string_view kSearched = "-search";

/// Whether a toolchain alone made it, as its largest candidates or its best cover, and not some pass.
bool IsToolchainAlone(const Contender& one) {
  return one.is_single && one.failure.empty() && one.p50 > 0 && !one.name.starts_with("partition_for_") &&
         one.name.find("fuse-ops") == std::string::npos;
}

std::string ToolchainOf(const Contender& alone) {
  return alone.name.ends_with(kSearched) ? alone.name.substr(0, alone.name.size() - kSearched.size()) : alone.name;
}

/// The best contender of each toolchain alone, the fastest first.
std::vector<const Contender*> BestAlone(const CompileReport& report) {
  std::vector<const Contender*> sorted, best;
  for (const Contender& one : report.contenders) {
    if (IsToolchainAlone(one)) sorted.push_back(&one);
  }
  std::ranges::stable_sort(sorted, {}, &Contender::p50);
  for (const Contender* one : sorted) {
    const auto is_same = [&](const Contender* other) { return ToolchainOf(*other) == ToolchainOf(*one); };
    if (std::ranges::none_of(best, is_same)) best.push_back(one);
  }
  return best;
}

/// "1.17 times faster than openvino alone".
std::string Comparison(const Contender& winner, const Contender& other) {
  const double ratio = other.p50 / winner.p50;
  const std::string name = ToolchainOf(other) + " alone";
  if (ratio >= 1 + kTie) return fmt::format("{:.2f} times faster than {}", ratio, name);
  return fmt::format("as fast as {}", name);
}

/// Whether a mix can be better, as the search proved it.
std::string NoMixText(const CompileReport& report) {
  std::string text = "no mix of toolchains is faster";
  if (!report.certificate) return text;
  const double gap = report.certificate->gap();
  const std::string of = report.budget_spent ? "by the costs measured so far" : "by their costs";
  return text + (gap < kNoGap ? fmt::format(", and none can be, {}", of)
                              : fmt::format(", and none can be by more than {:.1f} %, {}", 100 * gap, of));
}

/// "7.41 ms on AMD EPYC, 1 thread, by native and dnnl".
std::string TimeText(const CompileReport& report, const Contender& winner, const std::vector<std::string>& names) {
  const bool is_timed = winner.samples > 0;
  const std::string time =
      is_timed ? FormatSeconds(winner.p50) : FormatSeconds(winner.estimated_seconds) + " by an estimate";
  return fmt::format("{} on {}, {} thread{}, by {}", time, report.machine, report.num_threads,
                     report.num_threads == 1 ? "" : "s", fmt::join(names, " and "));
}

}  // namespace

std::string VerdictOf(const CompileReport& report) {
  const auto winner = std::ranges::find(report.contenders, report.winner, &Contender::name);
  if (winner == report.contenders.end() || std::max(winner->p50, winner->estimated_seconds) <= 0) return "";
  std::vector<std::string> names;
  for (const auto& [toolchain, count] : winner->partitions) names.push_back(toolchain);
  if (names.empty()) names.emplace_back("Collage's own conversions");  // nothing is computed
  const std::string text = TimeText(report, *winner, names);
  if (winner->samples == 0) return text + ".";
  const bool is_mix = names.size() > 1 && !winner->is_single;
  std::vector<std::string> comparisons;
  for (const Contender* other : BestAlone(report)) {
    if (is_mix || ToolchainOf(*other) != names.front()) comparisons.push_back(Comparison(*winner, *other));
  }
  const auto mixes = std::ranges::count_if(
      report.contenders, [](const Contender& one) { return !one.is_single && one.failure.empty() && one.samples > 0; });
  if (!is_mix && (mixes > 0 || !comparisons.empty())) comparisons.push_back(NoMixText(report));
  return comparisons.empty() ? text + "." : fmt::format("{}: {}.", text, fmt::join(comparisons, ", "));
}

std::string WordsFor(const Contender& contender) {
  const std::string& name = contender.name;
  if (contender.is_single) {
    const std::string toolchain = ToolchainOf(contender);
    return toolchain + (toolchain == name ? " alone" : " alone, searched");
  }
  constexpr std::string_view kMix = "collage";
  if (!name.starts_with(kMix)) return name;
  const std::string rest = name.substr(std::min(name.size(), kMix.size() + 1));
  if (rest.empty()) return "best mix";
  const bool is_number = std::ranges::all_of(rest, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (is_number) return "next best mix, " + rest;
  if (rest == "primary") return "best mix of largest parts";
  if (rest == "coalesced") return "best mix, merged";
  if (rest == "standard") return "best mix in full precision";
  if (rest.starts_with("bounded")) return "best mix within the error";
  if (rest.starts_with("evolved")) return "evolved mix";
  if (rest == "before") return "mix written before";
  if (rest.starts_with("for-")) return "best mix in the form of " + rest.substr(4);
  return "best mix of " + rest;
}

}  // namespace collage
