// Groups of nodes of an execution provider, on random graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "backends/onnxruntime/provider/groups.h"

namespace collage::onnxruntime {
namespace {

constexpr int kGraphs = 500;
constexpr int kMostNodes = 12;

using Edges = std::vector<std::vector<bool>>;  ///< from, to

/// A graph whose node i makes the value vi and reads some of those before it, and an initializer.
onnx::ModelProto RandomModel(std::mt19937& random) {
  onnx::ModelProto model;
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.add_input()->set_name("x");
  graph.add_initializer()->set_name("w");
  const int count = std::uniform_int_distribution(1, kMostNodes)(random);
  for (int i = 0; i < count; ++i) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Op");
    node.add_input(random() % 3 == 0 ? "w" : "x");
    for (int before = 0; before < i; ++before) {
      if (random() % 3 == 0) node.add_input("v" + std::to_string(before));
    }
    node.add_output("v" + std::to_string(i));
    if (random() % 4 == 0) graph.add_output()->set_name(node.output(0));
  }
  return model;
}

/// Whether a way leads from a node to another.
Edges WaysOf(const onnx::GraphProto& graph) {
  const auto count = static_cast<size_t>(graph.node_size());
  Edges ways(count, std::vector<bool>(count));
  for (size_t to = 0; to < count; ++to) {
    for (const std::string& name : graph.node(static_cast<int>(to)).input()) {
      if (name[0] != 'v') continue;
      const auto from = static_cast<size_t>(std::stoi(name.substr(1)));
      ways[from][to] = true;
      for (size_t before = 0; before < from; ++before) ways[before][to] = ways[before][to] || ways[before][from];
    }
  }
  return ways;
}

class Groups : public testing::TestWithParam<int> {
 protected:
  Groups() : model_(RandomModel(random_)), ways_(WaysOf(model_.graph())) {
    for (int i = 0; i < model_.graph().node_size(); ++i) taken_.push_back(random_() % 3 != 0);
    groups_ = GroupNodes(model_.graph(), taken_);
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  onnx::ModelProto model_;
  Edges ways_;
  std::vector<bool> taken_;
  std::vector<NodeGroup> groups_;
};

TEST_P(Groups, EachTakenNodeIsInOneAndNoWayLeavesAndComesBack) {
  std::multiset<int> grouped;
  for (const NodeGroup& group : groups_) {
    grouped.insert(group.begin(), group.end());
    for (size_t outside = 0; outside < taken_.size(); ++outside) {
      if (std::ranges::find(group, static_cast<int>(outside)) != group.end()) continue;
      const bool is_behind =
          std::ranges::any_of(group, [&](int node) { return ways_[static_cast<size_t>(node)][outside]; });
      const bool is_before =
          std::ranges::any_of(group, [&](int node) { return ways_[outside][static_cast<size_t>(node)]; });
      EXPECT_FALSE(is_behind && is_before) << "node " << outside;
    }
  }
  std::multiset<int> wanted;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) wanted.insert(static_cast<int>(i));
  }
  EXPECT_EQ(grouped, wanted);
}

TEST_P(Groups, AllTakenAreOne) { EXPECT_EQ(GroupNodes(model_.graph(), std::vector(taken_.size(), true)).size(), 1u); }

TEST_P(Groups, TheModelOfAGroupHasAllThatGoesInAndOut) {
  for (const NodeGroup& group : groups_) {
    const onnx::ModelProto part = ModelOfGroup(model_, group);
    std::set<std::string> made, known, wanted;
    for (const auto& input : part.graph().input()) known.insert(input.name());
    for (const auto& initializer : part.graph().initializer()) known.insert(initializer.name());
    for (const auto& node : part.graph().node()) {
      for (const std::string& name : node.input()) EXPECT_TRUE(known.contains(name)) << name;
      known.insert(node.output(0));
      made.insert(node.output(0));
    }
    EXPECT_EQ(made.size(), group.size());
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      if (made.contains(model_.graph().node(i).output(0))) continue;
      for (const std::string& name : model_.graph().node(i).input()) {
        if (made.contains(name)) wanted.insert(name);
      }
    }
    for (const auto& output : model_.graph().output()) {
      if (made.contains(output.name())) wanted.insert(output.name());
    }
    std::set<std::string> outputs;
    for (const auto& output : part.graph().output()) outputs.insert(output.name());
    EXPECT_EQ(outputs, wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Groups, testing::Range(0, kGraphs));

TEST(GroupsTest, AGraphWithinANodeReadsWhatItDoesNotMake) {
  onnx::ModelProto model;
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.add_input()->set_name("c");
  onnx::NodeProto& first = *graph.add_node();
  first.add_input("x");
  first.add_output("a");
  onnx::NodeProto& choice = *graph.add_node();
  choice.add_input("c");
  choice.add_output("y");
  onnx::GraphProto& within = *choice.add_attribute()->mutable_g();
  onnx::NodeProto& inner = *within.add_node();
  inner.add_input("a");
  inner.add_output("b");
  within.add_output()->set_name("b");
  graph.add_output()->set_name("y");
  const std::vector<NodeGroup> groups = GroupNodes(graph, {false, true});
  ASSERT_EQ(groups.size(), 1u);
  const onnx::ModelProto part = ModelOfGroup(model, groups[0]);
  std::set<std::string> inputs;
  for (const auto& input : part.graph().input()) inputs.insert(input.name());
  EXPECT_EQ(inputs, (std::set<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace collage::onnxruntime
