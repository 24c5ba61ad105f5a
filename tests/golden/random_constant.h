// random_constant.h: constants of golden tests, by their types.
#pragma once

#include <algorithm>
#include <string>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"
#include "runtime/random_inputs.h"

namespace collage::golden {

/// "float32 [4, 3]": random values, the same for the same seed; "int32 [4, 3] -255..255": whole numbers between these.
inline Constant RandomConstant(const std::string& text, uint64_t seed) {
  const size_t bracket = text.find('[');
  Shape shape;
  std::string sizes = text.substr(bracket + 1, text.find(']') - bracket - 1);
  for (size_t at = 0; at < sizes.size();) {
    const size_t end = std::min(sizes.find(',', at), sizes.size());
    shape.push_back(std::stoll(sizes.substr(at, end - at)));
    at = end + 1;
  }
  std::string dtype = text.substr(0, bracket);
  while (dtype.ends_with(' ')) dtype.pop_back();
  const Tensor tensor = Tensor::Empty(shape, DataType::FromString(dtype));
  FillRandom(tensor, seed);
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const int64_t low = std::stoll(text.substr(text.find(']') + 1)), high = std::stoll(text.substr(dots + 2));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.Set(i, static_cast<double>(low + (7919 * i + static_cast<int64_t>(seed)) % (high - low + 1)));
    }
  }
  return MakeConstant(tensor);
}

}  // namespace collage::golden
