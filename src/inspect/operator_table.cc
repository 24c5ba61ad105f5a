// operator_table.cc: random calls, who takes them in which layouts, and whether the results are right.
#include "collage/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/measure.h"
#include "driver/covers/layout_analysis.h"
#include "inspect/random_calls.h"
#include "partition/extract.h"
#include "partition/partition_spec.h"
#include "worker/worker.h"

namespace collage {
namespace {

using Json = nlohmann::json;

/// A partition to check: which row it is of, and what it is to compute of what.
struct Check {
  std::tuple<std::string, size_t, std::string> row;  ///< operator, dtype (its number), layouts
  PartitionRequest request;
  std::vector<Tensor> inputs;  ///< of the partition, plain
  Reference expected;
};

std::string RowText(const BoundaryLayouts& layouts) {
  // Layouts of the eligible values; others are plain.
  const auto text = [](const std::vector<Layout>& all) {
    return std::string(ToString(all.empty() ? Layout::kPlain : *std::ranges::max_element(all)));
  };
  const std::string in = text(layouts.inputs), out = text(layouts.outputs);
  return in == out ? in : in + " → " + out;
}

/// Whether a list, where empty means all, has `name`.
bool Wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

bool MayHaveLayouts(const Type& type) {
  const TensorTypeNode* tensor = AsTensorType(type);
  return tensor != nullptr && tensor->rank() >= 3 && tensor->rank() <= 5;
}

/// Returns which of `function`'s parameters and results may be channels-last: inputs that a convolution may have made,
/// and results if the operator makes or keeps the layout.
std::pair<std::vector<bool>, std::vector<bool>> Eligible(const Function& function, bool makes_layouts) {
  std::pair<std::vector<bool>, std::vector<bool>> eligible;
  for (const Var& param : function->params()) eligible.first.push_back(MayHaveLayouts(param->checked_type()));
  for (const Type& type : FlattenTensorTypes(function->body()->checked_type())) {
    eligible.second.push_back(makes_layouts && MayHaveLayouts(type));
  }
  return eligible;
}

/// The partitions that `toolchain` would make of `call`, in all layouts.
std::vector<Check> ChecksOf(const Toolchain& toolchain, const PartitionRule& rule, const RandomCall& call,
                            const std::string& op, size_t dtype, int num_threads) {
  std::vector<Check> checks;
  const DataflowGraph graph(call.function);
  const int result = graph.IndexOf(call.function->body());
  RuleLog log;
  for (const CandidatePartition& candidate : rule.AllCandidates(graph, toolchain, log)) {
    if (!candidate.sub_graph.inside().Contains(result)) continue;
    const ExtractedFunction extracted = Extract(graph, candidate.sub_graph);
    std::vector<Tensor> inputs;
    for (const BoundaryValue& value : extracted.boundary.inputs) {
      inputs.push_back(call.inputs.at(static_cast<size_t>(value.node)));  // parameters come first in a graph
    }
    const auto [in, out] = Eligible(extracted.function, MayMakeChannelsLast(graph, result));
    for (const BoundaryLayouts& layouts : toolchain.Layouts(extracted.function, in, out)) {
      checks.push_back(
          {{op, dtype, RowText(layouts)}, {extracted.function, layouts, num_threads}, inputs, call.expected});
    }
  }
  return checks;
}

/// Runs in the worker. The answer: {"declined": why}, {"failure": what}, or {"error": how far off}.
class Checker {
 public:
  Checker(const Toolchain& toolchain, const std::vector<Check>& checks) : toolchain_(toolchain), checks_(checks) {}

