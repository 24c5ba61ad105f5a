// native_bias_test.cc: what is added to convolutions' sums, of which constants for each channel are what they begin
// with: whatever it is, where it is and how often the sums are read, results agree.
#include <random>

#include "conformance/fused_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using V = std::vector<int64_t>;

const Toolchain& Native() { return BuiltinToolchain("native"); }

struct Form {
  Shape spatial{9, 8};
  int64_t in = 6, out = 20, taps = 3, stride = 1, groups = 1;
  bool is_transposed = false;

  std::string Text() const {
    return ToString(spatial) + ToString({in, out, taps, stride, groups}) + (is_transposed ? " transposed" : "");
  }
};

Expr Convolution(const Form& f, const Expr& x) {
  const size_t rank = f.spatial.size();
  Shape weight = f.is_transposed ? Shape{f.in, f.out / f.groups} : Shape{f.out, f.in / f.groups};
  weight.resize(2 + rank, f.taps);
  return MakeCall("nn.conv" + std::to_string(rank) + "d" + (f.is_transposed ? "_transpose" : ""),
                  {x, RandomConstant(weight, 3, -0.5, 0.5)},
                  {{"padding", V(rank, f.taps / 2)}, {"strides", V(rank, f.stride)}, {"groups", f.groups}});
}

Var Data(const Form& f) {
  Shape shape{2, f.in};
  shape.insert(shape.end(), f.spatial.begin(), f.spatial.end());
  return Input("x", shape);
}

/// A constant for each channel, as a tensor of `rank` dimensions.
Expr PerChannel(const Expr& sums, size_t rank) {
  const Shape shape = AsTensorType(InferType(sums))->static_shape();
  Shape own(rank, 1);
  own[rank + 1 - shape.size()] = shape[1];
  return RandomConstant(own, 5);
}

void ExpectAgreesInAllLayouts(const Function& function) {
  InferType(function);
  ExpectAgrees(Native(), function);
  std::vector<bool> have_channels;
  for (const Var& param : function->params()) have_channels.push_back(AsTensorType(param->checked_type())->rank() >= 3);
  ExpectAgrees(Native(), function,
               {.layouts = Native().Layouts(function, have_channels, {true}).front(), .num_threads = 2});
}

TEST(NativeBiasTest, AgreesForRandomForms) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 12; ++trial) {
    Form form;
    form.spatial.clear();
    for (int64_t d = draw(1, 3); d > 0; --d) form.spatial.push_back(draw(2, 9));
    form.in = draw(1, 30);
    form.out = draw(1, 70);
    form.taps = trial % 2 == 0 ? 1 : 3;
    form.stride = draw(1, 2);
    form.is_transposed = trial % 4 == 3;
    if (trial % 3 == 1) form.groups = form.out = form.in;
    SCOPED_TRACE(form.Text());
    const Var x = Data(form);
    const Expr sums = Convolution(form, x);
    const Expr bias = PerChannel(sums, form.spatial.size() + (trial % 2 == 0 ? 1 : 2));
    const Expr biased = trial % 4 < 2 ? Plus(sums, bias) : Plus(bias, sums);
    ExpectAgreesInAllLayouts(MakeFunction({x}, trial % 3 == 0 ? Mul(biased, MakeCall("sigmoid", {biased})) : biased));
  }
}

TEST(NativeBiasTest, AgreesWhereSumsAreReadBesideOrNoBiasIsAdded) {
  // As wide and high as there are channels.
  const Form form{.spatial = {20, 20}};
  const Var x = Data(form);
  const Expr sums = Convolution(form, x);
  const Expr bias = PerChannel(sums, 3);
  ExpectAgreesInAllLayouts(MakeFunction({x}, Mul(sums, Plus(sums, bias))));
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({sums, Plus(sums, bias)})));
  ExpectAgreesInAllLayouts(MakeFunction({x}, Plus(Mul(sums, Scalar(2)), bias)));
  for (const Shape& shape : std::vector<Shape>{{20}, {20, 1}, {1}, {20, 20}, {20, 20, 20}, {2, 1, 1, 1}}) {
    SCOPED_TRACE(ToString(shape));
    ExpectAgreesInAllLayouts(MakeFunction({x}, MakeCall("nn.relu", {Plus(sums, RandomConstant(shape, 8))})));
  }
  const Var late = Input("late", {20, 1, 1});
  ExpectAgreesInAllLayouts(MakeFunction({x, late}, Plus(sums, late)));
}

}  // namespace
}  // namespace collage
