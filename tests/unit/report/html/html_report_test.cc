#include "report/html/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collage/support/error.h"
#include "report/html/page_files.h"

namespace collage {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kEmpty = R"({"model": "a<b>.onnx", "graphs": [], "note": "</script><b> \u2028 &"})";

std::string IslandOf(const std::string& page, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const size_t at = page.find(begin);
  return at == std::string::npos ? "" : page.substr(at + begin.size(), page.find("</script>", at) - at - begin.size());
}

TEST(HtmlReportTest, IslandsHoldTheJsonWhateverIsInIt) {
  const std::string page = RenderHtmlReport({.explanation = kEmpty});
  EXPECT_EQ(nlohmann::json::parse(IslandOf(page, "explanation")), nlohmann::json::parse(kEmpty));
  EXPECT_EQ(IslandOf(page, "profile"), "");
}

TEST(HtmlReportTest, NamesAreNoMarkup) {
  const std::string page = RenderHtmlReport({.explanation = kEmpty});
  EXPECT_THAT(page, HasSubstr("<title>a&lt;b&gt;.onnx: Collage report</title>"));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
}

TEST(HtmlReportTest, ModulesImportEachOtherByNamesOfTheImportMap) {
  const std::string page = RenderHtmlReport({.explanation = kEmpty});
  const std::string begin = "<script type=\"importmap\">";
  const size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const auto map =
      nlohmann::json::parse(page.substr(at + begin.size(), page.find("</script>", at) - at - begin.size()));
  size_t num_imports = 0;
  for (const auto& [name, source] : PageFiles()) {
    if (!name.ends_with(".js") || name.starts_with("d3/")) continue;
    EXPECT_TRUE(map.at("imports").contains("collage/" + name)) << name;
    for (size_t place = source.find(" from \""); place != std::string_view::npos;
         place = source.find(" from \"", place + 1)) {
      const std::string imported(source.substr(place + 7, source.find('"', place + 7) - place - 7));
      EXPECT_TRUE(map.at("imports").contains(imported)) << name << " imports " << imported;
      ++num_imports;
    }
  }
  EXPECT_GT(num_imports, 50u);
}

TEST(HtmlReportTest, OtherTextsAreRefused) {
  for (const std::string text : {"", "[]", "{}", "{\"graphs\": 1}", "<html>", "{\"graphs\": [{}]}",
                                 R"({"graphs": [{"nodes": [], "partitions": [{"nodes": [7]}]}]})"}) {
    try {
      RenderHtmlReport({.explanation = text});
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput) << text;
    }
  }
  EXPECT_THROW(RenderHtmlReport({.explanation = kEmpty, .profile = "{}", .profile_name = "p.json"}), Error);
}

}  // namespace
}  // namespace collage
