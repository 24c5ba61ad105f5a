// timeline.cc: spans of time on threads, of a run that was recorded.
#include "profile/timeline.h"

#include <algorithm>

namespace collage {

std::vector<TimelineSpan> TimelineOf(const RecordedRun& run, const StepNumbers& numbers) {
  const auto since_begin = [&](RecordedRun::Time time) {
    return std::chrono::duration<double>(time - run.begin).count();
  };
  std::vector<TimelineSpan> spans;
  for (size_t i = 0; i < run.events.size(); ++i) {
    const RecordedRun::Event& event = run.events[i];
    const std::optional<int> step = numbers.Find(event.step);
    if (!step) continue;
    spans.push_back({0, *step, false, since_begin(event.begin), since_begin(event.end)});
    const size_t end = i + 1 < run.events.size() ? run.events[i + 1].first_share : run.shares.size();
    for (size_t share = event.first_share; share < end; ++share) {
      const TeamShare& of = run.shares[share];
      spans.push_back({of.thread, *step, true, since_begin(of.begin), since_begin(of.end)});
    }
  }
  std::ranges::stable_sort(spans, {}, &TimelineSpan::begin_seconds);
  return spans;
}

std::vector<double> ThreadSeconds(const std::vector<TimelineSpan>& timeline, int step) {
  std::vector<double> seconds;
  for (const TimelineSpan& span : timeline) {
    if (!span.is_region || span.step != step) continue;
    const auto thread = static_cast<size_t>(span.thread);
    if (seconds.size() <= thread) seconds.resize(thread + 1);
    seconds[thread] += span.end_seconds - span.begin_seconds;
  }
  return seconds;
}

const RecordedRun& MedianRun(const std::vector<RecordedRun>& runs) {
  std::vector<size_t> order(runs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  std::ranges::nth_element(order, middle, {}, [&](size_t i) { return runs[i].end - runs[i].begin; });
  return runs[*middle];
}

}  // namespace collage
