// pattern_text.h: rows of pattern tables tried on whole functions.
#pragma once

#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace collage::conformance {

/// Whether a row called `name` matches all calls of `function`, which is typed.
bool TextMatches(const Toolchain& toolchain, const std::string& name, const Function& function);

/// The function is matched by the row's text, accepted by its predicate, and computed right.
void ExpectRow(const Toolchain& toolchain, const std::string& name, const Function& function,
               const Options& options = {});

/// Why the first row called `name` refuses `function`; "none" when it does not.
std::string RefusalOf(const Toolchain& toolchain, const std::string& name, const Function& function);

}  // namespace collage::conformance
