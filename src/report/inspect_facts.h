// inspect_facts.h: the results of the inspection commands (collage/inspect.h), as facts.
#pragma once

#include <string>
#include <vector>

#include "collage/inspect.h"
#include "report/fact.h"

namespace collage {

Fact DataflowFacts(const std::vector<DataflowNodeReport>& nodes);
Fact SubGraphFacts(const SubGraphReport& report);
Fact CandidatesFacts(const std::vector<CandidateReport>& candidates);

/// `module` is the rewritten module's text, which is then all of the report's text; empty: none was asked for.
Fact CoverFacts(const CoverReport& cover, const std::string& module = "");

}  // namespace collage
