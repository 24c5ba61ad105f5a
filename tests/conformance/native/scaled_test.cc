// native_scaled_test.cc: convolutions whose data are scaled channel by channel: what is taken for them, that they
// compute the same, and that the data are not scaled.
#include <gmock/gmock.h>

#include <random>

#include "backends/native/proposals.h"
#include "conformance/fused_calls.h"
#include "partition/partition_rule.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::ElementsAre;
using testing::IsEmpty;
using V = std::vector<int64_t>;

const Toolchain& Native() { return BuiltinToolchain("native"); }

struct Form {
  Shape spatial{9, 8};
  int64_t in = 20, out = 12, taps = 1, stride = 1, images = 1, groups = 1;
  bool scale_first = false, scale_has_images = true, constant_weights = true, has_bias = true, has_sum = false;

  size_t rank() const { return spatial.size(); }
  Shape Around(Shape shape, int64_t size) const {
    shape.resize(shape.size() + rank(), size);
    return shape;
  }
  std::string Text() const {
    return ToString(spatial) + ToString({in, out, taps, stride}) + (scale_first ? " scale first" : "") +
           (scale_has_images ? "" : " no images") + (constant_weights ? "" : " late weights") + (has_sum ? " sum" : "");
  }
};

Expr Product(const Form& f, const Expr& data, const Expr& scale) {
  return f.scale_first ? Mul(scale, data) : Mul(data, scale);
}

Expr Convolution(const Form& f, const Expr& product, const Expr& weight) {
  const V pad(f.rank(), f.taps / 2);
  return MakeCall("nn.conv" + std::to_string(f.rank()) + "d", {product, weight},
                  {{"padding", pad}, {"strides", V(f.rank(), f.stride)}, {"groups", f.groups}});
}

Function ScaledConvolution(const Form& f) {
  Shape data{f.images, f.in};
  data.insert(data.end(), f.spatial.begin(), f.spatial.end());
  const Var x = Input("x", data);
  const Var scale = Input("scale", f.Around(f.scale_has_images ? Shape{1, f.in} : Shape{f.in}, 1));
  const Shape shape = f.Around({f.out, f.in / f.groups}, f.taps);
  const Var late = Input("w", shape);
  Expr result = Convolution(f, Product(f, x, scale), f.constant_weights ? Expr(RandomConstant(shape, 3)) : late);
  if (f.has_bias) result = Plus(result, RandomConstant(f.Around({f.out}, 1), 4));
  std::vector<Var> params{x, scale};
  if (!f.constant_weights) params.push_back(late);
  if (f.has_sum) {
    params.push_back(Input("other", AsTensorType(InferType(result))->static_shape()));
    result = Plus(result, params.back());
  }
  const Function function = MakeFunction(params, result);
  InferType(function);
  return function;
}

std::vector<std::string> CandidatesIn(const Function& function) {
  InferType(function);
  const DataflowGraph graph(function);
  RuleLog log;
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : GatherPartitionRule(Native())->AllCandidates(graph, Native(), log)) {
    const std::string label = candidate.sub_graph.OperatorLabel(graph);
    if (label.starts_with("multiply+nn.conv2d")) labels.push_back(label);
  }
  return labels;
}

TEST(NativeScaledTest, AgreesForRandomForms) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 18; ++trial) {
    Form form;
    form.spatial.clear();
    for (int64_t d = draw(1, 3); d > 0; --d) form.spatial.push_back(draw(1, 12));
    form.in = draw(1, 40);
    form.out = draw(1, 50);
    form.taps = trial % 3 == 0 ? 3 : 1;
    form.stride = draw(1, 2);
    form.scale_first = trial % 2 == 0;
    form.scale_has_images = trial % 4 < 2;
    form.constant_weights = trial % 5 != 0;
    form.has_sum = trial % 3 == 1;
    SCOPED_TRACE(form.Text());
    const Function function = ScaledConvolution(form);
    ExpectAgrees(Native(), function, {.num_threads = 1 + trial % 2});
    std::vector<bool> have_channels;
    for (const Var& param : function->params()) {
      have_channels.push_back(AsTensorType(param->checked_type())->rank() >= 3);
    }
    const std::vector<BoundaryLayouts> layouts = Native().Layouts(function, have_channels, {true});
    ExpectAgrees(Native(), function, {.layouts = layouts.front()});
  }
}

