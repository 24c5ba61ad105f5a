// native_functions_test.cc: native kernels of random functions against the reference evaluation. Of each function some
// of the candidates that a search would find are compiled, in one of the layouts that it would try, for one thread and
// for two; of some, values at the boundary are kept as bfloat16, and some by a schedule, one that is listed or any.
// COLLAGE_PROPERTY_MODULES says how many functions, the others of for_random_modules.h as there. In place of the native
// toolchain the one that COLLAGE_TEST_NATIVE names is tested: native kernels for a device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "backends/builtin_toolchains.h"
#include "backends/native/description/schedule.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "conformance/guarded_result.h"
#include "conformance/on_device.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/reference.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"
#include "property/for_random_modules.h"
#include "property/native/function_generator.h"
#include "property/native/widened_function.h"
#include "runtime/compare.h"
#include "worker/worker.h"

namespace collage {
namespace {

const Toolchain& Native() {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  const char* other = std::getenv("COLLAGE_TEST_NATIVE");
  return *ToolchainRegistry::Global().Find(other == nullptr ? "native" : other);
}

Tensor InLayout(const Tensor& tensor, Layout from, Layout to) {
  Tensor result = Tensor::Empty(tensor.shape(), tensor.dtype());
  ConvertLayout(tensor.raw(), from, result.raw(), to, tensor.shape(), tensor.dtype().size_bytes());
  return result;
}

/// A partition, values for what crosses into it, and what comes out.
struct Case {
  ExtractedFunction extracted;
  std::vector<Tensor> inputs;
  std::unique_ptr<const ExpectedResults> expected;
};

/// Checks one function.
class FunctionCheck {
 public:
  explicit FunctionCheck(uint64_t seed)
      : random_(seed + 77), whole_(FunctionGenerator(seed).Make()), graph_(whole_.function) {}

  /// A line with the number of fused sub-graphs that were compiled, and behind it what is wrong with them, if anything.
  std::string Run() {
    std::string wrong;
    int compiled = 0;
    for (const CandidatePartition& candidate : Candidates()) {
      Case test = MakeCase(candidate);
      // The compiler folds constants first, so a reference leaves nothing open about how those alone are rounded.
      if (test.inputs.empty() && RoundsToIntegers(test.extracted.function)) continue;
      ++compiled;
      BoundaryLayouts layouts = RandomLayouts(test.extracted.function);
      if (random_.OneIn(3)) KeepNarrow(test, layouts);
      const std::string schedule = RandomSchedule({test.extracted.function, layouts, 2});
      for (const int threads : {1, 2}) {
        const std::string text = CheckKernel(test, {test.extracted.function, layouts, threads, schedule});
        if (text.empty()) continue;
        wrong += fmt::format("{}\n{}, schedule '{}':\n{}\n", text, LayoutsText(layouts), schedule,
                             PrintExpr(test.extracted.function));
        break;
      }
    }
    return fmt::format("{}\n{}", compiled, wrong);
  }

 private:
  /// The largest, and one or two others.
  std::vector<CandidatePartition> Candidates() {
    RuleLog log;
    std::vector<CandidatePartition> all = GatherPartitionRule(Native())->AllCandidates(graph_, Native(), log);
    std::vector<CandidatePartition> chosen;
    const size_t most = random_.OneIn(2) ? 2 : 3;
    const auto by_size = [](const CandidatePartition& a, const CandidatePartition& b) {
      return a.sub_graph.members().size() < b.sub_graph.members().size();
    };
    while (chosen.size() < most && !all.empty()) {
      auto it = chosen.empty() ? std::max_element(all.begin(), all.end(), by_size)
                               : all.begin() + random_.Below(static_cast<int>(all.size()));
      chosen.push_back(*it);
      all.erase(it);
    }
    return chosen;
  }

  /// Values of the nodes that `extracted` reads, by reference evaluation of the whole function.
  std::vector<Tensor> InputsOf(const ExtractedFunction& extracted) const {
    std::vector<Tensor> inputs;
    for (const BoundaryValue& value : extracted.boundary.inputs) {
      const Expr& node = graph_.node(value.node).expr;
      const Expr wanted = value.field < 0 ? node : MakeTupleGetItem(node, value.field);
      const Function function = MakeFunction(whole_.function->params(), wanted);
      InferType(function);
      inputs.push_back(Evaluate(function, whole_.inputs).at(0));
    }
    return inputs;
  }

