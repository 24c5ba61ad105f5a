// native_attention_test.cc: attention as one native kernel: what is taken for it, that it computes the same, and that
// no matrix of scores is in memory.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "backends/native/proposals.h"
#include "collage/runtime/kernel.h"
#include "conformance/fused_calls.h"
#include "partition/partition_rule.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::ElementsAre;
using testing::IsEmpty;
using V = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Mask { kNone, kAdded, kCausal, kRowsOut };

struct Form {
  Shape batch{3};
  int64_t queries = 5, keys = 7, depth = 8, values = 6;
  bool transpose_keys = true, transpose_values = false;
  bool shares_keys = false;  ///< one matrix of keys and one of values for the whole batch
  bool scales_before = false;
  Mask mask = Mask::kNone;
  DataType dtype = kFloat32;

  std::string Text() const {
    return ToString(batch) + ToString({queries, keys, depth, values}) + (transpose_keys ? " kt" : "") +
           (transpose_values ? " vt" : "") + (shares_keys ? " shared" : "") + (scales_before ? " scaled before" : "") +
           " mask " + std::to_string(static_cast<int>(mask)) + " " + dtype.ToString();
  }
};

Expr Reshape(const Expr& x, const Shape& shape) { return MakeCall("reshape", {x}, {{"newshape", V(shape)}}); }

Expr Number(double value, const Form& form) { return MakeScalar(value, form.dtype); }

Expr Filled(const Shape& shape, DataType dtype, const std::function<double(int64_t)>& value) {
  const Tensor tensor = Tensor::Empty(shape, dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, value(i));
  return MakeConstant(tensor);
}

/// The softmax of masked scores, as exporters write it.
Expr Weights(const Form& f, const Expr& scores) {
  const Attrs along{{"axis", -1}};
  const int64_t keys = f.keys;
  switch (f.mask) {
    case Mask::kNone: break;
    case Mask::kAdded: {
      const Expr added = Filled({1, 1, 1, keys}, f.dtype, [&](int64_t i) { return i > keys / 2 ? -1e4 : 0.0; });
      return MakeCall("nn.softmax", {Plus(scores, f.batch.size() == 2 ? added : Reshape(added, {1, 1, keys}))}, along);
    }
    case Mask::kCausal: {
      const Expr is_seen = MakeCall(
          "cast", {Filled({f.queries, keys}, kInt32, [&](int64_t i) { return i % keys <= i / keys ? 1.0 : 0.0; })},
          {{"dtype", kBool}});
      return MakeCall("nn.softmax", {MakeCall("where", {is_seen, scores, Number(-kInfinity, f)})}, along);
    }
    case Mask::kRowsOut: {
      const Expr added =
          Filled({f.queries, keys}, f.dtype, [&](int64_t i) { return i / keys % 3 == 1 ? -kInfinity : 0.0; });
      const Expr is_out =
          MakeCall("equal", {MakeCall("max", {added}, {{"axis", V{-1}}, {"keepdims", true}}), Number(-kInfinity, f)});
      const Expr softmax = MakeCall("nn.softmax", {Plus(scores, added)}, along);
      return MakeCall("where", {is_out, Number(0, f), softmax});
    }
  }
  return MakeCall("nn.softmax", {scores}, along);
}

Function AttentionOf(const Form& f) {
  const int64_t batch = NumElements(f.batch), shared = f.shares_keys ? 1 : batch;
  const auto input = [&](const char* name, int64_t count, int64_t rows, int64_t columns, bool turned) {
    return Input(name, turned ? Shape{count, columns, rows} : Shape{count, rows, columns}, f.dtype);
  };
  const Var q = input("q", batch, f.queries, f.depth, false), k = input("k", shared, f.depth, f.keys, f.transpose_keys),
            v = input("v", shared, f.keys, f.values, f.transpose_values);
  const Expr scaled_q = f.scales_before ? Mul(q, Number(0.125, f)) : Expr(q);
  Expr scores = MakeCall("nn.batch_matmul", {scaled_q, k}, {{"transpose_b", f.transpose_keys}});
  Shape matrices = f.batch;
  matrices.insert(matrices.end(), {f.queries, f.keys});
  if (f.batch.size() > 1) scores = Reshape(scores, matrices);
  if (!f.scales_before) scores = Div(scores, Number(std::sqrt(static_cast<double>(f.depth)), f));
  Expr weights = Weights(f, scores);
  if (f.batch.size() > 1) weights = Reshape(weights, {batch, f.queries, f.keys});
  const Expr result = MakeCall("nn.batch_matmul", {weights, v}, {{"transpose_b", f.transpose_values}});
  const Function function = MakeFunction({q, k, v}, result);
  InferType(function);
  return function;
}

