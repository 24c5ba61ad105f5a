// counters.h: what the processor and the system count while steps run: cycles, instructions, misses, page faults, time
// of all threads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// Counts of all threads that this process has when it is made. Reading costs some microseconds: runs that are counted
/// are not those that are timed.
class Counters {
 public:
  struct Row {
    std::string name;
    std::string reason;  ///< why it is not available; empty if it is
  };

  /// Asks the system for hardware counters (perf_event_open); those of the system are always there.
  Counters();
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
  std::vector<size_t> hardware_;  ///< rows of those that a group has, in its order
  std::vector<Group> groups_;
};

/// Why a hardware counter cannot be had, from the error number of perf_event_open and the text of
/// /proc/sys/kernel/perf_event_paranoid, which may be empty.
std::string WhyNoCounter(int error, std::string_view paranoid);

}  // namespace collage
