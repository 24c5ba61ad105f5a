// text.h: a report for people to read.
#pragma once

#include <string>

#include "report/fact.h"

namespace collage {

struct TextOptions {
  bool details = false;   ///< also facts that are details
  bool markdown = false;  ///< tables as those of Markdown
};

/// Returns the report's sentence, then a line or a table for each part, in their order. A line begins with its label.
std::string RenderText(const Fact& report, const TextOptions& options = {});

/// Returns a single value, with its unit: "8.71 ms", "native 3 · dnnl 2", "?" when it is not known, "-" for none.
std::string FormatFact(const Fact& fact);

}  // namespace collage
