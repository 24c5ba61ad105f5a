// html_page.h: an explanation as an HTML page (docs/report.md).
#pragma once

#include <optional>
#include <string>

#include "explain/explanation.h"

namespace collage {

/// What a page shows besides the explanation.
struct HtmlPageOptions {
  std::string name;                    ///< what a comparison calls the executable
  const Explanation* other = nullptr;  ///< of an executable to compare it with
  std::string other_name = {};
  std::optional<std::string> profile = {};  ///< the JSON of `collage profile`
  std::string profile_name = {};            ///< what messages call it
};

/// Returns the page: one file, without network. Throws kInput for a profile that is none.
std::string HtmlPageOf(const Explanation& explanation, const HtmlPageOptions& options);

}  // namespace collage
