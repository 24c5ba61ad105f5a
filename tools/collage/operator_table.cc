// operator_table.cc: tables of operators as Markdown and as JSON.
#include "operator_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace collage::cli {
namespace {

/// Rows of one operator in one layout, for all dtypes.
struct Line {
  std::string op, layouts, dtypes;
  int num_calls = 0;
  double max_error = 0;
};

std::vector<Line> LinesOf(const OperatorTable& table) {
  std::vector<Line> lines;
  for (const OperatorRow& row : table.rows) {
    const auto is_same = [&](const Line& line) { return line.op == row.op && line.layouts == row.layouts; };
    auto it = std::find_if(lines.begin(), lines.end(), is_same);
    if (it == lines.end()) it = lines.insert(it, {row.op, row.layouts, "", 0, 0});
    it->dtypes += (it->dtypes.empty() ? "" : " ") + row.dtype + (row.failures.empty() ? "" : " FAILED");
    it->num_calls += row.num_calls;
    it->max_error = std::max(it->max_error, row.max_error);
  }
  return lines;
}

}  // namespace

void PrintOperatorTables(const std::vector<OperatorTable>& tables) {
  for (const OperatorTable& table : tables) {
    const ToolchainReport& toolchain = table.toolchain;
    if (!toolchain.available) {
      fmt::print("{}: not available here: {} ({})\n\n", toolchain.name, toolchain.reason, toolchain.hint);
      continue;
    }
    fmt::print(
        "## {} {}\n\n| operator | layouts | dtypes | calls checked | max error |\n| --- | --- | --- | --- | --- |\n",
        toolchain.name, toolchain.version);
    for (const Line& line : LinesOf(table)) {
      fmt::print("| `{}` | {} | {} | {} | {:.1e} |\n", line.op, line.layouts, line.dtypes, line.num_calls,
                 line.max_error);
    }
    fmt::print("\n{} rows; its compiler declined {} more calls that its predicates take\n\n", table.rows.size(),
               table.num_declined);
  }
  for (const OperatorTable& table : tables) {
    for (const OperatorRow& row : table.rows) {
      for (const std::string& failure : row.failures) {
        fmt::print("FAILED {} {} {} {} {}\n", table.toolchain.name, row.op, row.dtype, row.layouts, failure);
      }
    }
  }
}

Json OperatorTablesToJson(const std::vector<OperatorTable>& tables) {
  Json json{{"schema", 1}, {"toolchains", Json::array()}};
  for (const OperatorTable& table : tables) {
    Json one{{"name", table.toolchain.name},
             {"available", table.toolchain.available},
             {"version", table.toolchain.version},
             {"declined", table.num_declined},
             {"rows", Json::array()}};
    for (const OperatorRow& row : table.rows) {
      one["rows"].push_back({{"operator", row.op},
                             {"dtype", row.dtype},
                             {"layouts", row.layouts},
                             {"calls", row.num_calls},
                             {"max_error", row.max_error},
                             {"failures", row.failures}});
    }
    json["toolchains"].push_back(std::move(one));
  }
  return json;
}

bool AllAgree(const std::vector<OperatorTable>& tables) {
  return std::all_of(tables.begin(), tables.end(), [](const OperatorTable& table) {
    return std::all_of(table.rows.begin(), table.rows.end(),
                       [](const OperatorRow& row) { return row.failures.empty(); });
  });
}

}  // namespace collage::cli
