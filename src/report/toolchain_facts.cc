// toolchain_facts.cc: toolchains, what they take of a model, and tables of operators, as facts.
#include "report/toolchain_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace collage {
namespace {

Fact OptionRow(const ToolchainOption& option) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "option", option.name), Fact::Text("type", "type", option.type),
       Fact::Text("default", "default", option.default_value), Fact::Text("meaning", "what it means", option.doc)});
}

/// Facts of a toolchain in a report of something else, which text shows in words of its own.
std::vector<Fact> DetailsOfToolchain(const ToolchainReport& toolchain) {
  std::vector<Fact> facts = FactsOfToolchain(toolchain);
  for (Fact& fact : facts) fact.is_detail = true;
  return facts;
}

/// The options that --target may give toolchains.
Fact OptionsInText(const std::vector<ToolchainReport>& toolchains) {
  std::vector<Fact> rows;
  for (const ToolchainReport& toolchain : toolchains) {
    for (const ToolchainOption& option : toolchain.options) {
      rows.push_back(OptionRow(option).Says(Literal(fmt::format("{} -{}", toolchain.name, option.name))));
    }
  }
  return Fact::Table("", "options", std::move(rows))
      .Columns({{"option", "{}{?name}{?type}"}, {"default", "{default}"}, {"what it means", "{meaning}"}});
}

/// Each pair once.
Fact IncompatibleInText(const std::vector<ToolchainReport>& toolchains) {
  std::set<std::pair<std::string, std::string>> told;
  std::vector<Fact> rows;
  for (const ToolchainReport& toolchain : toolchains) {
    for (const auto& [other, reason] : toolchain.incompatible) {
      if (!told.insert(std::minmax(toolchain.name, other)).second) continue;
      rows.push_back(Fact::Record("", "", {})
                         .Says(Literal(fmt::format("never together: {} and {}: {}", toolchain.name, other, reason))));
    }
  }
  return Fact::Table("", "", std::move(rows));
}

/// "dnnl.conv2d 20, dnnl.conv2d_bias 18 and 5 more": those that hold most calls.
std::string PatternsText(const OperatorSupport& support) {
  constexpr size_t kShown = 3;
  std::vector<std::pair<std::string, int64_t>> patterns(support.patterns.begin(), support.patterns.end());
  std::ranges::stable_sort(patterns, std::greater<>(), &std::pair<std::string, int64_t>::second);
  std::string text;
  for (size_t i = 0; i < std::min(patterns.size(), kShown); ++i) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", patterns[i].first, patterns[i].second);
  }
  if (patterns.size() > kShown) text += fmt::format(" and {} more", patterns.size() - kShown);
  return text;
}

Fact RefusedRow(const RefusedCalls& refused) {
  return Fact::Record(
             "", "",
             {Fact::Count("calls", "calls", refused.num_calls), Fact::Text("reason", "reason", refused.reason),
              Fact::Text("pattern", "pattern", refused.pattern), Fact::Text("example", "example", refused.example)})
      .Says("not {calls}: {reason}[ ({pattern})][, at {example}]");
}

Fact OperatorRowOf(const OperatorSupport& support) {
  const std::string patterns = PatternsText(support);
  return Fact::Record("", "",
                      {Fact::Text("name", "operator", support.op), Fact::Count("calls", "calls", support.num_calls),
                       Fact::Count("alone", "alone", support.num_alone),
                       Fact::Count("in_patterns", "in patterns", support.num_in_patterns),
                       Fact::Counts("patterns", "patterns", support.patterns),
                       TableOf("refused", "refused", support.refused, RefusedRow).SeparatedBy("\n")})
      .Says(patterns.empty() ? "{refused}" : Literal(patterns) + "\n{refused}");
}

Fact SupportRow(const ToolchainSupport& support) {
  std::vector<Fact> facts = DetailsOfToolchain(support.toolchain);
  facts.push_back(Fact::Count("taken", "calls taken", support.num_taken));
  facts.push_back(TableOf("operators", "operators", support.operators, OperatorRowOf)
                      .Columns({{"operator", "{name}"},
                                {"calls", "{calls}"},
                                {"alone", "{alone}"},
                                {"in patterns", "{in_patterns}"},
                                {"taken by, or why not", "{}{?patterns}"}}));
  return Fact::Record("", "", std::move(facts))
      .Says("{name} takes {taken} of {calls} calls[; not available here: {reason}]");
}

Fact CheckedRow(const OperatorRow& row) {
  return Fact::Record(
      "", "",
      {Fact::Text("operator", "operator", row.op), Fact::Text("dtype", "dtype", row.dtype),
       Fact::Text("layouts", "layouts", row.layouts), Fact::Count("calls", "calls checked", row.num_calls),
       Fact::Number("max_error", "max error", row.max_error, Unit::kError),
       Fact::Texts("failures", "failures", row.failures)});
}

