// command.cc: output that the sub-commands share.
#include "command.h"

#include <fmt/format.h>

#include "report/json.h"

namespace collage::cli {

void PrintReport(const Fact& report, bool as_json, const TextOptions& options) {
  fmt::print("{}", as_json ? RenderJson(report) + "\n" : RenderText(report, options));
}

}  // namespace collage::cli
