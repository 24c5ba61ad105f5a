// proposals.h: candidates beyond those that fusion by kinds finds.
#pragma once

#include <vector>

#include "collage/target/toolchain.h"

namespace collage::native {

/// Patterns that are computed as one although no fusion by kinds would join them, one row each. Matches stay as they
/// are: there is no Composite around them.
const std::vector<PatternTableEntry>& ProposedPatterns();

/// The matches of these rows in `function`, as Toolchain::Proposals wants them.
std::vector<std::vector<Expr>> ProposalsIn(const Function& function, const Toolchain& toolchain);

}  // namespace collage::native
