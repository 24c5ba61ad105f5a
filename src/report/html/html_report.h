// html_report.h: the report as one HTML file, which needs nothing else, no network either.
#pragma once

#include <optional>
#include <string>

namespace collage {

/// JSON texts that a page is made of.
struct HtmlReportSources {
  std::string explanation;                  ///< the executable's (docs/explanation.md)
  std::optional<std::string> diff = {};     ///< from `collage explain --diff`, with another executable
  std::optional<std::string> profile = {};  ///< from `collage profile --json`
  std::string profile_name = {};            ///< the profile's, in messages
};

/// Returns the page. It holds the sources as JSON, from which all of its numbers come. Throws kInput where a text is no
/// JSON of its kind.
std::string RenderHtmlReport(const HtmlReportSources& sources);

}  // namespace collage
