// module_text.h: a module as text and its constants apart, for files that keep tensors once.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

struct ModuleText {
  std::string text;
  std::vector<Constant> constants;  ///< constant i is `meta[relay.Constant][i]` of the text; small ones are literals
};

/// Prints `module`; ParseModule reads it back when it is given the constants (ParseOptions::constants).
ModuleText PrintWithoutConstants(const IRModule& module);

}  // namespace collage
