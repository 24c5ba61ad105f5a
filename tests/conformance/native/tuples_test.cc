// tuples_test.cc: tuples within native kernels and at their ends: what pass FuseOps fuses through concatenations and
// splits is one candidate, compiles into one kernel, and agrees with the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/executable.h"
#include "conformance/conformance.h"
#include "ir/eval/evaluate.h"
#include "partition/partition_spec.h"
#include "runtime/compare.h"
#include "support/file.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using conformance::RandomTensor;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

Expr Relu(const Expr& x) { return MakeCall("nn.relu", {x}); }
Expr Tanh(const Expr& x) { return MakeCall("tanh", {x}); }
Expr Add(const Expr& a, const Expr& b) { return MakeCall("add", {a, b}); }
Expr Multiply(const Expr& a, const Expr& b) { return MakeCall("multiply", {a, b}); }
Expr Joined(const std::vector<Expr>& parts, int axis) {
  return MakeCall("concatenate", {MakeTuple(parts)}, {{"axis", axis}});
}
Expr Split(const Expr& x, std::vector<int64_t> cuts, int axis) {
  return MakeCall("split", {x}, {{"indices_or_sections", std::move(cuts)}, {"axis", axis}});
}
Expr Piece(const Expr& split, int index) { return MakeTupleGetItem(split, index); }

struct Case {
  const char* name;
  Function function;
};

Case Concatenation() {
  const Var x = Input("x", {3, 5, 8}), y = Input("y", {3, 7, 8});
  return {"a concatenation of two values", MakeFunction({x, y}, Joined({Relu(x), Tanh(y)}, 1))};
}

Case ConcatenationOfReaders() {
  const Var x = Input("x", {4, 6});
  const Expr wide = Joined({Relu(x), Tanh(x), MakeCall("sigmoid", {x})}, -1);
  return {"three readers of one value, joined, and more behind",
          MakeFunction({x}, Multiply(Add(wide, RandomConstant({18}, 1)), RandomConstant({4, 1}, 2)))};
}

Case Stack() {
  const Var x = Input("x", {4, 6}), y = Input("y", {4, 6});
  return {"a stack", MakeFunction({x, y}, Relu(MakeCall("stack", {MakeTuple({Tanh(x), Add(x, y)})}, {{"axis", 1}})))};
}

Case SplitAndJoined() {
  const Var x = Input("x", {2, 9, 8});
  const Expr pieces = Split(x, {2, 5}, 1);
  return {"a split, an operator on each piece, a concatenation",
          MakeFunction({x}, Joined({MakeCall("sigmoid", {Piece(pieces, 2)}), Relu(Piece(pieces, 0)),
                                    Tanh(Multiply(Piece(pieces, 1), RandomConstant({8}, 3)))},
                                   1))};
}

Case GatedLinearUnit() {
  const Var x = Input("x", {5, 34});
  const Expr pieces = Split(x, {17}, -1);
  return {"a gate: a split whose pieces meet again",
          MakeFunction({x}, Multiply(Piece(pieces, 0), MakeCall("sigmoid", {Piece(pieces, 1)})))};
}

Case SplitTwice() {
  const Var x = Input("x", {2, 12, 5, 5});
  const Expr pieces = Split(Relu(x), {6}, 1);
  const Expr inner = Split(Add(Piece(pieces, 0), Piece(pieces, 1)), {2, 4}, 1);
  return {"a split of what a split gave",
          MakeFunction({x}, Add(Multiply(Piece(inner, 0), Piece(inner, 1)), Tanh(Piece(inner, 2))))};
}

Case Shuffle() {
  const Var x = Input("x", {1, 8, 4, 4});
  const Expr pieces = Split(x, {4}, 1);
  const Expr stacked = MakeCall("stack", {MakeTuple({Relu(Piece(pieces, 0)), Piece(pieces, 1)})}, {{"axis", 2}});
  return {"channels in another order",
          MakeFunction({x}, Tanh(MakeCall("reshape", {stacked}, {{"newshape", std::vector<int64_t>{1, 8, 4, 4}}})))};
}

Case Integers() {
  const Var x = Input("x", {3, 4}, kInt32);
  const Expr pieces = Split(x, {1}, 1);
  const Expr mixed = Joined({Add(Piece(pieces, 0), Piece(pieces, 0)), MakeCall("negative", {Piece(pieces, 1)})}, 1);
  return {"integers", MakeFunction({x}, MakeCall("cast", {mixed}, {{"dtype", "float32"}}))};
}

std::vector<Case> Cases() {
  std::vector<Case> cases{
      Concatenation(), ConcatenationOfReaders(), Stack(), SplitAndJoined(), GatedLinearUnit(), SplitTwice(), Shuffle(),
      Integers()};
  for (const Case& one : cases) InferType(one.function);
  return cases;
}

TEST(NativeTuplesTest, AreWithinOneCandidate) {
  const PartitionSpec native = SpecOf(Native());
  for (const Case& one : Cases()) {
    const DataflowGraph graph(one.function);
    std::vector<int> calls;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) != nullptr) calls.push_back(index);
    }
    RuleLog log;
    const auto holds_all = [&](const CandidatePartition& candidate) {
      return std::ranges::includes(candidate.sub_graph.members(), calls);
    };
    EXPECT_TRUE(std::ranges::any_of(native.AllCandidates(graph, log), holds_all)) << one.name;
  }
}

TEST(NativeTuplesTest, KernelsAgreeWithTheReference) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    for (const int threads : {1, 2}) ExpectAgrees(Native(), one.function, {.num_threads = threads});
  }
}

TEST(NativeTuplesTest, SeveralResultsAgreeWithTheReference) {
  const Var x = Input("x", {2, 9, 8});
  const Expr pieces = Split(Relu(x), {2, 5}, 1);
  const Expr results = MakeTuple({Tanh(Piece(pieces, 0)), Piece(pieces, 1), Add(Piece(pieces, 2), Piece(pieces, 2))});
  ExpectAgrees(Native(), MakeFunction({x}, results));
  ExpectAgrees(Native(), MakeFunction({x}, pieces));
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({Joined({Relu(x), Tanh(x)}, 2), Relu(x)})));
}

TEST(NativeTuplesTest, AModelIsOneKernel) {
  for (const Case& one : {Concatenation(), SplitAndJoined()}) {
    SCOPED_TRACE(one.name);
    const TemporaryFolder folder;
    CompileOptions options;
    options.output = folder / "model.clg";
    options.database = (folder / "tuning.db").string();
    options.num_threads = 1;
    options.toolchains = {"native"};
    options.partition_for = "native";
    InferType(one.function);
    const CompileReport report = CompileModule(IRModule::FromFunction(one.function), "tuples", options);
    ASSERT_EQ(report.contenders.size(), 1U);
    EXPECT_EQ(report.contenders[0].failure, "");
    EXPECT_EQ(report.contenders[0].partitions, (std::map<std::string, int>{{"native", 1}}));

    const Executable executable = Executable::Load(options.output);
    ExecutionInstance instance(executable);
    std::vector<Tensor> inputs;
    for (const Var& param : one.function->params()) {
      const Shape shape = AsTensorType(param->checked_type())->static_shape();
      inputs.push_back(RandomTensor(shape, kFloat32, -1, 1, static_cast<uint32_t>(inputs.size())));
      instance.SetInput(inputs.size() - 1, inputs.back());
    }
    instance.Run();
    const Comparison comparison = Compare(instance.Output(0), Evaluate(one.function, inputs).at(0), {1e-6, 1e-6});
    EXPECT_TRUE(comparison.agrees) << comparison.difference;
  }
}

}  // namespace
}  // namespace collage
