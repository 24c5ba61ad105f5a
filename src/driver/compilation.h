// compilation.h: one compilation of a graph: its phases in order, and the data that they pass on. Each phase is a file
// of phases/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "cost/database/measured_machine.h"
#include "cost/database/tuning_database.h"
#include "cost/estimator/measuring_estimator.h"
#include "driver/covers/candidates.h"
#include "driver/covers/cover_portfolio.h"
#include "driver/explanation/explain_graph.h"
#include "driver/phases/checkpoints.h"
#include "driver/phases/model_forms.h"
#include "driver/play_off/play_off.h"
#include "driver/toolchain_selection.h"
#include "lowering/compiled_store.h"
#include "support/file.h"

namespace collage {

struct CoverSearchState;  // phases/cover_search_state.h
struct NamedPartitions;   // phases/contender_list.h
class PackBuilder;        // pack/pack_builder.h

/// Bytes that a run of `module` touches: weights once, equal ones together, as executables store them; every value
/// once.
int64_t FootprintBytes(const IRModule& module);

class Compilation {
 public:
  /// Compiles the graph `given`, which reports call `model`. All must outlive it.
  Compilation(const std::filesystem::path& model, const CompileOptions& options, const IRModule& given)
      : model_(model), options_(options), given_(given) {}

  /// The purposes of a compilation.
  enum class Purpose : uint8_t {
    kModel,  ///< the whole: required toolchains must take part, and the best so far is written while the search goes on
    kRegion,  ///< a part of a program: the best so far is written if CompileOptions::on_checkpoint wants it
  };

  /// All phases.
  CompileReport Run(Purpose purpose);
  /// The phases until covers are known.
  CompileReport Tune();
  /// Adds the candidates of all forms of the graph to `pack`, and finds no costs. For another machine, whose costs are
  /// known, adds the covers that would meet in the play-off instead.
  CompileReport Pack(PackBuilder& pack);
  /// The module of the best cover by costs, of the graph as it was given: no passes prepare it.
  IRModule Partition();

 private:
  // prepare.cc: toolchains, module and database.
  void Prepare(bool runs_passes);
  void ChooseToolchains();
  void OpenDatabase();
  void CheckCompilers() const;
  /// The kind of machine that costs are of.
  const std::string& Fingerprint() const;

  // find_contenders.cc: the covers that meet in the play-off. Throws kUnsupported when there must be one and is none.
  std::vector<ContenderModule> FindContenders(bool must_cover);
  void ForgetSearch();
  std::vector<ContenderModule> SearchForm(const ModelForm& form, std::vector<ContenderModule> also, std::string& stuck);
  ContenderModule GivenContender(const std::filesystem::path& file, const std::string& name) const;
  std::vector<ContenderModule> AlsoGiven() const;
  FoundCovers FindCovers(CoverSearchState& search);
  FoundCovers TuneSchedules(CoverSearchState& search, FoundCovers found);
  std::vector<TuningGoal> TuningGoals(const CoverSearchState& search, const FoundCovers& found) const;
  std::vector<Cover> AllCovers(CoverSearchState& search);
  std::vector<NamedPartitions> PartitionForCovers(CoverSearchState& search);
  std::vector<ContenderModule> Partitioned(CoverSearchState& search, const FoundCovers& found,
                                           const std::vector<NamedPartitions>& baselines, const std::vector<Cover>& all,
                                           std::vector<ContenderModule> also) const;
  bool IsFormOf(const ModelForm& form, const Toolchain& toolchain) const;
  std::string NameInForm(const ModelForm& form, const NamedCover& cover) const;
  void ReportSearch(const CoverSearchState& search, const FoundCovers& found);

  // make_estimator.cc: the estimator of costs.
  std::unique_ptr<CostEstimator> MakeEstimatorFor(const Candidates& candidates) const;
  MeasuringEstimator::Options Estimating() const;
  RunnerContext ForRunner(const Candidates& candidates) const;

  // compile_covers.cc: covers whose partitions all compile.
  FoundCovers WithoutDeclined(CoverSearchState& search, FoundCovers found);
  bool Declines(CoverSearchState& search, const FoundCovers& found, std::set<int>& compiled);

  // bound_precision.cc: covers whose error is within CompileOptions::max_error.
  void BoundPrecision(CoverSearchState& search, FoundCovers& found);

