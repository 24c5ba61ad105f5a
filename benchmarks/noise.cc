// noise.cc: how far a measured cost can be trusted. Candidates of a model are measured several times, each time in a
// fresh worker and in another order, so that all others come between two measurements of one of them. Printed:
// how much each quantile differs between them, and how that compares with the interval that each one predicted.
//
//   bench_noise [--threads N] [--candidates N] [--rounds N] [--operands near|shared|memory] MODEL.onnx
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/structural.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "cost/measure/measure.h"
#include "cost/runner/measure_request.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"
#include "run_main.h"
#include "worker/worker.h"

namespace collage {
namespace {

struct Setting {
  int threads = 1;
  size_t candidates = 60;
  int rounds = 6;
  CacheLevel operands = CacheLevel::kShared;
  std::string model;
};

struct Candidate {
  const Toolchain* toolchain;
  PartitionRequest request;
  std::vector<TuningRecord> records;
};

/// Different ones, spread over the model and its toolchains.
std::vector<Candidate> Sample(const DataflowGraph& graph, const Setting& setting) {
  std::vector<Candidate> all;
  std::set<std::string> known;
  for (const ToolchainReport& probed : ProbeToolchains()) {
    const Toolchain* toolchain = ToolchainRegistry::Global().Find(probed.name);
    if (toolchain == nullptr || !toolchain->Probe().available) continue;
    RuleLog log;
    for (const CandidatePartition& found : GatherPartitionRule(*toolchain)->AllCandidates(graph, *toolchain, log)) {
      const ExtractedFunction extracted = Extract(graph, found.sub_graph);
      StructuralHashOptions options;
      options.constants_by_shape = true;
      if (!known.insert(probed.name + StructuralHash(extracted.function, options)).second) continue;
      const BoundaryLayouts layouts = PlainLayouts(extracted.boundary.inputs.size(), extracted.boundary.outputs.size());
      all.push_back({toolchain, {extracted.function, layouts, setting.threads}, {}});
    }
  }
  std::mt19937 random(1);
  std::shuffle(all.begin(), all.end(), random);
  if (all.size() > setting.candidates) all.resize(setting.candidates);
  return all;
}

void MeasureAll(std::vector<Candidate>& candidates, const Setting& setting) {
  TimingOptions timing;
  timing.operands = setting.operands;
  std::vector<size_t> order(candidates.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(2);
  for (int round = 0; round < setting.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    Worker worker(
        [&](const std::string& index, const SendProgress&) {
          const Candidate& candidate = candidates[std::stoul(index)];
          return ToText(MeasureAnswer{MeasurePartition(*candidate.toolchain, candidate.request, timing), {}});
        },
        {std::chrono::seconds(20), 0});
    for (const size_t index : order) {
      const Result<std::string> answer = worker.Call(std::to_string(index));
      const TuningRecord record = answer.ok() ? MeasureAnswerFromText(*answer) : TuningRecord();
      if (record.ok) candidates[index].records.push_back(record);
    }
    fmt::print(stderr, "round {} of {}\n", round + 1, setting.rounds);
  }
}

/// Standard deviation by mean of a quantile over the measurements of one candidate.
double Spread(const Candidate& candidate, double fraction) {
  double sum = 0, squares = 0;
  for (const TuningRecord& record : candidate.records) {
    const double value = record.Quantile(fraction);
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(candidate.records.size());
  const double mean = sum / n;
  return std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1))) / mean;
}

/// The same among pairs, and what the intervals said of them.
struct Prediction {
  int64_t pairs = 0;
  int64_t within = 0;    ///< pairs that differ by no more than their intervals say
  double predicted = 0;  ///< relative half width, summed up over the records
  int64_t records = 0;
};

void Add(const Candidate& candidate, Prediction& prediction) {
  const std::vector<TuningRecord>& records = candidate.records;
  for (size_t i = 0; i < records.size(); ++i) {
    prediction.predicted += records[i].half_width / records[i].p50;
    ++prediction.records;
    for (size_t j = 0; j < i; ++j) {
      ++prediction.pairs;
      const bool is_within =
          std::abs(records[i].p50 - records[j].p50) <= std::hypot(records[i].half_width, records[j].half_width);
      prediction.within += is_within ? 1 : 0;
    }
  }
}

double Median(std::vector<double> values) {
  Samples samples;
  for (const double value : values) samples.Add(value);
  return samples.p50();
}

/// One row: the candidates that take from `least` to below `most` seconds.
void PrintRow(const std::string& name, const std::vector<Candidate>& candidates, double least, double most) {
  std::map<double, std::vector<double>> spreads;
  Prediction prediction;
  std::vector<double> drifts;
  size_t count = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.records.size() < 2) continue;
    const double seconds = candidate.records[0].p50;
    if (seconds < least || seconds >= most) continue;
    ++count;
    for (const double fraction : {0.0, 0.25, 0.5, 0.6, 0.75, 0.9}) {
      spreads[fraction].push_back(Spread(candidate, fraction));
    }
    for (const TuningRecord& record : candidate.records) drifts.push_back(record.drift);
    Add(candidate, prediction);
  }
  if (count == 0) return;
  const double predicted = prediction.predicted / static_cast<double>(prediction.records);
  fmt::print("| {} | {} |", name, count);
  for (const auto& [fraction, values] : spreads) fmt::print(" {:.2f} % |", 100 * Median(values));
  // A half width is 1.96 standard deviations.
  fmt::print(" {:.2f} % | {:.0f} % | {:.1f} | {:.2f} |\n", 100 * predicted,
             100.0 * static_cast<double>(prediction.within) / static_cast<double>(prediction.pairs),
             1.96 * Median(spreads[0.5]) / predicted, Median(drifts));
}

Setting Parse(int argc, char** argv) {
  Setting setting;
  for (int i = 1; i < argc; ++i) {
    const auto takes = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (takes("--threads")) {
      setting.threads = std::atoi(argv[++i]);
    } else if (takes("--candidates")) {
      setting.candidates = static_cast<size_t>(std::atoi(argv[++i]));
    } else if (takes("--rounds")) {
      setting.rounds = std::atoi(argv[++i]);
    } else if (takes("--operands")) {
      setting.operands = CacheLevelFromString(argv[++i]);
    } else {
      setting.model = argv[i];
    }
  }
  if (setting.model.empty()) throw Error(ErrorCategory::kInput, "no model given", "", "bench_noise MODEL.onnx");
  return setting;
}

int Main(int argc, char** argv) {
  const Setting setting = Parse(argc, argv);
  SetNumThreads(setting.threads);
  const IRModule module = PrepareForPartitioning(ImportOnnx(setting.model, {}));
  const DataflowGraph graph(module.main());
  std::vector<Candidate> candidates = Sample(graph, setting);
  MeasureAll(candidates, setting);
  fmt::print(
      "| candidates of | number | minimum | p25 | p50 | p60 | p75 | p90 | half interval | pairs within | "
      "observed to predicted | drift |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  PrintRow("below 10 us", candidates, 0, 10e-6);
  PrintRow("10 to 100 us", candidates, 10e-6, 100e-6);
  PrintRow("100 us and more", candidates, 100e-6, 1e9);
  PrintRow("all", candidates, 0, 1e9);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
