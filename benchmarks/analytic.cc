// analytic.cc: how `--estimator analytic` compares with what was measured: every candidate of a model that the tuning
// database has a time of is also given one by the formula (docs/costs.md). Printed by toolchain, and for all:
// Spearman's rank correlation of the two, and the formula's cost by the measured one at three quantiles.
//
//   bench_analytic [--threads N] [--database PLACE] MODEL.onnx
//
// Fill the database with `collage compile` or `tune` first. Probes that the formula needs and the database does not
// have are measured, no candidate is.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "cost/estimator/estimators.h"
#include "cost/measure/timing.h"
#include "cost/runner/runner.h"
#include "driver/covers/partitioner.h"
#include "run_main.h"
#include "support/machine.h"

namespace collage {
namespace {

struct Setting {
  int threads = 1;
  std::string database;
  std::string model;
};

/// Of one candidate in one choice of layouts, seconds.
struct Pair {
  double measured;
  double analytic;
};
using Pairs = std::map<std::string, std::vector<Pair>>;  ///< by toolchain

/// Asked for a cost, notes what the database and what the formula says. Measures nothing itself.
class ComparingEstimator : public CostEstimator {
 public:
  /// `keys` says under which key a cost is in the database; `analytic` may be null, its costs are 0 then.
  ComparingEstimator(TuningDatabase& database, const MeasuringEstimator& keys, CostEstimator* analytic)
      : database_(database), keys_(keys), analytic_(analytic) {}

  TuningRecord Estimate(const CostQuery& query) override {
    const std::optional<TuningRecord> known = database_.Find(keys_.KeyOf(query));
    if (known && known->ok) {
      const double seconds = analytic_ == nullptr ? 0 : analytic_->LowerBound(query);
      pairs_[query.toolchain.name()].push_back({known->p50, seconds});
    }
    TuningRecord record;
    record.ok = true;
    return record;
  }
  double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }

  const Pairs& pairs() const { return pairs_; }

 private:
  TuningDatabase& database_;
  const MeasuringEstimator& keys_;
  CostEstimator* analytic_;
  Pairs pairs_;
};

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

/// NaN when one side is all the same.
double RankCorrelation(const std::vector<Pair>& pairs) {
  std::vector<double> measured, analytic;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    analytic.push_back(pair.analytic);
  }
  const std::vector<double> a = Ranks(measured);
  const std::vector<double> b = Ranks(analytic);
  const double mean = static_cast<double>(pairs.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return ab / std::sqrt(aa * bb);
}

void PrintRow(const std::string& name, const std::vector<Pair>& pairs) {
  Samples ratios;
  for (const Pair& pair : pairs) ratios.Add(pair.analytic / pair.measured);
  fmt::print("| {} | {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} |\n", name, pairs.size(), RankCorrelation(pairs),
             ratios.Quantile(0.1), ratios.p50(), ratios.Quantile(0.9));
}

/// What the database has of the module's candidates, timed with their operands there. Without `estimates` the formula
/// is not asked, so that none of its probes is measured.
Pairs Compare(const IRModule& module, TuningDatabase& database, int threads, CacheLevel operands, bool estimates) {
  std::vector<PartitionSpec> specs;
  MeasuringEstimator::Options options;
  for (const ToolchainReport& probed : ProbeToolchains()) {
    if (!probed.available) continue;
    specs.push_back(SpecOf(*ToolchainRegistry::Global().Find(probed.name)));
    options.versions[probed.name] = TuningVersion(probed);
  }
  options.machine = ThisMachine().fingerprint;
  options.context.num_threads = threads;
  options.context.timing.operands = operands;
  const Candidates candidates(module.main(), specs, threads);
  const WorkerLimits limits{std::chrono::seconds(20), 0};
  const MeasuringEstimator keys(database, MakeLocalRunner(candidates, limits), candidates, options, {});
  const std::unique_ptr<CostEstimator> analytic = MakeAnalyticEstimator({.database = database,
                                                                         .runner = MakeLocalRunner(candidates, limits),
                                                                         .candidates = candidates,
                                                                         .options = options,
                                                                         .on_measure = {},
                                                                         .argument = ""});
  ComparingEstimator comparing(database, keys, estimates ? analytic.get() : nullptr);
  Partitioner partitioner(candidates, comparing);
  // Equal variants are asked for once.
  for (VariantIndex variant : candidates.variants().indices()) partitioner.Exact(variant);
  return comparing.pairs();
}

std::vector<Pair> All(const Pairs& pairs) {
  std::vector<Pair> all;
  for (const auto& [toolchain, of] : pairs) all.insert(all.end(), of.begin(), of.end());
  return all;
}

Setting Parse(int argc, char** argv) {
  Setting setting;
  for (int i = 1; i < argc; ++i) {
    const auto takes = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (takes("--threads")) {
      setting.threads = std::atoi(argv[++i]);
    } else if (takes("--database")) {
      setting.database = argv[++i];
    } else {
      setting.model = argv[i];
    }
  }
  if (setting.model.empty() || setting.threads < 1) {
    throw Error(ErrorCategory::kInput, setting.model.empty() ? "no model given" : "threads must be 1 at least", "",
                "bench_analytic [--threads N] [--database PLACE] MODEL.onnx");
  }
  if (setting.database.empty()) setting.database = TuningDatabase::DefaultPlace();
  return setting;
}

int Main(int argc, char** argv) {
  const Setting setting = Parse(argc, argv);
  SetNumThreads(setting.threads);
  const IRModule module = PrepareForPartitioning(ImportOnnx(setting.model, {}));
  TuningDatabase database(setting.database);
  // Which caches a model's operands come from depends on its size; a smaller model may have timed some of the same
  // layers in another way.
  CacheLevel operands = CacheLevel::kNear;
  size_t most = 0;
  for (const CacheLevel level : {CacheLevel::kNear, CacheLevel::kShared, CacheLevel::kMemory}) {
    const size_t count = All(Compare(module, database, setting.threads, level, /*estimates=*/false)).size();
    if (count > most) operands = level;
    most = std::max(most, count);
  }
  constexpr size_t kFewest = 2;  // what can be ranked
  if (most < kFewest) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("{} has {} time{} of this model's candidates with {} thread{}", database.place(), most,
                            most == 1 ? "" : "s", setting.threads, setting.threads == 1 ? "" : "s"),
                setting.model, "run `collage compile` with this database first");
  }
  const Pairs pairs = Compare(module, database, setting.threads, operands, /*estimates=*/true);
  fmt::print(
      "| candidates of | measured | rank correlation | formula to measured, p10 | median | p90 |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [toolchain, of] : pairs) {
    if (of.size() >= kFewest) PrintRow(toolchain, of);
  }
  PrintRow("all", All(pairs));
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
