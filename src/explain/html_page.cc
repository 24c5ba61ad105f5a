// html_page.cc: gathers what the page is made of, as JSON.
#include "explain/html_page.h"

#include "explain/diff_facts.h"
#include "report/html/html_report.h"
#include "report/json.h"
#include "support/json_fields.h"

namespace collage {

std::string HtmlPageOf(const Explanation& explanation, const HtmlPageOptions& options) {
  HtmlReportSources sources{.explanation = ToJsonText(explanation)};
  if (options.other != nullptr) {
    sources.diff = RenderJson(DiffFacts(explanation, *options.other, {options.name, options.other_name}));
  }
  sources.profile = options.profile;
  sources.profile_name = options.profile_name;
  return RenderHtmlReport(sources);
}

}  // namespace collage
