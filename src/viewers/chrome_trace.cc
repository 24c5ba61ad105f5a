// chrome_trace.cc: the format is that of "Trace Event Format" (Google, 2016): complete events "X", counters "C", names
// of processes and threads "M"; times in microseconds.
#include "viewers/chrome_trace.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "profile/arena_map.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicrosecond = 1e-6;

class Trace {
 public:
  void Add(const Profile& profile) {
    ++process_;
    AddName("process_name", 0, profile.executable);
    std::set<int> threads{0};
    for (const TimelineSpan& span : profile.timeline) threads.insert(span.thread);
    for (const int thread : threads) {
      AddName("thread_name", thread, thread == 0 ? "runs the model" : fmt::format("pool thread {}", thread));
    }
    for (const TimelineSpan& span : profile.timeline) AddSpan(profile, span);
    AddArenas(profile);
  }

  std::string Text() && {
    const Json json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}};
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  void AddName(const char* kind, int thread, const std::string& name) {
    events_.push_back({{"name", kind}, {"ph", "M"}, {"pid", process_}, {"tid", thread}, {"args", {{"name", name}}}});
  }

  void AddSpan(const Profile& profile, const TimelineSpan& span) {
    const StepProfile& step = profile.steps[static_cast<size_t>(span.step)];
    Json event{{"name", span.is_region ? "parallel" : fmt::format("{} {}", step.toolchain, step.operators)},
               {"cat", span.is_region ? "region" : step.kind},
               {"ph", "X"},
               {"ts", span.begin_seconds / kMicrosecond},
               {"dur", (span.end_seconds - span.begin_seconds) / kMicrosecond},
               {"pid", process_},
               {"tid", span.thread},
               {"args", span.is_region ? Json{{"step", span.step}} : ArgumentsOf(step, span.step)}};
    events_.push_back(std::move(event));
  }

  static Json ArgumentsOf(const StepProfile& step, int number) {
    Json args{{"step", number}, {"kind", step.kind}, {"toolchain", step.toolchain}, {"operators", step.operators}};
    if (!step.plan.empty()) args["plan"] = step.plan;
    if (step.partition) args["partition"] = *step.partition;
    if (!step.nodes.empty()) args["nodes"] = step.nodes;
    args["p50_us"] = step.seconds.p50 / kMicrosecond;
    args["share"] = step.share;
    if (step.estimated_seconds) args["estimated_us"] = *step.estimated_seconds / kMicrosecond;
    if (step.products) args["flops"] = 2 * *step.products;
    if (step.bytes) args["bytes"] = *step.bytes;
    if (step.roof_seconds) args["roof_us"] = *step.roof_seconds / kMicrosecond;
    return args;
  }

  void AddArenas(const Profile& profile) {
    for (const ArenaMap& arena : profile.arenas) {
      size_t num_steps = 0;
      for (const ArenaValue& value : arena.values) {
        num_steps = std::max(num_steps, static_cast<size_t>(value.last_step) + 1);
      }
      const std::vector<int64_t> used = UsedBytes(arena, num_steps);
      const std::string name =
          fmt::format("{}arena in {} memory", arena.plan.empty() ? "" : arena.plan + " ", arena.memory);
      double end = 0;
      for (const TimelineSpan& span : profile.timeline) {
        const StepProfile& step = profile.steps[static_cast<size_t>(span.step)];
        if (span.is_region || step.plan != arena.plan || !step.plan_step) continue;
        const auto at = static_cast<size_t>(*step.plan_step);
        AddCount(name, span.begin_seconds, at < used.size() ? used[at] : 0);
        end = span.end_seconds;
      }
      if (end > 0) AddCount(name, end, 0);
    }
  }

  void AddCount(const std::string& name, double seconds, int64_t bytes) {
    events_.push_back({{"name", name},
                       {"ph", "C"},
                       {"ts", seconds / kMicrosecond},
                       {"pid", process_},
                       {"args", {{"bytes in use", bytes}}}});
  }

  Json events_ = Json::array();
  int process_ = 0;
};

}  // namespace

std::string ChromeTrace(std::span<const Profile> profiles) {
  Trace trace;
  for (const Profile& profile : profiles) trace.Add(profile);
  return std::move(trace).Text();
}

}  // namespace collage
