// search_scale.cc: how candidate enumeration and search grow with a graph. Rules as the three toolchains of every build
// register them, costs by table: nothing is compiled or timed. For models, and for generated chains and nets of
// parallel branches, whose exponent of growth with length should be near one.
//
//   bench_search_scale [--strategy NAME] [--bounds SHARE] [--longest N] [MODEL.onnx …]
#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "driver/covers/layout_analysis.h"
#include "partition/extract.h"
#include "run_main.h"
#include "search/find_covers.h"

namespace collage {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A line of /proc/self/status, in MB.
double StatusMegabytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  return 0;
}

// Operators in a partition beyond these cost what they cost alone: else one partition for all would be best.
constexpr int kMostFused = 4;

/// What an operator costs a toolchain: a fixed number between 1 and 2 by both names; each further one of the first few
/// in a partition costs a tenth less.
class MockCosts : public BasicCoverCosts {
 public:
  MockCosts(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants, double bounds)
      : variants_(variants), bounds_(bounds) {
    std::map<std::pair<const Toolchain*, std::string>, double> known;
    for (const CandidatePartition& candidate : candidates) {
      double sum = 0, factor = 1;
      int num_fused = 0;
      for (auto it = candidate.sub_graph.members().rbegin(); it != candidate.sub_graph.members().rend(); ++it) {
        if (graph.OpAt(*it) == nullptr || graph.OpAt(*it)->is_reshape) continue;
        const std::string& name = graph.OpAt(*it)->name;
        auto [cost, is_new] = known.emplace(std::pair(candidate.toolchain, name), 0);
        if (is_new) {
          const size_t hash = std::hash<std::string>{}(candidate.toolchain->name() + ":" + name);
          cost->second = 1 + static_cast<double>(hash % 1000) / 1000;
        }
        sum += factor * cost->second;
        factor = ++num_fused < kMostFused ? factor * 0.9 : 1;
      }
      seconds_.push_back(sum);
    }
  }
  double LowerBound(VariantIndex variant) override { return bounds_ * Exact(variant); }
  double Exact(VariantIndex variant) override { return seconds_[variants_[variant].candidate]; }
  double Convert(int, Format, Format) override { return 0.2; }
  double Transition(VariantIndex /*variant*/) override { return 0.1; }

 private:
  const VariantList& variants_;
  double bounds_;
  IndexedVector<CandidateIndex, double> seconds_;
};

struct Figures {
  double nodes = 0, operators = 0, candidates = 0, variants = 0, enumerate = 0, layouts = 0, search = 0, states = 0,
         asked = 0, dropped = 0, megabytes = 0, cost = 0;
};

std::vector<const Toolchain*> Toolchains() {
  ProbeToolchains();  // registers them
  std::vector<const Toolchain*> toolchains;
  for (const char* name : {"native", "dnnl", "openvino"}) {
    if (const Toolchain* toolchain = ToolchainRegistry::Global().Find(name)) toolchains.push_back(toolchain);
  }
  return toolchains;
}

struct Setting {
  std::string strategy = "sweep";
  /// What is known of a cost before it is asked for, as a share of it: 1 as from a table.
  double bounds = 1;
};

/// Candidates and search; with `formats`, each candidate in all layouts that its toolchain offers.
std::vector<BoundaryLayouts> LayoutsOf(const DataflowGraph& graph, const CandidatePartition& candidate,
                                       const std::vector<bool>& eligible) {
  const ExtractedFunction extracted = Extract(graph, candidate.sub_graph);
  const auto may = [&](const std::vector<BoundaryValue>& values) {
    std::vector<bool> result;
    for (const BoundaryValue& value : values) result.push_back(value.field < 0 && eligible[value.node]);
    return result;
  };
  return candidate.toolchain->Layouts(extracted.function, may(extracted.boundary.inputs),
                                      may(extracted.boundary.outputs));
}

Figures Measure(const Function& function, const Setting& setting, bool formats) {
  Figures figures;
  malloc_trim(0);                                 // what importing left is not for us to use
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here
  const double before = StatusMegabytes("VmRSS:");
  auto start = std::chrono::steady_clock::now();
  const DataflowGraph graph(function);
  CandidateList candidates;
  for (const Toolchain* toolchain : Toolchains()) {
    RuleLog log;
    std::vector<CandidatePartition> found = GatherPartitionRule(*toolchain)->AllCandidates(graph, *toolchain, log);
    std::move(found.begin(), found.end(), std::back_inserter(candidates));
    if (std::getenv("VERBOSE") != nullptr) {
      fmt::print("  {}: {} candidates so far{}, {:.2f} s\n", toolchain->name(), candidates.size(),
                 log.candidates_capped ? " (capped)" : "", SecondsSince(start));
    }
  }
  figures.enumerate = SecondsSince(start);
  start = std::chrono::steady_clock::now();
  std::vector<bool> eligible(graph.size());
  if (formats) eligible = ChannelsLastEligible(graph);
  VariantList variants;
  for (CandidateIndex c : candidates.indices()) {
    if (!formats) {
      variants.push_back({c, {}});
      continue;
    }
    for (const BoundaryLayouts& layouts : LayoutsOf(graph, candidates[c], eligible)) variants.push_back({c, layouts});
  }
  figures.layouts = SecondsSince(start);
  MockCosts costs(graph, candidates, variants, setting.bounds);
  start = std::chrono::steady_clock::now();
  const SearchResult found =
      FindCovers(graph, candidates, variants, eligible, costs, {.strategy = setting.strategy, .num_covers = 2});
  figures.search = SecondsSince(start);
  figures.nodes = static_cast<double>(graph.size());
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) figures.operators += graph.OpAt(i) != nullptr ? 1 : 0;
  figures.candidates = static_cast<double>(candidates.size());
  figures.variants = static_cast<double>(variants.size());
  figures.states = static_cast<double>(found.num_states);
  figures.asked = static_cast<double>(found.num_exact);
  figures.dropped = static_cast<double>(found.num_dropped);
  figures.cost = found.covers.empty() ? -1 : found.covers[0].seconds;
  figures.megabytes = StatusMegabytes("VmHWM:") - before;
  return figures;
}

