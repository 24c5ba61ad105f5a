// diff_facts.cc: what one of two has and the other has not, and what is dearer in one.
#include "explain/diff_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "explain/overview_facts.h"
#include "explain/questions.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
// Medians of one candidate differ by as much from one day to the next.
constexpr double kNoise = 0.05;
constexpr size_t kMostRows = 200;
constexpr size_t kShownRows = 20;

/// Names of the nodes that a partition computes, by which it is found in the other graph.
using Work = std::vector<std::string>;

Work WorkOf(const GraphExplanation& graph, const std::vector<int>& nodes, bool by_index) {
  Work work;
  for (const int index : nodes) {
    const ExplainedNode& node = graph.nodes[static_cast<size_t>(index)];
    if (node.kind != "call") continue;
    work.push_back(by_index || node.name.empty() ? std::to_string(index) : node.name);
  }
  std::ranges::sort(work);
  work.erase(std::unique(work.begin(), work.end()), work.end());
  return work;
}

struct Side {
  const GraphExplanation& graph;
  std::vector<Work> works;  ///< by partition
};

Side SideOf(const GraphExplanation& graph, bool by_index) {
  Side side{graph, {}};
  for (const ExplainedPartition& one : graph.partitions) side.works.push_back(WorkOf(graph, one.nodes, by_index));
  return side;
}

/// Partitions of both that share nodes, directly or by others.
struct Group {
  std::vector<size_t> a, b;
};

std::vector<Group> Groups(const Side& a, const Side& b) {
  std::vector<size_t> parent(a.works.size() + b.works.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto find = [&](size_t one) {
    while (parent[one] != one) one = parent[one] = parent[parent[one]];
    return one;
  };
  std::map<std::string, size_t> owner;
  const auto join = [&](const std::vector<Work>& works, size_t offset) {
    for (size_t i = 0; i < works.size(); ++i) {
      for (const std::string& node : works[i]) {
        const auto [known, is_new] = owner.emplace(node, offset + i);
        if (!is_new) parent[find(offset + i)] = find(known->second);
      }
    }
  };
  join(a.works, 0);
  join(b.works, a.works.size());
  std::map<size_t, Group> groups;  // by the first of their partitions
  std::map<size_t, size_t> first;
  for (size_t i = 0; i < parent.size(); ++i) {
    const size_t key = first.emplace(find(i), i).first->second;
    (i < a.works.size() ? groups[key].a : groups[key].b).push_back(i < a.works.size() ? i : i - a.works.size());
  }
  std::vector<Group> all;
  for (auto& [_, group] : groups) all.push_back(std::move(group));
  return all;
}

std::string ToolchainOf(const Side& side, size_t partition) {
  const ExplainedCandidate& candidate = CandidateOf(side.graph, side.graph.partitions[partition]);
  return side.graph.toolchains[static_cast<size_t>(candidate.toolchain)].name;
}

std::string FormatsOf(const Side& side, size_t partition) {
  const ExplainedCandidate& candidate = CandidateOf(side.graph, side.graph.partitions[partition]);
  return FormatsText(candidate.inputs) + " -> " + FormatsText(candidate.outputs);
}

bool IsSame(const Side& a, const Side& b, const Group& group) {
  if (group.a.size() != 1 || group.b.size() != 1) return false;
  return a.works[group.a[0]] == b.works[group.b[0]] && ToolchainOf(a, group.a[0]) == ToolchainOf(b, group.b[0]) &&
         FormatsOf(a, group.a[0]) == FormatsOf(b, group.b[0]);
}

/// "native nn.conv2d+add; dnnl nn.relu".
std::string TextOf(const Side& side, const std::vector<size_t>& partitions) {
  std::string text;
  for (const size_t one : partitions) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : "; ", ToolchainOf(side, one), side.graph.partitions[one].operators);
  }
  return text.empty() ? "not in it" : text;
}

