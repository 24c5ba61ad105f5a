// html_report.cc: puts the page's files, the JSON and the layout of graphs into one HTML text.
#include "report/html/html_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/error.h"
#include "report/html/page_files.h"
#include "report/html/report_layout.h"

namespace collage {
namespace {

using Json = nlohmann::json;

/// In the order in which they are loaded: each needs those before it.
constexpr std::string_view kLibraries[] = {
    "d3-array",     "d3-color",      "d3-format", "d3-interpolate", "d3-time",  "d3-time-format",
    "d3-scale",     "d3-path",       "d3-shape",  "d3-dispatch",    "d3-timer", "d3-ease",
    "d3-selection", "d3-transition", "d3-drag",   "d3-zoom",        "d3-axis"};
constexpr std::string_view kStyles[] = {"style/colours.css", "style/page.css", "style/drawings.css", "style/print.css"};

std::string_view FileOf(const std::string& name) {
  const auto file = PageFiles().find(name);
  COLLAGE_CHECK(file != PageFiles().end()) << "the library has no file '" << name << "' of the report's page";
  return file->second;
}

/// `json` as the content of an element <script>, which no text in it can end.
std::string IslandText(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string Island(std::string_view id, const Json& json) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, IslandText(json));
}

std::string HtmlText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

/// A module's source as a URL, so that modules of one file can import each other. Only what a URL or the JSON around it
/// cannot hold is escaped.
std::string ModuleUrl(std::string_view name, std::string_view source) {
  constexpr std::string_view kPlain = "!$&'()*+,-./:;=?@_~[]{}|^` ";
  std::string url = "data:text/javascript;charset=utf-8,";
  for (const char c : source) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter || kPlain.find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += fmt::format("%{:02X}", byte);
    }
  }
  return url + fmt::format("%0A//%23%20sourceURL=collage/{}", name);
}

/// The import map: "collage/graph/search.js" and where it is.
Json ModuleMap() {
  Json imports = Json::object();
  for (const auto& [name, source] : PageFiles()) {
    if (name.ends_with(".js") && !name.starts_with("d3/")) imports["collage/" + name] = ModuleUrl(name, source);
  }
  return {{"imports", std::move(imports)}};
}

std::string Styles() {
  std::string styles;
  for (const std::string_view name : kStyles) styles += FileOf(std::string(name));
  return styles;
}

std::string Libraries() {
  std::string scripts = fmt::format("<!-- The page contains parts of D3:\n{}-->\n", HtmlText(FileOf("d3/copyright")));
  for (const std::string_view name : kLibraries) {
    scripts += fmt::format("<script>{}</script>\n", FileOf(fmt::format("d3/{}.min.js", name)));
  }
  return scripts;
}

/// `page` with each "@name@" of `parts` replaced. Marks in these texts stay.
std::string Filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string filled;
  size_t done = 0;
  for (const auto& [name, text] : parts) {
    const std::string mark = fmt::format("@{}@", name);
    const size_t place = page.find(mark, done);
    COLLAGE_CHECK(place != std::string_view::npos) << "page.html has no '" << mark << "' where it is expected";
    filled += page.substr(done, place - done);
    filled += text;
    done = place + mark.size();
  }
  return filled + std::string(page.substr(done));
}

Json ParsedAs(std::string_view kind, const std::string& text, std::string_view member, const std::string& name = "") {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains(member) && json.at(member).is_array()) return json;
  throw Error{ErrorCategory::kInput, fmt::format("this is not the JSON of {}", kind), name};
}

}  // namespace

std::string RenderHtmlReport(const HtmlReportSources& sources) {
  const Json explanation = ParsedAs("an explanation", sources.explanation, "graphs");
  std::string islands = Island("explanation", explanation);
  try {
    islands += Island("layout", LayOutReport(explanation));
  } catch (const Json::exception& error) {
    throw Error{ErrorCategory::kInput, fmt::format("the explanation lacks a field: {}", error.what())};
  } catch (const std::out_of_range&) {
    throw Error{ErrorCategory::kInput, "the explanation names a node or a partition that it does not have"};
  }
  if (sources.diff) islands += Island("diff", Json::parse(*sources.diff));
  if (sources.profile)
    islands += Island("profile", ParsedAs("a profile", *sources.profile, "steps", sources.profile_name));
  const std::string model = explanation.value("model", "model");
  return Filled(FileOf("page.html"), {{"generator", HtmlText("Collage " + explanation.value("collage", ""))},
                                      {"title", HtmlText(model + ": Collage report")},
                                      {"styles", Styles()},
                                      {"islands", islands},
                                      {"libraries", Libraries()},
                                      {"modules", IslandText(ModuleMap())}});
}

}  // namespace collage
