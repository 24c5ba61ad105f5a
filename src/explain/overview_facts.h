// overview_facts.h: an explanation as a report: the verdict, partitions, contenders, the certificate.
#pragma once

#include <cstdint>
#include <optional>

#include "explain/explanation.h"
#include "report/fact.h"

namespace collage {

struct OverviewOptions {
  bool by_time = true;            ///< partitions: the most expensive first; else in the order of the plan
  size_t top = 20;                ///< how many partitions text shows; 0: all
  std::optional<int64_t> region;  ///< the part of a program; nothing: all
};

/// Throws kInput for a region that is not there.
Fact OverviewFacts(const Explanation& explanation, const OverviewOptions& options);

/// "AMD EPYC, 2 threads".
std::string MachineText(const ExplainedMachine& machine);

}  // namespace collage