std::optional<double> SecondsOf(const Side& side, const std::vector<size_t>& partitions) {
  double sum = 0;
  for (const size_t one : partitions) {
    const std::optional<double>& seconds = side.graph.partitions[one].seconds;
    if (!seconds) return std::nullopt;
    sum += *seconds;
  }
  return partitions.empty() ? std::nullopt : std::optional(sum);
}

std::optional<double> Difference(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*b - *a) : std::nullopt;
}

Fact GroupRow(const Side& a, const Side& b, const Group& group) {
  const std::optional<double> before = SecondsOf(a, group.a), after = SecondsOf(b, group.b);
  std::string first;
  for (const size_t one : group.a) {
    if (first.empty()) first = a.graph.partitions[one].first_node;
  }
  for (const size_t one : group.b) {
    if (first.empty()) first = b.graph.partitions[one].first_node;
  }
  return Fact::Record("", "",
                      {Fact::Text("first_node", "first node", first), Fact::Text("a", "a", TextOf(a, group.a)),
                       Fact::Text("b", "b", TextOf(b, group.b)), Fact::Seconds("a_seconds", "a", before),
                       Fact::Seconds("b_seconds", "b", after),
                       Fact::Number("extra_seconds", "b - a", Difference(before, after), Unit::kDifference)});
}

Fact PartitionsTable(const GraphExplanation& a, const GraphExplanation& b, int64_t& equal) {
  const bool by_index = a.hash == b.hash;
  const Side before = SideOf(a, by_index), after = SideOf(b, by_index);
  std::vector<Fact> rows;
  for (const Group& group : Groups(before, after)) {
    if (IsSame(before, after, group)) {
      ++equal;
    } else {
      rows.push_back(GroupRow(before, after, group).Detail(rows.size() >= kShownRows));
    }
  }
  return Fact::Table("partitions", "partitions that differ", std::move(rows))
      .Columns({{"first node", "[{first_node:32}]"},
                {"a", "{a:60}"},
                {"b", "{b:60}"},
                {"a", "[{a_seconds}]"},
                {"b", "[{b_seconds}]"},
                {"b - a", "[{extra_seconds}]"}});
}

/// A cost with what it may be off by.
struct Measured {
  double seconds;
  double spread;
  std::string operators;
  std::string first_node = {};
};

/// Toolchain, what is computed, formats.
using CostKey = std::tuple<std::string, Work, std::vector<std::string>, std::vector<std::string>>;

std::string FirstNodeOf(const GraphExplanation& graph, const ExplainedCandidate& candidate) {
  for (const int index : candidate.nodes) {
    const ExplainedNode& node = graph.nodes[static_cast<size_t>(index)];
    if (node.kind == "call") return node.name;
  }
  return "";
}

/// Whether it is more than a bound.
bool IsOfCandidate(const ExplainedCost& cost) {
  return cost.state == ExplainedCost::State::kMeasured || cost.state == ExplainedCost::State::kEstimated;
}

std::map<CostKey, Measured> CostsOf(const GraphExplanation& graph, bool by_index) {
  std::map<CostKey, Measured> costs;
  for (const ExplainedCandidate& one : graph.candidates) {
    const ExplainedCost* cost = CostOf(graph, one);
    if (cost == nullptr || !cost->seconds || !IsOfCandidate(*cost)) continue;
    const double spread = std::max(cost->half_width.value_or(0), kNoise * *cost->seconds);
    costs.emplace(CostKey(graph.toolchains[static_cast<size_t>(one.toolchain)].name, WorkOf(graph, one.nodes, by_index),
                          one.inputs, one.outputs),
                  Measured{*cost->seconds, spread, OperatorsOf(graph, one), FirstNodeOf(graph, one)});
  }
  return costs;
}

bool Differ(const Measured& a, const Measured& b) {
  return std::abs(a.seconds - b.seconds) > std::hypot(a.spread, b.spread);
}

