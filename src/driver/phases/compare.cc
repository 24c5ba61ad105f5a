// compare.cc: the play-off of whole covers, and what it says of the model of costs.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "driver/compilation.h"
#include "support/stopwatch.h"

namespace collage {

PlayOffResult Compilation::Compare(const std::vector<ContenderModule>& contenders, std::optional<double> timed_seconds,
                                   bool is_checkpoint) {
  PlayOffOptions settings = PlayOffSettings();
  if (is_checkpoint) settings.limits = Limits();
  settings.tries_partitions = !is_checkpoint;
  if (timed_seconds) settings.first_seconds = settings.final_seconds = *timed_seconds;
  // There is something to fall back to; else it is the first answer.
  if (checkpoints_.written && !IsStopped()) settings.should_stop = options_.should_stop;
  report_.play_off_seconds = 0;  // of the last play-off, should there be several
  const Stopwatch stopwatch(report_.play_off_seconds);
  if (settings.runs) settings.check = Reference();
  PlayOffResult result = RunPlayOff(module_, contenders, *database_, Fingerprint(), settings, options_.progress);
  result.seconds.check += reference_seconds_;
  return result;
}

/// The check of whole models, made when it is first wanted.
const std::shared_ptr<WholeModelCheck>& Compilation::Reference() {
  if (!check_)
    reference_seconds_ = SecondsOf([&] { check_ = EvaluateReference(module_, PlayOffSettings(), options_.progress); });
  return check_;
}

/// The play-off of `contenders`. If it is stopped, these become the one that has been written, and it wins.
PlayOffResult Compilation::CompareUnlessStopped(std::vector<ContenderModule>& contenders) {
  Phase("play-off");
  try {
    return Compare(contenders);
  } catch (const PlayOffStopped&) {
    report_.is_stopped = true;
    contenders = {checkpoints_.written->contender};
    return Compare(contenders, 0.0);
  }
}

PlayOffOptions Compilation::PlayOffSettings() const {
  PlayOffOptions play_off;
  play_off.num_threads = report_.num_threads;
  play_off.limits = PlayOffLimits(Limits());
  play_off.max_error = options_.max_error;
  play_off.runs = !machine_;
  play_off.check_inputs = check_inputs_;
  play_off.compiled = compiled_.get();
  // Both parts of the play-off together take what the search leaves of a budget, at most what they are given else.
  constexpr double kTimingShare = 0.1, kLeastSeconds = 1;
  const double most = std::max(kLeastSeconds, kTimingShare * options_.budget_seconds);
  play_off.first_seconds = std::min(play_off.first_seconds, most);
  play_off.final_seconds = std::min(play_off.final_seconds, most);
  play_off.versions = VersionsText(Versions());
  std::vector<std::string> targets;
  for (const Toolchain* toolchain : toolchains()) {
    std::ranges::move(selection_->TargetsOf(*toolchain), std::back_inserter(targets));
  }
  play_off.metadata_json =
      nlohmann::json{{"model", report_.model}, {"machine", report_.machine}, {"targets", targets}}.dump();
  return play_off;
}

void Compilation::ReportRanking(PlayOffResult& result, const std::vector<ContenderModule>& modules) {
  report_.contenders = std::move(result.contenders);
  report_.winner = report_.contenders[static_cast<size_t>(result.winner)].name;
  report_.play_off_parts = result.seconds;
  if (machine_) {
    report_.not_verified =
        fmt::format("built for machine '{}' and not run here; {}", machine_->name,
                    result.is_estimated ? "its time is the sum of its costs" : "timed on that machine");
  }
  if (result.is_estimated) return;
  const auto best = std::ranges::find(report_.contenders, "", &Contender::failure);
  if (best != report_.contenders.end() && best->estimated_seconds > 0) {
    report_.additive_error_seconds = best->p50 - best->estimated_seconds;
  }
  const Contender& winner = report_.contenders[static_cast<size_t>(result.winner)];
  for (size_t i = 0; i < modules.size(); ++i) {
    const Contender& contender = report_.contenders[i];
    if (!contender.failure.empty()) continue;
    for (const std::string& name : modules[i].baselines) {
      report_.apparent_loss_seconds[name] = winner.p50 - SecondsBeside(contender, winner);
    }
  }
  SetOptimalityLoss(result.winner);
  report_.contenders.insert(report_.contenders.end(), dropped_.begin(), dropped_.end());
  // Else it is known from an earlier compilation, which was recorded.
  if (report_.play_off_parts.timing > 0) RecordCompilation(winner);
}

/// Needs the winner: the best of all, when all were tried.
void Compilation::SetOptimalityLoss(int winner) {
  if (report_.num_covers == 0) return;
  std::vector<Contender> chosen;
  std::copy_if(report_.contenders.begin(), report_.contenders.end(), std::back_inserter(chosen),
               [](const Contender& one) { return !one.is_extra; });
  const std::vector<size_t> ranked = Ranked(chosen);
  if (ranked.empty()) return;
  const Contender& fastest = report_.contenders[static_cast<size_t>(winner)];
  report_.optimality_loss_seconds = SecondsBeside(chosen[ranked.front()], fastest) - fastest.p50;
}

void Compilation::RecordCompilation(const Contender& winner) {
  CompilationRecord record;
  record.model = report_.model;
  record.machine = Fingerprint();
  record.num_threads = report_.num_threads;
  record.versions = PlayOffSettings().versions;
  record.winner = report_.winner;
  record.seconds = winner.p50;
  record.additive_error = report_.additive_error_seconds;
  record.apparent_loss = nlohmann::json(report_.apparent_loss_seconds).dump();
  record.optimality_loss = report_.optimality_loss_seconds;
  database_->Put(record);
}

}  // namespace collage
