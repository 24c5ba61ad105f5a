// operator_table.h: `collage targets --table`.
#pragma once

#include <vector>

#include "collage/operator_table.h"
#include "command.h"

namespace collage::cli {

/// As Markdown: a table of each toolchain, operators and layouts down, dtypes in a column; then what failed.
void PrintOperatorTables(const std::vector<OperatorTable>& tables);
Json OperatorTablesToJson(const std::vector<OperatorTable>& tables);
/// Whether every row of all tables agrees with the reference evaluation.
bool AllAgree(const std::vector<OperatorTable>& tables);

}  // namespace collage::cli