  std::string Answer(const std::string& number) const {
    const Check& check = checks_[std::stoul(number)];
    Result<CompiledPartition> compiled = CompilePartition(toolchain_, check.request);
    Json answer;
    if (!compiled) {
      answer["declined"] = compiled.reason().text;
    } else {
      double max_error = 0;
      std::string failure = Run(*compiled, check, max_error);
      if (failure.empty()) failure = Try(*compiled, check, max_error);
      answer = failure.empty() ? Json{{"error", max_error}} : Json{{"failure", failure}};
    }
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  static Tensor InLayout(const Tensor& tensor, Layout from, Layout to) {
    Tensor result = Tensor::Empty(tensor.shape(), tensor.dtype());
    ConvertLayout(tensor.raw(), from, result.raw(), to, tensor.shape(), tensor.dtype().size_bytes());
    return result;
  }

  /// The address of `tensor`, or of a copy in another memory, which `buffers` keeps.
  static void* AddressIn(Memory memory, const Tensor& tensor, std::vector<DeviceBuffer>& buffers) {
    if (memory == Memory::kHost) return tensor.raw();
    buffers.emplace_back(memory, tensor.size_bytes());
    buffers.back().device().CopyIn(buffers.back().address(), tensor.raw(), tensor.size_bytes());
    return buffers.back().address();
  }

  /// Twice, the second time on other addresses. Empty when right.
  static std::string Run(const CompiledPartition& compiled, const Check& check, double& max_error) {
    const BoundaryLayouts& layouts = check.request.layouts;
    const std::unique_ptr<Kernel> kernel =
        GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, check.request.num_threads});
    for (int run = 0; run < 2; ++run) {
      std::vector<Tensor> inputs, outputs;
      std::vector<DeviceBuffer> elsewhere;
      std::vector<void*> from, to;
      for (size_t i = 0; i < check.inputs.size(); ++i) {
        inputs.push_back(InLayout(check.inputs[i], Layout::kPlain, In(Memory::kHost, layouts.inputs[i])));
        from.push_back(AddressIn(MemoryOf(layouts.inputs[i]), inputs.back(), elsewhere));
      }
      for (const Tensor& want : check.expected.results()) {
        constexpr uint8_t kPoison = 0x5a;
        outputs.push_back(Tensor::Empty(want.shape(), want.dtype()));
        std::fill_n(outputs.back().data<uint8_t>(), outputs.back().size_bytes(), kPoison);
        to.push_back(AddressIn(MemoryOf(layouts.outputs[to.size()]), outputs.back(), elsewhere));
      }
      const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled.workspace_bytes)}, kUInt8);
      const bool has_workspace = compiled.workspace_bytes > 0;
      kernel->Bind(from, to, has_workspace ? AddressIn(compiled.workspace_memory, workspace, elsewhere) : nullptr);
      kernel->Run();
      for (size_t i = 0; i < outputs.size(); ++i) {
        const Memory memory = MemoryOf(layouts.outputs[i]);
        if (memory != Memory::kHost) GetDevice(memory).CopyOut(outputs[i].raw(), to[i], outputs[i].size_bytes());
        const Tensor got = InLayout(outputs[i], In(Memory::kHost, layouts.outputs[i]), Layout::kPlain);
        const Comparison comparison = check.expected.Compare(i, got);
        max_error = std::max(max_error, comparison.max_relative_error);
        if (!comparison.agrees) return fmt::format("wrong result {}, {}", i, comparison.difference);
      }
    }
    return "";
  }

  /// As candidates are tried, on inputs of other ranges.
  std::string Try(const CompiledPartition& compiled, const Check& check, double& max_error) const {
    TrialOptions trying = TrialOptionsFor(toolchain_);
    trying.may_be_refused = true;
    LoadedPartition partition(compiled, check.request.num_threads);
    return TryKernel(partition, check.request, trying, max_error);
  }

  const Toolchain& toolchain_;
  const std::vector<Check>& checks_;
};

std::string CallText(const Check& check) {
  std::string text;
  for (const Var& param : check.request.function->params()) {
    text += (text.empty() ? "" : ", ") + ToString(param->checked_type());
  }
  return "on " + (text.empty() ? "constants" : text);
}

class Tabulator {
 public:
  Tabulator(const Toolchain& toolchain, const OperatorTableOptions& options)
      : toolchain_(toolchain), options_(options), rule_(GatherPartitionRule(toolchain)) {}

