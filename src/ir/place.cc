// place.cc: where an expression comes from and is computed, as errors write it.
#include "ir/place.h"

#include <fmt/format.h>

#include <set>

#include "collage/ir/visitor.h"
#include "collage/runtime/device.h"

namespace collage {

std::string PlaceOf(const Span& span) {
  return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
}

std::vector<std::string> SourceNodes(const Function& function) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  PostOrder(function->body(), [&](const Expr& expr) {
    if (expr->kind() != ExprKind::kCall) return;
    const std::string place = PlaceOf(expr->span());
    if (!place.empty() && seen.insert(place).second) names.push_back(place);
  });
  return names;
}

std::string ToString(const VirtualDevice& device) {
  std::string text = DeviceName(device.device_type);
  if (device.device_id >= 0) text += fmt::format(":{}", device.device_id);
  if (!device.target.empty()) text += " for " + device.target;
  if (!device.memory_scope.empty()) text += " in " + device.memory_scope;
  return text;
}

}  // namespace collage
