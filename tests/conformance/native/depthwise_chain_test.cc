// native_depthwise_chain_test.cc: depthwise convolutions with the 1x1 convolutions around them as one native kernel:
// what is taken for them, that they compute the same, and that nothing between is in memory as a whole.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "backends/native/proposals.h"
#include "conformance/fused_calls.h"
#include "partition/partition_rule.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;
using V = std::vector<int64_t>;

const Toolchain& Native() { return BuiltinToolchain("native"); }

enum class Between { kNothing, kBias, kClip, kSwish };

struct Form {
  Shape spatial{9, 8};
  int64_t in = 5, channels = 20, out = 12, images = 1;
  V kernel{3, 3}, strides{1, 1}, dilation{1, 1}, padding{1, 1, 1, 1};
  bool has_expansion = false, has_projection = true, has_sum = false, constant_weights = true;
  Between between = Between::kClip;

  Shape Data() const { return {images, has_expansion ? in : channels, spatial[0], spatial[1]}; }
  std::string Text() const {
    return ToString(spatial) + ToString({in, channels, out, images}) + ToString(kernel) + ToString(strides) +
           ToString(dilation) + ToString(padding) + (has_expansion ? " expanded" : "") +
           (has_projection ? " projected" : "") + (has_sum ? " sum" : "") + (constant_weights ? "" : " late weights") +
           " between " + std::to_string(static_cast<int>(between));
  }
};

/// Makes a chain's calls, and the parameters for weights that are known at run time only.
class ChainMaker {
 public:
  explicit ChainMaker(const Form& form) : form_(form), x_(Input("x", form.Data())), params_{x_} {}

  Function Make() {
    Expr result = Filtered();
    if (form_.has_projection) result = Projected(result);
    if (form_.has_sum) {
      params_.push_back(Input("other", AsTensorType(InferType(result))->static_shape()));
      result = Plus(result, params_.back());
    }
    return Finished(result);
  }
  Function Finished(const Expr& result) const {
    const Function function = MakeFunction(params_, result);
    InferType(function);
    return function;
  }

  Expr Expanded() {
    if (!form_.has_expansion) return x_;
    return Behind(Pixels(x_, form_.in, form_.channels), form_.channels);
  }
  Expr Filtered() {
    const Expr weight = Weight({form_.channels, 1, form_.kernel[0], form_.kernel[1]});
    return Behind(MakeCall("nn.conv2d", {Expanded(), weight},
                           {{"strides", form_.strides},
                            {"padding", form_.padding},
                            {"dilation", form_.dilation},
                            {"groups", form_.channels}}),
                  form_.channels);
  }
  Expr Projected(const Expr& data) {
    return Plus(Pixels(data, form_.channels, form_.out), RandomConstant({form_.out, 1, 1}, 4));
  }
  Expr Pixels(const Expr& data, int64_t in, int64_t out) {
    return MakeCall("nn.conv2d", {data, Weight({out, in, 1, 1})});
  }

 private:
  Expr Weight(const Shape& shape) {
    if (form_.constant_weights) return RandomConstant(shape, static_cast<int>(++seed_), -0.5, 0.5);
    params_.push_back(Input("w" + std::to_string(params_.size()), shape));
    return params_.back();
  }
  Expr Behind(const Expr& x, int64_t channels) {
    if (form_.between == Between::kNothing) return x;
    const Expr biased = Plus(x, RandomConstant({channels, 1, 1}, 9));
    if (form_.between == Between::kBias) return biased;
    return form_.between == Between::kClip ? Clip(biased, 0, 0.7) : Mul(biased, MakeCall("sigmoid", {biased}));
  }

  const Form& form_;
  Var x_;
  std::vector<Var> params_;
  int64_t seed_ = 20;
};

Function Chain(const Form& form) { return ChainMaker(form).Make(); }

BoundaryLayouts ChannelsLast(const Function& function) {
  std::vector<bool> have_channels;
  for (const Var& param : function->params()) have_channels.push_back(AsTensorType(param->checked_type())->rank() == 4);
  return Native().Layouts(function, have_channels, {true}).front();
}

std::vector<std::string> ChainsIn(const Function& function) {
  const DataflowGraph graph(function);
  RuleLog log;
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : GatherPartitionRule(Native())->AllCandidates(graph, Native(), log)) {
    const std::string label = candidate.sub_graph.OperatorLabel(graph);
    if (label.find("nn.conv2d") != label.rfind("nn.conv2d")) labels.push_back(label);
  }
  return labels;
}

