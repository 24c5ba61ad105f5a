// collage_partition.cc: the searches of a compilation as a pass on modules.
#include "driver/phases/collage_partition.h"

#include <algorithm>
#include <map>
#include <string>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/settings.h"
#include "collage/transform/passes.h"
#include "driver/compilation.h"
#include "driver/programs/distinct_regions.h"
#include "program/regions.h"
#include "support/argument_text.h"

namespace collage {
namespace {

std::vector<std::string> TargetsOf(const std::string& text) {
  std::vector<std::string> targets;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const size_t first = text.find_first_not_of(' ', begin);
    if (first < end) targets.push_back(text.substr(first, text.find_last_not_of(' ', end - 1) + 1 - first));
    begin = end + 1;
  }
  return targets;
}

CompileOptions OptionsOf(const PassContext& context) {
  CompileOptions options;
  options.targets = TargetsOf(context.ConfigString("relay.collage.targets"));
  options.estimator = context.ConfigString("relay.collage.estimator");
  options.num_threads = static_cast<int>(context.ConfigInt("relay.collage.num_threads"));
  options.database = context.ConfigString("relay.collage.database");
  const std::string& budget = context.ConfigString("relay.collage.budget");
  if (!budget.empty()) options.budget_seconds = ParseDuration(budget);
  options.num_covers = 1;
  options.max_optimality_covers = 0;
  CheckSettings(options);
  return options;
}

}  // namespace

IRModule CollagePartition(IRModule module, const PassContext& context) {
  const CompileOptions options = OptionsOf(context);
  module = RunPasses({"ToGraphNormalForm"}, InferTypes(std::move(module)));
  const auto partitioned = [&](const IRModule& graph) { return Compilation("module", options, graph).Partition(); };
  if (!IsProgram(module)) return partitioned(module);
  const ProgramRegions program = FindRegions(module);
  std::map<std::string, Function> functions;
  for (const DistinctRegion& region : Distinct(program)) {
    functions.emplace(region.digest, partitioned(IRModule::FromFunction(region.function)).main());
  }
  return WithRegions(program.module, functions);
}

}  // namespace collage
