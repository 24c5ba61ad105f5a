#include "cost/estimator/analytic_model.h"

#include <gtest/gtest.h>

#include <map>

#include "cost/machine/probes.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using testing_graphs::Param;
using testing_graphs::Typed;
using testing_graphs::Weights;

/// Memory is fast enough that the weights of the product's probe do not bound it, whatever this machine's caches hold.
MachineRates Rates() { return {1e11, {1e11, 5e10, 2e10}}; }

/// What some toolchain takes.
std::optional<double> Even(const std::string& probe) {
  static const std::map<std::string, double> seconds{
      {kSmallestCall, 5e-6},   {kMovingProbe, 100e-6},      {kElementsProbe, 300e-6}, {kReductionProbe, 250e-6},
      {kProductProbe, 500e-6}, {kConvolutionProbe, 400e-6}, {kGroupedProbe, 300e-6}};
  return seconds.at(probe);
}

AnalyticModel ModelOf(const std::function<std::optional<double>(const std::string&)>& probe) {
  return {probe, Rates(), 1, CacheLevel::kMemory};
}

WorkByKind Dense(int64_t rows, int64_t width) {
  const Var x = Param("x", {rows, width});
  return WorkByKindOf(Typed({x}, MakeCall("nn.dense", {x, Weights({width, width})})));
}

WorkByKind Chain(int length) {
  const Var x = Param("x", {64, 64});
  Expr value = x;
  for (int i = 0; i < length; ++i) value = MakeCall("tanh", {value});
  return WorkByKindOf(Typed({x}, value));
}

double AmountOf(const WorkByKind& work, WorkKind kind) { return work.amounts[static_cast<size_t>(kind)]; }

TEST(WorkByKindTest, TellsOperatorsApart) {
  const Var x = Param("x", {1, 8, 6, 6});
  using Ints = std::vector<int64_t>;
  const Expr conv = MakeCall("nn.conv2d", {x, Weights({8, 8, 1, 1})}, {{"kernel_size", Ints{1, 1}}, {"channels", 8}});
  const Expr grouped = MakeCall("nn.conv2d", {conv, Weights({8, 1, 1, 1})},
                                {{"kernel_size", Ints{1, 1}}, {"channels", 8}, {"groups", 8}});
  const Expr flat = MakeCall("reshape", {MakeCall("nn.relu", {grouped})}, {{"newshape", Ints{8, 36}}});
  const Expr sum = MakeCall("sum", {flat}, {{"axis", Ints{1}}, {"keepdims", true}});
  const WorkByKind work = WorkByKindOf(Typed({x}, MakeCall("nn.dense", {sum, Weights({5, 1})})));
  EXPECT_EQ(AmountOf(work, WorkKind::kConvolution), 8 * 8 * 36);
  EXPECT_EQ(AmountOf(work, WorkKind::kGroupedConvolution), 8 * 36);
  EXPECT_EQ(AmountOf(work, WorkKind::kElements), 8 * 36);   // relu; a reshape is nothing
  EXPECT_EQ(AmountOf(work, WorkKind::kReduction), 8 * 36);  // what it reads
  EXPECT_EQ(AmountOf(work, WorkKind::kProduct), 8 * 5);
}

TEST(AnalyticModelTest, ProbesTakeWhatTheyTook) {
  const AnalyticModel model = ModelOf(Even);
  for (const Probe& probe : Probes()) {
    if (!probe.is_whole) continue;
    SCOPED_TRACE(probe.name);
    const double seconds = model.Seconds(WorkByKindOf(probe.make()));
    // Of a single relu, its one operator counts beside what it moves.
    const double more = std::string(probe.name) == kMovingProbe ? 51e-6 : 1e-9;
    EXPECT_GE(seconds, *Even(probe.name) - 1e-9);
    EXPECT_LE(seconds, *Even(probe.name) + more);
  }
}

TEST(AnalyticModelTest, MoreWorkCostsMore) {
  const AnalyticModel model = ModelOf(Even);
  EXPECT_GT(model.Seconds(Dense(1024, 256)), 2 * model.Seconds(Dense(128, 256)));
  EXPECT_GT(model.Seconds(Chain(4)), model.Seconds(Chain(1)));
  EXPECT_GE(model.Seconds(Chain(1)), 5e-6);
  // One row: what counts are the weights, which come from memory.
  const WorkByKind row = Dense(1, 1024);
  EXPECT_GE(model.Seconds(row), row.work.constant_bytes / (Rates().bytes[2] * 1.15));
}

TEST(AnalyticModelTest, SlowToolchainsAreSlow) {
  const AnalyticModel fast = ModelOf(Even);
  const AnalyticModel slow = ModelOf([](const std::string& probe) -> std::optional<double> {
    if (probe == kProductProbe) return 5000e-6;
    return Even(probe);
  });
  EXPECT_GT(slow.Seconds(Dense(512, 512)), 5 * fast.Seconds(Dense(512, 512)));
  EXPECT_EQ(slow.Seconds(Chain(3)), fast.Seconds(Chain(3)));
}

TEST(AnalyticModelTest, WhatHasNoProbeIsNeitherFreeNorFast) {
  const AnalyticModel model = ModelOf([](const std::string&) { return std::nullopt; });
  const WorkByKind work = Dense(512, 512);
  EXPECT_NEAR(model.Seconds(work), work.work.multiply_adds / (1e11 * AnalyticModel::kUnknownEfficiency), 1e-6);
}

}  // namespace
}  // namespace collage
