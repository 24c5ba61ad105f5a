// open_graph_generator.h: random ONNX models with symbolic sizes and arithmetic on them.
//
// A model grows in steps of a few nodes. The steps that are possible depend on dynamic sizes, so some assignments
// of sizes to the symbols are drawn first, the *worlds*: after each step the model is imported with each world's sizes
// bound, which gives the shapes of the step's results there, and the values of those that depend on sizes alone. A step
// that the bound import refuses in a world is taken back, or now and then the world is given up.
//
//     symbols  N, T            worlds  {3, 7}, {1, 1}, {4, 400}
//     x [N, 2, T]  →  conv, stride 4  →  shapes (3, 2, 2), -, (4, 2, 100): the second world is given up
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "collage/runtime/tensor.h"
#include "onnx/onnx-ml.pb.h"
#include "property/open/open_case.h"
#include "property/random_source.h"
#include "unit/frontend/open_model_check.h"

namespace collage {

class OpenGraphGenerator {
 public:
  explicit OpenGraphGenerator(uint64_t seed);

  OpenCase Make();

 private:
  using Ints = std::vector<int64_t>;
  using Names = std::vector<std::string>;
  using Attribute = std::variant<int64_t, double, std::string, Ints, Tensor, onnx::GraphProto>;
  using Attributes = std::vector<std::pair<std::string, Attribute>>;

  /// Sizes of the symbols.
  struct World {
    Ints sizes;
    bool is_alive = true;
  };
  /// An input's dimension: a size, or a symbol below 0 as -1 - its number.
  struct Input {
    std::string name;
    Ints dims;
  };
  /// A result of the model so far, as it is in the worlds that are alive.
  struct Value {
    std::string name;
    DataType dtype;
    std::vector<Shape> shapes;                     ///< by world; empty in one that is not alive
    std::optional<std::vector<Tensor>> constants;  ///< by world, where sizes alone make it
    int rank() const;
    bool is_float() const { return dtype == kFloat32; }
    int first_alive = 0;
  };
  /// Names of what a step made, nothing where it found no operands to its taste.
  using Made = Names;
  using Way = Made (OpenGraphGenerator::*)();

  // ---- open_graph_generator.cc: inputs, steps, worlds ----
  int Below(int count) { return random_.Below(count); }
  bool OneIn(int count) { return random_.OneIn(count); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(static_cast<int>(high - low + 1)); }
  void AddInputs();
  int64_t Symbol();
  void AddWorlds();
  Ints RandomSizes(int kind);
  InputShapes ShapesIn(const Ints& sizes) const;
  bool Step();
  /// Whether the bound imports take the model with `outputs`; makes them values then.
  bool Accept(const Names& outputs);
  std::optional<std::vector<Value>> ImportIn(size_t world, const Names& outputs);
  OpenCase Finish();

  // ---- open_graph_generator.cc: nodes ----
  std::string NewName() { return "v" + std::to_string(num_names_++); }
  /// Adds a node; the name of its first result. Further results have this name with "_1", "_2", … behind.
  std::string Node(const std::string& op, const Names& inputs, const Attributes& attributes = {}, int num_results = 1);
  std::string Constant(const Tensor& value);
  std::string List(const Ints& values);
  std::string Number(int64_t value);
  std::string Scalar(double value);
  std::string Weights(const Shape& shape);
  std::string Cast(const std::string& x, onnx::TensorProto::DataType type);
  /// A graph of what `build` adds, whose results are what it returns.
  template <typename Build>
  onnx::GraphProto Graph(const Names& inputs, const Build& build);
  /// Axes as the opset wants them: an attribute, or another input.
  std::string WithAxes(const std::string& op, const std::string& x, const Ints& axes, int64_t first_with_input,
                       Attributes attributes = {});

  // ---- open_graph_generator.cc: values ----
  /// One of floats, rather a late one; of that rank if it is no less than 0. Null where there is none.
  const Value* Floats(int rank = -1);
  const Value* Find(const std::string& name) const;
  /// The size that an axis has in all worlds, or -1.
  int64_t FixedSize(const Value& value, int axis) const;
  int Axis(const Value& value) { return Below(value.rank()); }
  bool IsAlive(size_t world) const { return worlds_[world].is_alive; }
  Ints AllAxes(const Value& value) const;

  // ---- open_graph_sizes.cc: arithmetic on sizes; all results are scalars of int64 ----
  std::string SizeOf(const std::string& x, int rank, int axis);
  std::string AnySize();
  /// `size` after a step or two of arithmetic.
  std::string Derived(std::string size);
  std::string DerivedOnce(const std::string& size);
  std::string Condition(const std::string& size);
  std::string AsList(const std::string& size);
  std::string AsFloat(const std::string& size) { return Cast(size, onnx::TensorProto::FLOAT); }
  /// Sizes, each a scalar or a known number, as one list.
  std::string Join(const std::vector<std::variant<std::string, int64_t>>& sizes);
  /// 0, 1, …, `size` - 1 of int64, in one of the ways in which exporters write it.
  std::string Counting(const std::string& size);
  Made SizeItself();
  Made SizeAsNumber();
  Made MeanBySum();
  Made Chosen();
  Made FilledWithShape();
  Made CountingAdded();
  Made FromTable();
  Made TableCut();
  Made TriangularMask();
  Made PositionsOfOnes();

  // ---- open_graph_layers.cc ----
  Made Convolution();
  Made TransposedConvolution();
  Made Pool();
  Made GlobalPool();
  Made MatMulByWeights();
  Made Gemm();
  Made Attention();
  Made Unary();
  Made BinaryWithConstant();
  Made Binary();
  Made Reduction();
  Made Softmax();
  Made Normalisation();
  Made Recurrent();
  Made ArgReduction();
  Made TopK();
  Made OneHot();
  Made CumulativeSum();
  Made Embedding();
  void SetWindow(Attributes& attributes, int rank, const Ints& kernel);

  // ---- open_graph_movement.cc ----
  Made Slice();
  Made Reshape();
  Made ReshapeComputed();
  Made SplitHeads();
  Made Flatten();
  Made Squeeze();
  Made Unsqueeze();
  Made Transpose();
  Made Expand();
  Made Tile();
  Made Pad();
  Made PadToMultiple();
  Made ResizeByScales();
  Made ResizeBySizes();
  Made ResizeLike();
  Made Split();
  Made Concat();
  Made GatherStep();
  Made Blocks();
  Made Crop();

  // ---- open_graph_control.cc ----
  Made If();
  Made IfSqueeze();
  Made Loop();

  RandomSource random_;
  int64_t opset_;
  onnx::ModelProto model_;
  onnx::GraphProto* target_;  ///< the graph that gets nodes
  std::vector<Input> inputs_;
  int num_symbols_ = 0;
  int64_t least_ = 0;  ///< added to most sizes
  std::vector<World> worlds_;
  std::vector<Ints> untried_;  ///< sizes at which the model is run, too, although nobody knows whether it can be
  std::vector<Value> values_;
  int num_names_ = 0;
  std::string path_;
};

template <typename Build>
onnx::GraphProto OpenGraphGenerator::Graph(const Names& inputs, const Build& build) {
  onnx::GraphProto graph;
  graph.set_name(NewName());
  for (const std::string& input : inputs) graph.add_input()->set_name(input);
  onnx::GraphProto* const outer = std::exchange(target_, &graph);
  for (const std::string& result : build()) graph.add_output()->set_name(result);
  target_ = outer;
  return graph;
}

}  // namespace collage
