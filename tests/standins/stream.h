// stream.h: queues of work of the stand-in for a driver, and what is noted in them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace standin {

/// Works that are done again as a whole.
struct Graph {
  std::vector<std::function<void()>> work;
};
struct Stream {
  std::deque<std::function<void()>> work;  ///< still to be done
  size_t done = 0;                         ///< how much was done before
  size_t num_stamps = 0;                   ///< how many of these only noted the time for an event
  std::unique_ptr<Graph> captured;         ///< while it is, nothing is done
  bool is_spoilt = false;                  ///< something was asked for that cannot be captured

  size_t end() const { return done + work.size(); }
  void Add(std::function<void()> one) {
    if (captured != nullptr) return captured->work.push_back(std::move(one));
    work.push_back(std::move(one));
  }
};
struct Event {
  Stream* stream = nullptr;
  size_t done_after = 0;  ///< works of the stream, from its beginning
  bool has_time = true;
  std::optional<double> seconds = {};  ///< when it was reached, by the device's clock
};
/// The device's clock, in seconds: the processor's, or, with STANDIN_CUDA_WORK_US, so many microseconds for each work.
inline double DeviceSeconds(size_t num_works) {
  constexpr double kMicrosecond = 1e-6;
  if (const char* text = std::getenv("STANDIN_CUDA_WORK_US")) {
    return static_cast<double>(num_works) * std::atof(text) * kMicrosecond;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Does the work of `stream` up to number `until`.
inline void Drain(Stream& stream, size_t until) {
  for (; stream.done < until; ++stream.done) {
    stream.work.front()();
    stream.work.pop_front();
  }
}

/// Notes the time for an event, which takes none.
inline double TakeStamp(Stream& stream) { return DeviceSeconds(stream.done - stream.num_stamps++); }

}  // namespace standin