  Case MakeCase(const CandidatePartition& candidate) const {
    Case made{Extract(graph_, candidate.sub_graph), {}, nullptr};
    made.inputs = InputsOf(made.extracted);
    made.expected = std::make_unique<ExpectedResults>(made.extracted.function, made.inputs);
    return made;
  }

  /// One of the choices that a search would have, if what is around the partition liked channels last.
  BoundaryLayouts RandomLayouts(const Function& function) {
    const auto is_eligible = [&](const Type& type) {
      const int rank = AsTensorType(type)->rank();
      return rank >= 3 && rank <= 5 && !random_.OneIn(4);
    };
    std::vector<bool> inputs, outputs;
    for (const Var& param : function->params()) inputs.push_back(is_eligible(param->checked_type()));
    for (const Type& type : FlattenTensorTypes(function->body()->checked_type())) outputs.push_back(is_eligible(type));
    std::vector<BoundaryLayouts> all = Native().Layouts(function, inputs, outputs);
    all.push_back(PlainLayouts(inputs.size(), outputs.size()));
    return In(Memory::kHost, random_.Pick(all));
  }

  /// Some of the inputs, and a result that is alone: of several, one may be computed from another as that is kept.
  void KeepNarrow(Case& test, BoundaryLayouts& layouts) {
    const DataType narrow = random_.OneIn(2) ? kBFloat16 : kFloat16;
    const auto may = [&](const Tensor& value) {
      return value.dtype() == kFloat32 && (narrow == kBFloat16 || FitsFloat16(value)) && !random_.OneIn(3);
    };
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      if (!may(test.inputs[i])) continue;
      layouts.inputs[i] = Keeping(layouts.inputs[i], narrow);
      test.inputs[i] = test.inputs[i].Cast(narrow).Cast(kFloat32);
    }
    test.expected = std::make_unique<ExpectedResults>(test.extracted.function, test.inputs);
    const std::vector<Tensor>& results = test.expected->results();
    if (results.size() == 1 && may(results[0])) layouts.outputs[0] = Keeping(layouts.outputs[0], narrow);
  }

  static bool FitsFloat16(const Tensor& value) {
    constexpr float kLarge = 60000;
    return std::all_of(value.data<float>(), value.data<float>() + value.num_elements(),
                       [](float element) { return std::abs(element) < kLarge; });
  }

  /// The models' own, one that a search would try, or any at all.
  std::string RandomSchedule(const PartitionRequest& request) {
    if (random_.OneIn(2)) return "";
    if (random_.OneIn(2)) {
      const Result<std::vector<std::string>> listed = Native().Schedules(request);
      return listed.ok() && !listed->empty() ? random_.Pick(*listed) : "";
    }
    native::Schedule any;
    const auto draw = [&](int64_t& number, int most) {
      if (random_.OneIn(2)) number = 1 + random_.Below(most);
    };
    draw(any.algorithm, 3);
    draw(any.rows, 9);
    draw(any.width, 4);
    draw(any.unroll, 5);
    draw(any.block, 30);
    draw(any.parts, 3);
    draw(any.parallel, 2);
    draw(any.pack, 2);
    if (random_.OneIn(2)) any.lanes = random_.Pick(std::vector<int64_t>{4, 8, 16});
    return any.ToString();
  }

  static std::string LayoutsText(const BoundaryLayouts& layouts) {
    std::string text = "inputs";
    for (const Layout layout : layouts.inputs) text += fmt::format(" {}", ToString(layout));
    text += ", outputs";
    for (const Layout layout : layouts.outputs) text += fmt::format(" {}", ToString(layout));
    return text;
  }