const Toolchain& Native() { return BuiltinToolchain("native"); }

int64_t WorkspaceOf(const Function& function, int threads) {
  const Result<CompiledPartition> compiled =
      Native().RelayToRuntime({function, PlainLayouts(function->params().size(), 1), threads});
  EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
  return static_cast<int64_t>(compiled->workspace_bytes);
}

TEST(NativeAttentionTest, AgreesForRandomForms) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 24; ++trial) {
    Form form;
    form.batch = trial % 3 == 0 ? Shape{draw(1, 2), draw(1, 4)} : Shape{draw(1, 5)};
    const int64_t most = trial % 4 == 0 ? 4 : 150;
    form.queries = draw(1, most);
    form.keys = draw(1, most);
    form.depth = draw(1, 70);
    form.values = draw(1, 70);
    form.transpose_keys = trial % 2 == 0;
    form.transpose_values = trial % 5 == 0;
    form.shares_keys = trial % 7 == 0;
    form.scales_before = trial % 6 == 1;
    form.mask = static_cast<Mask>(trial % 4);
    form.dtype = trial % 8 == 7 ? kFloat16 : kFloat32;
    SCOPED_TRACE(form.Text());
    ExpectAgrees(Native(), AttentionOf(form),
                 {.num_threads = 1 + trial % 3, .tolerance = form.dtype == kFloat16 ? 1e-2 : 1e-4});
  }
}

TEST(NativeAttentionTest, AgreesForSizesOfModels) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{128, 128}, {197, 197}, {1, 384}, {50, 1}}) {
    for (const Mask mask : {Mask::kNone, Mask::kAdded}) {
      const Form form{.batch = {1, 3}, .queries = queries, .keys = keys, .depth = 64, .values = 64, .mask = mask};
      SCOPED_TRACE(form.Text());
      ExpectAgrees(Native(), AttentionOf(form), {.num_threads = 2});
    }
  }
}

/// One masked row of scores for each row of `seen`: how many keys, from the first on, each query sees.
Function WithSeenKeys(const Form& f, const V& seen, bool is_bias) {
  const Var q = Input("q", {2, f.queries, f.depth}), k = Input("k", {2, f.keys, f.depth}),
            v = Input("v", {2, f.keys, f.values});
  const Var mask = Input("mask", {1, f.queries, 1}, kInt64);
  const Expr position = Filled({1, 1, f.keys}, kInt64, [](int64_t i) { return static_cast<double>(i); });
  const auto count = static_cast<int64_t>(seen.size());
  const Expr ends = Plus(Filled({1, f.queries, 1}, kInt64, [&](int64_t i) { return seen[i % count]; }),
                         Mul(mask, MakeScalar(0, kInt64)));
  const Expr is_seen = MakeCall("less", {position, ends});
  const Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
  const Expr out = MakeScalar(-kInfinity, kFloat32);
  const Expr masked =
      is_bias ? Plus(scores, MakeCall("where", {is_seen, Scalar(0), out})) : MakeCall("where", {is_seen, scores, out});
  const Expr weights = MakeCall("nn.softmax", {masked}, {{"axis", -1}});
  return MakeFunction({q, k, v, mask}, MakeCall("nn.batch_matmul", {weights, v}));
}

