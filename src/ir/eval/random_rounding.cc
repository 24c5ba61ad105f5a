// random_rounding.cc: how many terms an operator adds up, and noise of that size.
#include "ir/eval/random_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "ir/eval/uniform_run.h"
#include "ir/ops/relations.h"
#include "runtime/split_mix.h"
#include "support/clones.h"

namespace collage {
namespace {

/// Half a unit in the last place of 1, as the numbers of `dtype` have it.
double UnitRoundoff(DataType dtype) {
  if (dtype.code == DataType::Code::kBFloat) return 0x1p-8;
  if (dtype.bits == 16) return 0x1p-11;
  return dtype.bits == 64 ? 0x1p-53 : 0x1p-24;
}

/// About how many terms make one element of the result; 1 where nothing is added up.
double NumTerms(const OpDef& op, const Attrs& attrs, std::span<const Type> arg_types, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs) {
  if (inputs.empty() || outputs.empty() || !outputs[0].defined()) return 1;
  const auto made = static_cast<double>(std::max<int64_t>(outputs[0].num_elements(), 1));
  const auto read = static_cast<double>(inputs[0].num_elements());
  if (op.multiply_adds) return std::max(1.0, op.multiply_adds({arg_types, attrs}) / made);
  const Shape& shape = inputs[0].shape();
  if (shape.empty()) return std::max(1.0, read / made);
  switch (op.summed_over) {
    case SummedOver::kReduced: break;
    case SummedOver::kAxis:
    case SummedOver::kAxes: return static_cast<double>(*std::max_element(shape.begin(), shape.end()));
    case SummedOver::kSample: return read / static_cast<double>(std::max<int64_t>(shape[0], 1));
  }
  return std::max(1.0, read / made);
}

constexpr int64_t kBlock = 256;  // elements that are disturbed at a time

/// `value` times 1 + `share` · [-1, 1), by where `uniform` is in [0, 1); whole numbers and those that are not finite
/// stay as they are.
inline double Disturbed(double value, double share, double uniform) {
  const bool is_whole = value == std::trunc(value);
  return std::isfinite(value) && !is_whole ? value * (1 + share * (2 * uniform - 1)) : value;
}

COLLAGE_CLONES void DisturbBlock(float* data, double share, const double* uniform) {
  for (int64_t i = 0; i < kBlock; ++i) data[i] = static_cast<float>(Disturbed(data[i], share, uniform[i]));
}

/// Draws noise for one tensor after the other.
class Noise {
 public:
  explicit Noise(uint64_t seed) : generator_(seed) {}

  /// Elements of `tensor` times 1 + `share` · [-1, 1).
  void Disturb(const Tensor& tensor, double share) {
    const int64_t count = tensor.num_elements();
    InParallel(count, [&](int64_t begin, int64_t end) {
      SplitMix own = generator_;
      own.Skip(static_cast<uint64_t>(begin));
      std::array<double, kBlock> noise;
      for (; begin < end; begin += kBlock) {
        const int64_t count = std::min(end - begin, kBlock);
        FillUniform(own, noise.data(), count);
        if (tensor.dtype() == kFloat32) {
          float* data = tensor.data<float>() + begin;
          if (count == kBlock) {
            DisturbBlock(data, share, noise.data());
          } else {
            for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(Disturbed(data[i], share, noise[i]));
          }
        } else {
          for (int64_t i = 0; i < count; ++i) tensor.Set(begin + i, Disturbed(tensor.At(begin + i), share, noise[i]));
        }
      }
    });
    generator_.Skip(static_cast<uint64_t>(count));
  }

 private:
  SplitMix generator_;
};

}  // namespace

void EvaluateRoundingAtRandom(const OpDef& op, const Attrs& attrs, std::span<const Type> arg_types,
                              std::span<const Tensor> inputs, const EvaluateOptions& options,
                              std::span<Tensor> outputs) {
  const bool rounds_nothing = op.is_exact || op.name == "cast";
  Noise noise(options.seed * 0xd1342543de82ef95u);
  const double terms = rounds_nothing ? 1 : NumTerms(op, attrs, arg_types, inputs, outputs);
  const double sums = UnitRoundoff(kFloat32) * std::sqrt(terms);
  const auto share_of = [&](DataType dtype) {
    if (dtype == kFloat64) return UnitRoundoff(dtype) * std::sqrt(terms);
    return std::max({sums, UnitRoundoff(dtype),
                     dtype == kFloat32 && options.computed_in ? UnitRoundoff(*options.computed_in) : 0.0});
  };
  std::vector<Tensor> disturbed(inputs.begin(), inputs.end());
  if (terms > 1 || (op.multiply_adds && options.computed_in)) {
    for (Tensor& input : disturbed) {
      if (!input.dtype().is_floating()) continue;
      input = input.Clone();
      noise.Disturb(input, share_of(input.dtype()));
    }
  }
  if (op.random_rounding) {
    op.random_rounding(disturbed, attrs, outputs, options.seed);
  } else {
    op.reference(disturbed, attrs, outputs);
  }
  // A cast to a narrower type rounds as it does everywhere; its argument was off already.
  if (rounds_nothing) return;
  for (Tensor& output : outputs) {
    if (!output.defined() || !output.dtype().is_floating()) continue;
    noise.Disturb(output, share_of(output.dtype()));
  }
}

}  // namespace collage
