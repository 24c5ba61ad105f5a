// toolchains.cc: looking up toolchains by name.
#include "partition/byoc/toolchains.h"

#include <fmt/format.h>

#include "collage/support/error.h"
#include "transform/near_misses.h"

namespace collage {
namespace {

const Toolchain& Find(const std::string& name, const char* key) {
  if (const Toolchain* toolchain = ToolchainRegistry::Global().Find(name)) return *toolchain;
  std::vector<std::string> names;
  std::string all;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    names.push_back(toolchain->name());
    all += (all.empty() ? "there are: " : ", ") + toolchain->name();
  }
  const std::string hint = DidYouMean(name, names);
  throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", name), key, hint.empty() ? all : hint);
}

}  // namespace

std::vector<const Toolchain*> FindToolchains(const PassContext& context, const char* key) {
  const std::string& text = context.ConfigString(key);
  std::vector<const Toolchain*> toolchains;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) toolchains.push_back(&Find(text.substr(at, comma - at), key));
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
