// settling.h: telling candidates apart whose costs are nearly the same (RFC 0.81, Drawbacks: "high variance in
// lightweight kernels").
#pragma once

#include <vector>

#include "cost/database/tuning_database.h"

namespace collage {

/// What rivals cost after they were measured in turn. `rounds[r][i]` is what round r found for rival i, all ok; at
/// least one round. A rival is dearer than the best when it was so in every round and by more than `noise`, a share, in
/// the middle one; else it gets the times of the best. Compared are the quantiles at `fraction`. In the order of the
/// rivals.
std::vector<TuningRecord> SettleRounds(const std::vector<std::vector<TuningRecord>>& rounds, double noise,
                                       double fraction = 0.5);

}  // namespace collage
