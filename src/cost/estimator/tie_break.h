// tie_break.h: telling candidates apart whose costs are nearly the same (RFC 0.81, Drawbacks: "high variance in
// lightweight kernels").
#pragma once

#include <vector>

#include "cost/database/tuning_database.h"

namespace collage {

/// Returns the costs of rivals that were measured in turn, in their order. `rounds[r][i]` is the record of rival i in
/// round r, all ok; at least one round. A rival is slower than the best if it was slower in every round, and by more
/// than `noise`, a share, in the middle one; otherwise it ties and gets the times of the best. Quantiles at `fraction`
/// are compared.
std::vector<TuningRecord> BreakTiesOfRounds(const std::vector<std::vector<TuningRecord>>& rounds, double noise,
                                            double fraction = 0.5);

}  // namespace collage
