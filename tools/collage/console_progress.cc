// console_progress.cc: lines of progress, cut to the width that there is.
#include "console_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "collage/support/error.h"
#include "doctor/machine.h"
#include "report/units.h"
#include "support/environment.h"

namespace collage::cli {
namespace {

// Columns of a terminal whose width the system does not know, and of lines in a log.
constexpr size_t kUsualWidth = 80, kLogWidth = 160;

/// Whether standard error is a terminal on which a line can be written over.
bool IsTerminal() { return isatty(STDERR_FILENO) != 0 && GetEnvironment("TERM").value_or("dumb") != "dumb"; }

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

/// The first `width` characters of UTF-8, with an ellipsis for the rest.
std::string Cut(const std::string& text, size_t width) {
  size_t characters = 0, end = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins && ++characters == width) end = i;
  }
  return characters <= width ? text : text.substr(0, end) + "…";
}

}  // namespace

void AddProgressFlags(CLI::App& command, ProgressArguments& arguments) {
  CLI::Option* quiet = command.add_flag("-q,--quiet", arguments.quiet, "No progress, only warnings");
  command.add_flag("-v,--verbose", arguments.verbose, "Print a line for every step, with its time")->excludes(quiet);
  command.add_option("--log", arguments.log, "Also append a line for every step to this file")->type_name("FILE");
}

ConsoleProgress::ConsoleProgress(const ProgressArguments& arguments, double budget_seconds)
    : quiet_(arguments.quiet),
      verbose_(arguments.verbose),
      is_terminal_(IsTerminal()),
      budget_seconds_(budget_seconds) {
  if (arguments.log.empty()) return;
  log_.open(arguments.log, std::ios::app);
  if (!log_) throw Error(ErrorCategory::kResource, "cannot write the log", "--log " + arguments.log);
}

void ConsoleProgress::Phase(const std::string& name) {
  EndLine();
  phase_started_ = Clock::now();
  phase_ = name == "measure" ? name : "search";
  Show(name, /*always=*/true);
  if (name == phase_) WarnIfBusy();
}

void ConsoleProgress::Measuring(int64_t measured, int64_t from_database, const std::string& what) {
  const double seconds = SecondsInPhase();
  // If all that is not known yet were wanted. The first few take longer: libraries are loaded.
  constexpr int64_t kEnoughToTell = 10;
  double most = std::numeric_limits<double>::infinity();
  if (measured >= kEnoughToTell) {
    const int64_t unknown = std::max<int64_t>(0, num_distinct_ - measured - from_database);
    most = seconds / static_cast<double>(measured) * static_cast<double>(unknown);
  }
  most = std::min(most, std::max(0.0, budget_seconds_ - seconds));
  const std::string left = std::isfinite(most) ? fmt::format(" · at most {:.0f} s more", most) : "";
  Show(fmt::format("{} · {} measured, {} known{}{} · {}", phase_, measured, from_database, best_, left, what));
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
  if (round > 0) left = fmt::format(" · {:.0f} s left", SecondsInPhase() * (rounds - round) / round);
  Show(fmt::format("play-off {} {}/{}{} · {}", bar, round, rounds, left, what));
}

void ConsoleProgress::Warn(const std::string& text) {
  if (!warned_.insert(text).second) return;
  EndLine();
  fmt::print(stderr, "collage: warning: {}\n", text);
  if (log_.is_open()) log_ << Stamp() << "warning: " << text << std::endl;
}

/// Before the first measurement.
void ConsoleProgress::WarnIfBusy() {
  if (quiet_ || std::exchange(has_looked_, true)) return;
  const std::string busy = BusyWarning();
  if (!busy.empty()) Warn(busy);
}

/// "[  12.3 s] ": since the command began.
std::string ConsoleProgress::Stamp() const {
  return fmt::format("[{:7.1f} s] ", std::chrono::duration<double>(Clock::now() - started_).count());
}

void ConsoleProgress::Show(const std::string& text, bool always) {
  if (log_.is_open()) log_ << Stamp() << text << std::endl;
  if (quiet_) return;
  if (verbose_) {
    fmt::print(stderr, "{}{}\n", Stamp(), text);
    return;
  }
  const double interval = is_terminal_ ? 0.1 : 5.0;
  const auto now = Clock::now();
  if (!always && std::chrono::duration<double>(now - shown_).count() < interval) return;
  shown_ = now;
  if (is_terminal_) {
    fmt::print(stderr, "\r\033[K{}", Cut(text, TerminalWidth() - 1));  // the last column would begin a new line
    line_open_ = true;
  } else {
    fmt::print(stderr, "{}\n", Cut(text, kLogWidth));
  }
  std::fflush(stderr);
}

void ConsoleProgress::EndLine() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
  line_open_ = false;
}

}  // namespace collage::cli
