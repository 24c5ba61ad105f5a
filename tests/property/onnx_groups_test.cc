// Groups of nodes of an execution provider, on random graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "backends/onnxruntime/provider/groups.h"

namespace collage::onnxruntime {
namespace {

constexpr unsigned kGraphs = 500;
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

/// A random graph, and groups of those of its nodes that are taken.
struct Grouped {
  explicit Grouped(unsigned seed) {
    std::mt19937 random(seed);
    model = RandomModel(random);
    for (int i = 0; i < model.graph().node_size(); ++i) taken.push_back(random() % 3 != 0);
    groups = GroupNodes(model.graph(), taken);
  }

  onnx::ModelProto model;
  std::vector<bool> taken;
  std::vector<NodeGroup> groups;
};

/// Whether a way leads from `group` to the node `outside`, and one back.
bool LeavesAndComesBack(const Edges& ways, const NodeGroup& group, size_t outside) {
  const auto is_before = [&](int node) { return ways[outside][static_cast<size_t>(node)]; };
  const auto is_behind = [&](int node) { return ways[static_cast<size_t>(node)][outside]; };
  return std::ranges::any_of(group, is_before) && std::ranges::any_of(group, is_behind);
}

TEST(GroupsTest, EachTakenNodeIsInOneAndNoWayLeavesAndComesBack) {
  for (unsigned seed = 0; seed < kGraphs; ++seed) {
    const Grouped grouped(seed);
    const Edges ways = WaysOf(grouped.model.graph());
    std::vector<int> times(grouped.taken.size(), 0);
    for (const NodeGroup& group : grouped.groups) {
      for (const int node : group) ++times[static_cast<size_t>(node)];
      for (size_t outside = 0; outside < times.size(); ++outside) {
        if (std::ranges::find(group, static_cast<int>(outside)) != group.end()) continue;
        EXPECT_FALSE(LeavesAndComesBack(ways, group, outside)) << "graph " << seed << ", node " << outside;
      }
    }
    for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], grouped.taken[i] ? 1 : 0) << "graph " << seed;
  }
}

TEST(GroupsTest, AllTakenAreOne) {
  for (unsigned seed = 0; seed < kGraphs; ++seed) {
    const Grouped grouped(seed);
    EXPECT_EQ(GroupNodes(grouped.model.graph(), std::vector(grouped.taken.size(), true)).size(), 1u);
  }
}

/// The values of a group that others read, or users of the model.
std::set<std::string> WantedOf(const onnx::GraphProto& graph, const std::set<std::string>& made) {
  std::set<std::string> wanted;
  for (const auto& node : graph.node()) {
    if (made.contains(node.output(0))) continue;
    for (const std::string& name : node.input()) {
      if (made.contains(name)) wanted.insert(name);
    }
  }
  for (const auto& output : graph.output()) {
    if (made.contains(output.name())) wanted.insert(output.name());
  }
  return wanted;
}

TEST(GroupsTest, TheModelOfAGroupHasAllThatGoesInAndOut) {
  for (unsigned seed = 0; seed < kGraphs; ++seed) {
    const Grouped grouped(seed);
    for (const NodeGroup& group : grouped.groups) {
      const onnx::ModelProto part = ModelOfGroup(grouped.model, group);
      std::set<std::string> made, known, outputs;
      for (const auto& input : part.graph().input()) known.insert(input.name());
      for (const auto& initializer : part.graph().initializer()) known.insert(initializer.name());
      for (const auto& node : part.graph().node()) {
        for (const std::string& name : node.input()) EXPECT_TRUE(known.contains(name)) << name;
        known.insert(node.output(0));
        made.insert(node.output(0));
      }
      for (const auto& output : part.graph().output()) outputs.insert(output.name());
      EXPECT_EQ(made.size(), group.size());
      EXPECT_EQ(outputs, WantedOf(grouped.model.graph(), made)) << "graph " << seed;
    }
  }
}

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
