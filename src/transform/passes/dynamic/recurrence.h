// recurrence.h: recurrent layers of dynamic shapes as programs of operators that have kernels.
#pragma once

#include <functional>

#include "collage/ir/module.h"

namespace collage {

/// Returns `module`, typed, with calls of nn.lstm, nn.gru and nn.rnn on dynamic shapes that `takes` does not accept as
/// products of all inputs, one for each direction, and a global function that computes `count` steps from step `first`
/// on. Halves of them call each other, so that the results of S steps are copied log S times, not S times:
///
///     @steps(shares, first, count, h, c) =
///         if count > 1:  (y0, h, c) = @steps(…, first, count / 2, …), (y1, h, c) = @steps(…, the rest, …); y = y0 ++
///         y1 else: one step, whose gates are dense(h, recurrence) + shares[first]
///
/// Layers whose weights are not constants, of other types than float32 and float64, and with activations that are no
/// operators stay as they are.
IRModule UnrollRecurrence(const IRModule& module, const std::function<bool(const CallNode& call)>& takes);

}  // namespace collage
