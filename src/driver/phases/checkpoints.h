// checkpoints.h: what a compilation has written before its search ended, and when it writes next.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "driver/covers/partitioner.h"
#include "driver/play_off/play_off.h"

namespace collage {

/// An executable that is in its place while the search goes on.
struct WrittenCover {
  ContenderModule contender;
  Cover cover;
  double seconds = 0;  ///< its median
};

/// When a search pauses to write what is best so far. Not before Begin.
class Checkpoints {
 public:
  /// The next is due after the longest of this, kRest times what the last one took, and kGrowth times what the search
  /// before it took: each search gets further than the one before.
  static constexpr double kLeastPause = 8;
  static constexpr double kRest = 8;
  static constexpr double kGrowth = 1.5;

  /// The first is due in `seconds`; infinite: none ever is.
  void Begin(double seconds) {
    if (std::isfinite(seconds)) due_ = Clock::now() + Seconds(seconds);
    is_due_at_once_ = seconds <= 0;
  }
  /// Whether the first has not been made, and does not wait for a search.
  bool is_due_at_once() const { return is_due_at_once_; }
  bool IsDue() const { return due_ && Clock::now() >= *due_; }
  /// One has been made, which took `seconds`, after a search of `search_seconds`.
  void Made(double seconds, double search_seconds) {
    is_due_at_once_ = false;
    due_ = Clock::now() + Seconds(std::max({kLeastPause, kRest * seconds, kGrowth * search_seconds}));
  }

  /// Whether measuring pauses: within a search that is begun again afterwards, where one is due.
  bool PausesSearch() const { return searches && IsDue(); }
  bool searches = false;

  std::optional<WrittenCover> written;

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::duration Seconds(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  std::optional<Clock::time_point> due_;
  bool is_due_at_once_ = false;
};

}  // namespace collage