Fact CostRow(const std::string& toolchain, const Measured& a, const Measured& b) {
  return Fact::Record(
      "", "",
      {Fact::Text("toolchain", "toolchain", toolchain), Fact::Text("operators", "operators", a.operators),
       Fact::Text("first_node", "first node", a.first_node), Fact::Seconds("a_seconds", "a", a.seconds),
       Fact::Seconds("b_seconds", "b", b.seconds),
       Fact::Number("ratio", "b / a", a.seconds > 0 ? std::optional(b.seconds / a.seconds) : std::nullopt,
                    Unit::kRatio)});
}

/// The rows whose seconds differ most come first.
Fact CostsTable(std::vector<std::pair<double, Fact>> found) {
  std::ranges::stable_sort(found, std::greater(), &std::pair<double, Fact>::first);
  if (found.size() > kMostRows) found.resize(kMostRows);
  std::vector<Fact> rows;
  for (auto& [_, row] : found) rows.push_back(std::move(row).Detail(rows.size() >= kShownRows));
  return Fact::Table("costs", "costs that differ", std::move(rows))
      .Columns({{"toolchain", "{toolchain}"},
                {"operators", "{operators:60}"},
                {"first node", "[{first_node:32}]"},
                {"a", "{a_seconds}"},
                {"b", "{b_seconds}"},
                {"b / a", "[{ratio}]"}});
}

Fact CostsTable(const GraphExplanation& a, const GraphExplanation& b, int64_t& compared) {
  const bool by_index = a.hash == b.hash;
  const std::map<CostKey, Measured> before = CostsOf(a, by_index), after = CostsOf(b, by_index);
  std::vector<std::pair<double, Fact>> found;
  for (const auto& [key, one] : before) {
    const auto other = after.find(key);
    if (other == after.end()) continue;
    ++compared;
    if (!Differ(one, other->second)) continue;
    found.emplace_back(std::abs(one.seconds - other->second.seconds), CostRow(std::get<0>(key), one, other->second));
  }
  return CostsTable(std::move(found));
}

Fact SameOrBoth(const char* key, const char* label, const std::string& a, const std::string& b) {
  const std::string text = a == b ? a : fmt::format("{} / {}", a, b);
  return Fact::Line(label, {Fact::Text(key, "", text)}).Says(fmt::format("{{{}}}", key));
}

std::string VersionsText(const Explanation& explanation) {
  std::string text;
  std::set<std::string> seen;
  for (const GraphExplanation& graph : explanation.graphs) {
    for (const ExplainedToolchain& one : graph.toolchains) {
      if (!seen.insert(one.registered).second) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.registered, one.version);
    }
  }
  return text;
}

std::optional<double> MedianOf(const Explanation& explanation) {
  const auto found = explanation.report.find("p50_seconds");
  return found == explanation.report.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

Fact TimesLine(const Explanation& a, const Explanation& b) {
  const std::optional<double> before = MedianOf(a), after = MedianOf(b);
  const std::optional<double> ratio = before && after && *before > 0 ? std::optional(*after / *before) : std::nullopt;
  return Fact::Line("whole model", {Fact::Seconds("a_seconds", "a", before), Fact::Seconds("b_seconds", "b", after),
                                    Fact::Number("ratio", "b / a", ratio, Unit::kRatio)})
      .Says("[a {a_seconds}][ · b {b_seconds}][ · b takes {ratio} of a]");
}

}  // namespace

