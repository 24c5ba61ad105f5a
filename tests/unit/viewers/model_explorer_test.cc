#include "viewers/model_explorer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/viewers/two_partitions.h"

namespace collage {
namespace {

using Json = nlohmann::json;

TEST_F(ViewersTest, ModelExplorerGetsAGraphOfPartitions) {
  const Json collection = Json::parse(ModelExplorerGraphs(*viewed_, nullptr));
  EXPECT_EQ(collection["label"], "two.clg");
  const Json& graph = collection["graphs"][0];
  ASSERT_EQ(graph["nodes"].size(), 4u) << "an input, two partitions, an output";
  const Json& second = graph["nodes"][2];
  EXPECT_EQ(second["label"], "other: exp+add");
  EXPECT_EQ(second["incomingEdges"][0]["sourceNodeId"], graph["nodes"][1]["id"]);
  EXPECT_EQ(graph["nodes"][3]["incomingEdges"][0]["sourceNodeId"], second["id"]);
  EXPECT_NE(second["style"]["backgroundColor"], graph["nodes"][1]["style"]["backgroundColor"]);
}

TEST_F(ViewersTest, ModelExplorerGetsTheUsersNodesByPartition) {
  const Json graph = Json::parse(ModelExplorerGraphs(*viewed_, &outline_))["graphs"][1];
  const auto node = [&](const std::string& id) {
    for (const Json& one : graph["nodes"]) {
      if (one["id"] == id) return one;
    }
    return Json();
  };
  EXPECT_EQ(node("a")["namespace"], "0 test");
  EXPECT_EQ(node("b")["namespace"], "0, 1 test, other");
  EXPECT_EQ(node("d")["namespace"], "") << "in no partition";
  EXPECT_EQ(node("b")["incomingEdges"][0]["sourceNodeId"], "a");
  EXPECT_EQ(node("a")["incomingEdges"].size(), 2u) << "the input, and a node that is a constant";
  EXPECT_EQ(node("[output]y")["incomingEdges"][0]["sourceNodeId"], "c");
  EXPECT_EQ(graph["groupNodeAttributes"]["0 test"]["microseconds"], "4.000");
}

TEST_F(ViewersTest, NodeDataIsByNodeOfTheUsersGraph) {
  const NodeDataFiles files = ModelExplorerNodeData(*viewed_, outline_);
  EXPECT_EQ(files.nodes, 3u);
  const Json microseconds = Json::parse(files.microseconds)["main_graph"]["results"];
  EXPECT_NEAR(microseconds["a"]["value"].get<double>(), 4, 1e-9);
  EXPECT_FALSE(microseconds.contains("d"));
  const Json shares = Json::parse(files.share)["main_graph"]["results"];
  EXPECT_NEAR(
      shares["a"]["value"].get<double>() + shares["b"]["value"].get<double>() + shares["c"]["value"].get<double>(), 100,
      1e-9);
  EXPECT_EQ(Json::parse(files.toolchain)["main_graph"]["results"]["c"]["value"], "other");
  EXPECT_EQ(Json::parse(files.partition)["main_graph"]["results"]["b"]["value"], "0, 1");
}

}  // namespace
}  // namespace collage
