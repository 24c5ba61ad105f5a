// operators_test.cc: type relations and reference evaluation of operators, on cases small enough to do by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, kFloat32, values);
}
Tensor Ints(const Shape& shape, const V& values) { return Tensor::Of<int64_t>(shape, kInt64, values); }
Tensor Scalar(double value, DataType dtype = kFloat32) { return MakeScalar(value, dtype)->value(); }

std::vector<double> Elements(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(tensor.At(i));
  return result;
}

/// The results of operator `name` on tensors.
std::vector<Tensor> Apply(std::string_view name, const std::vector<Tensor>& inputs, Attrs attrs = {}) {
  const OpDef& op = GetOp(name)->def();
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(TensorType(input.shape(), input.dtype()));
  return EvaluateOp(op, CompleteAttrs(op, std::move(attrs)), types, inputs);
}

/// Why operator `name` refuses arguments of `types`; "" when it takes them.
std::string Refusal(std::string_view name, const std::vector<Type>& types, Attrs attrs = {}) {
  const OpDef& op = GetOp(name)->def();
  const Attrs complete = CompleteAttrs(op, std::move(attrs));
  const Result<Type> type = op.relation({types, complete});
  return type.ok() ? "" : type.reason().text;
}

Type F32(const Shape& shape) { return TensorType(shape, kFloat32); }

TEST(OperatorsTest, QuantisingRoundsToEvenAndSaturates) {
  const std::vector<Tensor> y =
      Apply("qnn.quantize", {Floats({6}, {0.5, 1.5, -1.5, 300, -300, 0}), Scalar(1), Scalar(10, kInt8)});
  EXPECT_THAT(Elements(y[0]), ElementsAre(10, 12, 8, 127, -128, 10));
}

// Few channels are summed up tap by tap, many as a product.
TEST(OperatorsTest, ConvolutionsOfManyChannelsAreThoseOfEachChannel) {
  const auto numbers = [](const Shape& shape, double step) {
    Tensor tensor = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, std::sin(step * static_cast<double>(i)));
    return tensor;
  };
  struct Case {
    const char* op;
    Shape data, weight;
    Attrs attrs;
  };
  const std::vector<Case> cases{
      {"nn.conv1d", {2, 3, 31}, {6, 3, 5}, {{"padding", V{4, 1}}, {"strides", V{3}}}},
      {"nn.conv2d", {2, 6, 9, 7}, {10, 3, 3, 2}, {{"groups", 2}, {"padding", V{1, 2, 0, 3}}, {"dilation", V{2, 3}}}},
      {"nn.conv3d", {1, 2, 5, 4, 6}, {4, 2, 3, 3, 3}, {{"padding", V{1, 1, 1}}, {"strides", V{2, 1, 3}}}}};
  for (const auto& [op, data_shape, weight_shape, attrs] : cases) {
    const Tensor data = numbers(data_shape, 0.7);
    const Tensor weight = numbers(weight_shape, 1.3);
    const Tensor all = Apply(op, {data, weight}, attrs)[0];
    const int64_t groups = data_shape[1] / weight_shape[1];
    const int64_t pixels = all.num_elements() / all.shape()[0] / weight_shape[0];
    for (int64_t channel = 0; channel < weight_shape[0]; ++channel) {
      Shape own_shape = weight_shape;
      own_shape[0] = groups;  // the one that is looked at, once for each group
      Tensor own = Tensor::Empty(own_shape, kFloat32);
      const int64_t size = weight.num_elements() / weight_shape[0];
      for (int64_t i = 0; i < own.num_elements(); ++i) own.Set(i, weight.At(channel * size + i % size));
      const Tensor one = Apply(op, {data, own}, attrs)[0];
      const int64_t group = channel / (weight_shape[0] / groups);
      for (int64_t n = 0; n < data_shape[0]; ++n) {
        for (int64_t i = 0; i < pixels; ++i) {
          EXPECT_NEAR(all.At((n * weight_shape[0] + channel) * pixels + i), one.At((n * groups + group) * pixels + i),
                      1e-6)
              << op << ", channel " << channel << ", element " << i;
        }
      }
    }
  }
}

