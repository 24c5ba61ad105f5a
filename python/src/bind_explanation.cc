// bind_explanation.cc: the page that is made of an explanation.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "bindings.h"
#include "explain/explanation_file.h"
#include "explain/html_page.h"
#include "support/file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

void WriteHtmlReport(const std::filesystem::path& path, const std::string& explanation,
                     const std::optional<std::string>& profile, const std::optional<std::string>& other) {
  nb::gil_scoped_release release;
  HtmlPageOptions options{.name = "this", .other_name = "other", .profile = profile, .profile_name = "profile"};
  std::optional<Explanation> compared;
  if (other) options.other = &compared.emplace(ParseExplanation(*other, options.other_name));
  WriteWhole(path, HtmlPageOf(ParseExplanation(explanation, options.name), options));
}

}  // namespace

void BindExplanation(nb::module_& m) {
  m.def("write_html_report", &WriteHtmlReport, "path"_a, "explanation"_a, "profile"_a.none(), "other"_a.none(),
        "See `collage.Executable.report_html`.");
}

}  // namespace collage::python