TEST(NativeAttentionTest, KeysThatNoRowSeesAreLeftOut) {
  for (const bool is_bias : {false, true}) {
    for (const V& seen : {V{1}, V{16}, V{17}, V{1, 2, 3, 4, 5, 6, 7}, V{256}, V{255, 1}, V{30, 90, 31}}) {
      for (const int64_t queries : {1, 7, 40}) {
        SCOPED_TRACE(ToString(Shape(seen)) + (is_bias ? " added" : "") + " " + std::to_string(queries));
        const Form form{.queries = queries, .keys = 256, .depth = 24, .values = 40};
        ExpectAgrees(Native(), WithSeenKeys(form, seen, is_bias), {.num_threads = 2});
      }
    }
  }
}

/// Keys and values that no query sees may be anything.
TEST(NativeAttentionTest, KeysThatNoRowSeesAreNotRead) {
  const Form form{.queries = 7, .keys = 256, .depth = 24, .values = 40};
  const Function function = WithSeenKeys(form, {33}, true);
  InferType(function);
  const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, PlainLayouts(4, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const std::unique_ptr<Kernel> kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants});
  const Tensor q = RandomTensor({2, 7, 24}, kFloat32, -1, 1, 1), k = RandomTensor({2, 256, 24}, kFloat32, -1, 1, 2),
               v = RandomTensor({2, 256, 40}, kFloat32, -1, 1, 3), mask = Tensor::Zeros({1, 7, 1}, kInt64);
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 64}, kUInt8);
  const auto run = [&] {
    const Tensor result = Tensor::Zeros({2, 7, 40}, kFloat32);
    const std::vector<void*> sources{q.raw(), k.raw(), v.raw(), mask.raw()}, targets{result.raw()};
    kernel->Bind(sources, targets, workspace.raw());
    kernel->Run();
    return result;
  };
  const Tensor want = run();
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 64; i < 256; ++i) {
      k.Set((head * 256 + i) * 24, std::nan(""));
      v.Set((head * 256 + i) * 40, std::nan(""));
    }
  }
  EXPECT_TRUE(BitEqual(run(), want));
}

TEST(NativeAttentionTest, LargeScoresDoNotOverflow) {
  for (const Mask mask : {Mask::kNone, Mask::kCausal, Mask::kRowsOut}) {
    const Form form{.queries = 14, .keys = 33, .depth = 16, .mask = mask};
    ExpectAgrees(Native(), AttentionOf(form), {.tolerance = 1e-3, .low = -20, .high = 20});
  }
}

TEST(NativeAttentionTest, AgreesUnderSchedulesAndOnOtherProcessors) {
  const Form form{.queries = 29, .keys = 45, .depth = 17, .values = 40, .mask = Mask::kAdded};
  for (const char* schedule : {"rows=5,width=3", "lanes=8", "rows=1", "pack=yes", "unroll=4"}) {
    SCOPED_TRACE(schedule);
    ExpectAgrees(Native(), AttentionOf(form), {.num_threads = 2, .schedule = schedule});
  }
  for (const char* options : {"-mcpu=x86-64-v2", "-mcpu=x86-64-v3"}) {
    SCOPED_TRACE(options);
    const auto native =
        ToolchainConfiguration::Parse("native " + std::string(options), ToolchainRegistry::Global()).Make();
    ExpectAgrees(*native, AttentionOf(form), {.num_threads = 2});
  }
}

TEST(NativeAttentionTest, SchedulesThatAreListedAgree) {
  const Form form{.queries = 29, .keys = 48, .depth = 32, .values = 40, .mask = Mask::kCausal};
  const Function function = AttentionOf(form);
  std::set<std::string> names;
  std::string from;
  for (int step = 0; step < 2; ++step) {
    const Result<std::vector<std::string>> listed = Native().Schedules({function, PlainLayouts(3, 1), 2, from});
    ASSERT_TRUE(listed.ok()) << listed.reason().text;
    for (const std::string& schedule : *listed) {
      SCOPED_TRACE(schedule);
      ExpectAgrees(Native(), function, {.num_threads = 2, .schedule = schedule});
      for (const char* name : {"rows", "width", "unroll", "parallel"}) {
        if (schedule.find(std::string(name) + "=") != std::string::npos) names.insert(name);
      }
    }
    from = listed->at(0);
  }
  EXPECT_THAT(names, ElementsAre("parallel", "rows", "unroll", "width"));
}