TEST(OperatorsTest, ScalesPerChannelFollowTheAxis) {
  const Tensor x = Tensor::Of<int8_t>({2, 2}, kInt8, std::vector<int8_t>{1, 2, 3, 4});
  const Tensor zero = Tensor::Of<int8_t>({2}, kInt8, std::vector<int8_t>{0, 1});
  const Tensor scale = Floats({2}, {1, 10});
  EXPECT_THAT(Elements(Apply("qnn.dequantize", {x, scale, zero}, {{"axis", 0}})[0]), ElementsAre(1, 2, 20, 30));
  EXPECT_THAT(Elements(Apply("qnn.dequantize", {x, scale, zero}, {{"axis", -1}})[0]), ElementsAre(1, 10, 3, 30));
  EXPECT_EQ(
      Refusal("qnn.dequantize", {TensorType(Shape{2, 3}, kInt8), F32({2}), TensorType(Shape{}, kInt8)}, {{"axis", 1}}),
      "expects one value or 3 along axis 1 as argument 1, got Tensor[(2), float32]");
  EXPECT_EQ(Refusal("qnn.quantize", {F32({2}), F32({}), F32({})}), "expects an integer as zero point, got float32");
}

TEST(OperatorsTest, RnnForwardAndReverse) {
  // One unit with weight 1 and no recurrence bias: h = relu(x + h').
  const Tensor x = Floats({3, 1, 1}, {1, 2, 4});
  const Tensor one = Floats({1, 1, 1}, {1});
  const std::vector<Tensor> inputs{x, one, one, Tensor::Zeros({1, 2}, kFloat32), Floats({1, 1, 1}, {10})};
  Attrs attrs{{"hidden_size", 1}, {"activations", AttrValue::List{"Relu"}}};
  const std::vector<Tensor> forward = Apply("nn.rnn", inputs, attrs);
  EXPECT_THAT(Elements(forward[0]), ElementsAre(11, 13, 17));
  EXPECT_THAT(Elements(forward[1]), ElementsAre(17));
  attrs.Set("direction", "reverse");
  const std::vector<Tensor> reverse = Apply("nn.rnn", inputs, attrs);
  EXPECT_THAT(Elements(reverse[0]), ElementsAre(17, 16, 14));
  EXPECT_THAT(Elements(reverse[1]), ElementsAre(17));
}

TEST(OperatorsTest, SequencesOfTheirOwnLengthsEndEarly) {
  const Tensor x = Floats({2, 2, 1}, {1, 2, 3, 4});
  const Tensor one = Floats({1, 1, 1}, {1});
  const Tensor lengths = Tensor::Of<int32_t>({2}, kInt32, std::vector<int32_t>{2, 1});
  const std::vector<Tensor> y =
      Apply("nn.rnn", {x, one, one, Tensor::Zeros({1, 2}, kFloat32), Tensor::Zeros({1, 2, 1}, kFloat32), lengths},
            {{"hidden_size", 1}, {"activations", AttrValue::List{"Relu"}}});
  EXPECT_THAT(Elements(y[0]), ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(Elements(y[1]), ElementsAre(4, 2));
}

TEST(OperatorsTest, VectorsAlongAnAxisAreAsLongAsIt) {
  for (const char* op : {"nn.bias_add", "nn.prelu"}) {
    EXPECT_EQ(Refusal(op, {F32({2, 5}), F32({5})}), "");
    EXPECT_EQ(Refusal(op, {F32({2, 5}), F32({3})}), "expects 5 numbers along axis 1, got Tensor[(3), float32]");
    EXPECT_EQ(Refusal(op, {F32({2, 5}), F32({5})}, {{"axis", -2}}),
              "expects 2 numbers along axis 0, got Tensor[(5), float32]");
  }
}

TEST(OperatorsTest, RecurrentLayersRefuseWhatDoesNotFit) {
  const std::vector<Type> types{F32({3, 2, 4}), F32({1, 20, 4}), F32({1, 20, 5}),
                                F32({1, 40}),   F32({1, 2, 5}),  F32({1, 2, 5})};
  EXPECT_EQ(Refusal("nn.lstm", types, {{"hidden_size", 5}}), "");
  EXPECT_EQ(Refusal("nn.lstm", types, {{"hidden_size", 6}}),
            "expects Tensor[(1, 24, 4), float32] as argument 1, got Tensor[(1, 20, 4), float32]");
  EXPECT_EQ(Refusal("nn.lstm", types, {{"hidden_size", 5}, {"direction", "up"}}),
            "direction must be forward, reverse or bidirectional, got 'up'");
  EXPECT_EQ(Refusal("nn.lstm", types, {{"hidden_size", 5}, {"activations", AttrValue::List{"Tanh"}}}),
            "expects 3 activations, got 1");
  EXPECT_EQ(Refusal("nn.lstm", types, {{"hidden_size", 5}, {"activations", AttrValue::List{"Tanh", "Tanh", "Swish"}}}),
            "has no activation 'Swish'");
}

TEST(OperatorsTest, ScattersCombine) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  const Tensor twice = Ints({3}, {1, 1, -1});
  const Tensor updates = Floats({3}, {10, 20, 30});
  EXPECT_THAT(Elements(Apply("scatter_elements", {x, twice, updates})[0]), ElementsAre(1, 20, 3, 30));
  EXPECT_THAT(Elements(Apply("scatter_elements", {x, twice, updates}, {{"reduction", "add"}})[0]),
              ElementsAre(1, 32, 3, 34));
  EXPECT_THAT(Elements(x), ElementsAre(1, 2, 3, 4)) << "the argument itself was written";
  EXPECT_THROW(Apply("scatter_elements", {x, Ints({1}, {4}), Floats({1}, {0})}), Error);
  EXPECT_EQ(Refusal("scatter_elements", {F32({4}), F32({4}), F32({4})}),
            "expects integers as indices, got Tensor[(4), float32]");
  EXPECT_EQ(Refusal("scatter_nd", {F32({4, 2}), TensorType(Shape{1, 3}, kInt64), F32({3})}),
            "expects Tensor[(3, 2), float32] as updates, got Tensor[(3), float32]");
}

