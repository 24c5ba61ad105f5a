// play_off_worker.h: the play-off's side in the child process: builds covers whole, checks and times them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/measure/timing.h"
#include "driver/play_off/messages.h"
#include "driver/play_off/play_off.h"
#include "driver/play_off/whole_model_check.h"
#include "lowering/lower.h"
#include "worker/worker.h"

namespace collage {

/// Answers the requests of messages.h. Lives in the parent, too, but works only in the child that is forked from it.
class PlayOffWorker {
 public:
  /// All must outlive it.
  PlayOffWorker(const IRModule& original, const std::vector<ContenderModule>& modules, const PlayOffOptions& options);

  /// The text of an answer to the text of a request.
  std::string Answer(const std::string& request, const SendProgress& progress);

 private:
  struct Built {
    int contender = -1;
    Contender found;
    std::shared_ptr<Executable> executable;
    std::unique_ptr<ExecutionInstance> instance;
    Samples samples;
    int64_t num_runs = 0;  ///< while it was timed
  };

  PlayOffAnswer Compare(const PlayOffRequest& request);
  SerialiseAnswer Serialise(int contender, const std::filesystem::path& file);
  std::string TryPartitions(int contender);
  void Blame(Built& built);
  std::string CheckAgain(Built& built) const;
  std::string CheckFile(const std::filesystem::path& file) const;
  static Built* FirstOf(std::vector<Built>& built);
  Built* FindBest(std::vector<Built>& built, bool is_new);
  Built Build(int contender, bool is_timed);
  Built BuildOnly(int contender);
  std::shared_ptr<Executable> MakeExecutable(int contender, Contender& found);
  void Time(std::vector<Built>& built);
  using Suffices = std::function<bool(std::span<const Samples>)>;
  void TimeRounds(const std::vector<Built*>& contenders, double seconds, const Suffices& suffices,
                  std::vector<Samples>& rounds);
  void Tell(const PlayOffNews& news) { alive_->Say(ToJsonText(news)); }

  const IRModule& original_;
  const std::vector<ContenderModule>& modules_;
  const PlayOffOptions& options_;
  PartitionCache cache_;
  PlayOffSeconds seconds_;
  std::optional<SignsOfLife> alive_;  ///< progress of the current request
  int winner_ = -1;
  std::shared_ptr<Executable> winners_executable_;
};

}  // namespace collage
