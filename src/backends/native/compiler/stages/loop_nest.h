// loop_nest.h: how loops over several dimensions are walked and shared out among threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Coordinates without lanes.
Indices Bases(const I64s& bases);

/// Splits flat position `flat` over `sizes` (outermost first), one coordinate each.
I64s Delinearise(Emitter& e, const I64& flat, const std::vector<int64_t>& sizes);

/// Runs `body` for [from, to) in tiles of `most` positions, and of falling powers of two for those that are left.
void ForTiles(Emitter& e, const I64& from, const I64& to, int64_t most,
              const std::function<void(const I64& first, int64_t count)>& body);

/// Logical axes in memory order, outermost first; dimensions of one element come before all others.
std::vector<int> MemoryOrder(const Buffer& buffer);

/// A stage in which `slots` workers, each with memory of its own, share `units` pieces of work evenly: `body` computes
/// `unit`, `first` being the first one of that slot's.
void EmitShares(PartitionState& state, int64_t slots, int64_t units,
                const std::function<void(const I64& slot, const I64& unit, const I64& first)>& body);

}  // namespace collage::native