TEST(OperatorsTest, IndexTuplesLieAlongTheFirstAxis) {
  const Tensor x = Floats({2, 3}, {0, 1, 2, 10, 11, 12});
  // Tuples (1, 2) and (0, 1).
  EXPECT_THAT(Elements(Apply("gather_nd", {x, Ints({2, 2}, {1, 0, 2, 1})})[0]), ElementsAre(12, 1));
  EXPECT_THAT(Elements(Apply("gather_nd", {x, Ints({1, 2}, {2, 0})}, {{"batch_dims", 1}})[0]), ElementsAre(2, 10));
  EXPECT_EQ(Refusal("gather_nd", {F32({2}), TensorType(Shape{2, 1}, kInt64)}),
            "cannot index Tensor[(2), float32] with tuples of 2");
}

TEST(OperatorsTest, SortingKeepsEqualElementsInTheirOrder) {
  const Tensor x = Floats({5}, {2, 1, 2, 3, 1});
  const std::vector<Tensor> top = Apply("topk", {x}, {{"k", 3}});
  EXPECT_THAT(Elements(top[0]), ElementsAre(3, 2, 2));
  EXPECT_THAT(Elements(top[1]), ElementsAre(3, 0, 2));
  EXPECT_THAT(Elements(Apply("argsort", {x})[0]), ElementsAre(1, 4, 0, 2, 3));
  EXPECT_EQ(Refusal("topk", {F32({5})}, {{"k", 6}}), "cannot take 6 of 5 elements");
  // Neighbours of 2^53 differ by less than a double tells apart.
  const int64_t large = int64_t{1} << 53;
  EXPECT_THAT(Elements(Apply("argsort", {Ints({3}, {large + 1, large, large + 2})})[0]), ElementsAre(1, 0, 2));
}

