// accuracy.cc: what a toolchain was told, by the text that its configuration goes by.
#include "target/accuracy.h"

#include <algorithm>

#include "target/option_text.h"

namespace collage {

bool IsExact(const Toolchain& toolchain) {
  const std::vector<AttrField> options = toolchain.Options();
  const bool is_declared =
      std::any_of(options.begin(), options.end(), [](const AttrField& field) { return field.name == kAccuracyOption; });
  return !is_declared || IsToldToBeExact(toolchain);
}

bool IsToldToBeExact(const Toolchain& toolchain) {
  return toolchain.name().find(OptionText({{kAccuracyOption, kExact}})) != std::string::npos;
}

}  // namespace collage
