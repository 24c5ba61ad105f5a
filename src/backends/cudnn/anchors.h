// anchors.h: the operation of a match that others follow.
#pragma once

#include "backends/cudnn/reading.h"

namespace collage::cudnn {

/// An anchor as the graph's first operation.
struct Anchor {
  size_t call = 0;          ///< number of the call whose result it computes
  int y = -1;               ///< the result, kInside until the match ends
  size_t channel = 1;       ///< the axis of `y` that a bias lies along
  bool is_image = false;    ///< whether `y` may lie channels-last
  bool fuses = false;       ///< whether others may follow
  bool wants_bias = false;  ///< sums and functions follow a bias only
};

/// Finds the anchor among `reading.calls()` and adds it to the graph. Throws a Refusal.
Anchor ReadAnchor(Reading& reading);

// Families, each in a file of its own; `number` is that of the call.

Anchor ReadConvolution(Reading& reading, size_t number);
Anchor ReadPool(Reading& reading, size_t number);
Anchor ReadDense(Reading& reading, size_t number);
Anchor ReadProduct(Reading& reading, size_t number);
Anchor ReadLayerNorm(Reading& reading, size_t number);
Anchor ReadInstanceNorm(Reading& reading, size_t number);
/// `number` is that of the softmax.
Anchor ReadAttention(Reading& reading, size_t number);

}  // namespace collage::cudnn
