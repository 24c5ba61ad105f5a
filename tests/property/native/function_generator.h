// function_generator.h: random functions of tensor operators, with inputs on which what they compute is well defined.
//
// A function grows from its parameters: each step draws an operator and operands among the values made so far, or new
// parameters and constants. With every value goes what is known of its elements, so that nothing is drawn whose result
// would be nobody's duty to agree on:
//
//     bounds   no logarithms of negative numbers, no sums beyond their type
//     exact    whether any correct kernel makes the same elements to the last bit. Steps that jump (rounding,
//              comparisons, casts to integers, positions of the largest) take such values only: an error in the last
//              place is no error, and must not become one
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"
#include "property/random_source.h"

namespace collage {

/// A typed function, and tensors for its parameters.
struct RandomFunction {
  Function function;
  std::vector<Tensor> inputs;
};

class FunctionGenerator {
 public:
  explicit FunctionGenerator(uint64_t seed);

  RandomFunction Make();

 private:
  using Ints = std::vector<int64_t>;

  /// A tensor, and what is known of its elements.
  struct Value {
    Expr expr;
    Shape shape;
    DataType dtype;
    double low = 0;
    double high = 0;
    bool is_exact = true;

    int rank() const { return static_cast<int>(shape.size()); }
    double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
    int64_t size(int axis) const { return shape[static_cast<size_t>(axis)]; }
  };
  /// The result of a step; empty if the operands drawn do not suit it.
  using Made = std::optional<Value>;
  using Way = Made (FunctionGenerator::*)();

  // ---- function_generator.cc: values and steps ----
  int Below(int count) { return random_.Below(count); }
  bool OneIn(int count) { return random_.OneIn(count); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(static_cast<int>(high - low + 1)); }
  int64_t Size();
  Shape RandomShape(int rank);
  int Axis(const Value& value);
  Tensor Elements(const Shape& shape, DataType dtype, double low, double high);
  /// A new parameter or constant.
  Value Fresh(const Shape& shape, DataType dtype, double low, double high);
  Value FreshConstant(const Shape& shape, DataType dtype, double low, double high);
  Value Fresh(const Shape& shape);
  /// One of the latest values; of that rank, made now if there is none, unless it is -1.
  Value Any(int rank = -1);
  /// Returns the same elements in another shape.
  Made OfRank(const Value& value, int rank);
  /// As Any, but floats.
  Value AnyFloats(int rank = -1);
  /// A value that broadcasts with `other`, of its dtype.
  Value Partner(const Value& other, double low, double high);
  /// The call's result, if it has a place among values: not too large, elements within what its dtype holds.
  Made Call(const std::string& op, std::vector<Expr> args, Attrs attrs, double low, double high, bool is_exact);
  /// Fields of a call that gives several; the first is returned, the others become values as well.
  Made Fields(const std::string& op, std::vector<Expr> args, Attrs attrs, const std::vector<Value>& like);
  bool Keep(Value value);

  // ---- function_elementwise.cc ----
  Made Unary();
  Made Binary();
  Made IntegerBinary(const Value& a);
  Made Comparison();
  Made Logical();
  Made Where();
  Made Cast();
  Made ClipOrSlope();
  Made Quantise();
  Made Dequantise();
  Made AlongChannels();

  // ---- function_layers.cc ----
  Made Reduction();
  Made ArgReduction();
  Made Cumulative();
  Made Softmax();
  Made Normalisation();
  Made Pool();
  Made GlobalPool();
  Made Convolution();
  Made TransposedConvolution();
  Made Dense();
  Made Matmul();
  Made SumOfProducts();
  Made Recurrent();
  Made Resize();
  Made GridSample();
  Made Sort();

  // ---- function_movement.cc ----
  Made Transpose();
  Made Reshape();
  Made Axes();
  Made Repetition();
  Made Slice();
  Made Pad();
  Made Split();
  Made Join();
  Made Blocks();
  Made Take();
  Made Gather();
  Made Scatter();
  Made OneHot();

  RandomSource random_;
  DataType main_;          ///< the dtype of most values
  bool is_large_ = false;  ///< enough for loops that are worth a second thread
  int64_t most_elements_;
  std::vector<Var> params_;
  std::vector<Tensor> inputs_;
  std::vector<Value> values_;
};

}  // namespace collage
