// place.cc: where an expression comes from, as errors write it.
#include "ir/place.h"

#include <fmt/format.h>

namespace collage {

std::string PlaceOf(const Span& span) {
  return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
}

}  // namespace collage
