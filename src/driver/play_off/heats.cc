// heats.cc: who can meet whom, and the best of those who could not meet.
#include "driver/play_off/heats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "support/file.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

/// Those that a partitioned module is compiled by.
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

}  // namespace

std::vector<std::vector<size_t>> Heats(std::span<const std::vector<const Toolchain*>> toolchains) {
  std::vector<std::vector<size_t>> heats;
  std::vector<std::vector<const Toolchain*>> met;  // by heat
  for (size_t i = 0; i < toolchains.size(); ++i) {
    size_t heat = 0;
    for (; heat < heats.size(); ++heat) {
      std::vector<const Toolchain*> together = met[heat];
      together.insert(together.end(), toolchains[i].begin(), toolchains[i].end());
      if (CompatibleSets(together).size() == 1) break;
    }
    if (heat == heats.size()) {
      heats.emplace_back();
      met.emplace_back();
    }
    heats[heat].push_back(i);
    met[heat].insert(met[heat].end(), toolchains[i].begin(), toolchains[i].end());
    std::sort(met[heat].begin(), met[heat].end());
    met[heat].erase(std::unique(met[heat].begin(), met[heat].end()), met[heat].end());
  }
  return heats;
}

PlayOffResult RunHeats(const std::vector<Entrant>& entrants, const PlayOffOptions& options, const RunHeat& run) {
  std::vector<std::vector<const Toolchain*>> toolchains;
  for (const Entrant& entrant : entrants) toolchains.push_back(ToolchainsOf(entrant.module));
  const std::vector<std::vector<size_t>> heats = Heats(toolchains);
  if (heats.size() <= 1) return run(entrants, options);
  const TemporaryFolder folder;
  PlayOffResult all;
  all.contestants.resize(entrants.size());
  std::filesystem::path winners_file;
  for (size_t heat = 0; heat < heats.size(); ++heat) {
    std::vector<Entrant> field;
    for (size_t index : heats[heat]) field.push_back(entrants[index]);
    PlayOffOptions own = options;
    own.output = folder / fmt::format("heat{}.clg", heat);
    try {
      PlayOffResult result = run(field, own);
      for (size_t i = 0; i < field.size(); ++i) all.contestants[heats[heat][i]] = std::move(result.contestants[i]);
      const size_t winner = heats[heat][static_cast<size_t>(result.winner)];
      if (all.winner < 0 || all.contestants[winner].p50 < all.contestants[static_cast<size_t>(all.winner)].p50) {
        all.winner = static_cast<int>(winner);
        all.output_bytes = result.output_bytes;
        winners_file = own.output;
      }
      all.seconds.check += result.seconds.check;
      all.seconds.build += result.seconds.build;
      all.seconds.timing += result.seconds.timing;
      all.seconds.write += result.seconds.write;
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      for (size_t i = 0; i < field.size(); ++i) {
        Contestant& contestant = all.contestants[heats[heat][i]];
        contestant.name = field[i].name;
        contestant.is_single = field[i].is_single;
        contestant.is_extra = field[i].is_extra;
        contestant.estimated_seconds = field[i].estimated_seconds;
        contestant.failure = error.hint().empty() ? error.message() : error.hint();
      }
    }
  }
  if (all.winner < 0) {
    throw Error(ErrorCategory::kUnsupported, "no cover of the model could be built and run", "",
                "first failure: " + all.contestants.front().failure);
  }
  AtomicFile output(options.output);
  output.Write(ReadFile(winners_file));
  output.Commit();
  // What ranks them within a heat says nothing of other heats.
  const double best = all.contestants[static_cast<size_t>(all.winner)].p50;
  for (Contestant& contestant : all.contestants) {
    if (contestant.failure.empty()) contestant.relative = contestant.first_relative = contestant.p50 / best;
  }
  return all;
}

}  // namespace collage
