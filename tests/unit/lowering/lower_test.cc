#include "lowering/lower.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "target/annotations.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

std::vector<Tensor> ConstantsOf(const Function& function) {
  std::vector<Tensor> constants;
  PostOrder(function, [&](const Expr& expr) {
    if (const ConstantNode* constant = As<ConstantNode>(expr)) constants.push_back(constant->value());
  });
  return constants;
}

/// Counts what it is asked for; whether a constant's first element is 7 matters to its compiler.
class Counting : public testing_graphs::AnyToolchain {
 public:
  explicit Counting(bool updates) : AnyToolchain("counting"), updates_(updates) {}
  std::vector<Hook> Hooks() const override {
    if (!updates_) return {Hook::kRelayToRuntime};
    return {Hook::kRelayToRuntime, Hook::kUpdateConstants};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    ++num_compiled;
    CompiledPartition compiled;
    compiled.constants = ConstantsOf(request.function);
    compiled.blob.resize(static_cast<size_t>(num_compiled));
    return compiled;
  }
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition&) const override {
    ++num_updated;
    std::vector<Tensor> constants = ConstantsOf(request.function);
    if (constants.at(0).At(0) == 7) return Reason{"seven is special", name()};
    return constants;
  }
  mutable int num_compiled = 0, num_updated = 0;

 private:
  bool updates_;
};

PartitionRequest AddOf(const Shape& shape, double value, bool as_scalar = false) {
  const Var x = testing_graphs::Param("x", {2, 3});
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, value);
  const Expr other = as_scalar ? testing_graphs::Scalar(value) : MakeConstant(tensor);
  return {testing_graphs::Typed({x}, MakeCall("add", {x, other})), PlainLayouts(1, 1), 1};
}

struct Fixture {
  explicit Fixture(bool updates) {
    auto owned = std::make_unique<Counting>(updates);
    toolchain = owned.get();
    registry.Add(std::move(owned));
  }
  std::shared_ptr<const CompiledPartition> Compile(const PartitionRequest& request) {
    return cache.Compile("counting", request);
  }
  Counting* toolchain;
  ToolchainRegistry registry;
  PartitionCache cache{registry};
};

TEST(PartitionCacheTest, EqualBlocksAreCompiledOnceWhereConstantsCanBeUpdated) {
  Fixture fixture(/*updates=*/true);
  const auto first = fixture.Compile(AddOf({3}, 1)), second = fixture.Compile(AddOf({3}, 2));
  EXPECT_EQ(fixture.toolchain->num_compiled, 1);
  EXPECT_EQ(first->blob, second->blob);
  EXPECT_EQ(first->constants.at(0).At(0), 1);
  EXPECT_EQ(second->constants.at(0).At(0), 2);
  EXPECT_EQ(fixture.Compile(AddOf({3}, 2)), second) << "the same partition is the same";
  EXPECT_EQ(fixture.toolchain->num_updated, 1);
}

TEST(PartitionCacheTest, EachPartitionThatIsCompiledIsASignOfLife) {
  Fixture fixture(/*updates=*/false);
  int told = 0;
  fixture.cache.OnCompile([&] { ++told; });
  for (const double value : {1, 2, 3, 2}) fixture.Compile(AddOf({3}, value));
  EXPECT_EQ(told, 3) << "a cover of many slow partitions must not be taken for one that hangs";
}

TEST(PartitionCacheTest, WhatIsNotEqualIsCompiledByItself) {
  Fixture fixture(/*updates=*/true);
  fixture.Compile(AddOf({3}, 1));
  fixture.Compile(AddOf({2, 3}, 1));
  EXPECT_EQ(fixture.toolchain->num_compiled, 2) << "another shape";
  PartitionRequest other = AddOf({3}, 3);
  other.layouts.inputs[0] = Layout::kChannelsLast;
  fixture.Compile(other);
  EXPECT_EQ(fixture.toolchain->num_compiled, 3) << "another layout";
  fixture.Compile(AddOf({}, 1, /*as_scalar=*/true));
  fixture.Compile(AddOf({}, 2, /*as_scalar=*/true));
  EXPECT_EQ(fixture.toolchain->num_compiled, 5) << "scalars count by value";
  EXPECT_EQ(fixture.toolchain->num_updated, 0);
}

TEST(PartitionCacheTest, AToolchainMayRefuseToUpdate) {
  Fixture fixture(/*updates=*/true);
  fixture.Compile(AddOf({3}, 1));
  EXPECT_EQ(fixture.Compile(AddOf({3}, 7))->constants.at(0).At(0), 7);
  EXPECT_EQ(fixture.toolchain->num_compiled, 2);
  Fixture without(/*updates=*/false);
  without.Compile(AddOf({3}, 1));
  without.Compile(AddOf({3}, 2));
  EXPECT_EQ(without.toolchain->num_compiled, 2);
  EXPECT_EQ(without.toolchain->num_updated, 0);
}

