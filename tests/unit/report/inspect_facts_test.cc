#include "report/inspect_facts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/json.h"
#include "report/text.h"

namespace collage {
namespace {

TEST(DataflowFactsTest, Text) {
  const std::vector<DataflowNodeReport> nodes{{0, "%x", {}, {1}, std::nullopt, false, 1},
                                              {1, "abs", {0}, {}, 0, true, std::nullopt},
                                              {2, "unused", {}, {}, std::nullopt, false, std::nullopt}};
  EXPECT_EQ(RenderText(DataflowFacts(nodes)), R"(  node  label   inputs  outputs  basic block  dominator
  0     %x      -             1  -                    1
  1     abs          0  -                  0  external
  2     unused  -       -        -            -
)");
}

TEST(SubGraphFactsTest, TextAndJson) {
  const SubGraphReport report{{4}, {5}, {0, 3}, {6}, 2, 'B', "add+nn.relu", false, "depth 2, at most 1"};
  EXPECT_EQ(RenderText(SubGraphFacts(report)), R"(  entry     4
  exit      5
  input     0 3
  output    6
  depth     2
  kind      B
  label     add+nn.relu
  valid     no: depth 2, at most 1
)");
}

TEST(CandidatesFactsTest, TextAndJson) {
  const std::vector<CandidateReport> candidates{{{3, 4}, "a.r", "const+add", 'B', 1}};
  EXPECT_EQ(RenderText(CandidatesFacts(candidates)), R"(  inside  rule  label      kind  depth
  3 4     a.r   const+add  B         1
1 candidates
)");
  EXPECT_EQ(RenderJson(CandidatesFacts(candidates)), R"({
  "schema": 1,
  "candidates": [
    {
      "inside": [
        3,
        4
      ],
      "rule_name": "a.r",
      "label": "const+add",
      "kind": "B",
      "depth": 1
    }
  ]
})");
}

TEST(CoverFactsTest, Text) {
  CoverReport cover;
  cover.cost = 10001;
  cover.partitions = {{"acme", "add", {4}, {"exp", "nn.relu"}, 3}, {"other", "x", {5}, {"abs"}, std::nan("")}};
  cover.host = {0, 1};
  cover.num_states = 7;
  cover.least_cost = 9000.5;
  const std::string searched =
      "searched: 7 states, 0 candidates, 0 costs\n"
      "no cover of these candidates costs less than 9000.5\n";
  EXPECT_EQ(RenderText(CoverFacts(cover)), R"(  target  cost     operators    inside  rule
  acme          3  exp nn.relu       4  add
  other   unknown  abs               5  x
cost 10001, next best none; 2 nodes left to the host
)" + searched);
  cover.next_best_cost = 0;
  EXPECT_NE(RenderText(CoverFacts(cover)).find("next best 0;"), std::string::npos);
  EXPECT_EQ(RenderText(CoverFacts(cover, "def @main() { () }\n")), "def @main() { () }\n");
}

}  // namespace
}  // namespace collage