  /// Of a kernel for the request's threads, run by them and, as is right, too, by one alone.
  static std::string CheckKernel(const Case& test, const PartitionRequest& request) {
    SetNumThreads(request.num_threads);
    PartitionRequest placed = request;
    placed.layouts = In(MainMemoryOf(Native()), request.layouts);
    const Result<CompiledPartition> compiled = Native().RelayToRuntime(placed);
    if (!compiled.ok()) return "not compiled: " + compiled.reason().text;
    for (int threads = request.num_threads; threads > 0; --threads) {
      const std::string wrong = RunOnce(test, *compiled, request.layouts, threads);
      if (!wrong.empty()) return fmt::format("{}\nfor {} threads, {} run it", wrong, request.num_threads, threads);
    }
    return "";
  }

  static std::string RunOnce(const Case& test, const CompiledPartition& compiled, const BoundaryLayouts& layouts,
                             int threads) {
    SetNumThreads(threads);
    const std::unique_ptr<Kernel> kernel =
        GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, threads});
    conformance::OnDevice device(MainMemoryOf(Native()));
    std::vector<Tensor> inputs;
    std::vector<void*> from, to;
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      inputs.push_back(InLayout(test.inputs[i], Layout::kPlain, layouts.inputs[i]));
      from.push_back(device.Place(inputs.back().raw(), inputs.back().size_bytes()));
    }
    std::vector<conformance::GuardedResult> outputs(test.expected->results().begin(), test.expected->results().end());
    for (conformance::GuardedResult& output : outputs) {
      to.push_back(device.Place(output.raw(), output.guarded_bytes()));
    }
    const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled.workspace_bytes)}, kUInt8);
    kernel->Bind(from, to,
                 compiled.workspace_bytes == 0 ? nullptr : device.Place(workspace.raw(), workspace.size_bytes()));
    kernel->Run();
    for (size_t i = 0; i < outputs.size(); ++i) {
      device.Fetch(outputs[i].raw(), to[i], outputs[i].guarded_bytes());
      if (!outputs[i].IsGuardIntact()) return fmt::format("what lies behind result {} was written", i);
      const Tensor actual = InLayout(outputs[i].Written(), layouts.outputs[i], Layout::kPlain);
      const std::string wrong = NarrowType(layouts.outputs[i])
                                    ? FindOtherThanRounded(actual, test.expected->results()[i])
                                    : test.expected->Compare(i, actual);
      if (!wrong.empty()) return fmt::format("wrong result {}: {}", i, wrong);
    }
    return "";
  }

  /// Where a result that was rounded in the end is something else than that.
  static std::string FindOtherThanRounded(const Tensor& actual, const Tensor& exact) {
    constexpr double kRounding = 1.0 / 256;
    constexpr double kOfLargest = 1e-3;  // what a kernel in float32 may lose
    return Compare(actual, exact, {kRounding, ShareOfLargest(exact, kOfLargest).absolute + 1e-30}).difference;
  }

  RandomSource random_;
  RandomFunction whole_;
  DataflowGraph graph_;
};

std::string TextOf(uint64_t seed) {
  try {
    return PrintExpr(FunctionGenerator(seed).Make().function);
  } catch (const Error& error) {
    return "what cannot be made: " + error.Format();
  }
}

TEST(NativeFunctionsTest, KernelsComputeWhatTheReferenceDoes) {
  if (!Native().Probe().available) GTEST_SKIP() << Native().Probe().reason;
  const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", 40);
  // In a process of its own: kernels may crash.
  Worker worker([](const std::string& seed, const SendProgress&) { return FunctionCheck(std::stoull(seed)).Run(); },
                {.timeout = std::chrono::seconds(60), .memory_bytes = 0});
  int64_t sub_graphs = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Result<std::string> answer = worker.Call(std::to_string(seed));
    const std::string wrong = answer.ok() ? answer->substr(answer->find('\n') + 1) : answer.reason().text;
    if (answer.ok()) sub_graphs += std::stoll(*answer);
    if (wrong.empty()) continue;
    ADD_FAILURE() << "seed " << seed << ": " << wrong << "\nof\n" << TextOf(seed);
    if (std::getenv("COLLAGE_PROPERTY_ALL") == nullptr) break;
  }
  fmt::print("{} fused sub-graphs of {} functions\n", sub_graphs, count);
}

}  // namespace
}  // namespace collage