TEST(OperatorsTest, UniqueSortsOrKeepsTheOrderOfAppearance) {
  const Tensor x = Floats({5}, {3, 1, 3, 2, 1});
  const std::vector<Tensor> sorted = Apply("unique", {x}, {{"return_counts", true}});
  EXPECT_THAT(Elements(sorted[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Elements(sorted[1]), ElementsAre(1, 3, 0));
  EXPECT_THAT(Elements(sorted[2]), ElementsAre(2, 0, 2, 1, 0));
  EXPECT_THAT(Elements(sorted[3]), ElementsAre(3));
  EXPECT_THAT(Elements(sorted[4]), ElementsAre(2, 1, 2));
  EXPECT_THAT(Elements(Apply("unique", {x}, {{"sorted", false}})[0]), ElementsAre(3, 1, 2));
}

TEST(OperatorsTest, ArangeNeedsAnEnd) {
  EXPECT_THAT(Elements(Apply("arange", {Scalar(1), Scalar(2), Scalar(0.4)})[0]), testing::SizeIs(3));
  EXPECT_THAT(Apply("arange", {Scalar(2), Scalar(1), Scalar(1)})[0].shape(), ElementsAre(0));
  EXPECT_THROW(Apply("arange", {Scalar(0), Scalar(1), Scalar(0)}), Error);
}

TEST(OperatorsTest, EinsumKnowsDiagonalsAndEllipses) {
  const OpDef& op = GetOp("einsum")->def();
  const auto einsum = [&](const std::string& equation, const Tensor& x) {
    const Type tuple = TupleType({TensorType(x.shape(), x.dtype())});
    return EvaluateOp(op, CompleteAttrs(op, {{"equation", equation}}), {&tuple, 1}, {&x, 1})[0];
  };
  const Tensor x = Floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Elements(einsum("ii->i", x)), ElementsAre(1, 4));
  EXPECT_THAT(Elements(einsum("ij->", x)), ElementsAre(10));
  EXPECT_THAT(Elements(einsum("ij->ji", x)), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Elements(einsum("...j->...", x)), ElementsAre(3, 7));
  EXPECT_THAT(Refusal("einsum", {TupleType({F32({2, 3})})}, {{"equation", "ii->i"}}), HasSubstr("'i' is both 2 and 3"));
  EXPECT_THAT(Refusal("einsum", {TupleType({F32({2, 3})})}, {{"equation", "ij->k"}}), HasSubstr("has 'k'"));
}

TEST(OperatorsTest, DeterminantsOfSingularMatricesAreZero) {
  EXPECT_THAT(Elements(Apply("linalg.det", {Floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})})[0]), ElementsAre(-6, 0));
}

TEST(OperatorsTest, BoxesThatOverlapAreSuppressed) {
  const Tensor boxes = Floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, 10, 1, 11});
  const Tensor scores = Floats({1, 1, 3}, {0.5, 0.9F, 0.3F});
  const std::vector<Tensor> rows =
      Apply("vision.all_class_non_max_suppression", {boxes, scores, Scalar(3, kInt64), Scalar(0.5), Scalar(0)});
  EXPECT_THAT(Elements(rows[1]), ElementsAre(2));
  EXPECT_THAT(Elements(rows[0]), ElementsAre(0, 0, 1, 0, 0, 2, 0, 0, 0));
}

TEST(OperatorsTest, RemaindersTakeTheSignOfTheDivisor) {
  const Tensor a = Floats({4}, {-1, 1, 0, -3});
  const Tensor b = Floats({4}, {INFINITY, -INFINITY, -2, 2});
  const std::vector<double> y = Elements(Apply("floor_mod", {a, b})[0]);
  EXPECT_THAT(y, ElementsAre(INFINITY, -INFINITY, 0, 1));
  EXPECT_TRUE(std::signbit(y[2]));
}

TEST(OperatorsTest, ShiftsByTooManyBitsShiftAllOut) {
  EXPECT_THAT(Elements(Apply("left_shift", {Ints({3}, {-8, 4, 1}), Ints({3}, {-1, 64, 3})})[0]), ElementsAre(0, 0, 8));
  EXPECT_THAT(Elements(Apply("right_shift", {Ints({3}, {-8, 4, 8}), Ints({3}, {64, 64, 3})})[0]),
              ElementsAre(-1, 0, 1));
}

