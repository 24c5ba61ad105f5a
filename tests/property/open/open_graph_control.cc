// open_graph_control.cc: random branches and loops that sizes decide.
#include "property/open/open_graph_generator.h"

namespace collage {

using onnx::TensorProto;

/// One of two functions of a value, results of one shape or of two.
OpenGraphGenerator::Made OpenGraphGenerator::If() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  const std::string condition = Condition(Derived(AnySize()));
  const bool is_cut = x->rank() > 0 && OneIn(4);
  const onnx::GraphProto taken = Graph({}, [&] { return Names{Node("Relu", {x->name})}; });
  const onnx::GraphProto other = Graph({}, [&] {
    if (is_cut) return Names{Node("Slice", {x->name, List({0}), List({3}), List({Below(x->rank())})})};
    return Names{Node("Neg", {Node("Add", {x->name, Scalar(1)})})};
  });
  return {Node("If", {condition}, {{"then_branch", taken}, {"else_branch", other}})};
}

/// As torch exports `squeeze`: the dimension goes where its size is 1.
OpenGraphGenerator::Made OpenGraphGenerator::IfSqueeze() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  const std::string condition = Node("Equal", {SizeOf(x->name, x->rank(), axis), Number(1)});
  const onnx::GraphProto taken = Graph({}, [&] { return Names{WithAxes("Squeeze", x->name, {axis}, 13)}; });
  const onnx::GraphProto other = Graph({}, [&] { return Names{Node("Identity", {x->name})}; });
  return {Node("If", {condition}, {{"then_branch", taken}, {"else_branch", other}})};
}

/// As many turns as a small size says.
OpenGraphGenerator::Made OpenGraphGenerator::Loop() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  const std::string count = Node("Min", {Derived(AnySize()), Number(Between(1, 5))});
  const std::string go_on = Constant(Tensor::Of<uint8_t>({}, kBool, std::vector<uint8_t>{1}));
  const bool collects = OneIn(4);
  const std::string turn = NewName(), condition = NewName(), carried = NewName();
  const onnx::GraphProto body = Graph({turn, condition, carried}, [&] {
    const std::string term = Node("Mul", {x->name, Scalar(0.5)});
    std::string sum = Node("Add", {carried, term});
    if (OneIn(3)) sum = Node("Add", {sum, Cast(turn, TensorProto::FLOAT)});
    Names results{Node("Identity", {condition}), sum};
    if (collects) results.push_back(Node("Neg", {sum}));
    return results;
  });
  const std::string last = Node("Loop", {count, go_on, x->name}, {{"body", body}}, collects ? 2 : 1);
  return collects ? Names{last, last + "_1"} : Names{last};
}

}  // namespace collage
