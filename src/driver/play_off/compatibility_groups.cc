// compatibility_groups.cc: which contenders can share a process, and the best of those that cannot.
#include "driver/play_off/compatibility_groups.h"

#include <algorithm>
#include <set>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "support/sort_unique.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

/// The toolchains that compile a partitioned module.
std::vector<const Toolchain*> ToolchainsOf(const IRModule& module) {
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  std::set<const Toolchain*> found;
  PostOrder(module.main(), [&](const Expr& expr) {
    const FunctionNode* function = As<FunctionNode>(expr);
    if (function == nullptr || function->attrs().IntOr(kAttrPrimitive, 0) == 0) return;
    const std::string name = function->attrs().StringOr(kAttrCompiler, "");
    const Toolchain* toolchain = name.empty() ? registry.Native() : registry.Find(RegisteredName(name));
    if (toolchain != nullptr) found.insert(toolchain);
  });
  return {found.begin(), found.end()};
}

/// Adds the result of the contenders `members` to that of all. The winner is the fastest of the groups' winners so far.
void AddGroup(PlayOffResult group, const std::vector<size_t>& members, PlayOffResult& all) {
  for (size_t i = 0; i < members.size(); ++i) all.contenders[members[i]] = std::move(group.contenders[i]);
  const size_t winner = members[static_cast<size_t>(group.winner)];
  all.is_estimated = all.is_estimated || group.is_estimated;
  const auto seconds_of = [&](size_t i) {
    return all.is_estimated ? all.contenders[i].estimated_seconds : all.contenders[i].p50;
  };
  if (all.winner < 0 || seconds_of(winner) < seconds_of(static_cast<size_t>(all.winner))) {
    all.winner = static_cast<int>(winner);
    all.executable = std::move(group.executable);
  }
  all.seconds.check += group.seconds.check;
  all.seconds.build += group.seconds.build;
  all.seconds.timing += group.seconds.timing;
}

void NoteFailure(const Error& error, const ContenderModule& module, Contender& contender) {
  contender.name = module.name;
  contender.is_single = module.is_single;
  contender.is_extra = module.is_extra;
  contender.estimated_seconds = module.estimated_seconds;
  contender.failure = error.hint().empty() ? error.message() : error.hint();
}

}  // namespace

std::vector<std::vector<size_t>> CompatibilityGroups(std::span<const std::vector<const Toolchain*>> toolchains) {
  std::vector<std::vector<size_t>> groups;
  std::vector<std::vector<const Toolchain*>> met;  // by group
  for (size_t i = 0; i < toolchains.size(); ++i) {
    size_t group = 0;
    for (; group < groups.size(); ++group) {
      std::vector<const Toolchain*> together = met[group];
      together.insert(together.end(), toolchains[i].begin(), toolchains[i].end());
      if (CompatibleSets(together).size() == 1) break;
    }
    if (group == groups.size()) {
      groups.emplace_back();
      met.emplace_back();
    }
    groups[group].push_back(i);
    met[group].insert(met[group].end(), toolchains[i].begin(), toolchains[i].end());
    SortUnique(met[group]);
  }
  return groups;
}

PlayOffResult RunInGroups(const std::vector<ContenderModule>& modules, const RunGroup& run) {
  std::vector<std::vector<const Toolchain*>> toolchains;
  for (const ContenderModule& module : modules) toolchains.push_back(ToolchainsOf(module.module));
  const std::vector<std::vector<size_t>> groups = CompatibilityGroups(toolchains);
  if (groups.size() <= 1) return run(modules);
  PlayOffResult all;
  all.contenders.resize(modules.size());
  for (const std::vector<size_t>& members : groups) {
    std::vector<ContenderModule> group;
    for (const size_t member : members) group.push_back(modules[member]);
    try {
      AddGroup(run(group), members, all);
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      for (size_t i = 0; i < group.size(); ++i) NoteFailure(error, group[i], all.contenders[members[i]]);
    }
  }
  if (all.winner < 0) {
    throw Error(ErrorCategory::kUnsupported, "no cover of the model could be built and run", "",
                "first failure: " + all.contenders.front().failure);
  }
  // Ranks within a group say nothing of other groups.
  const double best = all.contenders[static_cast<size_t>(all.winner)].p50;
  for (Contender& contender : all.contenders) {
    if (contender.failure.empty()) contender.relative = contender.first_relative = contender.p50 / best;
  }
  return all;
}

}  // namespace collage