TEST(NativeAttentionTest, NoMatrixOfScoresIsInMemory) {
  const Form form{.batch = {2, 6}, .queries = 128, .keys = 256, .depth = 64, .values = 64, .mask = Mask::kAdded};
  const int64_t scores = NumElements(form.batch) * form.queries * form.keys * 4;
  const int64_t packed_keys = NumElements(form.batch) * form.keys * form.depth * 4;
  EXPECT_LT(WorkspaceOf(AttentionOf(form), 1), packed_keys + scores / 16);
}

TEST(NativeAttentionTest, AnEpilogueIsComputedBehindTheLastProduct) {
  const Function attention = AttentionOf({.queries = 13, .keys = 20});
  const Var other = Input("other", {3, 13, 6});
  std::vector<Var> params = attention->params();
  params.push_back(other);
  ExpectAgrees(Native(), MakeFunction(params, MakeCall("nn.relu", {Plus(attention->body(), other)})));
}

/// Operators of the candidates that `rule` finds in `function`, where softmax and products are in one.
std::vector<std::string> CandidatesIn(const Function& function) {
  InferType(function);
  const DataflowGraph graph(function);
  RuleLog log;
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : GatherPartitionRule(Native())->AllCandidates(graph, Native(), log)) {
    const std::string label = candidate.sub_graph.OperatorLabel(graph);
    const auto has = [&](const char* op) { return label.find(op) != std::string::npos; };
    const bool is_attention = has("nn.softmax") && has("nn.batch_matmul");
    if (is_attention) labels.push_back(label);
  }
  return labels;
}

TEST(NativeAttentionTest, IsACandidateOfItsOwn) {
  EXPECT_THAT(CandidatesIn(AttentionOf({})), ElementsAre("nn.batch_matmul+divide+nn.softmax+nn.batch_matmul"));
  EXPECT_THAT(CandidatesIn(AttentionOf({.batch = {2, 3}, .mask = Mask::kAdded})),
              ElementsAre("nn.batch_matmul+reshape+divide+add+nn.softmax+reshape+nn.batch_matmul"));
  const Var q = Input("q", {2, 21, 8}), k = Input("k", {2, 16, 8}), v = Input("v", {2, 16, 6}),
            bias = Input("bias", {3, 16});
  const Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
  const Expr by_head = Plus(Reshape(scores, {1, 14, 3, 16}), bias);  // heads that share keys are rows of one product
  const Expr weights = Reshape(MakeCall("nn.softmax", {by_head}, {{"axis", -1}}), {2, 21, 16});
  const Function grouped = MakeFunction({q, k, v, bias}, MakeCall("nn.batch_matmul", {weights, v}));
  EXPECT_THAT(CandidatesIn(grouped), ElementsAre("nn.batch_matmul+reshape+add+nn.softmax+reshape+nn.batch_matmul"));
  ExpectAgrees(Native(), grouped);
  EXPECT_THAT(CandidatesIn(AttentionOf({.mask = Mask::kCausal})),
              ElementsAre("nn.batch_matmul+divide+where+nn.softmax+nn.batch_matmul"));
  EXPECT_THAT(CandidatesIn(AttentionOf({.mask = Mask::kRowsOut})),
              ElementsAre("nn.batch_matmul+divide+add+nn.softmax+where+nn.batch_matmul"));
}

/// Attention of [1, S, heads * depth] with the heads split off before and joined behind.
Function HeadsOf(int64_t batch, int64_t heads, int64_t length, int64_t depth, bool scales_before) {
  const V turn{0, 2, 1, 3}, turn_keys{0, 2, 3, 1};
  std::vector<Var> params;
  const auto split = [&](const char* name, const V& axes, bool is_scaled) {
    params.push_back(Input(name, {batch, length, heads * depth}));
    Expr x = Reshape(params.back(), {batch, length, heads, depth});
    x = MakeCall("transpose", {x}, {{"axes", axes}});
    if (is_scaled) x = Div(x, Scalar(8));
    const bool is_turned = axes == turn_keys;
    return Reshape(x, {batch * heads, is_turned ? depth : length, is_turned ? length : depth});
  };
  const Expr q = split("q", turn, scales_before), k = split("k", turn_keys, false), v = split("v", turn, false);
  const Expr scores = Reshape(MakeCall("nn.batch_matmul", {q, k}), {batch, heads, length, length});
  const Expr mask = RandomConstant({batch, 1, 1, length}, 4, -9, 0);
  const Expr softmax = MakeCall("nn.softmax", {Plus(scores, mask)}, {{"axis", -1}});
  const Expr product = MakeCall("nn.batch_matmul", {Reshape(softmax, {batch * heads, length, length}), v});
  const Expr joined = MakeCall("transpose", {Reshape(product, {batch, heads, length, depth})}, {{"axes", turn}});
  const Function function = MakeFunction(params, Reshape(joined, {batch, length, heads * depth}));
  InferType(function);
  return function;
}

