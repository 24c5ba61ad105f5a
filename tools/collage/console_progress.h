// console_progress.h: what a command is doing, on standard error and in a log.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "collage/compile.h"

namespace collage::cli {

/// The flags that are about progress.
struct ProgressArguments {
  bool quiet = false;    ///< nothing but warnings
  bool verbose = false;  ///< a line for every step, with its time
  std::string log;       ///< a file to which the same lines are appended; empty: none
};

/// Declares --quiet, --verbose and --log; `arguments` must outlive `command`.
void AddProgressFlags(CLI::App& command, ProgressArguments& arguments);

/// One line of progress that fits the terminal, else a line every few seconds, or for every step.
class ConsoleProgress : public CompileProgress {
 public:
  /// Throws kResource where the log cannot be written.
  ConsoleProgress(const ProgressArguments& arguments, double budget_seconds);
  ~ConsoleProgress() override { EndLine(); }

  void Phase(const std::string& name) override;
  void Costs(int64_t num_distinct) override { num_distinct_ = num_distinct; }
  void Measuring(int64_t measured, int64_t from_database, const std::string& what) override;
  void Compiling(int64_t compiled, const std::string& what) override;
  void Written(double seconds, std::optional<double> gap) override;
  void PlayOff(int round, int rounds, const std::string& what) override;
  void Warn(const std::string& text) override;
  /// Something else is being done: a line of its own.
  void Step(const std::string& text) { Show(text); }
  /// The budget of what comes next.
  void SetBudget(double seconds) { budget_seconds_ = seconds; }

 private:
  using Clock = std::chrono::steady_clock;
  double SecondsInPhase() const { return std::chrono::duration<double>(Clock::now() - phase_started_).count(); }
  std::string Stamp() const;
  void Show(const std::string& text, bool always = false);
  void EndLine();
  void WarnIfBusy();

  bool quiet_;
  bool verbose_;
  bool is_terminal_;
  std::ofstream log_;
  double budget_seconds_;
  int64_t num_distinct_ = 0;
  std::string phase_ = "search";  ///< in which costs are found: "search", or "measure"
  std::string best_;              ///< tells of the executable that is written so far
  bool line_open_ = false;
  bool has_looked_ = false;  ///< at what else the machine does
  const Clock::time_point started_ = Clock::now();
  Clock::time_point phase_started_ = started_;
  Clock::time_point shown_{};
  std::set<std::string> warned_;
};

}  // namespace collage::cli