TEST(NativeScaledTest, TheDataAreNotScaled) {
  const Form form{.spatial = {56, 56}, .in = 96, .out = 24};
  const Function function = ScaledConvolution(form);
  const BoundaryLayouts layouts = Native().Layouts(function, {true, true}, {true}).front();
  const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, layouts, 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_LE(compiled->workspace_bytes, 96 * 64 * sizeof(float));
}

TEST(NativeScaledTest, WhatIsWantedOtherwiseTooAgrees) {
  const Form form;
  const Var x = Input("x", {1, 20, 9, 8}), scale = Input("scale", {1, 20, 1, 1});
  const Expr product = Product(form, x, scale);
  const Expr convolution = Convolution(form, product, RandomConstant({12, 20, 1, 1}, 3));
  ExpectAgrees(Native(), MakeFunction({x, scale}, MakeTuple({product, convolution})));
  ExpectAgrees(Native(), MakeFunction({x, scale}, MakeTuple({convolution, product})));
  // A scale that is itself computed.
  const Expr computed = Product(form, x, MakeCall("sigmoid", {scale}));
  ExpectAgrees(Native(), MakeFunction({x, scale}, Convolution(form, computed, RandomConstant({12, 20, 1, 1}, 3))));
}

TEST(NativeScaledTest, IsACandidateWithWhatFollows) {
  EXPECT_THAT(CandidatesIn(ScaledConvolution({})), ElementsAre("multiply+nn.conv2d", "multiply+nn.conv2d+add"));
  EXPECT_THAT(CandidatesIn(ScaledConvolution({.has_sum = true})),
              ElementsAre("multiply+nn.conv2d", "multiply+nn.conv2d+add", "multiply+nn.conv2d+add+add"));
  EXPECT_THAT(CandidatesIn(ScaledConvolution({.scale_first = true, .has_bias = false})),
              ElementsAre("multiply+nn.conv2d"));
}

TEST(NativeScaledTest, EveryRowOfTheTableFindsACandidate) {
  const DataflowGraph graph(ScaledConvolution({.has_sum = true}));
  for (const PatternTableEntry& row : native::ProposedPatterns()) {
    if (!row.name.starts_with("native.scaled")) continue;
    RuleLog log;
    const PartitionRulePtr rule = DFPatternRule(row.name, ParsePattern(row.pattern), row.predicate);
    EXPECT_THAT(rule->AllCandidates(graph, Native(), log), testing::Not(IsEmpty())) << row.name << " = " << row.pattern;
  }
}

TEST(NativeScaledTest, OthersAreNone) {
  EXPECT_THAT(CandidatesIn(ScaledConvolution({.images = 2})), IsEmpty());
  EXPECT_THAT(CandidatesIn(ScaledConvolution({.groups = 2})), IsEmpty());
  // As many weights as data.
  EXPECT_THAT(CandidatesIn(ScaledConvolution({.spatial = {3, 4}})), IsEmpty());
  const Var x = Input("x", {1, 20, 9, 8}), rows = Input("rows", {1, 1, 9, 1});
  const Expr weight = RandomConstant({12, 20, 1, 1}, 3);
  EXPECT_THAT(CandidatesIn(MakeFunction({x, rows}, Convolution({}, Mul(x, rows), weight))), IsEmpty());
  EXPECT_THAT(CandidatesIn(MakeFunction({x}, Convolution({}, Mul(x, x), weight))), IsEmpty());
}

}  // namespace
}  // namespace collage
