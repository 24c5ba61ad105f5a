// timeline.h: spans of time on threads, of a run that was recorded.
#pragma once

#include <vector>

#include "collage/profile.h"
#include "profile/recorder.h"
#include "profile/step_sums.h"

namespace collage {

/// The spans of `run`, by their begin, of those steps that `numbers` has.
std::vector<TimelineSpan> TimelineOf(const RecordedRun& run, const StepNumbers& numbers);

/// Seconds that each thread worked in parallel regions of `step`; empty if the step had none.
std::vector<double> ThreadSeconds(const std::vector<TimelineSpan>& timeline, int step);

/// The one of several recorded runs whose length is the median; `runs` are not empty.
const RecordedRun& MedianRun(const std::vector<RecordedRun>& runs);

}  // namespace collage
