// place.cc: where an expression comes from and is computed, as errors write it.
#include "ir/place.h"

#include <fmt/format.h>

#include "collage/runtime/device.h"

namespace collage {

std::string PlaceOf(const Span& span) {
  return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
}

std::string ToString(const VirtualDevice& device) {
  std::string text = DeviceName(device.device_type);
  if (device.device_id >= 0) text += fmt::format(":{}", device.device_id);
  if (!device.target.empty()) text += " for " + device.target;
  if (!device.memory_scope.empty()) text += " in " + device.memory_scope;
  return text;
}

}  // namespace collage
