// toolchain_facts.h: toolchains, their support of a model, and tables of operators, as facts.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/operator_table.h"
#include "collage/support_report.h"
#include "report/fact.h"
#include "runtime/known_devices.h"

namespace collage {

/// The facts that every report gives of a toolchain.
std::vector<Fact> FactsOfToolchain(const ToolchainReport& toolchain);

/// The report of `collage targets`, of collage.toolchains in Python. `is_whole`: text also has licences, hooks, options
/// and which never meet, as JSON has in any case.
Fact ToolchainsFacts(const std::vector<ToolchainReport>& toolchains, const std::vector<KnownDevice>& devices,
                     bool is_whole = false);

/// The report of `collage targets --support`, of collage.support in Python.
Fact SupportFacts(const SupportReport& report, const std::string& model);

/// The report of `collage targets --table`, of collage.operator_table in Python. In text a row is an operator in one
/// layout, with all dtypes.
Fact OperatorTablesFacts(const std::vector<OperatorTable>& tables);

}  // namespace collage
