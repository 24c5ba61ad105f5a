// pack_builder.cc: candidates become requests, which a worker compiles into a store, out of which the pack is filled.
#include "driver/pack/pack_builder.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "cost/machine/probes.h"
#include "cost/machine/transition.h"
#include "cost/runner/runner.h"
#include "lowering/compiled_store.h"
#include "lowering/lower.h"
#include "support/machine.h"

namespace collage {
namespace {

/// Rates of no machine in particular: candidates are ordered by them, not judged.
constexpr MachineRates kUsualRates{1e11, {1e11, 5e10, 1e10}};

double UsualSeconds(const Work& work) { return RooflineSeconds(work, kUsualRates, 1, CacheLevel::kMemory); }

/// Compiles partitions of a pack in a worker, which keeps them in a store.
class PackCompiler {
 public:
  /// A request to compile something, and who gets the result.
  struct Job {
    int request = -1;
    std::string schedule;
    PackedPartition* partition = nullptr;  ///< null: the store only
  };

  PackCompiler(MeasuringPack& pack, const WorkerLimits& limits, CompileProgress* progress)
      : pack_(pack),
        progress_(progress),
        store_(folder_ / "compiled", std::numeric_limits<int64_t>::max()),
        runner_(MakeLocalRunner(requests_, limits, &store_)) {
    context_.num_threads = pack.num_threads;
  }

  /// Adds a request and returns its number. All are added before the first is compiled: a worker sees those before it.
  int Add(const PartitionRequest& request, const Toolchain& toolchain) {
    requests_.all.emplace_back(request, &toolchain);
    return static_cast<int>(requests_.all.size()) - 1;
  }

  void Compile(const std::vector<Job>& jobs) {
    num_jobs_ += static_cast<int64_t>(jobs.size());
    if (progress_ != nullptr) progress_->Costs(num_jobs_);
    std::vector<MeasureRequest> asked;
    for (const Job& job : jobs) asked.push_back({context_, KeepCompiled{Requested(job)}});
    runner_->Run(asked, [&](size_t index, const MeasureAnswer& answer) {
      Take(jobs[index], answer);
      return true;
    });
  }

  /// Returns the schedules near those of `jobs`, at most `count` of each.
  std::vector<Job> JobsNear(const std::vector<Job>& jobs, int count) {
    std::vector<MeasureRequest> asked;
    for (const Job& job : jobs) asked.push_back({context_, ListSchedules{Requested(job)}});
    std::vector<Job> near;
    runner_->Run(asked, [&](size_t index, const MeasureAnswer& answer) {
      for (const std::string& schedule : answer.schedules) {
        if (&schedule - answer.schedules.data() == count) break;
        near.push_back({jobs[index].request, schedule, jobs[index].partition});
      }
      return true;
    });
    return near;
  }

 private:
  struct Requests : CandidateSource {
    std::vector<std::pair<PartitionRequest, const Toolchain*>> all;

    std::pair<PartitionRequest, const Toolchain*> Find(CandidateHandle handle) const override {
      return all.at(static_cast<size_t>(handle.number));
    }
    std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(CandidateHandle) const override {
      throw Error(ErrorCategory::kInternal, "partitions of a measuring pack have no graph");
    }
  };

  static RequestedPartition Requested(const Job& job) {
    return {CandidateHandle{job.request}, std::nullopt, job.schedule};
  }

  void Take(const Job& job, const MeasureAnswer& answer) {
    auto [request, toolchain] = requests_.Find(CandidateHandle{job.request});
    request.schedule = job.schedule;
    PackedCode code{job.schedule, -1, answer.reason};
    if (answer.ok) code.compiled = NumberOf(*toolchain, request);
    if (job.partition != nullptr) job.partition->codes.push_back(std::move(code));
    if (progress_ != nullptr) progress_->Compiling(++num_done_, toolchain->name());
  }

