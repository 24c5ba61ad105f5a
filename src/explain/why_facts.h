// why_facts.h: why a partition is computed as it is, and why a toolchain does not compute something.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "explain/questions.h"
#include "report/fact.h"

namespace collage {

/// A partition with its other ways, as text shows one.
Fact WhyRecord(const Explanation& explanation, const PartitionPlace& place);

/// The partitions at `places`, each with its other ways, as a report.
Fact WhyFacts(const Explanation& explanation, const std::vector<PartitionPlace>& places);

/// Why `toolchain` does not compute the partitions at `places`; all of the winner's if there are none. Throws kInput
/// for an unknown toolchain.
Fact WhyNotFacts(const Explanation& explanation, const std::string& toolchain,
                 const std::vector<PartitionPlace>& places);

/// "dnnl", "native in 2 partitions", "dnnl and native in 3 partitions".
std::string WayOf(const GraphExplanation& graph, const ExplainedAlternative& alternative);

}  // namespace collage
