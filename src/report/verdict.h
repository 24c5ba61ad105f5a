// verdict.h: the answer of a compilation in one sentence, and its contenders in words.
#pragma once

#include <string>

#include "collage/compile_report.h"

namespace collage {

/// "7.41 ms: 1.17 times faster than openvino alone and 1.08 times than native alone, by a mix of native and openvino."
/// Empty where nothing was timed.
std::string VerdictOf(const CompileReport& report);

/// "best mix", "openvino alone": what a contender is. docs/concepts.md explains the names.
std::string WordsFor(const Contender& contender);

}  // namespace collage
