// operators.cc: names of the translated operators; a test holds this list against the translator's table.
#include "backends/openvino/operators.h"

namespace collage::openvino {

const std::set<std::string, std::less<>>& SupportedOperators() {
  static const std::set<std::string, std::less<>> names{
      "abs", "acos", "acosh", "add", "argmax", "argmin", "asin", "asinh", "atan", "atanh", "broadcast_to", "cast", "ceil",
      "clip", "concatenate", "copy", "cos", "cosh", "divide", "equal", "erf", "exp", "expand_dims", "floor", "gather",
      "greater", "greater_equal", "image.resize2d", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or",
      "max", "maximum", "mean", "min", "minimum", "multiply", "negative", "nn.avg_pool1d", "nn.avg_pool2d",
      "nn.avg_pool3d", "nn.batch_flatten", "nn.batch_matmul", "nn.bias_add", "nn.conv1d", "nn.conv1d_transpose",
      "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d", "nn.conv3d_transpose", "nn.dense", "nn.global_avg_pool1d",
      "nn.global_avg_pool2d", "nn.global_avg_pool3d", "nn.global_max_pool1d", "nn.global_max_pool2d",
      "nn.global_max_pool3d", "nn.instance_norm", "nn.layer_norm", "nn.leaky_relu", "nn.log_softmax", "nn.matmul",
      "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.pad", "nn.relu", "nn.softmax", "not_equal", "power", "prod",
      "reshape", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "split", "sqrt", "squeeze", "strided_slice",
      "subtract", "sum", "take", "tan", "tanh", "tile", "transpose", "where"};
  return names;
}

}  // namespace collage::openvino
