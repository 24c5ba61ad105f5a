// play_off.cc: a play-off from the parent's side: asks the worker, notes who failed, remembers the result.
#include "driver/play_off/play_off.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "collage/ir/structural.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/timing_lock.h"
#include "driver/play_off/build_ahead.h"
#include "driver/play_off/compatibility_groups.h"
#include "driver/play_off/messages.h"
#include "driver/play_off/play_off_worker.h"
#include "support/hash.h"

namespace collage {
namespace {

// How contenders are built, checked and timed, as part of the keys: another way has another text.
constexpr const char* kMethod = "both stages until they are clear, several inputs, ";

/// Identifies a contender, its constants by shape: the same cover of the same structure is the same contender.
std::string DigestOf(const ContenderModule& contender) {
  StructuralHashOptions options;
  options.constants_by_shape = true;
  return StructuralHash(contender.module.main(), options);
}

/// A worker, and what it works with.
struct PlayOffSession {
  PlayOffSession(const IRModule& whole, const std::vector<ContenderModule>& contenders, const PlayOffOptions& given)
      : original(whole),
        modules(contenders),
        options(given),
        state(original, modules, options),
        worker([this](const std::string& request, const SendProgress& send) { return state.Answer(request, send); },
               options.limits) {}

  IRModule original;
  std::vector<ContenderModule> modules;
  PlayOffOptions options;
  PlayOffWorker state;
  Worker worker;
};

class ExecutableInWorker : public BuiltExecutable {
 public:
  ExecutableInWorker(std::unique_ptr<PlayOffSession> session, int contender)
      : session_(std::move(session)), contender_(contender) {}

  Result<void> SerialiseTo(const std::filesystem::path& file) override {
    const PlayOffRequest request{PlayOffRequest::Kind::kSerialise, {contender_}, file.string()};
    const Result<std::string> answer = session_->worker.Call(ToJsonText(request));
    if (!answer.ok()) return answer.reason();
    const auto serialised = FromJsonText<SerialiseAnswer>(*answer);
    if (!serialised.failure.empty()) return Reason{serialised.failure, "play-off"};
    return {};
  }

 private:
  std::unique_ptr<PlayOffSession> session_;
  int contender_;
};

/// One play-off of contenders that can all be in one process.
class PlayOff {
 public:
  PlayOff(const IRModule& original, const std::vector<ContenderModule>& modules, TuningDatabase& database,
          const std::string& machine, const PlayOffOptions& options, CompileProgress* progress)
      : modules_(modules),
        database_(database),
        machine_(machine),
        progress_(progress),
        num_threads_(options.num_threads),
        runs_(options.runs),
        should_stop_(options.should_stop),
        session_(std::make_unique<PlayOffSession>(original, modules, options)) {
    std::string all = kMethod + options.versions;
    if (options.tries_partitions) all += "partitions tried, ";
    all += collage::DigestOf(options.check_inputs);
    if (options.max_error) all += fmt::format("max error {}, ", *options.max_error);
    for (const ContenderModule& contender : modules) all += DigestOf(contender);
    all_ = HexDigest(all);
    for (const ContenderModule& contender : modules) {
      Contender& known = result_.contenders.emplace_back();
      known.name = contender.name;
      known.is_single = contender.is_single;
      known.is_extra = contender.is_extra;
      known.estimated_seconds = contender.estimated_seconds;
    }
  }

  PlayOffResult Run() {
    const PlayOffRequest::Kind kind = runs_ ? PlayOffRequest::Kind::kCheck : PlayOffRequest::Kind::kBuild;
    for (const size_t index : KnownRanking()) {
      if (Ask({static_cast<int>(index)}, kind)) return TakeResult();
    }
    if (!runs_) return BuildByEstimate();
    std::vector<int> contenders;
    for (size_t i = 0; i < modules_.size(); ++i) {
      if (result_.contenders[i].failure.empty()) contenders.push_back(static_cast<int>(i));
    }
    while (!contenders.empty() && !Ask(contenders, PlayOffRequest::Kind::kTime)) {
      std::erase_if(contenders, [&](int i) { return !At(i).failure.empty(); });
    }
    if (result_.winner < 0) FailForAll("built and run");
    for (size_t i = 0; i < modules_.size(); ++i) {
      const Contender& contender = result_.contenders[i];
      database_.Put(KeyOf(i), {.ok = contender.failure.empty(), .value = ToJsonText(contender), .measured_at = ""});
    }
    return TakeResult();
  }

 private:
  Contender& At(int contender) { return result_.contenders[static_cast<size_t>(contender)]; }

  ResultKey KeyOf(size_t index) const {
    return {PlayOffKey{all_, DigestOf(modules_[index]), modules_[index].name}, machine_, num_threads_};
  }

  [[noreturn]] void FailForAll(const char* what) const {
    throw Error(ErrorCategory::kUnsupported, fmt::format("no cover of the model could be {}", what), "",
                result_.contenders.empty() ? "" : "first failure: " + result_.contenders.front().failure);
  }

  /// Builds the contender whose costs add up to least; covers with costs that are not known come last, in their order.
  PlayOffResult BuildByEstimate() {
    std::vector<size_t> order(modules_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      const ContenderModule &x = modules_[a], &y = modules_[b];
      return x.is_costed != y.is_costed ? x.is_costed : x.is_costed && x.estimated_seconds < y.estimated_seconds;
    });
    result_.is_estimated = true;
    for (const size_t index : order) {
      if (Ask({static_cast<int>(index)}, PlayOffRequest::Kind::kBuild)) return TakeResult();
    }
    FailForAll("built");
  }