class Feuding : public testing_graphs::AnyToolchain {
 public:
  using AnyToolchain::AnyToolchain;
  std::vector<Incompatibility> Incompatible() const override {
    return {{name() == "montague" ? "capulet" : "", "an old grudge"}};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return CompiledPartition{}; }
};

TEST(LowerTest, ValuesBetweenPartitionsAreKeptAsTheirLayoutsSay) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("miser") == nullptr) registry.Add(std::make_unique<Feuding>("miser"));
  const Shape shape{1, 8, 16, 16};
  const auto apply = [&](const Expr& to, Layout from, Layout made) {
    const Var inner = testing_graphs::Param("y", shape);
    const Function bare = MakeFunction({inner}, MakeCall("exp", {inner}));
    InferType(bare);
    const Function partition = WithAttr(WithAttr(bare, "Primitive", 1), "Compiler", "miser");
    return Expr(MakeCall(WithLayouts(partition, {{from}, {made}}), {to}));
  };
  const Var x = testing_graphs::Param("x", shape);
  const Expr first = apply(x, Layout::kPlain, Layout::kChannelsLastBFloat16);
  const Expr second = apply(first, Layout::kChannelsLastBFloat16, Layout::kPlain);
  const Expr third = apply(first, Layout::kChannelsLast, Layout::kPlain);
  PartitionCache cache(registry);
  const ExecutionPlan plan =
      Lower(InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeTuple({second, third})))), 1, cache);
  ASSERT_EQ(plan.steps.size(), 4u);
  const auto input_of = [&](size_t step) { return plan.values[static_cast<size_t>(plan.steps[step].inputs[0])]; };
  EXPECT_EQ(plan.steps[1].inputs, plan.steps[0].outputs) << "it is read as it was made";
  EXPECT_EQ(input_of(1).layout, Layout::kChannelsLastBFloat16);
  EXPECT_EQ(input_of(1).dtype, kFloat32) << "its type is the graph's";
  EXPECT_EQ(plan.steps[2].kind, ExecutionPlan::Step::kConvertLayout);
  EXPECT_EQ(input_of(3).layout, Layout::kChannelsLast);
  EXPECT_EQ(static_cast<int64_t>(plan.arena_bytes), NumElements(shape) * (2 + 4)) << "two bytes each, and four";
}

TEST(LowerTest, KernelsStateTheirWork) {
  ToolchainRegistry registry;
  registry.Add(std::make_unique<Counting>(false));
  const Var x = testing_graphs::Param("x", {2, 8}), inner = testing_graphs::Param("y", {2, 8});
  const Expr dense = MakeCall("nn.dense", {inner, MakeConstant(Tensor::Zeros({4, 8}, kFloat32))});
  dense->set_span({"fc", 0, 0});
  const Expr relu = MakeCall("nn.relu", {dense});
  relu->set_span({"act", 0, 0});
  const Function partition = WithAttr(WithAttr(MakeFunction({inner}, relu), "Primitive", 1), "Compiler", "counting");
  PartitionCache cache(registry);
  const ExecutionPlan plan =
      Lower(InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall(partition, {x})))), 1, cache);
  ASSERT_EQ(plan.kernels.size(), 1u);
  ASSERT_TRUE(plan.kernels[0].work);
  EXPECT_EQ(plan.kernels[0].work->products, 2 * 4 * 8);
  EXPECT_EQ(plan.kernels[0].work->constant_bytes, 4 * 8 * 4);
  EXPECT_EQ(plan.kernels[0].nodes, (std::vector<std::string>{"fc", "act"}));
  EXPECT_EQ(plan.kernels[0].work->node_products, (std::vector<double>{2 * 4 * 8, 0}));
}

TEST(LowerTest, IncompatibleToolchainsGetIntoNoExecutable) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  const auto apply = [&](const std::string& name, const Expr& to) {
    if (registry.Find(name) == nullptr) registry.Add(std::make_unique<Feuding>(name));
    const Var inner = testing_graphs::Param("y", {2});
    const Function partition =
        WithAttr(WithAttr(MakeFunction({inner}, MakeCall("exp", {inner})), "Primitive", 1), "Compiler", name);
    return Expr(MakeCall(partition, {to}));
  };
  const Var x = testing_graphs::Param("x", {2});
  const auto lower = [&](const std::string& a, const std::string& b) {
    PartitionCache cache(registry);
    return Lower(InferTypes(IRModule::FromFunction(MakeFunction({x}, apply(b, apply(a, x))))), 1, cache);
  };
  EXPECT_EQ(lower("montague", "montague").kernels.size(), 2u);
  try {
    lower("capulet", "montague");
    FAIL() << "was lowered";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_EQ(error.message(), "'capulet' and 'montague' cannot be in one executable: an old grudge");
  }
}

}  // namespace
}  // namespace collage
