// console_progress.h: what a compilation is doing, on standard error.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "collage/compile.h"

namespace collage::cli {

/// A bar on a terminal, else a line every few seconds.
class ConsoleProgress : public CompileProgress {
 public:
  ConsoleProgress(bool quiet, double budget_seconds);
  ~ConsoleProgress() override { EndLine(); }

  void Phase(const std::string& name) override;
  void Costs(int64_t num_distinct) override { num_distinct_ = num_distinct; }
  void Measuring(int64_t measured, int64_t from_database, const std::string& what) override;
  void Compiling(int64_t compiled, const std::string& what) override;
  void Written(double seconds, std::optional<double> gap) override;
  void PlayOff(int round, int rounds, const std::string& what) override;
  void Warn(const std::string& text) override;
  /// The budget of what comes next.
  void SetBudget(double seconds) { budget_seconds_ = seconds; }

 private:
  using Clock = std::chrono::steady_clock;
  void Show(const std::string& text, bool always = false);
  void EndLine();

  bool quiet_;
  bool terminal_;
  double budget_seconds_;
  int64_t num_distinct_ = 0;
  std::string phase_ = "search";  ///< in which costs are found: "search", or "measure"
  std::string best_;              ///< tells of the executable that is written so far
  bool line_open_ = false;
  Clock::time_point phase_started_ = Clock::now();
  Clock::time_point shown_{};
  std::set<std::string> warned_;
};

}  // namespace collage::cli