  void Fill(OperatorTable& table) {
    FindChecks();
    const Checker checker(toolchain_, checks_);
    const WorkerLimits limits{.timeout = std::chrono::seconds(60), .memory_bytes = 0};
    Worker worker([&](const std::string& number, const SendProgress&) { return checker.Answer(number); }, limits);
    std::map<std::tuple<std::string, size_t, std::string>, OperatorRow> rows;
    for (size_t i = 0; i < checks_.size(); ++i) {
      constexpr size_t kSometimes = 50;
      if (options_.on_progress && i % kSometimes == 0) options_.on_progress(toolchain_.name(), i, checks_.size());
      const Result<std::string> text = worker.Call(std::to_string(i));
      const Json answer = text.ok() ? Json::parse(*text) : Json{{"failure", text.reason().text}};
      if (answer.contains("declined")) {
        ++table.num_declined;
        continue;
      }
      OperatorRow& row = rows[checks_[i].row];
      ++row.num_calls;
      if (answer.contains("failure")) {
        row.failures.push_back(CallText(checks_[i]) + ": " + answer["failure"].get<std::string>());
      } else {
        row.max_error = std::max(row.max_error, answer["error"].get<double>());
      }
    }
    for (auto& [key, row] : rows) {
      row.op = std::get<0>(key);
      row.dtype = DataTypesToTry()[std::get<1>(key)].ToString();
      row.layouts = std::get<2>(key);
      table.rows.push_back(std::move(row));
    }
  }

 private:
  void FindChecks() {
    for (const Op& op : AllOps()) {
      if (!Wanted(options_.operators, op->def().name)) continue;
      for (size_t dtype = 0; dtype < DataTypesToTry().size(); ++dtype) {
        if (Wanted(options_.dtypes, DataTypesToTry()[dtype].ToString())) FindChecks(op->def(), dtype);
      }
    }
  }

  /// Each row gets at most as many checks as were asked for.
  void FindChecks(const OpDef& op, size_t dtype) {
    std::map<std::string, int> counts;  // by layouts
    std::seed_seq seeds{options_.seed, static_cast<uint32_t>(dtype),
                        static_cast<uint32_t>(std::hash<std::string>{}(op.name))};
    std::mt19937 random(seeds);
    for (size_t i = 0; i < op.examples.size() + static_cast<size_t>(options_.num_calls); ++i) {
      if (op.examples.empty()) return;
      const OpExample& example = op.examples[i % op.examples.size()];
      for (const size_t first_constant : {size_t{1}, SIZE_MAX}) {
        const std::optional<RandomCall> call =
            MakeRandomCall(op, example, DataTypesToTry()[dtype], first_constant, random);
        if (!call) continue;
        for (Check& check : ChecksOf(toolchain_, *rule_, *call, op.name, dtype, options_.num_threads)) {
          if (++counts[std::get<2>(check.row)] <= options_.num_calls) checks_.push_back(std::move(check));
        }
      }
    }
  }

  const Toolchain& toolchain_;
  const OperatorTableOptions& options_;
  PartitionRulePtr rule_;
  std::vector<Check> checks_;
};

}  // namespace

std::vector<OperatorTable> TabulateOperators(const OperatorTableOptions& options) {
  for (const std::string& op : options.operators) GetOp(op);
  for (const std::string& name : options.dtypes) {
    const auto is_it = [&](DataType dtype) { return dtype.ToString() == name; };
    if (std::none_of(DataTypesToTry().begin(), DataTypesToTry().end(), is_it)) {
      throw Error(ErrorCategory::kInput, fmt::format("operators are not tried on '{}'", name));
    }
  }
  std::vector<OperatorTable> tables;
  for (ToolchainReport& toolchain : ProbeToolchains()) tables.push_back({std::move(toolchain), {}, 0});
  for (const std::string& name : options.toolchains)
    ToolchainRegistry::Global().Get(name);  // throws when there is none
  std::erase_if(tables, [&](const OperatorTable& table) { return !Wanted(options.toolchains, table.toolchain.name); });
  for (OperatorTable& table : tables) {
    if (!table.toolchain.available) continue;
    Tabulator(*ToolchainRegistry::Global().Find(table.toolchain.name), options).Fill(table);
  }
  return tables;
}

}  // namespace collage
