#include "report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/json.h"

namespace collage {
namespace {

Fact Sample() {
  std::vector<Fact> rows;
  for (const auto& [name, runs] : {std::pair("fast", 3), std::pair("slow", 12)}) {
    rows.push_back(Fact::Record("", "",
                                {Fact::Text("name", "name", name), Fact::Seconds("p50_seconds", "p50", runs * 1e-4),
                                 Fact::Count("runs", "runs", runs), Fact::Text("why", "why", "").Detail()}));
  }
  return Fact::Report(
      3, {Fact::Text("model", "model", "m.onnx"),
          Fact::Line("machine", {Fact::Text("machine", "machine", "a CPU"), Fact::Count("threads", "threads", 1)})
              .Says("{machine} · {threads} thread{s:threads}"),
          Fact::Record("search", "search",
                       {Fact::Count("candidates", "candidates", 12), Fact::Count("measured", "measured", 0),
                        Fact::Count("states", "states", 40), Fact::Flag("budget_spent", "the budget was spent", true)})
              .Says("{candidates} candidates, {measured} measured"),
          Fact::Table("rows", "rows", rows).Columns({{"row", "{name}"}, {"p50", "{p50_seconds}"}}),
          Fact::Counts("partitions", "partitions", {{"dnnl", 2}, {"native", 3}}).Detail()});
}

TEST(RenderTextTest, SentencesTablesAndWhatTheyDoNotName) {
  EXPECT_EQ(RenderText(Sample()), R"(model m.onnx
machine     a CPU · 1 thread
search      12 candidates, 0 measured · 40 states · the budget was spent
  row   p50       runs
  fast    300 us     3
  slow  1.200 ms    12
)");
}

TEST(RenderTextTest, DetailsWhereTheyAreAskedFor) {
  EXPECT_THAT(RenderText(Sample(), {.details = true}), testing::HasSubstr("partitions dnnl 2 · native 3\n"));
}

TEST(RenderTextTest, TablesOfMarkdown) {
  EXPECT_THAT(RenderText(Sample(), {.markdown = true}), testing::HasSubstr(R"(| row | p50 | runs |
| --- | --- | --- |
| fast | 300 us | 3 |
)"));
}

TEST(RenderTextTest, RowsWithSentencesAreBelowTheTable) {
  Fact report = Sample();
  Fact& table = report.parts[4];
  ASSERT_EQ(table.key, "rows");
  table.parts[1].sentence = "{name} is out";
  EXPECT_THAT(RenderText(report), testing::EndsWith("  fast  300 us     3\n  slow is out\n"));
  table.columns.push_back({"why", "{}"});
  EXPECT_THAT(RenderText(report), testing::EndsWith("  slow  1.200 ms  slow is out    12\n"));
}

TEST(RenderTextTest, FactsThatSentencesNameExist) { EXPECT_ANY_THROW(RenderText(Fact::Report(1, {}).Says("{model}"))); }

TEST(SentenceTest, PartsAreLeftOutWithTheirFacts) {
  const auto say = [](const std::string& sentence) {
    return RenderText(Fact::Record("", "",
                                   {Fact::Text("name", "name", "dnnl"), Fact::Text("hint", "hint", ""),
                                    Fact::Count("threads", "threads", 2), Fact::Flag("alone", "alone", true)})
                          .Says(sentence + "{?name}{?hint}{?threads}{?alone}"));
  };
  EXPECT_EQ(say("{name}[ ({hint})][, {threads} thread{s:threads}]"), "dnnl, 2 threads\n");
  EXPECT_EQ(say("[{?alone}alone][{!alone}together][{!hint}, no hint]"), "alone, no hint\n");
  EXPECT_EQ(say("{{{name}}} [[{name:2}]]"), "{dnnl}} [dn]\n");
  EXPECT_EQ(say(Literal("a{b}[c]")), "a{b}[c]\n");
}

TEST(FormatFactTest, NumbersHaveTheirUnits) {
  const auto text = [](double number, Unit unit) { return FormatFact(Fact::Number("", "", number, unit)); };
  EXPECT_EQ(text(0.00871, Unit::kSeconds), "8.710 ms");
  EXPECT_EQ(text(-0.0437, Unit::kDifference), "-43.70 ms");
  EXPECT_EQ(text(12.34, Unit::kElapsed), "12.3 s");
  EXPECT_EQ(text(0.125, Unit::kShare), "12.5 %");
  EXPECT_EQ(text(0.125, Unit::kMoreShare), "+12.5 %");
  EXPECT_EQ(text(1.0526, Unit::kRatio), "1.05x");
  EXPECT_EQ(text(1.0526, Unit::kFineRatio), "1.053");
  EXPECT_EQ(text(1.2e-6, Unit::kError), "1.2e-06");
  EXPECT_EQ(FormatFact(Fact::Bytes("", "", 17'200'000)), "17.2 MB");
  EXPECT_EQ(FormatFact(Fact::Integer("", "", 5'930'000, Unit::kMillions)), "5.93 M");
  EXPECT_EQ(FormatFact(Fact::Seconds("", "", std::nullopt)), "?");
  EXPECT_EQ(FormatFact(Fact::Seconds("", "", std::nullopt).OrNone()), "-");
}

TEST(FormatFactTest, LongListsAreCut) {
  std::vector<int> numbers(20);
  EXPECT_EQ(FormatFact(Fact::Integers("", "", numbers)), "0 0 0 0 0 0 0 0 0 0 0 ... 9 more");
  EXPECT_EQ(FormatFact(Fact::Integers("", "", {})), "-");
  EXPECT_EQ(FormatFact(Fact::Texts("", "", {"a", "b"})), "a · b");
}

TEST(RenderJsonTest, AllFacts) {
  EXPECT_EQ(RenderJson(Sample()), R"({
  "schema": 3,
  "model": "m.onnx",
  "machine": "a CPU",
  "threads": 1,
  "search": {
    "candidates": 12,
    "measured": 0,
    "states": 40,
    "budget_spent": true
  },
  "rows": [
    {
      "name": "fast",
      "p50_seconds": 0.00030000000000000003,
      "runs": 3,
      "why": ""
    },
    {
      "name": "slow",
      "p50_seconds": 0.0012000000000000001,
      "runs": 12,
      "why": ""
    }
  ],
  "partitions": {
    "dnnl": 2,
    "native": 3
  }
})");
}

TEST(RenderJsonTest, NumbersThatJsonHasNot) {
  const Fact report = Fact::Record("", "",
                                   {Fact::Number("none", "", std::nullopt), Fact::Number("nan", "", std::nan("")),
                                    Fact::Number("infinite", "", std::numeric_limits<double>::infinity()),
                                    Fact::Texts("list", "", {}), Fact::Text("", "only in text", "x")});
  EXPECT_EQ(RenderJson(report), R"({
  "none": null,
  "nan": "unknown",
  "infinite": null,
  "list": []
})");
}

TEST(FactOfJsonTest, IsTheSameJson) {
  const std::string text = R"({
  "a": [
    1,
    2.5,
    "x",
    null
  ],
  "b": {
    "c": true
  }
})";
  EXPECT_EQ(RenderJson(FactOfJson("", "", text)), text);
  EXPECT_EQ(RenderJson(FactOfJson("", "", "no JSON")), "null");
}

}  // namespace
}  // namespace collage
