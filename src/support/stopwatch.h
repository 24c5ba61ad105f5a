// stopwatch.h: how long something took, for reports.
#pragma once

#include <chrono>
#include <functional>

namespace collage {

/// Adds the seconds that it lives to `total`, which must outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(Clock::now() - started_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& total_;
  Clock::time_point started_ = Clock::now();
};

/// Runs it and returns the seconds that it took.
inline double SecondsOf(const std::function<void()>& run) {
  double seconds = 0;
  {
    const Stopwatch stopwatch(seconds);
    run();
  }
  return seconds;
}

/// Seconds of a clock that is never set: for differences.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace collage
