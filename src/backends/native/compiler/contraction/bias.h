// bias.h: numbers that are added to all sums of a channel: the sums begin with them.
#pragma once

#include <optional>
#include <string>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// A constant for each channel of a stage's result, and the stage without its addition: sums that begin with it are its
/// result.
struct Bias {
  Buffer values;  ///< by channel, with zeros behind the last one
  StageOutput output;

  /// Returns the values of the vector that begins at `channel`.
  Vector At(Emitter& e, const I64& channel) const {
    return e.VectorAt(e.Address(values, {{channel, 1}}), /*masked=*/false);
  }
};

/// The constants that are added to `output.result`, float32 with channels along `axis`, before anything else is done
/// with it, up to a multiple of `width` channels; nothing where there are no such.
std::optional<Bias> BiasOf(PartitionState& state, const StageOutput& output, size_t axis, int64_t width);

}  // namespace collage::native