/// Rows of one operator in one layout are a row of text, with all dtypes.
Fact MergedRows(const OperatorTable& table) {
  struct Line {
    std::string op, layouts, dtypes;
    int num_calls = 0;
    double max_error = 0;
  };
  std::vector<Line> lines;
  for (const OperatorRow& row : table.rows) {
    const auto is_same = [&](const Line& line) { return line.op == row.op && line.layouts == row.layouts; };
    auto it = std::ranges::find_if(lines, is_same);
    if (it == lines.end()) it = lines.insert(it, {row.op, row.layouts, "", 0, 0});
    it->dtypes += (it->dtypes.empty() ? "" : " ") + row.dtype + (row.failures.empty() ? "" : " FAILED");
    it->num_calls += row.num_calls;
    it->max_error = std::max(it->max_error, row.max_error);
  }
  std::vector<Fact> rows;
  for (const Line& line : lines) {
    rows.push_back(Fact::Record(
        "", "",
        {Fact::Text("operator", "operator", line.op), Fact::Text("layouts", "layouts", line.layouts),
         Fact::Text("dtypes", "dtypes", line.dtypes), Fact::Count("calls", "calls checked", line.num_calls),
         Fact::Number("max_error", "max error", line.max_error, Unit::kError)}));
  }
  return Fact::Table("", "", std::move(rows))
      .Columns({{"operator", "`{operator}`"},
                {"layouts", "{layouts}"},
                {"dtypes", "{dtypes}"},
                {"calls checked", "{calls}"},
                {"max error", "{max_error}"}});
}

Fact OperatorTableRow(const OperatorTable& table) {
  const bool is_available = table.toolchain.available;
  std::vector<Fact> facts = DetailsOfToolchain(table.toolchain);
  facts.push_back(TableOf("rows", "rows", table.rows, CheckedRow).Detail());
  if (is_available) facts.push_back(MergedRows(table));
  facts.push_back(
      Fact::Line("", {Fact::Count("declined", "declined", table.num_declined)})
          .Says(is_available
                    ? fmt::format("\n{} rows; its compiler declined {{declined}} more calls that its predicates "
                                  "take",
                                  table.rows.size())
                    : "[{declined} calls declined]"));
  return Fact::Record("", "", std::move(facts))
      .Says(is_available ? "## {name} {version}\n\n" : "{name}: not available here: {reason} ({hint})\n\n");
}

}  // namespace

std::vector<Fact> FactsOfToolchain(const ToolchainReport& toolchain) {
  std::vector<Fact> incompatible;
  for (const auto& [name, reason] : toolchain.incompatible) {
    incompatible.push_back(
        Fact::Record("", "", {Fact::Text("toolchain", "toolchain", name), Fact::Text("reason", "reason", reason)}));
  }
  return {Fact::Text("name", "toolchain", toolchain.name),
          Fact::Flag("available", "available", toolchain.available).Detail(),
          Fact::Text("version", "version", toolchain.version),
          Fact::Flag("default", "takes part when it isn't named", toolchain.is_default).Detail(),
          Fact::Text("reason", "why not", toolchain.reason),
          Fact::Text("hint", "hint", toolchain.hint).Detail(),
          Fact::Text("license", "licence", toolchain.license).Detail(),
          Fact::Texts("hooks", "hooks", toolchain.hooks),
          TableOf("options", "options", toolchain.options, OptionRow).Detail(),
          Fact::Table("incompatible", "never together with", std::move(incompatible)).Detail()};
}

Fact DeviceRow(const KnownDevice& device) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "device", device.name), Fact::Flag("available", "available", device.reason.empty()),
       Fact::Text("description", "description", device.description), Fact::Text("reason", "why not", device.reason)});
}

Fact ToolchainsFacts(const std::vector<ToolchainReport>& toolchains, const std::vector<KnownDevice>& devices,
                     bool is_whole) {
  std::vector<Fact> rows;
  for (const ToolchainReport& toolchain : toolchains) {
    rows.push_back(Fact::Record("", "", FactsOfToolchain(toolchain)));
  }
  std::vector<Fact::Column> columns{
      {"toolchain", is_whole ? "{name}" : "{name}{?hooks}"},
      {"available", "[{!available}no][{?available}{?default}yes][{?available}{!default}when named]"},
      {"version", is_whole ? "{version}" : "{version:48}"},
  };
  if (is_whole) columns.insert(columns.end(), {{"licence", "{license}"}, {"hooks", "[{hooks}]"}});
  columns.push_back({"why not", "{reason}[ ({hint})]"});
  Fact hint = Fact::Record("", "", {}).Says("`collage targets NAME` has the licence, hooks and options of one.");
  return Fact::Report(1, {Fact::Table("toolchains", "toolchains", std::move(rows)).Columns(std::move(columns)),
                          IncompatibleInText(toolchains).Detail(!is_whole),
                          TableOf("devices", "devices", devices, DeviceRow)
                              .Columns({{"device", "{name}"},
                                        {"available", "[{!available}no][{?available}yes]"},
                                        {"what", "[{description}]"},
                                        {"why not", "{reason}"}}),
                          OptionsInText(toolchains).Detail(!is_whole), std::move(hint).Detail(is_whole)});
}

Fact SupportFacts(const SupportReport& report, const std::string& model) {
  return Fact::Report(
      1, {Fact::Text("model", "model", model).Detail(), Fact::Count("calls", "calls", report.num_calls).Detail(),
          TableOf("toolchains", "", report.toolchains, SupportRow),
          Fact::Line("", {Fact::Count("outside", "calls outside", report.num_outside)})
              .Says("[{outside} more calls are in no region of dataflow of static tensors: reference evaluation]")});
}

Fact OperatorTablesFacts(const std::vector<OperatorTable>& tables) {
  std::vector<Fact> failures;
  for (const OperatorTable& table : tables) {
    for (const OperatorRow& row : table.rows) {
      for (const std::string& failure : row.failures) {
        failures.push_back(Fact::Record("", "", {})
                               .Says(Literal(fmt::format("FAILED {} {} {} {} {}", table.toolchain.name, row.op,
                                                         row.dtype, row.layouts, failure))));
      }
    }
  }
  return Fact::Report(1,
                      {TableOf("toolchains", "", tables, OperatorTableRow), Fact::Table("", "", std::move(failures))});
}

}  // namespace collage
