// behind.h: what follows the sums of a tile, as CUTLASS's epilogues call it. nvcc compiles this text behind
// arguments.h. All of it can also be called on the host, which tests do.

namespace collage {

using cutlass_interface::Arguments;
using cutlass_interface::Combination;
using cutlass_interface::Function;
using cutlass_interface::Move;
using cutlass_interface::Prepared;
using cutlass_interface::Problem;

/// `kFunction` of `x`. Integers have relu only.
template <Function kFunction, typename T>
CUTLASS_HOST_DEVICE T Apply(T x, float low, float high) {
  if constexpr (kFunction == Function::kRelu) return x < T(0) ? T(0) : x;
  if constexpr (kFunction == Function::kClip) return x < low ? low : (x > high ? high : x);
  if constexpr (kFunction == Function::kSigmoid) return 1.0F / (1.0F + expf(-x));
  if constexpr (kFunction == Function::kTanh) return tanhf(x);
  if constexpr (kFunction == Function::kSwish) return x / (1.0F + expf(-x));
  if constexpr (kFunction == Function::kGelu) return 0.5F * x * (1.0F + erff(x * 0.70710678F));
  if constexpr (kFunction == Function::kGeluTanh) {
    return 0.5F * x * (1.0F + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
  }
  if constexpr (kFunction == Function::kHardSwish) return x * Apply<Function::kClip>(x + 3.0F, 0.0F, 6.0F) / 6.0F;
  return x;
}

/// CUTLASS's "output operator" of an epilogue with a broadcast vector, for `kWidth` elements at a time.
template <typename Element, typename Compute, int kWidth, Function kFunction, Combination kCombination, Function kEnd>
class Behind {
 public:
  // The names that CUTLASS wants.
  static bool const kIsSingleSource = true;
  static bool const kIsHeavy = kFunction != Function::kNone || kCombination != Combination::kNone;
  static bool const kStoreZ = true;
  static bool const kStoreT = false;
  static int const kElementsPerAccess = kWidth;
  static int const kCount = kWidth;
  using ElementOutput = Element;
  using ElementC = Element;
  using ElementZ = Element;
  using ElementT = Element;
  using ElementVector = Element;
  using ElementAccumulator = Compute;
  using ElementCompute = Compute;
  using FragmentOutput = cutlass::Array<Element, kWidth>;
  using FragmentC = FragmentOutput;
  using FragmentZ = FragmentOutput;
  using FragmentT = FragmentOutput;
  using FragmentCompute = cutlass::Array<Compute, kWidth>;
  using FragmentAccumulator = FragmentCompute;
  struct Params {
    float low, high;
  };

  CUTLASS_HOST_DEVICE explicit Behind(Params const& params) : low_(params.low), high_(params.high) {}
  CUTLASS_HOST_DEVICE bool is_source_needed() const { return kCombination != Combination::kNone; }
  CUTLASS_HOST_DEVICE void set_k_partition(int, int) {}

  CUTLASS_HOST_DEVICE void operator()(FragmentZ& result, FragmentT&, FragmentAccumulator const& sums,
                                      FragmentC const& other, FragmentCompute const& bias) const {
    FragmentCompute const others = cutlass::NumericArrayConverter<Compute, Element, kWidth>()(other);
    FragmentCompute values;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      Compute value = Apply<kFunction, Compute>(sums[i] + bias[i], low_, high_);
      if constexpr (kCombination == Combination::kAdd) value += others[i];
      if constexpr (kCombination == Combination::kMultiply) value *= others[i];
      values[i] = Apply<kEnd, Compute>(value, low_, high_);
    }
    result = cutlass::NumericArrayConverter<Element, Compute, kWidth>()(values);
  }
  CUTLASS_HOST_DEVICE void operator()(FragmentZ& result, FragmentT& unused, FragmentAccumulator const& sums,
                                      FragmentCompute const& bias) const {
    FragmentC nothing;
    nothing.clear();
    (*this)(result, unused, sums, nothing, bias);
  }

 private:
  float low_, high_;
};

}  // namespace collage
