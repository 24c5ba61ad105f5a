// explanation.h: all that explains a compilation, as docs/explanation.md describes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/explanation/explanation_fields.h"
#include "support/json_fields.h"

namespace collage {

/// The format and its number, which is raised when a field goes or changes its meaning.
inline constexpr const char* kExplanationFormat = "collage-explanation";
inline constexpr int kExplanationSchema = 1;

/// The machine that costs and times are of.
struct ExplainedMachine {
  std::string cpu;
  std::string isa;
  std::string fingerprint;  ///< equal on machines of one kind
  int threads = 1;
  int processors = 1;
  int64_t near_bytes = 0;  ///< caches
  int64_t shared_bytes = 0;
};

/// A phase of the compilation.
struct ExplainedPhase {
  std::string phase;
  std::optional<int> graph = {};
  double begin_seconds = 0;  ///< since the compilation began
  double end_seconds = 0;
};

struct ExplainedMemory {
  int64_t file_bytes = 0;  ///< without the explanation
  int64_t weights_bytes = 0;
  int64_t code_bytes = 0;
  std::optional<int64_t> arena_bytes = {};  ///< absent for programs
};

struct Explanation {
  std::string format = kExplanationFormat;
  int schema = kExplanationSchema;
  std::string collage;           ///< its version
  nlohmann::json settings = {};  ///< by name; defaults are left out
  ExplainedMachine machine = {};
  std::string model = {};
  nlohmann::json report = {};  ///< as `collage compile --json` prints it
  std::vector<ExplainedPhase> timeline = {};
  ExplainedMemory memory = {};
  std::vector<GraphExplanation> graphs = {};
};

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedMachine>
void VisitFields(Self& machine, Visitor& visit) {
  visit.Field("cpu", machine.cpu);
  visit.Field("isa", machine.isa);
  visit.Field("fingerprint", machine.fingerprint);
  visit.Field("threads", machine.threads);
  visit.Field("processors", machine.processors);
  visit.Field("near_bytes", machine.near_bytes);
  visit.Field("shared_bytes", machine.shared_bytes);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedPhase>
void VisitFields(Self& phase, Visitor& visit) {
  visit.Field("phase", phase.phase);
  visit.OptionalField("graph", phase.graph);
  visit.Field("begin_seconds", phase.begin_seconds);
  visit.Field("end_seconds", phase.end_seconds);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedMemory>
void VisitFields(Self& memory, Visitor& visit) {
  visit.Field("file_bytes", memory.file_bytes);
  visit.Field("weights_bytes", memory.weights_bytes);
  visit.Field("code_bytes", memory.code_bytes);
  visit.OptionalField("arena_bytes", memory.arena_bytes);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, Explanation>
void VisitFields(Self& explanation, Visitor& visit) {
  visit.Field("format", explanation.format);
  visit.Field("schema", explanation.schema);
  visit.Field("collage", explanation.collage);
  visit.Field("settings", explanation.settings);
  visit.Field("machine", explanation.machine);
  visit.Field("model", explanation.model);
  visit.Field("report", explanation.report);
  visit.Field("timeline", explanation.timeline);
  visit.Field("memory", explanation.memory);
  visit.Field("graphs", explanation.graphs);
}

}  // namespace collage