TEST(NativeDepthwiseChainTest, AgreesForRandomForms) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 24; ++trial) {
    Form form;
    form.spatial = {draw(1, 21), draw(1, 21)};
    form.in = draw(1, 40);
    form.channels = draw(2, 70);
    form.out = draw(1, 70);
    form.images = trial % 4 == 0 ? 2 : 1;
    form.has_expansion = trial % 3 != 0;
    form.has_projection = trial % 3 != 1;
    form.has_sum = trial % 5 == 0;
    form.constant_weights = trial % 6 != 0;
    form.between = static_cast<Between>(trial % 4);
    for (const size_t d : {0, 1}) {
      form.kernel[d] = draw(1, 7);
      form.strides[d] = draw(1, 3);
      form.dilation[d] = trial % 7 == 0 ? 2 : 1;
      // As many zeros as leave a result.
      const int64_t reach = (form.kernel[d] - 1) * form.dilation[d] + 1;
      form.padding[d] = draw(0, reach - 1);
      form.padding[d + 2] = std::max(draw(0, reach - 1), reach - form.spatial[d] - form.padding[d]);
    }
    SCOPED_TRACE(form.Text());
    const Function function = Chain(form);
    ExpectAgrees(Native(), function, {.num_threads = 1 + trial % 2});
    ExpectAgrees(Native(), function, {.layouts = ChannelsLast(function), .num_threads = 2 - trial % 2});
  }
}

// Each thread has rows of its own in the ring, and begins where no other has been.
TEST(NativeDepthwiseChainTest, AgreesOfManyRowsForSeveralThreads) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t height : {48, 53}) {
      const Form form{.spatial = {height, 37},
                      .in = 9,
                      .channels = 40,
                      .out = 33,
                      .images = 2,
                      .kernel = {5, 3},
                      .strides = {stride, stride},
                      .padding = {2, 1, 2, 1},
                      .has_expansion = true};
      SCOPED_TRACE(form.Text());
      const Function function = Chain(form);
      for (const int threads : {1, 2, 3}) {
        ExpectAgrees(Native(), function, {.layouts = ChannelsLast(function), .num_threads = threads});
      }
    }
  }
}

TEST(NativeDepthwiseChainTest, WhatIsBetweenIsNeverInMemoryAsAWhole) {
  const Form form{.spatial = {112, 112}, .in = 16, .channels = 96, .out = 24, .has_expansion = true};
  const Function function = Chain(form);
  const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, ChannelsLast(function), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_LE(compiled->workspace_bytes, 5 * 112 * 96 * sizeof(float));
}

TEST(NativeDepthwiseChainTest, WhatIsWantedOtherwiseTooAgrees) {
  const Form form{.has_expansion = true};
  ChainMaker maker(form);
  const Expr filtered = maker.Filtered();
  const Expr projected = maker.Projected(filtered);
  ExpectAgrees(Native(), maker.Finished(MakeTuple({filtered, projected})));
  ExpectAgrees(Native(), maker.Finished(MakeTuple({projected, filtered})));
  // Channels are weighed by what is made of all of them.
  const Expr mean = MakeCall("nn.global_avg_pool2d", {filtered});
  ExpectAgrees(Native(), maker.Finished(maker.Projected(Mul(filtered, MakeCall("sigmoid", {mean})))));
}

TEST(NativeDepthwiseChainTest, AgreesByOtherSchedules) {
  const Form form{.spatial = {24, 24}, .in = 8, .channels = 48, .out = 24, .has_expansion = true};
  const Function function = Chain(form);
  for (const char* schedule : {"rows=5", "lanes=8,width=3", "lanes=4,rows=1", "unroll=4", "block=1", "block=24,width=1",
                               "block=7,parallel=no"}) {
    SCOPED_TRACE(schedule);
    ExpectAgrees(Native(), function, {.layouts = ChannelsLast(function), .num_threads = 2, .schedule = schedule});
  }
}

// Rows of the result at a time, its register tiles, the channels that are expanded at a time: each one step and more.
TEST(NativeDepthwiseChainTest, SchedulesThatAreListedAgree) {
  for (const auto& [has_expansion, has_projection] : {std::pair{true, true}, {true, false}, {false, true}}) {
    const Form form{.spatial = {24, 9},
                    .in = 12,
                    .channels = 80,
                    .out = 48,
                    .has_expansion = has_expansion,
                    .has_projection = has_projection};
    SCOPED_TRACE(form.Text());
    const Function function = Chain(form);
    const auto loops = [&](const std::string& schedule) {
      const Result<LoweredPartition> lowered = Native().RelayToTIR({function, ChannelsLast(function), 2, schedule});
      EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
      return lowered.ok() ? lowered->mlir : "";
    };
    std::set<std::string> names;
    std::string from;
    for (int step = 0; step < 3; ++step) {
      const Result<std::vector<std::string>> listed = Native().Schedules({function, ChannelsLast(function), 2, from});
      ASSERT_TRUE(listed.ok()) << listed.reason().text;
      for (const std::string& schedule : *listed) {
        SCOPED_TRACE(schedule);
        EXPECT_NE(loops(schedule), loops(from)) << "measured in vain";
        ExpectAgrees(Native(), function, {.layouts = ChannelsLast(function), .num_threads = 2, .schedule = schedule});
        for (const char* name : {"block", "rows", "width", "unroll", "parallel"}) {
          if (schedule.find(std::string(name) + "=") != std::string::npos) names.insert(name);
        }
      }
      from = listed->at(static_cast<size_t>(step) % listed->size());
    }
    EXPECT_THAT(names, ElementsAre("block", "parallel", "rows", "unroll", "width"));
  }
}

