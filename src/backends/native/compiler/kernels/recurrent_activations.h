// recurrent_activations.h: the activations of nn.lstm, nn.gru and nn.rnn.
#pragma once

#include <string>
#include <vector>

#include "backends/native/compiler/emit/vector_math.h"
#include "collage/ir/expr.h"

namespace collage::native {

/// One activation and its coefficients, as ONNX names them.
struct RecurrentActivation {
  std::string name;
  double alpha = 0;
  double beta = 0;

  bool operator==(const RecurrentActivation&) const = default;
};

/// Writes the activation of `x`. Throws kUnsupported for unknown names.
Value Apply(VectorMath& m, const RecurrentActivation& f, const Value& x);

/// Returns the activations of all `directions`, one direction after the other: those of the call's attributes, else
/// `usual` in each direction.
std::vector<RecurrentActivation> ActivationsOf(const CallNode& call, const std::vector<std::string>& usual,
                                               size_t directions);

}  // namespace collage::native
