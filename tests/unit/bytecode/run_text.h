// run_text.h: programs of tests, from text to their results.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/text.h"
#include "collage/vm/vm.h"
#include "unit/ir/programs.h"

namespace collage {

inline Tensor Scalar(double value) { return Scalar(value, kInt32); }

inline vm::Executable CompileText(const std::string& text) { return vm::Compile(ParseModule(text, "t.relay")); }

inline Value RunText(const std::string& text, const std::vector<Value>& args = {}, const vm::RunOptions& options = {}) {
  return vm::Machine(CompileText(text)).Invoke("main", args, options);
}

}  // namespace collage
