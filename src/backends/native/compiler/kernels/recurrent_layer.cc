// recurrent_layer.cc: reads the sizes and attributes of a recurrent layer.
#include "backends/native/compiler/kernels/recurrent_layer.h"

namespace collage::native {

RecurrentLayer::RecurrentLayer(const CallNode& layer)
    : call(layer),
      is_lstm(layer.op()->name == "nn.lstm"),
      is_gru(layer.op()->name == "nn.gru"),
      batch_first(layer.attrs().Int("layout") == 1),
      hidden(layer.attrs().Int("hidden_size")),
      gates(is_lstm  ? 4
            : is_gru ? 3
                     : 1) {
  const Shape data = ShapeOf(call.args()[0]);
  steps = data[batch_first ? 1 : 0];
  batch = data[batch_first ? 0 : 1];
  features = data[2];
  const std::string direction = call.attrs().String("direction");
  directions = direction == "bidirectional" ? 2 : 1;
  is_reverse = direction == "reverse";
  linear_before_reset = is_gru && call.attrs().Bool("linear_before_reset");
  const size_t lengths_at = is_lstm ? 7 : 5;
  if (call.args().size() > lengths_at) lengths = call.args()[lengths_at];
}

}  // namespace collage::native