/// In a process of its own, so that each has the memory to itself.
Figures InChild(const std::function<Figures()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorCategory::kResource, "no pipe", "", "");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const Figures figures = work();
    const bool is_written = write(ends[1], &figures, sizeof(figures)) == sizeof(figures);
    std::fflush(stdout);
    _exit(is_written ? 0 : 1);
  }
  Figures figures;
  const bool is_read = read(ends[0], &figures, sizeof(figures)) == sizeof(figures);
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_read || status != 0) throw Error(ErrorCategory::kInternal, "a measurement failed", "", "");
  return figures;
}

void PrintHead() {
  fmt::print("{:<24}{:>9}{:>11}{:>9}{:>10}{:>9}{:>9}{:>10}{:>9}{:>8}{:>8}\n", "", "operators", "candidates", "variants",
             "enumerate", "layouts", "search", "states", "asked", "dropped", "MB");
}

void Print(const std::string& name, const Figures& f) {
  fmt::print("{:<24}{:>9.0f}{:>11.0f}{:>9.0f}{:>8.2f} s{:>7.2f} s{:>7.2f} s{:>10.0f}{:>9.0f}{:>8.0f}{:>8.0f}{}\n", name,
             f.operators, f.candidates, f.variants, f.enumerate, f.layouts, f.search, f.states, f.asked, f.dropped,
             f.megabytes, f.cost < 0 ? "  no cover" : "");
}

/// A branch of `length` operators of the kinds that models have.
Expr Branch(Expr value, int length, int& count) {
  static const Tensor weights = Tensor::Zeros({16, 16}, kFloat32);
  for (int i = 0; i < length; ++i, ++count) {
    switch (count % 6) {
      case 0: value = MakeCall("nn.dense", {value, MakeConstant(weights)}); break;
      case 1: value = MakeCall("nn.relu", {value}); break;
      case 2: value = MakeCall("multiply", {value, MakeScalar(0.5, kFloat32)}); break;
      case 3: value = MakeCall("tanh", {value}); break;
      case 4: value = MakeCall("nn.softmax", {value}, {{"axis", -1}}); break;
      default: value = MakeCall("exp", {value});
    }
  }
  return value;
}

/// Blocks one after the other: `width` branches of four operators from one value, summed up. Width 1 is a chain.
Function Net(int width, int num_operators) {
  const Var x = MakeVar("x", TensorType(Shape{16, 16}, kFloat32));
  Expr value = x;
  int count = 0;
  while (count < num_operators) {
    const Expr input = value;
    Expr sum;
    for (int branch = 0; branch < width; ++branch) {
      const Expr end = Branch(input, 4, count);
      if (sum) ++count;
      sum = sum ? MakeCall("add", {sum, end}) : end;
    }
    value = sum;
  }
  const Function function = MakeFunction({x}, value);
  InferType(function);
  return function;
}

void MeasureNets(const Setting& setting, int longest) {
  for (const int width : {1, 2, 4, 8}) {
    std::vector<std::pair<double, Figures>> row;
    for (const int length : {1000, 3000, 10000, 30000}) {
      if (length > longest) continue;
      const Function function = Net(width, length);
      const Figures figures = InChild([&] { return Measure(function, setting, false); });
      Print(fmt::format("width {}, {}", width, length), figures);
      row.emplace_back(figures.operators, figures);
    }
    if (row.size() < 2) continue;
    const auto exponent = [&](double Figures::*figure) {
      return std::log(row.back().second.*figure / row.front().second.*figure) /
             std::log(row.back().first / row.front().first);
    };
    fmt::print("{:<24}enumerate {:.2f}, search {:.2f}, states {:.2f}\n", "  exponent", exponent(&Figures::enumerate),
               exponent(&Figures::search), exponent(&Figures::states));
  }
}

int Main(int argc, char** argv) {
  Setting setting;
  int longest = 30000;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--strategy") == 0 && i + 1 < argc) {
      setting.strategy = argv[++i];
    } else if (std::strcmp(argv[i], "--bounds") == 0 && i + 1 < argc) {
      setting.bounds = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--longest") == 0 && i + 1 < argc) {
      longest = std::atoi(argv[++i]);
    } else {
      models.emplace_back(argv[i]);
    }
  }
  PrintHead();
  for (const std::string& model : models) {
    const IRModule module = PrepareForPartitioning(ImportOnnx(model, {}));
    for (const bool formats : {false, true}) {
      const Figures figures = InChild([&] { return Measure(module.main(), setting, formats); });
      Print(model.substr(model.rfind('/') + 1) + (formats ? ", layouts" : ""), figures);
    }
  }
  MeasureNets(setting, longest);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
