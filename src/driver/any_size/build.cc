// build.cc: the worker's answer is a file, and operators that have no kernel.
#include "driver/any_size/build.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bytecode/bytecode.h"
#include "driver/unsearched.h"
#include "lowering/partition_dump.h"

namespace collage {
namespace {

using Json = nlohmann::json;

Json ToJson(const std::vector<EvaluatedOperator>& all) {
  Json json = Json::array();
  for (const EvaluatedOperator& one : all) {
    json.push_back({{"op", one.op},
                    {"count", one.count},
                    {"node", one.node},
                    {"reason", one.reason},
                    {"is_product", one.is_product}});
  }
  return json;
}

std::vector<EvaluatedOperator> FromJson(const std::string& text) {
  std::vector<EvaluatedOperator> all;
  for (const Json& one : Json::parse(text)) {
    all.push_back({one.at("op"), one.at("count"), one.at("node"), one.at("reason"), one.at("is_product")});
  }
  return all;
}

/// Adds operators that get no kernel to `evaluated`, which must outlive it.
vm::Executable CompileAll(const IRModule& module, vm::CompileOptions compiling, const std::filesystem::path& folder,
                          std::vector<EvaluatedOperator>& evaluated) {
  compiling.on_declined = [&](const Function& function, const std::string& reason) {
    AddEvaluated(function, reason, evaluated);
  };
  if (!folder.empty()) {
    compiling.on_partition = [dump = std::make_shared<PartitionDump>(folder)](
                                 const Toolchain& toolchain, const PartitionRequest& request,
                                 const CompiledPartition& compiled) { dump->Add(toolchain, request, compiled, {}); };
  }
  return vm::Compile(module, compiling);
}

}  // namespace

void BuildHere(AnySizeContender& contender, vm::CompileOptions compiling, const std::filesystem::path& dump) {
  contender.executable = CompileAll(contender.module, std::move(compiling), dump, contender.evaluated);
}

void BuildInWorker(AnySizeContender& contender, vm::CompileOptions compiling, const std::filesystem::path& dump,
                   const std::filesystem::path& file, const WorkerLimits& limits) {
  compiling.for_symbolic_sizes = {contender.symbolic};
  const auto build = [&](const std::string&, const SendProgress&) {
    std::vector<EvaluatedOperator> evaluated = contender.evaluated;
    CompileAll(contender.module, compiling, dump, evaluated).Save(file);
    return ToJson(evaluated).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  Worker worker(build, limits);
  const Result<std::string> answer = worker.Call("build");
  if (!answer.ok()) {
    contender.failure = answer.reason().text;
    return;
  }
  contender.evaluated = FromJson(*answer);
  contender.executable = vm::Executable::Load(file);
}

vm::Executable WithoutPlans(const vm::Executable& program) {
  auto general = std::make_shared<vm::Program>(program.program());
  for (vm::VmFunction& function : general->functions) function.specialises.clear();
  return vm::Executable(std::move(general));
}

}  // namespace collage
