// info.cc: `collage info`: what is in an executable: inputs, outputs, which nodes run where; as a report or a drawing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bytecode/bytecode.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/layout.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "report/json.h"
#include "runtime/library_calls.h"
#include "runtime/native_loader.h"
#include "viewers/dot.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  bool verify = false;
  bool dot = false;
  bool json = false;
};

Fact PortRow(const PortInfo& port) {
  return Fact::Record("", "",
                      {Fact::Text("name", "name", port.name), Fact::Sizes("shape", "shape", port.shape),
                       Fact::Text("dtype", "dtype", port.dtype.ToString())})
      .Says("{name} {dtype} " + Literal(ToString(port.shape)) + "{?shape}");
}

/// The type of a parameter, with strings in place of the integers that stand for them.
std::string TypeText(const Type& type, bool is_text) {
  if (type == nullptr) return "";
  std::string text = ToString(type);
  const std::string numbers = kInt64.ToString();
  const size_t place = text.rfind(numbers);
  return is_text && place != std::string::npos ? text.replace(place, numbers.size(), "string") : text;
}

Fact FunctionRow(const vm::Executable& executable, const std::string& name) {
  std::vector<Fact> inputs;
  const StringTensors strings = executable.Strings(name);
  for (const Var& param : executable.Parameters(name)) {
    const std::string type = TypeText(param->type_annotation(), strings.IsParam(inputs.size()));
    inputs.push_back(Fact::Record("", "", {Fact::Text("name", "name", param->name()), Fact::Text("type", "type", type)})
                         .Says("{name}[: {type}]"));
  }
  return Fact::Record("", "",
                      {Fact::Text("name", "function", name),
                       Fact::Table("inputs", "inputs", std::move(inputs)).Inline().SeparatedBy(", "),
                       Fact::Texts("outputs", "outputs", executable.ResultNames(name)).SeparatedBy(", ")})
      .Says("function  @{name}({inputs})[ -> {outputs}]");
}

Fact KernelRow(const vm::KernelFunction& kernel) {
  std::vector<Fact> partitions;
  for (const ExecutionPlan::KernelEntry& entry : kernel.executable.plan().kernels) {
    partitions.push_back(
        Fact::Record(
            "", "",
            {Fact::Text("toolchain", "toolchain", entry.toolchain), Fact::Text("operators", "operators", entry.label)})
            .Says(Literal(fmt::format("          {:10} ", entry.toolchain)) + "{?toolchain}{operators}"));
  }
  return Fact::Record("", "",
                      {Fact::Text("name", "kernel", kernel.name),
                       Fact::Table("partitions", "partitions", std::move(partitions)).Inline().SeparatedBy("\n")})
      .Says("kernel    {name}[\n{partitions}]");
}

/// "nn.dense+add": what a kernel for dynamic shapes computes.
std::string OperatorsOf(const vm::DynamicKernel& kernel) {
  std::vector<std::string> names;
  for (const DynamicSizes::Step& step : kernel.sizes.steps) {
    if (step.op != nullptr) names.push_back(step.op->name);
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

Fact DynamicKernelRow(const vm::DynamicKernel& kernel) {
  return Fact::Record(
             "", "",
             {Fact::Text("name", "kernel", kernel.name), Fact::Text("toolchain", "toolchain", kernel.toolchain),
              Fact::Text("operators", "operators", OperatorsOf(kernel))})
      .Says("any size  {name}\n" + Literal(fmt::format("          {:10} ", kernel.toolchain)) +
            "{?toolchain}{operators:80}");
}

/// Adds the functions of libraries that the kernels of `executable` call to `calls`, each once.
void GatherCalls(const Executable& executable, std::vector<LibraryCall>& calls) {
  const auto& kernels = executable.plan().kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].loader != kObjectLoaderName) continue;
    for (LibraryCall& call : CallsOf(executable.blob(static_cast<int>(i)))) {
      if (std::ranges::find(calls, call) == calls.end()) calls.push_back(std::move(call));
    }
  }
}

Fact CallRow(const LibraryCall& call) {
  return Fact::Record("", "",
                      {Fact::Text("library", "library", call.library),
                       Fact::Text("function", "function", call.function), Fact::Text("hint", "hint", call.hint)})
      .Says("calls {function} of {library}[ ({hint})]");
}

/// Facts of a program with control flow: its functions, its kernels with their partitions, and kernels for any size.
Fact ProgramFacts(const std::string& file) {
  const vm::Executable executable = vm::Executable::Load(file);
  std::vector<Fact> functions;
  for (const std::string& name : executable.program().globals) functions.push_back(FunctionRow(executable, name));
  std::vector<LibraryCall> calls;
  for (const vm::KernelFunction& kernel : executable.program().kernels) GatherCalls(kernel.executable, calls);
  return Fact::Report(1, {Fact::Table("functions", "", std::move(functions)),
                          TableOf("kernels", "", executable.program().kernels, KernelRow),
                          TableOf("any_size_kernels", "", executable.program().dynamic_kernels, DynamicKernelRow),
                          TableOf("calls", "", calls, CallRow)});
}

