#include "report/html/report_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace collage {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// 0 input, 1 weights, 2 and 3 in partition 0, whose results 4 gathers in a tuple; 5 takes a field of it, 6 computes
// with both.
constexpr const char* kGraph = R"({"graphs": [{
  "nodes": [
    {"kind": "input", "inputs": []}, {"kind": "constant", "inputs": []},
    {"kind": "call", "inputs": [0, 1]}, {"kind": "call", "inputs": [2]},
    {"kind": "tuple", "inputs": [2, 3]}, {"kind": "field", "inputs": [4]}, {"kind": "call", "inputs": [5, 0]}],
  "results": [6, 3],
  "partitions": [{"nodes": [2, 3]}, {"nodes": [6]}]}]})";

Json Layout() { return LayOutReport(Json::parse(kGraph)).at("graphs").at(0); }

std::vector<std::tuple<int, int, std::set<int>>> EdgesOf(const Json& picture) {
  std::vector<std::tuple<int, int, std::set<int>>> edges;
  for (const Json& edge : picture.at("edges")) edges.emplace_back(edge["from"], edge["to"], edge["nodes"]);
  return edges;
}

TEST(ReportLayoutTest, FoldedGraphsHaveInputsPartitionsAndResults) {
  const Json layout = Layout();
  std::vector<std::string> items;
  for (const Json& item : layout.at("items")) {
    items.push_back(item.at("kind").get<std::string>() + " " +
                    item.value(item.contains("node") ? "node" : "partition", Json()).dump());
  }
  EXPECT_THAT(items, ElementsAre("input 0", "partition 0", "partition 1", "output 6", "output 3"));
}

TEST(ReportLayoutTest, EdgesPassThroughTuples) {
  EXPECT_THAT(EdgesOf(Layout()), UnorderedElementsAre(std::tuple(0, 1, std::set{0}), std::tuple(0, 2, std::set{0}),
                                                      std::tuple(1, 2, std::set{2, 3}), std::tuple(2, 3, std::set{6}),
                                                      std::tuple(1, 4, std::set{3})));
}

TEST(ReportLayoutTest, InsidesHaveNodesAndPorts) {
  const Json inside = Layout().at("inside").at(0);
  ASSERT_EQ(inside.at("nodes").size(), 2u);
  EXPECT_EQ(inside["nodes"][0]["node"], 2);
  ASSERT_EQ(inside.at("inputs").size(), 1u);
  EXPECT_EQ(inside["inputs"][0]["node"], 0) << "weights are no port";
  EXPECT_EQ(inside.at("outputs").size(), 2u) << "both results are read outside";
  EXPECT_THAT(EdgesOf(inside), UnorderedElementsAre(std::tuple(0, 1, std::set{2}), std::tuple(2, 0, std::set{0}),
                                                    std::tuple(0, 3, std::set{2}), std::tuple(1, 4, std::set{3})));
}

TEST(ReportLayoutTest, GraphsWithoutPartitionsAreDrawn) {
  const Json layout =
      LayOutReport(Json::parse(R"({"graphs": [{"nodes": [{"kind": "input"}], "results": [0], "partitions": []}]})"));
  EXPECT_THAT(EdgesOf(layout.at("graphs").at(0)), ElementsAre(std::tuple(0, 1, std::set{0})));
}

}  // namespace
}  // namespace collage
