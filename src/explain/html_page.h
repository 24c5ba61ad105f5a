// html_page.h: an explanation as an HTML page (docs/report.md).
#pragma once

#include <optional>
#include <string>

#include "explain/explanation.h"

namespace collage {

/// Parts of a page besides the explanation.
struct HtmlPageOptions {
  std::string name;                    ///< the executable's, in a comparison
  const Explanation* other = nullptr;  ///< an executable's to compare it with
  std::string other_name = {};
  std::optional<std::string> profile = {};  ///< the JSON of `collage profile`
  std::string profile_name = {};            ///< in messages
};

/// Returns the page: one file, without network. Throws kInput for a profile that is none.
std::string HtmlPageOf(const Explanation& explanation, const HtmlPageOptions& options);

}  // namespace collage