TEST(NativeAttentionTest, HeadsAreReadAndWrittenWhereTheyLie) {
  for (const int64_t batch : {1, 2}) {
    for (const int64_t depth : {1, 16, 37}) {
      for (const bool scales_before : {false, true}) {
        SCOPED_TRACE(ToString({batch, depth}) + (scales_before ? " scaled before" : ""));
        ExpectAgrees(Native(), HeadsOf(batch, 3, 30, depth, scales_before), {.num_threads = 2});
      }
    }
  }
}

TEST(NativeAttentionTest, HeadsAreAnotherCandidate) {
  const std::string inside =
      "reshape+nn.batch_matmul+reshape+add+nn.softmax+reshape+transpose+reshape+nn.batch_matmul+reshape+transpose";
  EXPECT_THAT(CandidatesIn(HeadsOf(1, 3, 30, 16, false)),
              ElementsAre("nn.batch_matmul+reshape+add+nn.softmax+reshape+nn.batch_matmul",
                          "transpose+reshape+transpose+" + inside));
  EXPECT_THAT(CandidatesIn(HeadsOf(1, 3, 30, 16, true)),
              ElementsAre("nn.batch_matmul+reshape+add+nn.softmax+reshape+nn.batch_matmul",
                          "transpose+divide+reshape+transpose+" + inside));
}

TEST(NativeAttentionTest, EveryRowOfTheTableFindsACandidate) {
  const DataflowGraph graph(HeadsOf(1, 3, 30, 16, false));
  for (const PatternTableEntry& row : native::ProposedPatterns()) {
    if (!row.name.starts_with("native.attention")) continue;
    RuleLog log;
    const PartitionRulePtr rule = DFPatternRule(row.name, ParsePattern(row.pattern), row.predicate);
    EXPECT_THAT(rule->AllCandidates(graph, Native(), log), testing::SizeIs(1)) << row.name << " = " << row.pattern;
  }
}

TEST(NativeAttentionTest, WhatOthersReadOrLiesOtherwiseIsNone) {
  const Var q = Input("q", {3, 5, 8}), k = Input("k", {3, 5, 8}), v = Input("v", {3, 5, 6});
  const Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
  const auto product = [&](const Expr& weights) { return MakeCall("nn.batch_matmul", {weights, v}); };
  const Expr softmax = MakeCall("nn.softmax", {scores}, {{"axis", -1}});
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, product(softmax))), testing::SizeIs(1));
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, MakeTuple({product(softmax), softmax}))), IsEmpty());
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, product(MakeCall("nn.softmax", {scores}, {{"axis", 1}})))),
              IsEmpty());
  const Expr turned = MakeCall("transpose", {softmax}, {{"axes", V{0, 2, 1}}});
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, product(turned))), IsEmpty());
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, MakeCall("nn.batch_matmul", {v, softmax}, {{"transpose_a", true}}))),
              IsEmpty());
  // What is read twice on the way cannot be in registers alone.
  const Expr twice = Mul(scores, MakeCall("tanh", {scores}));
  EXPECT_THAT(CandidatesIn(MakeFunction({q, k, v}, product(MakeCall("nn.softmax", {twice}, {{"axis", -1}})))),
              IsEmpty());
  const Function both = MakeFunction({q, k, v}, MakeTuple({product(softmax), scores}));
  ExpectAgrees(Native(), both);
}

}  // namespace
}  // namespace collage
