// alternatives.h: why a cover has its partitions: what else could have computed the nodes of each, and at what cost
// (RFC 0.81, "Drawbacks": explainability).
#pragma once

#include <functional>
#include <vector>

#include "collage/compile_report.h"
#include "driver/covers/partitioner.h"

namespace collage {

/// Returns the most expensive partitions of `cover`, at most 10 with at least 0.5 % of its cost each, and for each the
/// cheapest other ways to compute its nodes:
///
///     cover         [conv relu]  [pool dense]      native, dnnl
///     alternatives  [conv][relu] [pool dense]      +0.2 ms, native alone
///                   [conv relu]  [pool dense]      +0.1 ms, dnnl alone
///
/// All other partitions stay as they are, layouts included; conversions are added where they are needed. An alternative
/// is one of `allowed` candidates, but not of the partition's own one.
///
/// Measures nothing: costs and conversions that are not at hand count with their lower bounds (`is_bound`). Empty when
/// the cover costs nothing, or cannot be run. A search of the whole graph for each partition and toolchain, in which
/// all other nodes have one variant.
std::vector<PartitionChoice> ExplainChoices(Partitioner& partitioner, const Cover& cover,
                                            const std::function<bool(CandidateIndex candidate)>& allowed);

}  // namespace collage
