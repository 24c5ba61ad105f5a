// library_calls_rule.h: what a toolchain's library computes by functions that native kernels call.
#pragma once

#include "partition/partition_rule.h"

namespace collage {

/// The largest matches of the rows of `library`'s table of calls (collage/target/composite_calls.h), as Composite
/// functions.
PartitionRulePtr LibraryCallsRule(const Toolchain& library);

}  // namespace collage
