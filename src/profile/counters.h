// counters.h: what the processor and the system count while steps run: cycles, instructions, misses, page faults, time
// of all threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// A counter of perf_event_open, by its numbers there.
struct CounterEvent {
  const char* name;
  uint32_t type;
  uint64_t config;
};

/// Cycles, instructions, cache misses and branch misses.
std::span<const CounterEvent> HardwareEvents();

/// Counts of all threads that this process has when it is made. Reading costs some microseconds: runs that are counted
/// are not those that are timed.
class Counters {
 public:
  struct Row {
    std::string name;
    std::string reason;  ///< why it is not available; empty if it is
  };

  /// Asks the system for `events`, a few that can be counted at once; counts that are always there come behind them.
  explicit Counters(std::span<const CounterEvent> events = HardwareEvents());
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// All counters, in order.
  const std::vector<Row>& rows() const { return rows_; }
  /// Writes the counts so far, in that order; 0 for those that are not available.
  void Read(std::span<double> counts) const;

 private:
  /// The counters of a thread, which are read together.
  struct Group {
    int leader = -1;
    std::vector<int> members;  ///< file descriptors, the leader among them
  };

  std::vector<Row> rows_;
  std::vector<size_t> in_group_;  ///< rows of those that a group has, in its order
  size_t first_of_system_ = 0;    ///< row of the first count that is always there
  std::vector<Group> groups_;
};

/// Why a hardware counter cannot be had, from the error number of perf_event_open and the text of
/// /proc/sys/kernel/perf_event_paranoid, which may be empty.
std::string WhyNoCounter(int error, std::string_view paranoid);

}  // namespace collage
