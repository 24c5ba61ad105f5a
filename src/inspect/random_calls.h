// random_calls.h: calls of an operator on random shapes, made of the examples in its row of the op table.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/runtime/tensor.h"
#include "ir/eval/reference.h"

namespace collage {

/// A typed function of one call, values for its parameters, and what the reference evaluation makes of them.
struct RandomCall {
  Function function;
  std::vector<Tensor> inputs;
  Reference expected;
};

/// The dtypes that operators are tried on.
std::span<const DataType> DataTypesToTry();

/// A call like `example`, its tensors of floats (of the first argument's type, when there are none) made `dtype`, sizes
/// above 1 made larger at random, equal ones alike; as they are, should the operator not take others. Arguments from
/// `first_constant` on are constants. Sums and products of many elements do not overflow. Nothing when the operator
/// does not take `dtype`, or its result has no static type.
std::optional<RandomCall> MakeRandomCall(const OpDef& op, const OpExample& example, DataType dtype,
                                         size_t first_constant, std::mt19937& random);

}  // namespace collage
