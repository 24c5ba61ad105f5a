// compile_model.cc: the main job, and then its explanation.
#include <utility>

#include "collage/compile.h"
#include "collage/settings.h"
#include "driver/explanation/describe_graph.h"
#include "driver/run_compilation.h"
#include "explain/explanation.h"
#include "explain/explanation_file.h"
#include "report/compile_facts.h"
#include "report/json.h"
#include "support/file.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// For a system that does not say.
constexpr int64_t kUsualNear = int64_t{1} << 20;
constexpr int64_t kUsualShared = int64_t{16} << 20;

/// Notes when phases begin, and passes everything on.
class PhaseRecorder : public CompileProgress {
 public:
  explicit PhaseRecorder(CompileProgress* next) : next_(next) {}

  void Phase(const std::string& name) override {
    Begin(name);
    if (next_ != nullptr) next_->Phase(name);
  }
  void Costs(int64_t num_distinct) override {
    if (next_ != nullptr) next_->Costs(num_distinct);
  }
  void Measuring(int64_t measured, int64_t from_database, const std::string& what) override {
    if (next_ != nullptr) next_->Measuring(measured, from_database, what);
  }
  void Compiling(int64_t compiled, const std::string& what) override {
    if (next_ != nullptr) next_->Compiling(compiled, what);
  }
  void Written(double seconds, std::optional<double> gap) override {
    if (next_ != nullptr) next_->Written(seconds, gap);
  }
  void PlayOff(int round, int rounds, const std::string& what) override {
    if (next_ != nullptr) next_->PlayOff(round, rounds, what);
  }
  void Warn(const std::string& text) override {
    if (next_ != nullptr) next_->Warn(text);
  }

  double began() const { return began_; }
  /// The phases until now.
  std::vector<ExplainedPhase> Timeline() {
    End();
    return timeline_;
  }

 private:
  double Now() const { return SteadySeconds() - began_; }
  void End() {
    if (!timeline_.empty() && timeline_.back().end_seconds == 0) timeline_.back().end_seconds = Now();
  }
  /// A graph's phases begin with its import; these are of no graph.
  void Begin(const std::string& name) {
    End();
    if (name == "import") ++num_graphs_;
    const bool is_of_graph = name != "check" && !name.starts_with("any size") && num_graphs_ > 0;
    timeline_.push_back({name, is_of_graph ? std::optional(num_graphs_ - 1) : std::nullopt, Now(), 0});
  }

  CompileProgress* next_;
  double began_ = SteadySeconds();
  int num_graphs_ = 0;
  std::vector<ExplainedPhase> timeline_;
};

ExplainedMachine MachineOf(const CompileReport& report) {
  const MachineInfo& here = ThisMachine();
  ExplainedMachine machine{report.machine, here.isa, here.fingerprint, report.num_threads, here.processors};
  machine.near_bytes = CacheSize(2, kUsualNear);
  machine.shared_bytes = CacheSize(3, kUsualShared);
  return machine;
}

/// Settings that are not the default, without places that say nothing of the result and may hold a password.
Json SettingsOf(const CompileOptions& options) {
  const Json all = Json::parse(SettingsJson(options));
  Json given = Json::object();
  for (const Setting& setting : Settings()) {
    const bool is_place = setting.name == "database" || setting.name == "explanation";
    if (!is_place && !IsDefault(options, setting)) given[setting.name] = all.at(setting.name);
  }
  return given;
}

/// Graphs of a report, in the order of its regions.
std::vector<GraphExplanation> GraphsOf(const CompileReport& report, double began) {
  std::vector<GraphExplanation> graphs;
  if (report.explanation != nullptr) graphs.push_back(*report.explanation);
  for (const CompileReport& region : report.regions) {
    if (region.explanation != nullptr) graphs.push_back(*region.explanation);
  }
  for (GraphExplanation& graph : graphs) {
    for (ExplainedProgress& progress : graph.progress) progress.seconds = Rounded(progress.seconds - began);
  }
  return graphs;
}

/// `run` with options that keep an explanation where `options` wants it.
CompileReport WithExplanation(const CompileOptions& options,
                              const std::function<CompileReport(const CompileOptions&)>& run) {
  if (options.explanation == "none") return run(options);
  PhaseRecorder recorder(options.progress);
  CompileOptions own = options;
  own.progress = &recorder;
  own.on_written = [&](CompileReport report, const std::filesystem::path& file) {
    report.total_seconds = SteadySeconds() - recorder.began();
    Explanation explanation;
    explanation.collage = COLLAGE_VERSION;
    explanation.settings = SettingsOf(options);
    explanation.machine = MachineOf(report);
    explanation.model = report.model;
    explanation.report = Json::parse(RenderJson(CompileFacts(report)));
    explanation.timeline = recorder.Timeline();
    explanation.memory = MemoryOf(file);
    explanation.graphs = GraphsOf(report, recorder.began());
    const std::string text = ToJsonText(explanation);
    if (options.explanation == "inside") {
      PutInside(file, text);
    } else {
      WriteWhole(options.explanation, text);
    }
  };
  return run(own);
}

}  // namespace

CompileReport CompileModel(const std::filesystem::path& model, const CompileOptions& options) {
  return WithExplanation(options, [&](const CompileOptions& own) { return RunCompilation(model, own); });
}

CompileReport CompileModule(const IRModule& module, const std::string& name, const CompileOptions& options) {
  return WithExplanation(options, [&](const CompileOptions& own) { return RunCompilation(module, name, own); });
}

}  // namespace collage
