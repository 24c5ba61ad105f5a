// diff_facts.h: two explanations, or two tuning databases, side by side.
#pragma once

#include <string>

#include "cost/database/tuning_database.h"
#include "explain/explanation.h"
#include "report/fact.h"

namespace collage {

/// Machines, versions, times, partitions that differ, and costs that differ by more than their spread. Partitions of
/// one graph are compared by nodes, those of different graphs by the names of nodes in the model. `names`: what reports
/// call the two.
Fact DiffFacts(const Explanation& a, const Explanation& b, const std::pair<std::string, std::string>& names);

/// Costs of partitions that both databases have, on whichever machines and of whichever versions, and that differ by
/// more than their spread.
Fact DatabaseDiffFacts(TuningDatabase& a, TuningDatabase& b);

/// Whether the file begins as a tuning database does.
bool IsDatabaseFile(const std::string& path);

}  // namespace collage
