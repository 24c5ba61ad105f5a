// toolchains.cc: looking up toolchains by name.
#include "partition/byoc/toolchains.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collage/support/error.h"

namespace collage {
std::vector<const Toolchain*> FindToolchains(const PassContext& context, const char* key) {
  const std::string& text = context.ConfigString(key);
  std::vector<const Toolchain*> toolchains;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) toolchains.push_back(&ToolchainRegistry::Global().Get(text.substr(at, comma - at), key));
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