// Factors are rounded twice, one behind the other; what the depthwise convolution reads is not.
TEST(NativeDepthwiseChainTest, AgreesInBFloat16) {
  const std::vector<std::string>& features = ThisMachine().features;
  if (std::ranges::find(features, "avx512_bf16") == features.end()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(Native()).With("inference_precision", "bf16").Make();
  for (const int64_t in : {8, 9}) {
    for (const int64_t channels : {46, 47}) {
      if (in % 2 == 1 && channels % 2 == 1) continue;
      for (const bool has_projection : {true, false}) {
        const Form form{.spatial = {13, 24},
                        .in = in,
                        .channels = channels,
                        .out = 37,
                        .has_expansion = true,
                        .has_projection = has_projection,
                        .has_sum = has_projection,
                        .constant_weights = in == 8};
        if (!has_projection && in % 2 == 1) continue;
        SCOPED_TRACE(form.Text());
        const Function function = Chain(form);
        std::vector<bool> have_channels;
        for (const Var& param : function->params()) {
          have_channels.push_back(AsTensorType(param->checked_type())->rank() == 4);
        }
        for (const BoundaryLayouts& layouts : native->Layouts(function, have_channels, {true})) {
          ExpectAgrees(*native, function, {.layouts = layouts, .num_threads = 2, .tolerance = 2e-2});
        }
      }
    }
  }
}

TEST(NativeDepthwiseChainTest, IsACandidateWithWhatFollows) {
  const Form large{.spatial = {112, 112}, .in = 16, .channels = 96, .out = 24, .has_expansion = true, .has_sum = true};
  EXPECT_THAT(ChainsIn(Chain(large)),
              UnorderedElementsAre("nn.conv2d+add+clip+nn.conv2d+add+clip", "nn.conv2d+add+clip+nn.conv2d+add+add",
                                   "nn.conv2d+add+clip+nn.conv2d+add+clip+nn.conv2d+add+add"));
  Form form = large;
  form.has_expansion = form.has_sum = false;
  EXPECT_THAT(ChainsIn(Chain(form)), ElementsAre("nn.conv2d+add+clip+nn.conv2d+add"));
  form.has_expansion = true;
  form.has_projection = false;
  form.between = Between::kSwish;
  EXPECT_THAT(ChainsIn(Chain(form)), ElementsAre("nn.conv2d+add+sigmoid+multiply+nn.conv2d+add+sigmoid+multiply"));
  form.between = Between::kNothing;
  EXPECT_THAT(ChainsIn(Chain(form)), ElementsAre("nn.conv2d+nn.conv2d"));
}

TEST(NativeDepthwiseChainTest, OthersAreNone) {
  const Form large{.spatial = {112, 112}, .in = 16, .channels = 96, .out = 24, .has_expansion = true};
  // What is between stays in the cache.
  Form form = large;
  form.spatial = {14, 14};
  EXPECT_THAT(ChainsIn(Chain(form)), IsEmpty());
  // Somebody else wants the pixels between.
  form = large;
  form.has_expansion = false;
  ChainMaker maker(form);
  const Expr filtered = maker.Filtered();
  EXPECT_THAT(ChainsIn(maker.Finished(MakeTuple({filtered, maker.Projected(filtered)}))), IsEmpty());
  // Channels are weighed by what is made of all of them.
  const Expr mean = MakeCall("nn.global_avg_pool2d", {filtered});
  EXPECT_THAT(ChainsIn(maker.Finished(maker.Projected(Mul(filtered, MakeCall("sigmoid", {mean}))))), IsEmpty());
}

TEST(NativeDepthwiseChainTest, EveryRowOfTheTableFindsACandidate) {
  const Form large{.spatial = {112, 112}, .in = 16, .channels = 96, .out = 24, .has_expansion = true};
  const DataflowGraph graph(Chain(large));
  for (const PatternTableEntry& row : native::ProposedPatterns()) {
    if (!row.name.starts_with("native.depthwise")) continue;
    RuleLog log;
    const PartitionRulePtr rule = DFPatternRule(row.name, ParsePattern(row.pattern), row.predicate);
    EXPECT_THAT(rule->AllCandidates(graph, Native(), log), Not(IsEmpty())) << row.name << " = " << row.pattern;
  }
}

}  // namespace
}  // namespace collage