  // evolve.cc: covers by their end-to-end time, with neighbours of libraries merged.
  void EvolveGraphLevel(CoverSearchState& search, FoundCovers& found);
  double SecondsEndToEnd(const Partitioner& partitioner, const Cover& cover);

  // checkpoint.cc: executables that are written before the search has ended.
  /// Whether the user wants no more than what is known.
  bool IsStopped() const;
  double FirstCheckpointSeconds() const;
  double SearchBudget() const;
  void Checkpoint(CoverSearchState& search, const FoundCovers& found, double search_seconds);
  const NamedCover* BestSoFar(const CoverSearchState& search, const FoundCovers& found) const;
  std::vector<ContenderModule> ContendersSoFar(const CoverSearchState& search,
                                               const std::vector<const NamedCover*>& covers) const;
  std::vector<const NamedCover*> OwnChoicesOfOthers(const FoundCovers& found) const;
  bool MayReplaceWritten(const CoverSearchState& search, const NamedCover* best) const;
  void WriteFaster(const CoverSearchState& search, const std::vector<const NamedCover*>& covers);

  // compare.cc: the play-off, and its results in the report and the database.
  /// `timed_seconds`: for each stage of timing, about; empty: the usual time. For a checkpoint the worker has the
  /// limits of a candidate's, and partitions are not tried by themselves: the play-off that ends a compilation does.
  PlayOffResult Compare(const std::vector<ContenderModule>& contenders, std::optional<double> timed_seconds = {},
                        bool is_checkpoint = false);
  const std::shared_ptr<WholeModelCheck>& Reference();
  PlayOffResult CompareUnlessStopped(std::vector<ContenderModule>& contenders);
  void ReportRanking(PlayOffResult& result, const std::vector<ContenderModule>& modules);
  void SetOptimalityLoss(int winner);
  void RecordCompilation(const Contender& winner);
  PlayOffOptions PlayOffSettings() const;

  // pack.cc: contenders in place of candidates.
  void PackContenders(PackBuilder& pack);
  void WarnOfUnknownCosts() const;

  // explain.cc: what explains the result.
  bool Explains() const { return options_.explanation != "none"; }
  void Keep(std::unique_ptr<SearchedForm> searched, const CoverPortfolio& portfolio, FoundCovers found);
  void Explain(const std::vector<ContenderModule>& contenders, const ContenderModule& winner);

  // write.cc: the winner, its choice of partitions, and their compiled code, as far as these are wanted.
  void Write(PlayOffResult& result, const ContenderModule& winner);

  void Phase(const char* name) const {
    if (options_.progress != nullptr) options_.progress->Phase(name);
  }
  void Warn(const std::string& text) const {
    if (options_.progress != nullptr) options_.progress->Warn(text);
  }
  const std::vector<const Toolchain*>& toolchains() const { return selection_->toolchains(); }
  WorkerLimits Limits() const;
  /// By toolchain: the vendor's version and the revision of our code for it.
  std::map<std::string, std::string> Versions() const;

  const std::filesystem::path& model_;
  const CompileOptions& options_;
  const IRModule& given_;
  CompileReport report_;
  std::vector<std::vector<Tensor>> check_inputs_;  ///< in the order of the parameters
  std::shared_ptr<WholeModelCheck> check_;         ///< made for the first play-off
  double reference_seconds_ = 0;                   ///< to make it
  Checkpoints checkpoints_;
  std::optional<ToolchainSelection> selection_;
  bool leaves_out_unknown_ = false;         ///< Partitioner::LeaveOutUnknown
  bool builds_covers_ = false;              ///< whether covers are built, after the search
  std::optional<MeasuredMachine> machine_;  ///< the other machine that is compiled for; nothing: this one
  IRModule module_;
  std::vector<ModelForm> forms_;  ///< other ones, in which some toolchains want the model
  /// Forms that were searched, kept for the explanation, if there is one.
  std::vector<std::unique_ptr<SearchedForm>> searched_;
  std::vector<Contender> dropped_;  ///< baselines that no module was made of, with their failures
  std::unique_ptr<TuningDatabase> database_;
  TemporaryFolder folder_;
  /// Partitions that this run's workers compiled.
  std::unique_ptr<CompiledStore> compiled_ = std::make_unique<CompiledStore>(folder_ / "compiled");
};

}  // namespace collage