  PlayOffResult TakeResult() {
    result_.executable = std::make_unique<ExecutableInWorker>(std::move(session_), result_.winner);
    return std::move(result_);
  }

  /// Indices, the best first, when the database knows these very contenders, else empty.
  std::vector<size_t> KnownRanking() {
    for (size_t i = 0; i < modules_.size(); ++i) {
      const std::optional<ResultRecord> known = database_.Find(KeyOf(i));
      if (!known) return {};
      FromJson(nlohmann::json::parse(known->value), result_.contenders[i]);
    }
    return Ranked(result_.contenders);
  }

  /// True when the worker answered with a winner. Otherwise at least one of `contenders` has a failure now.
  bool Ask(const std::vector<int>& contenders, PlayOffRequest::Kind kind) {
    std::optional<BuildAhead> ahead;
    if (kind == PlayOffRequest::Kind::kTime) ahead.emplace(session_->modules, contenders, session_->options);
    int building = -1;
    const auto on_progress = [&](const std::string& text) {
      if (should_stop_ && should_stop_()) throw PlayOffStopped();  // the worker goes with this
      const auto news = FromJsonText<PlayOffNews>(text);
      building = news.contender;
      Show(news);
    };
    const Result<std::string> answer =
        session_->worker.Call(ToJsonText(PlayOffRequest{kind, contenders, ""}), on_progress);
    if (!answer.ok()) {
      // The one being built when the worker died is disqualified; if it died while timing, no one can tell whose fault
      // it was.
      for (const int contender : contenders) {
        if (building < 0 || building == contender) At(contender).failure = answer.reason().text;
      }
      return false;
    }
    const auto found = FromJsonText<PlayOffAnswer>(*answer);
    for (const ContenderAnswer& one : found.contenders) Note(one, kind);
    result_.winner = found.winner;
    result_.seconds = found.seconds;
    return result_.winner >= 0;
  }

  void Note(const ContenderAnswer& answer, PlayOffRequest::Kind kind) {
    Contender& contender = At(answer.contender);
    if (kind != PlayOffRequest::Kind::kTime) {  // what the database knew stays
      if (kind == PlayOffRequest::Kind::kCheck) contender.max_error = answer.found.max_error;
      contender.failure = answer.found.failure;
      contender.partitions = answer.found.partitions;
      return;
    }
    FromJson(ToJson(answer.found), contender);
  }

  void Show(const PlayOffNews& news) {
    if (progress_ == nullptr) return;
    switch (news.kind) {
      case PlayOffNews::Kind::kBuild:
        return progress_->PlayOff(0, 0, "building " + modules_[static_cast<size_t>(news.contender)].name);
      case PlayOffNews::Kind::kRound: return progress_->PlayOff(news.round, news.rounds, "timing");
    }
  }

  const std::vector<ContenderModule>& modules_;
  TuningDatabase& database_;
  std::string machine_;
  CompileProgress* progress_;
  int num_threads_ = 1;
  bool runs_ = true;
  std::function<bool()> should_stop_;
  std::string all_;  ///< digest of all contenders and of how they are compared
  std::unique_ptr<PlayOffSession> session_;
  PlayOffResult result_;
};

}  // namespace

std::string DigestOf(const std::vector<std::vector<Tensor>>& inputs) {
  std::string digests;
  for (const std::vector<Tensor>& tensors : inputs) {
    for (const Tensor& tensor : tensors) {
      digests += tensor.dtype().ToString() + ToString(tensor.shape());
      digests.append(tensor.data<char>(), tensor.size_bytes());
    }
  }
  return digests.empty() ? "" : HexDigest(digests);
}

std::string VersionsText(const std::map<std::string, std::string>& versions) {
  std::string text;
  for (const auto& [name, version] : versions) text += name + " " + version + " ";
  return text;
}

WorkerLimits PlayOffLimits(WorkerLimits limits) {
  limits.timeout = std::max(limits.timeout, std::chrono::milliseconds(120'000));
  limits.memory_bytes = 0;
  return limits;
}

std::shared_ptr<WholeModelCheck> EvaluateReference(const IRModule& original, const PlayOffOptions& options,
                                                   CompileProgress* progress) {
  if (progress != nullptr) progress->PlayOff(0, 0, "reference");
  const TimingLock together(TimingLock::Mode::kShared);  // nothing is timed meanwhile
  SetNumThreads(AvailableProcessors());
  auto check = std::make_shared<WholeModelCheck>(original.main(),
                                                 WholeModelCheckOptions{options.max_error, options.check_inputs});
  SetNumThreads(options.num_threads);
  return check;
}

PlayOffResult RunPlayOff(const IRModule& original, const std::vector<ContenderModule>& modules,
                         TuningDatabase& database, const std::string& machine, const PlayOffOptions& options,
                         CompileProgress* progress) {
  COLLAGE_CHECK(!options.runs || options.check != nullptr) << "no reference to run contenders against";
  return RunInGroups(modules, [&](const std::vector<ContenderModule>& group) {
    return PlayOff(original, group, database, machine, options, progress).Run();
  });
}

}  // namespace collage