  /// Returns the number in the pack of what the store has for `request`.
  int NumberOf(const Toolchain& toolchain, const PartitionRequest& request) {
    const std::string name = CompiledStore::NameOf(toolchain, request);
    const auto [it, is_new] = numbers_.emplace(name, static_cast<int>(pack_.compiled.size()));
    if (is_new) {
      std::optional<CompiledPartition> compiled = store_.Find(toolchain, request);
      if (!compiled) {
        throw Error(ErrorCategory::kResource, "cannot keep a compiled partition", folder_.path().string(),
                    "free some space there, or let $TMPDIR name another folder");
      }
      pack_.compiled.push_back(*std::move(compiled));
      pack_.compiled_names.push_back(name);
    }
    return it->second;
  }

  MeasuringPack& pack_;
  CompileProgress* progress_;
  TemporaryFolder folder_;
  CompiledStore store_;
  Requests requests_;
  std::unique_ptr<Runner> runner_;
  MeasureContext context_;
  std::map<std::string, int> numbers_;  ///< by name
  int64_t num_jobs_ = 0, num_done_ = 0;
};

}  // namespace

PackBuilder::PackBuilder(int num_threads) : configured_(ToolchainRegistry::Global()) {
  pack_.collage = CollageVersion();
  pack_.machine = ThisMachine().fingerprint;
  pack_.cpu = ThisMachine().cpu;
  pack_.num_threads = num_threads;
}

int PackBuilder::NumberOf(const Toolchain& toolchain) {
  for (size_t i = 0; i < pack_.toolchains.size(); ++i) {
    if (pack_.toolchains[i].name == toolchain.name()) return static_cast<int>(i);
  }
  const Toolchain* own = configured_.Find(toolchain.name());
  COLLAGE_CHECK(own != nullptr) << "there is no toolchain '" << toolchain.name() << "'";
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  const Toolchain& registered = *registry.Find(RegisteredName(toolchain.name()));
  pack_.toolchains.push_back({toolchain.name(), ProbeCompilerOf(*own).version, registry.RevisionOf(registered),
                              CompilesForThisProcessor(*own)});
  toolchains_.push_back(own);
  AddCallsOf(*own);
  return static_cast<int>(toolchains_.size()) - 1;
}

/// Adds the partitions by which a toolchain's smallest call and its switches are measured.
void PackBuilder::AddCallsOf(const Toolchain& toolchain) {
  const int number = static_cast<int>(toolchains_.size()) - 1;
  for (PartitionRequest& request : PartitionsOf(toolchain, ProbeNamed(kSmallestCall), pack_.num_threads)) {
    calls_.emplace_back(std::move(request), number);
  }
  for (PartitionRequest& request : SmallPartitions(toolchain, pack_.num_threads)) {
    calls_.emplace_back(std::move(request), number);
  }
}

int PackBuilder::AddPartition(const std::string& name, const PartitionRequest& request, const Toolchain& toolchain) {
  const int number = NumberOf(toolchain);
  const auto [it, is_new] = numbers_.emplace(std::tuple(name, LayoutsText(request.layouts), number),
                                             static_cast<int>(pack_.partitions.size()));
  if (is_new) pack_.partitions.push_back({request, number, {}});
  return it->second;
}

void PackBuilder::AddPlayOff(PackedPlayOff play_off) {
  for (const ContenderModule& contender : play_off.contenders) {
    for (const auto& [name, request] : PartitionsOf(contender.module, pack_.num_threads)) {
      const Toolchain* toolchain = name.empty() ? ToolchainRegistry::Global().Native() : configured_.Find(name);
      COLLAGE_CHECK(toolchain != nullptr) << "there is no toolchain '" << name << "'";
      AddPartition(CompiledStore::NameOf(*toolchain, request), request, *toolchain);  // with its weights
    }
  }
  pack_.play_offs.push_back(std::move(play_off));
}

void PackBuilder::Add(const PackedProperties& properties, Partitioner& partitioner, const CompileOptions& options) {
  const Candidates& candidates = partitioner.candidates();
  PackedModel model{properties.name, properties.footprint_bytes, options.operands, options.percentile, {}, {}};
  std::vector<int> places(candidates.classes().size());
  std::vector<bool> is_primary(candidates.classes().size());
  for (const VariantIndex variant : candidates.variants().indices()) {
    const auto number = static_cast<size_t>(candidates.class_of()[variant]);
    ++places[number];
    is_primary[number] = is_primary[number] || candidates.IsPrimary(candidates.variant(variant).candidate);
  }
  const double all = std::max(UsualSeconds(properties.work), 1e-12);
  for (size_t i = 0; i < candidates.classes().size(); ++i) {
    const Candidates::VariantClass& of = candidates.classes()[i];
    const auto [request, toolchain] = candidates.Find(CandidateHandle{of.first.number()});
    const CandidatePartition& candidate = candidates.CandidateOf(of.first);
    const double share = places[i] * UsualSeconds(of.work) / all;
    model.candidates.push_back({AddPartition(of.workload, request, *toolchain),
                                of.workload,
                                of.work,
                                candidate.sub_graph.OperatorLabel(candidates.graph()),
                                candidate.spec->name,
                                {is_primary[i] ? 0 : 1, share}});
  }
  AddConversions(partitioner, model);
  pack_.models.push_back(std::move(model));
}

/// A value is made in one format, and converted from that to each in which it is read.
void PackBuilder::AddConversions(Partitioner& partitioner, PackedModel& model) {
  const CoverProblem& problem = partitioner.Problem();
  constexpr Format kHost = 0;
  std::map<int, std::set<Format>> made, read;
  for (const auto& [value, formatted] : problem.values) {
    if (formatted.maker == FormattedValue::kGiven) made[value].insert(kHost);
    read[value].insert(kHost);  // by what is left to the host
  }
  for (const VariantIndex variant : problem.variants.indices()) {
    for (const FormatUse& use : problem.variants[variant].makes) made[use.value].insert(use.format);
    for (const FormatUse& use : problem.variants[variant].wants) read[use.value].insert(use.format);
  }
  for (const FormatUse& use : problem.returned) read[use.value].insert(use.format);
  std::set<PackedConversion> conversions;
  for (const auto& [value, formats] : made) {
    const TensorTypeNode& type = partitioner.TypeOf(value);
    for (const Format from : formats) {
      for (const Format to : read[value]) {
        if (from == to) continue;
        conversions.insert({type.static_shape(), type.dtype(), static_cast<Layout>(from), static_cast<Layout>(to)});
      }
    }
  }
  model.conversions.assign(conversions.begin(), conversions.end());
}

void PackBuilder::Compile(const Limits& limits, CompileProgress* progress) {
  PackCompiler compiler(pack_, limits.worker, progress);
  std::vector<PackCompiler::Job> jobs;
  const auto toolchain_at = [&](int number) -> const Toolchain& { return *toolchains_[static_cast<size_t>(number)]; };
  for (PackedPartition& partition : pack_.partitions) {
    const Toolchain& toolchain = toolchain_at(partition.toolchain);
    jobs.push_back({compiler.Add(partition.request, toolchain), partition.request.schedule, &partition});
  }
  for (const auto& [request, number] : calls_) {
    jobs.push_back({compiler.Add(request, toolchain_at(number)), "", nullptr});
  }
  compiler.Compile(jobs);
  if (limits.max_schedules == 0) return;
  std::erase_if(jobs, [&](const PackCompiler::Job& job) {
    return job.partition == nullptr || job.partition->codes.front().compiled < 0 ||
           !toolchain_at(job.partition->toolchain).has_schedules();
  });
  compiler.Compile(compiler.JobsNear(jobs, limits.max_schedules));
}

}  // namespace collage
