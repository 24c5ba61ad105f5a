// choose.cc: build, check, time; the budget is looked at before each.
#include "driver/any_size/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "collage/support/error.h"
#include "driver/any_size/build.h"
#include "driver/any_size/timing.h"
#include "driver/unsearched.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

/// A contender must be faster than one before it by this share: less is noise.
constexpr double kTie = 0.02;
constexpr std::chrono::seconds kLongestBuild(600);
constexpr double kLongestTiming = 60;  // seconds

class PlayOff {
 public:
  PlayOff(std::vector<AnySizeContender>& contenders, const IRModule& source, const AnySizeOptions& options)
      : contenders_(contenders), source_(source), options_(options) {}

  size_t Run() {
    for (AnySizeContender& one : contenders_) {
      options_.on_contender(one.toolchain);
      one.failure = options_.why_refused(one.evaluated);
      if (one.failure.empty()) Build(one);
      if (one.failure.empty()) one.failure = options_.why_refused(one.evaluated);
      if (contenders_.size() > 1 && one.failure.empty()) Check(one);
    }
    std::vector<AnySizeContender*> left;
    for (AnySizeContender& one : contenders_) {
      if (one.failure.empty()) left.push_back(&one);
    }
    if (left.empty()) Fail();
    if (left.size() > 1) Time(left);
    AnySizeContender* best = left.front();
    for (AnySizeContender* one : left) {
      if (one->seconds < best->seconds * (1 - kTie)) best = one;
    }
    FinishDumps(*best);
    return static_cast<size_t>(NumberOf(*best));
  }

 private:
  double SecondsLeft() const {
    return options_.budget_seconds - std::chrono::duration<double>(Clock::now() - started_).count();
  }

  std::filesystem::path DumpOf(const AnySizeContender& one) const {
    if (options_.dump.empty()) return {};
    return options_.dump.parent_path() / fmt::format("{}-{}", options_.dump.filename().string(), NumberOf(one));
  }
  ptrdiff_t NumberOf(const AnySizeContender& one) const { return &one - contenders_.data(); }

  /// Native kernels are compiled here, as those of programs without other contenders are.
  void Build(AnySizeContender& one) const {
    if (one.symbolic == nullptr) return BuildHere(one, options_.compiling, DumpOf(one));
    const double left = SecondsLeft();
    const bool is_alone = contenders_.size() == 1;
    if (left <= 0 && !is_alone) {
      one.failure = "the budget was spent before its program for any size was compiled";
      return;
    }
    WorkerLimits limits = options_.checking.limits;
    limits.timeout = kLongestBuild;
    if (!is_alone && left < std::chrono::duration<double>(kLongestBuild).count()) {
      limits.timeout = std::chrono::milliseconds(static_cast<int64_t>(left * 1000) + 1);
    }
    BuildInWorker(one, options_.compiling, DumpOf(one), options_.folder / fmt::format("any-size{}.clg", NumberOf(one)),
                  limits);
  }

  /// Leaves the dump of the winner alone, under its own name.
  void FinishDumps(const AnySizeContender& winner) const {
    if (options_.dump.empty()) return;
    for (const AnySizeContender& one : contenders_) {
      std::error_code ignored;
      if (&one == &winner) {
        std::filesystem::rename(DumpOf(one), options_.dump, ignored);
      } else {
        std::filesystem::remove_all(DumpOf(one), ignored);
      }
    }
  }

  void Check(AnySizeContender& one) {
    if (SecondsLeft() <= 0 && one.symbolic != nullptr) {
      one.failure = "the budget was spent before its program for any size was checked";
      return;
    }
    try {
      const ProgramCheckResult result = CheckProgram(source_, WithoutPlans(*one.executable), options_.checking);
      if (result.sizes.empty() && one.symbolic != nullptr) {
        one.failure = fmt::format("its program for any size was not checked: {}", result.not_verified);
      }
      if (result.sizes.empty()) return;
      const auto is_missing = [&](const std::vector<Shape>& shapes) {
        return std::ranges::find(result.shapes, shapes) == result.shapes.end();
      };
      if (checked_) {
        std::erase_if(*checked_, is_missing);
      } else {
        checked_ = result.shapes;
      }
    } catch (const Error& error) {
      one.failure = error.message();
    }
  }

  void Time(const std::vector<AnySizeContender*>& left) const {
    const std::vector<std::vector<Shape>> shapes = !options_.checking.shapes.empty()
                                                       ? options_.checking.shapes
                                                       : checked_.value_or(std::vector<std::vector<Shape>>());
    if (shapes.empty()) return;
    std::vector<vm::Executable> programs;
    for (const AnySizeContender* one : left) programs.push_back(WithoutPlans(*one->executable));
    const Result<std::vector<std::vector<double>>> times =
        TimeAtSizes(programs, source_.main(), shapes, options_.checking.num_threads,
                    std::min(SecondsLeft(), kLongestTiming), options_.checking.limits);
    if (!times.ok()) {
      // All were right: the first one stays.
      for (AnySizeContender* one : left) {
        if (one != left.front()) one->failure = "timing the programs failed: " + times.reason().text;
      }
      return;
    }
    for (size_t i = 0; i < left.size(); ++i) left[i]->seconds = GeometricMean((*times)[i]);
  }

  [[noreturn]] void Fail() const {
    std::string reasons;
    for (const AnySizeContender& one : contenders_) {
      reasons += fmt::format("{}'{}': {}", reasons.empty() ? "" : "; ", one.toolchain, one.failure);
    }
    throw Error(ErrorCategory::kUnsupported, fmt::format("no program for any size can be used: {}", reasons), "",
                "give the shapes of its inputs, as in --shape NAME=1x64");
  }

  std::vector<AnySizeContender>& contenders_;
  const IRModule& source_;
  const AnySizeOptions& options_;
  std::optional<std::vector<std::vector<Shape>>> checked_;  ///< shapes at which all that are left were right
  Clock::time_point started_ = Clock::now();
};

std::string TimeText(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

}  // namespace

size_t ChooseAtAnySize(std::vector<AnySizeContender>& contenders, const IRModule& source,
                       const AnySizeOptions& options) {
  return PlayOff(contenders, source, options).Run();
}

std::map<std::string, std::string> ReasonsOfLosers(const std::vector<AnySizeContender>& contenders, size_t winner) {
  std::map<std::string, std::string> reasons;
  const AnySizeContender& best = contenders[winner];
  for (const AnySizeContender& one : contenders) {
    if (&one == &best) continue;
    reasons[one.toolchain] = !one.failure.empty() ? one.failure
                             : one.seconds <= 0   ? "it was not timed at any size"
                                                  : fmt::format("'{}' takes {}, it takes {}", best.toolchain,
                                                                TimeText(best.seconds), TimeText(one.seconds));
  }
  return reasons;
}

}  // namespace collage
