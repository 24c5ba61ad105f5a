// measure_request.h: what a measuring worker is asked and what it answers: the worker may be a child of this process or
// run on another machine, so that both go as text (support/json_fields.h).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_record.h"
#include "cost/measure/timing.h"
#include "cost/runner/candidate_source.h"
#include "lowering/compiled_store.h"

namespace collage {

/// How a request is to be measured.
struct MeasureContext {
  int num_threads = 1;
  TimingOptions timing;
};

/// A partition held whole, for workers that do not share the compiler's memory.
struct HeldPartition {
  PartitionRequest request;  ///< its schedule and number of threads are said elsewhere
  std::string toolchain;     ///< name and options (target/toolchain_configuration.h)
};

/// The partition that a request is about.
struct RequestedPartition {
  std::optional<CandidateHandle> candidate;  ///< by its handle …
  std::optional<HeldPartition> held;         ///< … or whole
  std::string schedule;                      ///< by which it is compiled
};

// The tasks. Each struct is an alternative of MeasureTask; its `kKind` is the request's "kind".

/// Compiles, checks and times a partition.
struct TimePartition {
  static constexpr const char* kKind = "partition";
  RequestedPartition partition;
};
/// Compiles a partition for the runner's store, and runs nothing. Not ok where its toolchain declines.
struct KeepCompiled {
  static constexpr const char* kKind = "compile";
  RequestedPartition partition;
};
/// Which schedules there are one step from that of `partition`.
struct ListSchedules {
  static constexpr const char* kKind = "schedules";
  RequestedPartition partition;
};
/// Times a function of Probes() by its name.
struct TimeProbe {
  static constexpr const char* kKind = "probe";
  std::string probe;
  std::string toolchain;
};
/// Times one more partition, in the executor.
struct TimeTransition {
  static constexpr const char* kKind = "transition";
};
/// How much longer a partition of `to` takes right after one of `from`.
struct TimeSwitch {
  static constexpr const char* kKind = "switch";
  std::string from;
  std::string to;
};
/// A rate of this machine: "multiply_adds" or a cache level's. The answer's p50 is seconds per product or byte.
struct FindRate {
  static constexpr const char* kKind = "rate";
  std::string rate;
};
/// Times changing the layout of a value.
struct TimeConversion {
  static constexpr const char* kKind = "conversion";
  Shape shape;
  DataType dtype;
  Layout from = Layout::kPlain;
  Layout to = Layout::kPlain;
};

using MeasureTask = std::variant<TimePartition, KeepCompiled, ListSchedules, TimeProbe, TimeTransition, TimeSwitch,
                                 FindRate, TimeConversion>;

struct MeasureRequest {
  MeasureContext context;
  MeasureTask task;
};

struct MeasureAnswer : TuningRecord {
  std::vector<std::string> schedules;  ///< the answer to ListSchedules
};

/// One line of JSON. A held partition may make it hundreds of megabytes long.
std::string ToText(const MeasureRequest& request);
/// Throws kInput for what is no request.
MeasureRequest MeasureRequestFromText(const std::string& text);

/// Measures what the text of a request asks for and answers with a MeasureAnswer's text. Throws what measuring throws;
/// kInput for what is no request, and for candidates by handle where `candidates` is null. `compiled` (or null) keeps
/// what is compiled.
std::string AnswerMeasureRequest(const std::string& request, const CandidateSource* candidates,
                                 CompiledStore* compiled = nullptr);

std::string ToText(const MeasureAnswer& answer);
/// Throws kInput for what is no answer.
MeasureAnswer MeasureAnswerFromText(const std::string& text);

}  // namespace collage