Fact PartitionsTable(const ExecutionPlan& plan) {
  const bool has_schedules =
      std::ranges::any_of(plan.kernels, [](const auto& kernel) { return !kernel.schedule.empty(); });
  std::vector<Fact> rows;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
    rows.push_back(Fact::Record(
        "", "",
        {Fact::Integer("partition", "partition", static_cast<int64_t>(rows.size())),
         Fact::Text("toolchain", "toolchain", kernel.toolchain), Fact::Text("operators", "operators", kernel.label),
         Fact::Texts("nodes", "nodes of the model", kernel.nodes).SeparatedBy(" "),
         Fact::Seconds("estimated_seconds", "estimated",
                       kernel.estimated_seconds > 0 ? std::optional(kernel.estimated_seconds) : std::nullopt)}));
    if (has_schedules) rows.back().parts.push_back(Fact::Text("schedule", "schedule", kernel.schedule));
  }
  return Fact::Table("partitions", "partitions", std::move(rows))
      .Columns({{"partition", "{partition}"},
                {"toolchain", "{toolchain}"},
                {"estimated", "{estimated_seconds}"},
                {"operators", "{operators:80}"},
                {"nodes of the model", "[{nodes:80}]"}});
}

/// The copies of a plan to a device's memory, from there, and within the device.
Fact MemoryRow(const ExecutionPlan& plan, Memory memory, size_t arena_bytes) {
  int64_t copies = 0, bytes = 0;
  for (const ExecutionPlan::Step& step : plan.steps) {
    if (step.kind == ExecutionPlan::Step::kKernel) continue;
    const ExecutionPlan::Value& from = plan.values[static_cast<size_t>(step.inputs[0])];
    const ExecutionPlan::Value& to = plan.values[static_cast<size_t>(step.outputs[0])];
    const bool is_own = MemoryOf(from.layout) == memory || MemoryOf(to.layout) == memory;
    if (MemoryOf(from.layout) == MemoryOf(to.layout) || !is_own) continue;
    ++copies;
    bytes += NumElements(to.shape) * static_cast<int64_t>(StoredType(to.layout, to.dtype).size_bytes());
  }
  return Fact::Record("", "",
                      {Fact::Text("memory", "memory", std::string(ToString(memory))),
                       Fact::Bytes("arena_bytes", "arena", static_cast<int64_t>(arena_bytes)),
                       Fact::Count("copies", "copies", copies), Fact::Bytes("copied_bytes", "copied", bytes)})
      .Says("memory {memory} · arena {arena_bytes} · copies: {copies}, {copied_bytes}");
}

std::vector<Fact> MemoryRows(const ExecutionPlan& plan) {
  std::vector<Fact> rows;
  for (const auto& [memory, bytes] : plan.device_arena_bytes) rows.push_back(MemoryRow(plan, memory, bytes));
  return rows;
}

Fact ExecutableFacts(const Arguments& arguments) {
  const Executable executable = Executable::Load(arguments.executable);
  const ExecutionPlan& plan = executable.plan();
  std::vector<LibraryCall> calls;
  GatherCalls(executable, calls);
  return Fact::Report(1, {TableOf("inputs", "input", executable.inputs(), PortRow),
                          TableOf("outputs", "output", executable.outputs(), PortRow),
                          Fact::Line("", {Fact::Count("threads", "threads", plan.num_threads),
                                          Fact::Bytes("arena_bytes", "arena", static_cast<int64_t>(plan.arena_bytes)),
                                          Fact::Count("steps", "steps", static_cast<int64_t>(plan.steps.size())),
                                          Fact::Flag("verified", "all checksums are right", arguments.verify)})
                              .Says("{steps} step{s:steps} · {threads} thread{s:threads} · arena {arena_bytes}"),
                          Fact::Table("memories", "", MemoryRows(plan)),
                          FactOfJson("metadata", "metadata", plan.metadata_json).Detail(), PartitionsTable(plan),
                          TableOf("calls", "", calls, CallRow)});
}

void Run(const Arguments& arguments) {
  const std::string& file = arguments.executable;
  const bool is_program = vm::Executable::IsBytecode(file);
  if (arguments.verify) is_program ? vm::Executable::Load(file).CheckConstants() : Executable::Verify(file);
  if (arguments.dot) {
    fmt::print("{}", DotOf(ViewedModel(file)));
  } else {
    PrintReport(is_program ? ProgramFacts(file) : ExecutableFacts(arguments), arguments.json);
  }
}

}  // namespace

void AddInfoCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "info", "Show inputs, outputs and partitions of an executable, and which toolchain runs each node");
  command->add_option("executable", arguments->executable, "Executable (.clg)")->required();
  command->add_flag("--verify", arguments->verify, "Read the whole file and check all checksums");
  AddRequiredSignature(*command);
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print as JSON");
  command
      ->add_flag("--dot", arguments->dot,
                 "Draw partitions, their toolchains, times and tensors in Graphviz's language: … --dot | dot -Tsvg")
      ->excludes(json);
  command->footer(
      "Examples:\n"
      "  collage info model.clg             partitions, and the nodes of the model in each\n"
      "  collage info model.clg --verify    also checks all checksums\n"
      "  collage info model.clg --dot       a graph for Graphviz");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
