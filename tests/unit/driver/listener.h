// listener.h: keeps the warnings of a compilation.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"

namespace collage {

class Listener : public CompileProgress {
 public:
  void Phase(const std::string&) override {}
  void Measuring(int64_t, int64_t, const std::string&) override {}
  void PlayOff(int, int, const std::string&) override {}
  void Warn(const std::string& text) override { warnings.push_back(text); }

  std::vector<std::string> warnings;
};

}  // namespace collage
