// garbage_rule.h: which records `collage db gc` and `collage.TuningDatabase.gc` remove.
#pragma once

#include <optional>

#include "cost/database/tuning_database.h"

namespace collage {

/// Returns the rule that removes what is asked for: with `other_versions`, this machine's records of versions of
/// toolchains that are no longer installed; records older than `older_than` seconds; with `failures`, records of
/// failures.
GarbageRule GarbageRuleFor(bool other_versions, std::optional<double> older_than, bool failures);

}  // namespace collage
