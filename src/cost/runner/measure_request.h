// measure_request.h: what a measuring worker is asked and what it answers, as text: the worker may be a child of this
// process or run on another machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/measure/timing.h"

namespace collage {

/// Finds a partition and its toolchain by the number that a request names: in a worker that was forked from the
/// compiler and so has them in its memory.
using FindPartition = std::function<std::pair<PartitionRequest, const Toolchain*>(int64_t job)>;

/// How a request is to be measured.
struct MeasureContext {
  int num_threads = 1;
  TimingOptions timing;
};

// Requests. A partition is named by its job, or, for workers elsewhere, held whole. Toolchains go by name and options
// (target/toolchain_configuration.h).
std::string PartitionRequestText(int64_t job, const MeasureContext& context, const std::string& schedule = "");
std::string PartitionRequestText(const PartitionRequest& partition, const Toolchain& toolchain,
                                 const MeasureContext& context);
/// Asks which schedules there are one step from that of `partition`, the text of such a request; the answer's label has
/// them, one a line.
std::string ScheduleListRequestText(const std::string& partition);
/// `probe`: a name from Probes().
std::string ProbeRequestText(const std::string& probe, const Toolchain& toolchain, const MeasureContext& context);
std::string EmptyHopRequestText(const MeasureContext& context);
std::string HandoverRequestText(const Toolchain& from, const Toolchain& to, const MeasureContext& context);
/// `name`: "multiply_adds" or a cache level's; the answer's p50 is seconds per product or byte.
std::string RateRequestText(const std::string& name, const MeasureContext& context);
std::string ConversionRequestText(const Shape& shape, DataType dtype, Layout from, Layout to,
                                  const MeasureContext& context);

/// Measures what `request` asks for and answers with a record's text. Throws what measuring throws; kInput for what is
/// no request. `find` may be empty where no request names a job.
std::string AnswerMeasureRequest(const std::string& request, const FindPartition& find);

std::string RecordToText(const TuningRecord& record);
/// Throws kInput.
TuningRecord RecordFromText(const std::string& text);

}  // namespace collage
