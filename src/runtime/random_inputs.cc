// random_inputs.cc: values from the splitmix64 generator.
#include "runtime/random_inputs.h"

#include "runtime/split_mix.h"

namespace collage {
void FillRandom(const Tensor& tensor, uint64_t seed, int64_t low, int64_t high) {
  SplitMix generator(seed);
  const int64_t count = tensor.num_elements();
  if (tensor.dtype() == kFloat32) {
    float* data = tensor.data<float>();
    for (int64_t i = 0; i < count; ++i) {
      data[i] = static_cast<float>(static_cast<int64_t>(generator.Next() >> 40) - (1 << 23)) / (1 << 23);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t random = generator.Next();
    if (tensor.dtype().is_floating()) {
      tensor.Set(i, static_cast<double>(static_cast<int64_t>(random >> 40) - (1 << 23)) / (1 << 23));
    } else if (tensor.dtype().is_bool()) {
      tensor.Set(i, static_cast<double>(random >> 63));
    } else {
      tensor.Set(i, static_cast<double>(low + static_cast<int64_t>(random % static_cast<uint64_t>(high - low + 1))));
    }
  }
}

}  // namespace collage
