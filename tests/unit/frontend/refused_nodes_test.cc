// Nodes that cannot be converted, and what becomes of those behind them.
#include <gtest/gtest.h>

#include "collage/frontend/onnx.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

std::vector<size_t> Refused(const ModelFile& model) {
  std::vector<size_t> places;
  for (const RefusedOnnxNode& node : RefusedOnnxNodes(model.Write())) {
    EXPECT_FALSE(node.reason.empty());
    places.push_back(node.place);
  }
  return places;
}

/// Relu, an operator that nobody has, Tanh of what it makes.
class Chain : public testing::Test {
 protected:
  Chain() {
    model_.Input("x", TensorProto::FLOAT, {2, 3}).Output("y");
    model_.Node("Relu", {"x"}, {"a"});
    model_.Node("Unheard", {"a"}, {"b"});
    model_.Node("Tanh", {"b"}, {"y"});
  }

  ModelFile model_{17};
};

TEST_F(Chain, AllBehindAValueOfNoStatedTypeIsRefused) { EXPECT_EQ(Refused(model_), (std::vector<size_t>{1, 2})); }

TEST_F(Chain, AStatedTypeIsTaken) {
  ModelFile typed(17);
  typed.Input("b", TensorProto::FLOAT, {2, 3});
  *model_.graph().add_value_info() = typed.graph().input(0);
  EXPECT_EQ(Refused(model_), (std::vector<size_t>{1}));
}

TEST(RefusedNodesTest, PlacesAreThoseOfTheFileInAnyOrder) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2, 3}).Output("y");
  model.Node("Unheard", {"a"}, {"y"});
  model.Node("Relu", {"x"}, {"a"});
  EXPECT_EQ(Refused(model), (std::vector<size_t>{0}));
}

TEST(RefusedNodesTest, AnAttributeThatIsNotSupportedIsOfItsNodeAlone) {
  ModelFile model(17);
  model.Input("x", TensorProto::FLOAT, {2, 3}).Output("y").Output("z");
  SetInt(model.Node("Softmax", {"x"}, {"y"}), "axis", 5);
  model.Node("Relu", {"x"}, {"z"});
  EXPECT_EQ(Refused(model), (std::vector<size_t>{0}));
}

TEST(RefusedNodesTest, ANodeIsRefusedForOneWithinIt) {
  ModelFile model(17);
  model.Input("c", TensorProto::BOOL, {}).Input("x", TensorProto::FLOAT, {2}).Output("y").Output("z");
  onnx::NodeProto& choice = model.Node("If", {"c"}, {"y"});
  for (const auto& [name, op] : {std::pair("then_branch", "Relu"), std::pair("else_branch", "Unheard")}) {
    onnx::GraphProto& graph = AddGraph(choice, name);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.add_input("x");
    node.add_output(name);
    graph.add_output()->set_name(name);
  }
  model.Node("Neg", {"x"}, {"z"});
  EXPECT_EQ(Refused(model), (std::vector<size_t>{0}));
}

TEST(RefusedNodesTest, NoneOfAModelThatCanBeImported) {
  ModelFile model(17);
  model.SymbolicInput("x", TensorProto::FLOAT, {"n", "3"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(Refused(model), std::vector<size_t>());
}

}  // namespace
}  // namespace collage
