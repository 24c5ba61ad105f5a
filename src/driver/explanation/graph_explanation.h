// graph_explanation.h: all that explains the result of compiling one graph, as docs/explanation.md describes it: the
// "graphs" of an explanation. Numbers that are not known are absent.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/explanation/explained_cost.h"
#include "driver/explanation/weight_statistics.h"

namespace collage {

/// A node of the dataflow graph; its index is its place in GraphExplanation::nodes.
struct ExplainedNode {
  std::string kind;  ///< "call", "constant", "input", "tuple", "field", "operator" or "other"
  std::string op;    ///< the operator of a call
  std::string name;  ///< in the model
  std::map<std::string, std::string> attrs = {};
  std::vector<std::string> types = {};  ///< "float32[1, 64]", one for each tensor
  std::vector<int> inputs = {};
  std::optional<int64_t> bytes = {};             ///< size of a constant
  std::optional<WeightStatistics> weights = {};  ///< a constant's elements
};

/// A toolchain in one configuration.
struct ExplainedToolchain {
  std::string name;
  std::string registered;
  std::string version;
};

struct ExplainedSwitch {
  int from = 0;  ///< toolchains
  int to = 0;
  double seconds = 0;
};

struct ExplainedPenalties {
  double transition_seconds = 0;
  std::vector<ExplainedSwitch> switches;
};

/// A change of a value's format, and its price.
struct ExplainedConversion {
  int node = 0;
  std::optional<int> field = {};  ///< index in the tuple that the node makes; absent: its only value
  std::string from;
  std::string to;
  double seconds = 0;
  bool at_least = false;  ///< not measured: a bound
};

/// A partition that could be chosen, in one choice of formats.
struct ExplainedCandidate {
  int toolchain = 0;
  std::string rule;
  std::vector<int> nodes;                    ///< ascending
  std::vector<std::string> inputs, outputs;  ///< formats
  std::optional<int> cost = {};              ///< index; absent for partitions of contenders that no rule found
  nlohmann::json nested = {};  ///< as in partitioning files; null where the toolchain's own rule finds it again
};

/// Seconds of each round of a play-off.
struct ExplainedRounds {
  std::vector<double> first, last;
};

/// A whole mix that took part in the play-off.
struct ExplainedContender {
  std::string name;
  std::vector<std::string> baselines = {};
  std::optional<std::vector<int>> partitions = {};  ///< candidates; absent where it is of another form of the model
  ExplainedRounds rounds = {};
};

/// Another way to compute some partitions of the winner.
struct ExplainedAlternative {
  enum class Scope : uint8_t { kSame, kWider };
  Scope scope = Scope::kSame;
  std::optional<int> toolchain = {};  ///< absent: several
  std::vector<int> candidates = {};
  std::vector<int> replaces = {};  ///< partitions of the winner
  double extra_seconds = 0;        ///< cost of the whole with it, minus that of the winner
  std::optional<double> low_seconds = {}, high_seconds = {};
  double own_seconds = 0;                             ///< costs of its candidates
  double replaced_seconds = 0;                        ///< costs of those that it replaces
  double penalty_seconds = 0;                         ///< transitions, switches and conversions, more than with those
  std::vector<ExplainedConversion> conversions = {};  ///< new ones
  bool at_least = false;                              ///< something in it was never measured
};

constexpr std::array<const char*, 2> NamesOf(ExplainedAlternative::Scope) { return {"same", "wider"}; }

struct ExplainedRefusal {
  int toolchain = 0;
  std::string reason;
};

/// A partition of the winner.
struct ExplainedPartition {
  int candidate = 0;
  std::string operators;
  std::string first_node = {};
  std::vector<int> nodes = {};     ///< calls
  std::optional<int> kernel = {};  ///< its number in the plan
  std::optional<double> seconds = {};
  std::optional<double> share = {};  ///< part of the winner's cost
  double transition_seconds = 0, switch_seconds = 0, conversion_seconds = 0;
  std::vector<ExplainedConversion> conversions = {};
  std::vector<ExplainedAlternative> alternatives = {};
  std::vector<ExplainedRefusal> refused = {};  ///< toolchains that have no other way of their own
  bool is_skipped = false;                     ///< alternatives were not looked for: others took the time there was
};

/// Nodes that a toolchain does not compute.
struct ExplainedGap {
  int toolchain = 0;
  std::string kind;  ///< "declined", "failed" or "no_rule"
  std::string reason;
  std::vector<int> nodes;
};

/// A cover that a search found.
struct ExplainedCover {
  std::string name;
  double seconds = 0;
  int unknown = 0;  ///< partitions of unknown cost
  std::vector<int> partitions = {};
};

/// How far a search had come.
struct ExplainedProgress {
  double seconds = 0;  ///< since the compilation began
  int64_t measured = 0;
  std::optional<double> best_seconds = {};
  std::optional<double> least_seconds = {};
};

struct GraphExplanation {
  std::string name;
  std::string hash;
  std::string winner;
  std::vector<ExplainedNode> nodes;
  std::vector<int> results;
  std::vector<ExplainedToolchain> toolchains;
  ExplainedPenalties penalties;
  ExplainedRates rates;
  std::vector<ExplainedConversion> conversions;
  std::vector<ExplainedCost> costs;
  std::vector<ExplainedCandidate> candidates;
  int64_t candidates_left_out = 0;
  std::vector<ExplainedContender> contenders;
  std::vector<ExplainedPartition> partitions;  ///< in the order of the plan's kernels
  bool best_mix = false;                       ///< whether the winner is the best mix by costs
  std::string no_alternatives;                 ///< why partitions have none; empty if they have
  std::vector<ExplainedGap> gaps;
  std::vector<ExplainedCover> covers;
  std::vector<ExplainedProgress> progress;
};

}  // namespace collage
