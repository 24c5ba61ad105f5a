// accuracy.h: the option `accuracy`, which means the same in every toolchain that declares it.
#pragma once

#include "collage/target/toolchain.h"

namespace collage {

/// "exact" bars whatever rounds more than another order of sums does, "standard" does not.
inline constexpr char kAccuracyOption[] = "accuracy";
inline constexpr char kExact[] = "exact";

/// Whether `toolchain`, registered or configured, adds up every product that an operator's definition has: algorithms
/// with fewer products round more, and who uses such declares the option.
bool IsExact(const Toolchain& toolchain);

/// Whether `toolchain` has the option and was configured to be exact.
bool IsToldToBeExact(const Toolchain& toolchain);

}  // namespace collage
