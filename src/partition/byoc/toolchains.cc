// toolchains.cc: looking up toolchains by name.
#include "partition/byoc/toolchains.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collage/support/error.h"
#include "transform/near_misses.h"

namespace collage {
const Toolchain& GetToolchain(std::string_view name, const std::string& where) {
  if (const Toolchain* toolchain = ToolchainRegistry::Global().Find(name)) return *toolchain;
  std::vector<std::string> names;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) names.push_back(toolchain->name());
  const std::string near = DidYouMean(name, names);
  throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", name), where,
              near.empty() ? fmt::format("there are: {}", fmt::join(names, ", ")) : near);
}

std::vector<const Toolchain*> FindToolchains(const PassContext& context, const char* key) {
  const std::string& text = context.ConfigString(key);
  std::vector<const Toolchain*> toolchains;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) toolchains.push_back(&GetToolchain(text.substr(at, comma - at), key));
    at = comma + 1;
  }
  if (toolchains.empty()) {
    throw Error(ErrorCategory::kInput, fmt::format("pass option '{}' names no toolchain", key), "",
                fmt::format("set it, as in --config {}=NAME", key));
  }
  return toolchains;
}

const Toolchain& FindToolchain(const PassContext& context, const char* key) {
  return *FindToolchains(context, key).front();
}

}  // namespace collage
