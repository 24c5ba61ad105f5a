// end_to_end_errors.cc: the worker that builds covers and compares them with the reference.
#include "driver/end_to_end_errors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/ir/structural.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "driver/covers/partitioning_json.h"
#include "driver/play_off/whole_model_check.h"
#include "lowering/lower.h"
#include "support/hash.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// Every error that is a number is found out, none is refused.
constexpr double kAnyError = std::numeric_limits<double>::max();

}  // namespace

struct EndToEndErrors::Child {
  Child(const IRModule& module, const std::vector<std::vector<Tensor>>& inputs, CompiledStore* compiled,
        SignsOfLife& alive)
      : alive(&alive),
        graph(module.main()),
        check(module.main(), {kAnyError, inputs, [this] { this->alive->SayAgain(); }}),
        partitions(ToolchainRegistry::Global(), compiled) {
    partitions.OnCompile([this] { this->alive->SayAgain(); });
  }

  SignsOfLife* alive;  ///< of the request that is being answered
  DataflowGraph graph;
  WholeModelCheck check;
  PartitionCache partitions;
};

EndToEndErrors::EndToEndErrors(const IRModule& module, const std::vector<const Toolchain*>& toolchains,
                               TuningDatabase& database, const std::string& machine, const PlayOffOptions& options)
    : module_(module),
      toolchains_(toolchains),
      database_(database),
      machine_(machine),
      versions_("several inputs, " + options.versions),
      num_threads_(options.num_threads),
      compiled_(options.compiled),
      check_inputs_(options.check_inputs),
      worker_([this](const std::string& request, const SendProgress& progress) { return Answer(request, progress); },
              options.limits) {}

EndToEndErrors::~EndToEndErrors() = default;

double EndToEndErrors::Of(const std::string& partitioning) {
  const TuningKey key = KeyOf(partitioning);
  std::optional<TuningRecord> record = database_.Find(key);
  if (!record) {
    seconds_ += SecondsOf([&] { record = Build(partitioning); });
    database_.Put(key, *record);
  }
  return record->ok ? record->max_error : std::numeric_limits<double>::infinity();
}

TuningRecord EndToEndErrors::Build(const std::string& partitioning) {
  ++num_built_;
  TuningRecord record;
  const Result<std::string> answer = worker_.Call(partitioning);
  if (!answer.ok()) {
    record.reason = answer.reason().text;
    return record;
  }
  const Json json = Json::parse(*answer);
  record.reason = json.at("difference");
  record.ok = record.reason.empty();
  record.max_error = json.at("error");
  record.minimum = record.p50 = record.p90 = json.at("seconds");
  record.num_samples = 1;
  return record;
}

/// In the child.
std::string EndToEndErrors::Answer(const std::string& partitioning, const SendProgress& progress) {
  SetNumThreads(num_threads_);
  SignsOfLife alive(progress, "check");
  if (!child_) child_ = std::make_unique<Child>(module_, check_inputs_, compiled_, alive);
  child_->alive = &alive;
  const auto [partitioned, _] = PartitionedFromJson(partitioning, "a cover", module_, child_->graph, toolchains_);
  ExecutionInstance instance(Executable::FromPlan(Lower(partitioned, num_threads_, child_->partitions)));
  progress("built");
  double error = 0;
  const std::string difference = child_->check.Check(instance, error);
  const Json answer{{"difference", difference},
                    {"error", std::min(error, kAnyError)},  // JSON has no infinity
                    {"seconds", SecondsOf([&] { instance.Run(); })}};
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Costs are left out of the key: they do not change the results.
TuningKey EndToEndErrors::KeyOf(const std::string& partitioning) {
  if (model_digest_.empty()) model_digest_ = StructuralHash(module_.main()) + DigestOf(check_inputs_);
  Json json = Json::parse(partitioning);
  for (Json& partition : json.at("partitions")) partition.erase("seconds");
  return {CoverKey{model_digest_, HexDigest(json.dump()), HexDigest(versions_)}, machine_, num_threads_};
}

}  // namespace collage
