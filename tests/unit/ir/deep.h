// deep.h: graphs that overflow the stack of whatever recurses once per node.
#pragma once

#include "collage/ir/expr.h"

namespace collage {

inline constexpr int kDeep = 100000;

/// fn (%x) { relu(relu(… %x)) } with kDeep calls.
inline Function DeepChain() {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  Expr expr = x;
  for (int i = 0; i < kDeep; ++i) expr = MakeCall("nn.relu", {expr});
  return MakeFunction({x}, expr);
}

}  // namespace collage
