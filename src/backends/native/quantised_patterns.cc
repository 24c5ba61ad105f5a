// quantised_patterns.cc: the texts of the patterns.
#include "backends/native/quantised_patterns.h"

#include <fmt/format.h>

namespace collage::native {

std::vector<std::string> QuantisedPatterns() {
  const std::string numbers = "qnn.dequantize(*, const, const)";
  const std::string integers = "(subtract(cast(*), *) | cast(*))";
  const std::string products =
      "(nn.dense | nn.matmul | nn.batch_matmul | nn.conv1d | nn.conv2d | nn.conv3d | nn.conv1d_transpose | "
      "nn.conv2d_transpose | nn.conv3d_transpose)";
  std::string pools;
  for (const char* kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
    for (int rank : {1, 2, 3}) pools += fmt::format("{}nn.{}{}d", pools.empty() ? "" : " | ", kind, rank);
  }
  return {fmt::format("{0}({1}, {1})", products, numbers), fmt::format("{0}({1}, (const | {1}))", products, integers),
          fmt::format("({})({})", pools, numbers)};
}

}  // namespace collage::native