Fact DiffFacts(const Explanation& a, const Explanation& b, const std::pair<std::string, std::string>& names) {
  std::vector<Fact> facts{
      Fact::Line("", {Fact::Text("a", "a", names.first), Fact::Text("b", "b", names.second)}).Says("a {a}\nb {b}"),
      SameOrBoth("model", "model", a.model, b.model),
      SameOrBoth("machine", "machine", MachineText(a.machine), MachineText(b.machine)),
      SameOrBoth("collage", "Collage", a.collage, b.collage),
      SameOrBoth("toolchains", "toolchains", VersionsText(a), VersionsText(b)),
      SameOrBoth("settings", "settings", a.settings.dump(), b.settings.dump()),
      TimesLine(a, b)};
  int64_t equal = 0, compared = 0;
  std::vector<Fact> rows;
  const size_t count = std::min(a.graphs.size(), b.graphs.size());
  if (a.graphs.size() == 1 && b.graphs.size() == 1) {
    facts.push_back(PartitionsTable(a.graphs[0], b.graphs[0], equal));
    facts.push_back(CostsTable(a.graphs[0], b.graphs[0], compared));
  } else {
    for (size_t i = 0; i < count; ++i) {
      rows.push_back(Fact::Record("", "",
                                  {Fact::Integer("region", "region", static_cast<int64_t>(i)),
                                   PartitionsTable(a.graphs[i], b.graphs[i], equal),
                                   CostsTable(a.graphs[i], b.graphs[i], compared)})
                         .Says("region {region}"));
    }
    facts.push_back(Fact::Table("regions", "regions", std::move(rows)));
  }
  facts.push_back(Fact::Line("", {Fact::Count("equal_partitions", "equal partitions", equal),
                                  Fact::Count("compared_costs", "costs that both have", compared)})
                      .Says("equal partitions: {equal_partitions} · {compared_costs} costs are in "
                            "both; one that differs by more than both spreads is listed"));
  return Fact::Report(kSchema, std::move(facts));
}

Fact DatabaseDiffFacts(TuningDatabase& a, TuningDatabase& b) {
  /// A partition's key without machine and version, and the newest record.
  using Records = std::map<PartitionKey, std::pair<std::string, TuningRecord>>;
  const auto read = [](TuningDatabase& database, std::set<std::string>& machines) {
    Records records;
    database.ForEach([&](const TuningEntry& entry) {
      const auto* timed = std::get_if<std::pair<TuningKey, TuningRecord>>(&entry);
      const PartitionKey* partition = timed == nullptr ? nullptr : std::get_if<PartitionKey>(&timed->first.subject);
      if (partition == nullptr || !timed->second.ok || partition->schedule) return;
      machines.insert(timed->first.machine);
      PartitionKey key = *partition;
      key.version.clear();
      key.method += fmt::format(", {} threads", timed->first.num_threads);
      auto& known = records[key];
      if (known.second.ok && known.second.measured_at >= timed->second.measured_at) return;
      known = {partition->toolchain, timed->second};
    });
    return records;
  };
  const auto measured = [](const TuningRecord& record) {
    return Measured{record.p50, std::max(record.half_width, kNoise * record.p50), record.label};
  };
  std::set<std::string> machines_a, machines_b;
  const Records before = read(a, machines_a), after = read(b, machines_b);
  std::vector<std::pair<double, Fact>> found;
  int64_t compared = 0;
  for (const auto& [key, one] : before) {
    const auto other = after.find(key);
    if (other == after.end()) continue;
    ++compared;
    const Measured x = measured(one.second), y = measured(other->second.second);
    if (Differ(x, y)) found.emplace_back(std::abs(x.seconds - y.seconds), CostRow(one.first, x, y));
  }
  const auto differing = static_cast<int64_t>(found.size());
  return Fact::Report(
      kSchema,
      {Fact::Line("", {Fact::Text("a", "a", a.place()), Fact::Text("b", "b", b.place())}).Says("a {a}\nb {b}"),
       SameOrBoth("machines", "machines", fmt::format("{}", fmt::join(machines_a, ", ")),
                  fmt::format("{}", fmt::join(machines_b, ", "))),
       CostsTable(std::move(found)),
       Fact::Line("",
                  {Fact::Count("differing", "differ", differing), Fact::Count("compared_costs", "in both", compared),
                   Fact::Count("only_a", "only in a", static_cast<int64_t>(before.size()) - compared),
                   Fact::Count("only_b", "only in b", static_cast<int64_t>(after.size()) - compared)})
           .Says(
               "{differing} of {compared_costs} costs in both differ by more than both spreads · {only_a} only in a · "
               "{only_b} only in b")});
}

bool IsDatabaseFile(const std::string& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string begin(kMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file.gcount() == static_cast<std::streamsize>(begin.size()) && begin == kMagic;
}

}  // namespace collage
