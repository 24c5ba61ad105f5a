// info.cc: `collage info`: what is in an executable: inputs, outputs, which nodes run where.
#include <fmt/format.h>

#include <algorithm>

#include "bytecode/bytecode.h"
#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"
#include "command.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  bool verify = false;
  bool json = false;
};

Json PortsJson(const std::vector<PortInfo>& ports) {
  Json json = Json::array();
  for (const PortInfo& port : ports) {
    json.push_back({{"name", port.name}, {"shape", port.shape}, {"dtype", port.dtype.ToString()}});
  }
  return json;
}

/// Of a program with control flow: its functions, and its kernels with what is in each.
void PrintProgram(const Arguments& arguments) {
  const vm::Executable executable = vm::Executable::Load(arguments.executable);
  const vm::Program& program = executable.program();
  Json json{{"schema", 1}, {"functions", Json::array()}, {"kernels", Json::array()}};
  std::string text;
  for (const std::string& name : program.globals) {
    std::string params;
    Json inputs = Json::array();
    for (const Var& param : executable.Parameters(name)) {
      const Type& type = param->type_annotation();
      const std::string type_text = type == nullptr ? "" : ToString(type);
      params +=
          fmt::format("{}{}{}{}", params.empty() ? "" : ", ", param->name(), type_text.empty() ? "" : ": ", type_text);
      inputs.push_back({{"name", param->name()}, {"type", type_text}});
    }
    const std::vector<std::string> outputs = executable.ResultNames(name);
    json["functions"].push_back({{"name", name}, {"inputs", inputs}, {"outputs", outputs}});
    text +=
        fmt::format("function  @{}({}){}{}\n", name, params, outputs.empty() ? "" : " -> ", fmt::join(outputs, ", "));
  }
  for (const vm::KernelFunction& kernel : program.kernels) {
    Json partitions = Json::array();
    text += fmt::format("kernel    {}\n", kernel.name);
    for (const ExecutionPlan::KernelEntry& entry : kernel.executable.plan().kernels) {
      partitions.push_back({{"toolchain", entry.toolchain}, {"operators", entry.label}});
      text += fmt::format("          {:10} {}\n", entry.toolchain, entry.label);
    }
    json["kernels"].push_back({{"name", kernel.name}, {"partitions", std::move(partitions)}});
  }
  if (arguments.json) return PrintJson(json);
  fmt::print("{}", text);
}

void Run(const Arguments& arguments) {
  if (vm::Executable::IsBytecode(arguments.executable)) return PrintProgram(arguments);
  if (arguments.verify) Executable::Verify(arguments.executable);
  const Executable executable = Executable::Load(arguments.executable);
  const ExecutionPlan& plan = executable.plan();
  Json json{{"schema", 1},
            {"inputs", PortsJson(executable.inputs())},
            {"outputs", PortsJson(executable.outputs())},
            {"threads", plan.num_threads},
            {"arena_bytes", plan.arena_bytes},
            {"steps", plan.steps.size()},
            {"metadata", Json::parse(plan.metadata_json, nullptr, false)}};
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
    json["partitions"].push_back({{"toolchain", kernel.toolchain},
                                  {"operators", kernel.label},
                                  {"nodes", kernel.nodes},
                                  {"estimated_seconds", kernel.estimated_seconds}});
    if (!kernel.schedule.empty()) json["partitions"].back()["schedule"] = kernel.schedule;
  }
  if (arguments.json) return PrintJson(json);
  for (const auto& [title, ports] :
       {std::pair("input", executable.inputs()), std::pair("output", executable.outputs())}) {
    for (const PortInfo& port : ports) {
      fmt::print("{:8}{} {} {}\n", title, port.name, port.dtype.ToString(), ToString(port.shape));
    }
  }
  fmt::print("{} steps · {} threads · arena {}{}\n", plan.steps.size(), plan.num_threads,
             FormatBytes(static_cast<double>(plan.arena_bytes)), arguments.verify ? " · all checksums are right" : "");
  const bool has_schedules = std::any_of(plan.kernels.begin(), plan.kernels.end(),
                                         [](const auto& kernel) { return !kernel.schedule.empty(); });
  std::vector<std::string> columns{"partition", "toolchain", "estimated", "operators", "nodes of the model"};
  if (has_schedules) columns.emplace_back("schedule");
  Table table(columns);
  int number = 0;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
    std::string nodes;
    for (const std::string& node : kernel.nodes) nodes += (nodes.empty() ? "" : " ") + node;
    std::vector<std::string> row{std::to_string(number++), kernel.toolchain, FormatSeconds(kernel.estimated_seconds),
                                 kernel.label.substr(0, 80), nodes.substr(0, 80)};
    if (has_schedules) row.push_back(kernel.schedule);
    table.Add(row);
  }
  fmt::print("{}", table.ToText());
}

}  // namespace

void AddInfoCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "info", "Show inputs, outputs and partitions of an executable, and which toolchain runs each node");
  command->add_option("executable", arguments->executable, "Executable (.clg)")->required();
  command->add_flag("--verify", arguments->verify, "Read the whole file and check all checksums");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
