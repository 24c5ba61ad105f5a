// json.h: a report for programs to read.
#pragma once

#include <string>

#include "report/fact.h"

namespace collage {

/// Returns the report as an object, indented, without a newline at its end. Facts that are not known are null, as are
/// infinite numbers; those that are not numbers are "unknown", for JSON has none of these.
std::string RenderJson(const Fact& report);

/// The value of a JSON text; not known where the text is none.
Fact FactOfJson(std::string key, std::string label, const std::string& text);

}  // namespace collage