TEST(OperatorsTest, TransposesMoveEveryElementOfAnySize) {
  // Of one, of several and of broken blocks in which elements are moved.
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 0, 2}, Shape{1, 70}, Shape{37, 65}, Shape{3, 33, 1, 40}}) {
    for (const DataType dtype : {kInt8, kFloat16, kFloat32, kInt64}) {
      const Tensor x = Tensor::Empty(shape, dtype);
      for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(i % 119));
      V axes(shape.size());
      std::iota(axes.begin(), axes.end(), 0);
      do {
        const Tensor y = Apply("transpose", {x}, {{"axes", axes}})[0];
        for (int64_t o = 0; o < y.num_elements(); ++o) {
          V index(shape.size());  // of the element of x
          int64_t rest = o;
          for (size_t d = shape.size(); d-- > 0; rest /= y.shape()[d]) {
            index[static_cast<size_t>(axes[d])] = rest % y.shape()[d];
          }
          int64_t from = 0;
          for (size_t d = 0; d < shape.size(); ++d) from = from * shape[d] + index[d];
          ASSERT_EQ(y.At(o), x.At(from)) << ToString(shape) << " to " << ToString(y.shape()) << " at " << o;
        }
      } while (std::next_permutation(axes.begin(), axes.end()));
    }
  }
}

TEST(OperatorsTest, ProductsOfTurnedMatricesAreThoseOfPlainOnes) {
  const int64_t m = 5, k = 37, n = 19;
  const auto filled = [](const Shape& shape) {
    const Tensor tensor = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(i * 7 % 23) - 11);
    return tensor;
  };
  const Tensor a = filled({2, m, k});
  const Tensor b = filled({2, k, n});
  const auto turned = [](const Tensor& matrices) { return Apply("transpose", {matrices}, {{"axes", V{0, 2, 1}}})[0]; };
  const std::vector<double> plain = Elements(Apply("nn.batch_matmul", {a, b})[0]);
  const Attrs left{{"transpose_a", true}};
  const Attrs right{{"transpose_b", true}};
  const Attrs both{{"transpose_a", true}, {"transpose_b", true}};
  EXPECT_EQ(Elements(Apply("nn.batch_matmul", {turned(a), b}, left)[0]), plain);
  EXPECT_EQ(Elements(Apply("nn.batch_matmul", {a, turned(b)}, right)[0]), plain);
  EXPECT_EQ(Elements(Apply("nn.batch_matmul", {turned(a), turned(b)}, both)[0]), plain);
  double first = 0;
  for (int64_t i = 0; i < k; ++i) first += a.At(i) * b.At(i * n);
  EXPECT_EQ(plain[0], first);
}

TEST(OperatorsTest, TakeSharesBatchDimensions) {
  const Tensor x = Floats({2, 3}, {0, 1, 2, 10, 11, 12});
  EXPECT_THAT(Elements(Apply("take", {x, Ints({2, 2}, {2, 0, 1, 1})}, {{"axis", 1}, {"batch_dims", 1}})[0]),
              ElementsAre(2, 0, 11, 11));
  EXPECT_THAT(Refusal("take", {F32({2, 3}), TensorType(Shape{2}, kInt64)}, {{"axis", 0}, {"batch_dims", 1}}),
              HasSubstr("cannot share 1 dimensions"));
}

TEST(OperatorsTest, NothingIsTakenFromAnEmptyDimension) {
  const Tensor none = Tensor::Zeros({0, 3}, kFloat32);
  EXPECT_THROW(Apply("take", {none, Ints({2}, {0, 0})}, {{"axis", 0}}), Error);
  EXPECT_THROW(Apply("gather", {none, Ints({1, 3}, {0, 0, 0})}), Error);
  EXPECT_THAT(Apply("take", {none, Tensor::Zeros({0}, kInt64)}, {{"axis", 0}})[0].shape(), ElementsAre(0, 3));
}

TEST(OperatorsTest, ResultsOfUnknownSizeFeedOtherOperators) {
  // argwhere → squeeze → take: evaluated with the sizes that there are.
  const Var x = MakeVar("x", F32({4}));
  const Expr places = MakeCall("squeeze", {MakeCall("argwhere", {x})}, {{"axis", V{1}}});
  const Function function = MakeFunction({x}, MakeCall("take", {x, places}, {{"axis", 0}}));
  const Tensor y = Evaluate(function, std::vector{Floats({4}, {0, 5, 0, 7})})[0];
  EXPECT_THAT(Elements(y), ElementsAre(5, 7));
}

}  // namespace
}  // namespace collage
