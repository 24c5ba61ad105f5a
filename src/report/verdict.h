// verdict.h: the answer of a compilation in one sentence, and its contenders in words.
#pragma once

#include <string>

#include "collage/compile_report.h"

namespace collage {

/// A smaller gap of a certificate is printed as 0.0 %: none.
inline constexpr double kNoGap = 5e-4;

/// "7.41 ms on AMD EPYC, 1 thread, by native and openvino: 1.17 times faster than openvino alone, as fast as native
/// alone." Empty where nothing was timed or estimated.
std::string VerdictOf(const CompileReport& report);

/// "best mix", "openvino alone": what a contender is. docs/concepts.md explains the names.
std::string WordsFor(const Contender& contender);

}  // namespace collage
