// sample_inputs.h: values on which a function is tried: drawn at random from several ranges, integers such that the
// function can make sense of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// Distribution of float inputs. A kernel that is right on one range may be wrong on another.
enum class Draw : uint8_t {
  kUnit,      ///< uniform in [-1, 1)
  kWide,      ///< uniform in [-16, 16); in [-6, 6) where float16 could overflow
  kPositive,  ///< uniform in [0, 1): logarithms and roots are numbers
  kNormal,    ///< standard normal distribution
  kTiny,      ///< zeros of both signs, small numbers, halves and ones
  kHuge,      ///< magnitudes from 16 to 4096
  kInfinite,  ///< as kUnit, but for infinities among them
  kNaN,       ///< as kUnit, but for NaN and denormal numbers among them
};

/// "random inputs within 1".
std::string_view NameOf(Draw draw);

/// The draws to check on, kUnit first: all, or two where the reference takes long. kWide is left out where values are
/// kept in float16: sums of such large ones overflow.
std::vector<Draw> DrawsToCheck(bool takes_long, bool in_float16);
/// How a partition is checked on floats.
struct PartitionDraws {
  bool takes_long = false;  ///< the reference does
  bool in_float16 = false;
  /// Whether NaN and denormal numbers must not get lost.
  bool is_exact = false;
  /// Whether infinities are left out, as for values that are rounded to narrower types.
  bool is_narrow = false;
};

/// The draws to check a partition on, kUnit first. Values between operators may be any, so that there are those at the
/// edges of the type, too, unless the reference takes long. kInfinite and kNaN are for a single operator that is
/// element-wise: compilers that reorder several, and reductions, may turn infinities into NaN.
std::vector<Draw> DrawsForPartition(const Function& function, const PartitionDraws& options);

/// Values that an integer parameter can mean, both ends included.
struct IntegerRange {
  int64_t low = 0;
  int64_t high = 1;
  /// Whether the function says so, by what it indexes or compares with; else larger values are harmless, or not known
  /// to be.
  enum class Evidence : uint8_t { kNone, kHarmless, kStated } evidence = Evidence::kNone;
};

/// The ranges of the flattened parameters of the typed `function`, of whatever dtype they are.
///
/// Follows integers through casts, slices and operators that only move them: to what they index, which they must stay
/// within (take, gather, scatter, one_hot, lengths of sequences), and to the constants that they are compared with or
/// clipped to. 8-bit integers that are widened or dequantised are data and take all their values.
std::vector<IntegerRange> IntegerRanges(const Function& function);

/// Values for the flattened parameters of the typed `function`, the same on every machine; floats of kUnit are those of
/// FillRandom. `shapes` are the parameters', for types that do not know them.
std::vector<Tensor> SampleInputs(const Function& function, Draw draw, std::span<const Shape> shapes = {});

/// Whether a value in `function` is of float16, which ends at 65504.
bool HasFloat16(const Function& function);

}  // namespace collage
