// overview_facts.cc: what was chosen, how long each part takes, what else was there, and how good it can get.
#include "explain/overview_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "explain/questions.h"
#include "report/units.h"
#include "report/verdict.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;

/// A number of a report; nothing where it is missing or null.
std::optional<double> NumberIn(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

std::string TextIn(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

Json ListIn(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_array() ? Json::array() : *found;
}

/// The report of a graph: the model's, or a region's.
const Json& ReportOf(const Explanation& explanation, size_t graph) {
  const auto regions = explanation.report.find("regions");
  const bool has_regions = regions != explanation.report.end() && regions->is_array() && regions->size() > graph;
  return has_regions ? (*regions)[graph] : explanation.report;
}

const Json* ContenderNamed(const Json& report, const std::string& name) {
  const auto play_off = report.find("play_off");
  if (play_off == report.end() || !play_off->is_array()) return nullptr;
  const auto is_it = [&](const Json& one) { return TextIn(one, "name") == name; };
  const auto found = std::ranges::find_if(*play_off, is_it);
  return found == play_off->end() ? nullptr : &*found;
}

/// The certificate in words.
std::string CertificateText(const Json& report) {
  const auto found = report.find("certificate");
  if (found == report.end() || !found->is_object())
    return "There was no search, so nothing bounds what could be gained.";
  const double gap = NumberIn(*found, "gap").value_or(1);
  const bool is_spent = report.contains("search") && report["search"].value("budget_spent", false);
  std::string text = fmt::format("No cover of the {} is {}faster than the best mix, by their costs.",
                                 is_spent ? "candidates measured so far" : "candidates",
                                 gap < kNoGap ? "" : fmt::format("more than {:.1f} % ", 100 * gap));
  if (is_spent) text += " The budget was spent before all that matter were measured: compile again to measure more.";
  const double dropped = NumberIn(*found, "dropped").value_or(0);
  if (dropped > 0) text += fmt::format(" The search dropped {:.0f} states.", dropped);
  return text;
}

/// A text on a line of its own.
Fact Sentence(const char* key, const char* label, const std::string& text) {
  return Fact::Line(label, {Fact::Text(key, "", text)}).Says(fmt::format("{{{}}}", key));
}

/// A bar of ten characters, filled as far as `share`.
std::string Bar(double share) {
  constexpr int kLength = 10;
  const int filled = std::clamp(static_cast<int>(std::lround(share * kLength)), 0, kLength);
  std::string bar;
  for (int i = 0; i < kLength; ++i) bar += i < filled ? "#" : ".";
  return bar;
}

Fact PartitionRow(const GraphExplanation& graph, size_t number, std::optional<double> sum) {
  const ExplainedPartition& partition = graph.partitions[number];
  const ExplainedCandidate& candidate = CandidateOf(graph, partition);
  const ExplainedCost* cost = CostOf(graph, candidate);
  const std::optional<double> half = cost == nullptr ? std::nullopt : cost->half_width;
  const std::string inputs = FormatsText(candidate.inputs);
  const std::string outputs = FormatsText(candidate.outputs);
  const double penalties = partition.transition_seconds + partition.switch_seconds + partition.conversion_seconds;
  return Fact::Record(
      "", "",
      {Fact::Integer("partition", "partition", static_cast<int64_t>(number)),
       Fact::Text("toolchain", "toolchain", graph.toolchains[static_cast<size_t>(candidate.toolchain)].name),
       Fact::Seconds("seconds", "cost", partition.seconds), Fact::Seconds("half_width_seconds", "±", half),
       Fact::Number("share", "share", partition.share, Unit::kShare),
       Fact::Number("sum_share", "sum", sum, Unit::kShare), Fact::Text("bar", "", sum ? Bar(*sum) : ""),
       Fact::Seconds("penalty_seconds", "beside it", penalties),
       Fact::Text("operators", "operators", partition.operators),
       Fact::Text("first_node", "first node", partition.first_node),
       Fact::Text("formats", "formats", inputs == outputs ? inputs : inputs + " -> " + outputs),
       Fact::Text("schedule", "schedule", cost == nullptr ? "" : cost->schedule).Detail()});
}

Fact PartitionsTable(const GraphExplanation& graph, const OverviewOptions& options) {
  std::vector<size_t> order(graph.partitions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (options.by_time) {
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return graph.partitions[i].seconds.value_or(-1); });
  }
  const auto& partitions = graph.partitions;
  const bool is_known = std::ranges::all_of(partitions, [](const auto& one) { return one.share.has_value(); });
  double sum = 0;
  std::vector<Fact> rows;
  for (const size_t number : order) {
    sum += partitions[number].share.value_or(0);
    const bool is_shown = options.top == 0 || rows.size() < options.top;
    rows.push_back(PartitionRow(graph, number, is_known ? std::optional(sum) : std::nullopt).Detail(!is_shown));
  }
  return Fact::Table("partitions", "partitions", std::move(rows))
      .Columns({{"partition", "{partition}"},
                {"toolchain", "{toolchain}"},
                {"cost", "{seconds}"},
                {"±", "[{half_width_seconds}]"},
                {"share", "[{share}]"},
                {"sum", "[{bar} {sum_share}]"},
                {"beside", "[{penalty_seconds}]"},
                {"operators", "{operators:48}"},
                {"first node", "[{first_node:32}]"},
                {"formats", "{formats}"}});
}

Fact ContenderRow(const Json& one, std::optional<double> winner) {
  const std::optional<double> seconds = NumberIn(one, "p50_seconds");
  const std::string failure = TextIn(one, "failure");
  const bool has_ratio = seconds && winner && *winner > 0 && failure.empty();
  std::map<std::string, int64_t> partitions;
  if (one.contains("partitions") && one["partitions"].is_object()) {
    for (const auto& [name, count] : one["partitions"].items()) partitions[name] = count.get<int64_t>();
  }
  Fact row = Fact::Record(
      "", "",
      {Fact::Text("name", "way", TextIn(one, "name")), Fact::Flag("single", "alone", one.value("single", false)),
       Fact::Seconds("p50_seconds", "p50", failure.empty() ? seconds : std::nullopt),
       Fact::Seconds("spread_seconds", "±", failure.empty() ? NumberIn(one, "spread_seconds") : std::nullopt),
       Fact::Number("to_winner", "to the winner", has_ratio ? std::optional(*seconds / *winner) : std::nullopt,
                    Unit::kRatio),
       Fact::Seconds("estimated_seconds", "estimated", NumberIn(one, "estimated_seconds")),
       Fact::Counts("partitions", "partitions", partitions), Fact::Text("failure", "failure", failure)});
  if (!failure.empty()) return std::move(row).Says("{name} is out: {failure:200}");
  return row;
}

Fact ContendersTable(const Json& report) {
  const Json* winner = ContenderNamed(report, TextIn(report, "winner"));
  const std::optional<double> seconds = winner == nullptr ? std::nullopt : NumberIn(*winner, "p50_seconds");
  std::vector<Fact> rows;
  for (const Json& one : ListIn(report, "play_off")) rows.push_back(ContenderRow(one, seconds));
  return Fact::Table("ways", "whole model", std::move(rows))
      .Columns({{"whole model", "{name}[{?single} alone]"},
                {"p50", "[{p50_seconds}]"},
                {"±", "[{spread_seconds}]"},
                {"", "[{to_winner}]"},
                {"estimated", "[{estimated_seconds}]"},
                {"partitions", "{partitions}"}});
}

/// Facts of one graph.
std::vector<Fact> GraphFacts(const Explanation& explanation, size_t number, const OverviewOptions& options) {
  const GraphExplanation& graph = explanation.graphs[number];
  const Json& report = ReportOf(explanation, number);
  std::vector<Fact> facts;
  facts.push_back(Sentence("verdict", "verdict", TextIn(report, "verdict")));
  facts.push_back(Sentence("certificate", "bound", CertificateText(report)));
  facts.push_back(PartitionsTable(graph, options));
  const size_t count = graph.partitions.size();
  const size_t hidden = options.top == 0 || count <= options.top ? 0 : count - options.top;
  facts.push_back(Fact::Line("", {Fact::Count("hidden", "further partitions", static_cast<int64_t>(hidden))})
                      .Says("[and {hidden} further partition{s:hidden}: --top 0 shows all]"));
  facts.push_back(Sentence("no_alternatives", "no others", graph.no_alternatives));
  facts.push_back(ContendersTable(report));
  return facts;
}

Fact GraphRow(const Explanation& explanation, size_t number) {
  const GraphExplanation& graph = explanation.graphs[number];
  const Json& report = ReportOf(explanation, number);
  return Fact::Record("", "",
                      {Fact::Integer("region", "region", static_cast<int64_t>(number)),
                       Fact::Text("name", "name", graph.name), Fact::Text("winner", "winner", graph.winner),
                       Fact::Seconds("p50_seconds", "p50", NumberIn(report, "p50_seconds")),
                       Fact::Count("partitions", "partitions", static_cast<int64_t>(graph.partitions.size()))});
}

Fact RegionsTable(const Explanation& explanation) {
  std::vector<Fact> rows;
  for (size_t i = 0; i < explanation.graphs.size(); ++i) rows.push_back(GraphRow(explanation, i));
  return Fact::Table("regions", "regions", std::move(rows))
      .Columns({{"region", "{region}"},
                {"name", "{name}"},
                {"winner", "{winner}"},
                {"p50", "[{p50_seconds}]"},
                {"partitions", "{partitions}"}});
}

Fact MemoryLine(const ExplainedMemory& memory) {
  return Fact::Line("memory", {Fact::Bytes("file_bytes", "file", memory.file_bytes),
                               Fact::Bytes("weights_bytes", "weights", memory.weights_bytes),
                               Fact::Bytes("code_bytes", "code", memory.code_bytes),
                               Fact::Integer("arena_bytes", "arena", memory.arena_bytes, Unit::kBytes)})
      .Says("file {file_bytes}, of it weights {weights_bytes} and code {code_bytes}[ · arena {arena_bytes}]");
}

Fact MadeLine(const Explanation& explanation) {
  const std::optional<double> total =
      explanation.report.contains("seconds") ? NumberIn(explanation.report["seconds"], "total") : std::nullopt;
  return Fact::Line("made", {Fact::Text("model", "model", explanation.model),
                             Fact::Text("machine", "machine", MachineText(explanation.machine)),
                             Fact::Text("collage", "Collage", explanation.collage),
                             Fact::Number("total_seconds", "total", total, Unit::kElapsed),
                             Fact::Text("settings", "settings",
                                        explanation.settings.empty() ? "" : explanation.settings.dump())})
      .Says("of {model} by Collage {collage} on {machine}[ in {total_seconds}][ with {settings:200}]");
}

}  // namespace

std::string MachineText(const ExplainedMachine& machine) {
  return fmt::format("{}, {} thread{}", machine.cpu, machine.threads, machine.threads == 1 ? "" : "s");
}

Fact OverviewFacts(const Explanation& explanation, const OverviewOptions& options) {
  std::vector<Fact> facts;
  const bool is_one = explanation.graphs.size() == 1 || options.region;
  if (is_one) {
    GraphAt(explanation, options.region.value_or(0), "--region");
    facts = GraphFacts(explanation, static_cast<size_t>(options.region.value_or(0)), options);
  } else {
    facts.push_back(RegionsTable(explanation));
    facts.push_back(Fact::Line("", {Fact::Count("count", "regions", static_cast<int64_t>(explanation.graphs.size()))})
                        .Says("{count} region{s:count} of known sizes were searched[: --region N explains one]"));
  }
  facts.push_back(MemoryLine(explanation.memory));
  facts.push_back(MadeLine(explanation));
  return Fact::Report(kSchema, std::move(facts));
}

}  // namespace collage
