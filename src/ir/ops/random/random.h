// random.h: operators that draw random numbers.
#pragma once

#include <span>

#include "collage/ir/op.h"

namespace collage {

class RandomDraws;

/// Whether `op` draws random numbers: it has no reference evaluation, since each call has its own numbers. Calls are
/// neither computed ahead nor merged with equal ones, and no toolchain computes them.
bool DrawsNumbers(const OpDef& op);

/// Computes a call of an operator that draws.
void DrawNumbers(const OpDef& op, const Attrs& attrs, const Tensor& output, RandomDraws& draws);

}  // namespace collage
