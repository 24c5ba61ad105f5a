#include "console_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "report/units.h"

namespace collage::cli {

ConsoleProgress::ConsoleProgress(bool quiet, double budget_seconds)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), budget_seconds_(budget_seconds) {}

void ConsoleProgress::Phase(const std::string& name) {
  EndLine();
  phase_started_ = Clock::now();
  phase_ = name == "measure" ? name : "search";
  Show(name, /*always=*/true);
}

void ConsoleProgress::Measuring(int64_t measured, int64_t from_database, const std::string& what) {
  const double seconds = std::chrono::duration<double>(Clock::now() - phase_started_).count();
  // If all that is not known yet were wanted. The first few take longer: libraries are loaded.
  constexpr int64_t kEnoughToTell = 10;
  double most = std::numeric_limits<double>::infinity();
  if (measured >= kEnoughToTell) {
    const int64_t unknown = std::max<int64_t>(0, num_distinct_ - measured - from_database);
    most = seconds / static_cast<double>(measured) * static_cast<double>(unknown);
  }
  most = std::min(most, std::max(0.0, budget_seconds_ - seconds));
  const std::string left = std::isfinite(most) ? fmt::format(" · at most {:.0f} s left", most) : "";
  Show(fmt::format("{} · {} measured, {} from the database{}{} · {}", phase_, measured, from_database, best_, left,
                   what));
}

/// The bound is why the search goes on.
void ConsoleProgress::Written(double seconds, std::optional<double> gap) {
  best_ = fmt::format(" · {} written", FormatSeconds(seconds));
  if (gap) best_ += fmt::format(", another mix may be {:.0f} % faster", 100 * *gap);
}

void ConsoleProgress::Compiling(int64_t compiled, const std::string& what) {
  Show(fmt::format("compile · {} of {} · {}", compiled, num_distinct_, what));
}

void ConsoleProgress::PlayOff(int round, int rounds, const std::string& what) {
  constexpr int kWidth = 24;
  const int filled = rounds > 0 ? kWidth * round / rounds : 0;
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  std::string left;
  const double seconds = std::chrono::duration<double>(Clock::now() - phase_started_).count();
  if (round > 0) left = fmt::format(" · {:.0f} s left", seconds * (rounds - round) / round);
  Show(fmt::format("play-off {} {}/{}{} · {}", bar, round, rounds, left, what));
}

void ConsoleProgress::Warn(const std::string& text) {
  if (!warned_.insert(text).second) return;
  EndLine();
  fmt::print(stderr, "collage: warning: {}\n", text);
}

void ConsoleProgress::Show(const std::string& text, bool always) {
  if (quiet_) return;
  const double interval = terminal_ ? 0.1 : 5.0;
  const auto now = Clock::now();
  if (!always && std::chrono::duration<double>(now - shown_).count() < interval) return;
  shown_ = now;
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text.substr(0, 150));
    line_open_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ConsoleProgress::EndLine() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
  line_open_ = false;
}

}  // namespace collage::cli
