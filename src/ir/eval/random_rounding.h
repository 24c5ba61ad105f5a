// random_rounding.h: what an operator may give as well as its reference evaluation does: sums of floats in another
// order, rounded at every step, and integers rounded to the other neighbour.
//
// An operator that adds up n terms in float32 is off by about sqrt(n) units in the last place of what it adds: of the
// terms one by one where they cancel, of the whole sum where they have one sign (Higham, "Accuracy and Stability of
// Numerical Algorithms", 2.8). So each element of what is added up is off by as much at random, and so is each result.
#pragma once

#include <span>

#include "collage/ir/op.h"
#include "ir/eval/evaluate.h"

namespace collage {

/// Evaluates `op` with random rounding, of `options.seed`, into `outputs`, which are allocated as for its reference.
/// Floats that are whole numbers stay as they are: indices and counts are exact.
void EvaluateRoundingAtRandom(const OpDef& op, const Attrs& attrs, std::span<const Type> arg_types,
                              std::span<const Tensor> inputs, const EvaluateOptions& options,
                              std::span<Tensor> outputs);

}  // namespace collage
