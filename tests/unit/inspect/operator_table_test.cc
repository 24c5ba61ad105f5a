#include "collage/operator_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "collage/runtime/kernel.h"
#include "inspect/random_calls.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Copies its input, whatever it was asked to compute.
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(size_t size) : size_(size) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    from_ = inputs[0];
    to_ = outputs[0];
  }
  void Run() override { std::memcpy(to_, from_, size_); }

 private:
  size_t size_;
  const void* from_ = nullptr;
  void* to_ = nullptr;
};

class CopyLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    size_t size = 0;
    std::memcpy(&size, image.blob.data(), sizeof size);
    return std::make_unique<CopyKernel>(size);
  }
};

/// Takes what can be copied, and nn.relu and abs, which cannot; declines int16 when it compiles.
class Copier : public testing_graphs::AnyToolchain {
 public:
  Copier() : AnyToolchain("copier", FusionStyle::kNoFusion) {}
  Result<void> SupportsCall(const CallNode& call) const override {
    const std::string& op = call.op()->name;
    if (op == "copy" || op == "nn.relu" || op == "abs") return {};
    return Reason{"only copies", name()};
  }
  std::vector<BoundaryLayouts> Layouts(const Function&, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    if (last == plain) return {plain};
    return {last, plain};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const TensorTypeNode& type = *AsTensorType(request.function->body()->checked_type());
    if (type.dtype() == DataType::Int(16)) return Reason{"not today", name()};
    if (As<CallNode>(request.function->body())->op()->name == "abs") std::abort();
    const size_t size = static_cast<size_t>(NumElements(type.static_shape())) * type.dtype().size_bytes();
    CompiledPartition compiled;
    compiled.loader = "copier";
    compiled.blob.resize(sizeof size);
    std::memcpy(compiled.blob.data(), &size, sizeof size);
    return compiled;
  }
};

OperatorTable TableOf(const std::vector<std::string>& operators, const std::vector<std::string>& dtypes) {
  ProbeToolchains();  // registers the built-in ones
  if (ToolchainRegistry::Global().Find("copier") == nullptr) {
    AddKernelLoader("copier", std::make_unique<CopyLoader>());
    ToolchainRegistry::Global().Add(std::make_unique<Copier>());
  }
  OperatorTableOptions options;
  options.toolchains = {"copier"};
  options.operators = operators;
  options.dtypes = dtypes;
  options.num_calls = 3;
  return TabulateOperators(options).at(0);
}

TEST(OperatorTableTest, ARowForEachTypeAndLayoutThatIsTaken) {
  const OperatorTable table = TableOf({"copy", "exp"}, {"float32", "bool", "int16"});
  ASSERT_EQ(table.rows.size(), 4u);
  for (const OperatorRow& row : table.rows) {
    EXPECT_EQ(row.op, "copy");
    EXPECT_TRUE(row.dtype == "float32" || row.dtype == "bool");
    EXPECT_TRUE(row.layouts == "plain" || row.layouts == "channels_last") << row.layouts;
    EXPECT_EQ(row.num_calls, 3);
    EXPECT_TRUE(row.failures.empty()) << row.failures[0];
  }
  EXPECT_GT(table.num_declined, 0) << "int16 is taken and then declined";
}

TEST(OperatorTableTest, WhatIsWrongIsNamedWithItsShapes) {
  const OperatorTable table = TableOf({"nn.relu"}, {"float32"});
  ASSERT_EQ(table.rows.size(), 2u);
  for (const OperatorRow& row : table.rows) {
    ASSERT_FALSE(row.failures.empty()) << "copies were taken for nn.relu";
    EXPECT_NE(row.failures[0].find("Tensor[("), std::string::npos) << row.failures[0];
    EXPECT_NE(row.failures[0].find("wrong result 0"), std::string::npos) << row.failures[0];
  }
}

TEST(OperatorTableTest, ACrashIsAFailureOfItsRow) {
  const OperatorTable table = TableOf({"abs", "copy"}, {"float32"});
  int num_crashed = 0;
  for (const OperatorRow& row : table.rows) {
    EXPECT_EQ(row.failures.empty(), row.op == "copy");
    for (const std::string& failure : row.failures) num_crashed += failure.find("signal 6") != std::string::npos;
  }
  EXPECT_EQ(num_crashed, 6);
}

TEST(OperatorTableTest, UnknownNamesAreRefused) {
  ToolchainRegistry::Global();
  OperatorTableOptions options;
  options.operators = {"nn.rleu"};
  EXPECT_THROW(TabulateOperators(options), Error);
  options.operators = {};
  options.dtypes = {"float128"};
  EXPECT_THROW(TabulateOperators(options), Error);
  options.dtypes = {};
  options.toolchains = {"nobody"};
  EXPECT_THROW(TabulateOperators(options), Error);
}

TEST(RandomCallsTest, SizesGrowTogetherAndValuesSuitTheType) {
  std::mt19937 random(5);
  const OpDef& dense = GetOp("nn.dense")->def();
  bool has_grown = false;
  for (int i = 0; i < 20; ++i) {
    const std::optional<RandomCall> call = MakeRandomCall(dense, dense.examples.at(0), kInt8, SIZE_MAX, random);
    ASSERT_TRUE(call.has_value());
    ASSERT_EQ(call->inputs.size(), 2u);
    EXPECT_EQ(call->inputs[0].shape()[1], call->inputs[1].shape()[1]);
    EXPECT_EQ(call->inputs[0].dtype(), kInt8);
    has_grown = has_grown || call->inputs[0].shape() != AsTensorType(dense.examples.at(0).args[0])->static_shape();
    for (int64_t k = 0; k < call->inputs[0].num_elements(); ++k) EXPECT_LE(std::abs(call->inputs[0].At(k)), 1);
  }
  EXPECT_TRUE(has_grown);
  const std::optional<RandomCall> constant = MakeRandomCall(dense, dense.examples.at(0), kFloat32, 1, random);
  ASSERT_TRUE(constant.has_value());
  EXPECT_EQ(constant->inputs.size(), 1u);
}

TEST(RandomCallsTest, EveryOperatorWithExamplesIsTriedOnSomeType) {
  std::mt19937 random(6);
  for (const Op& op : AllOps()) {
    const OpDef& def = op->def();
    if (def.examples.empty()) continue;
    bool is_dynamic = false;
    bool is_tried = false;
    for (const OpExample& example : def.examples) {
      for (const DataType dtype : DataTypesToTry()) {
        is_tried = is_tried || MakeRandomCall(def, example, dtype, SIZE_MAX, random).has_value();
      }
    }
    is_dynamic = def.name == "argwhere" || def.name == "unique" || def.name == "arange";
    EXPECT_TRUE(is_tried || is_dynamic) << def.name;
  }
}

TEST(RandomCallsTest, SumsAndProductsDoNotOverflow) {
  std::mt19937 random(8);
  const auto largest = [&](const char* name, DataType dtype) {
    const OpDef& op = GetOp(name)->def();
    double most = 0;
    for (int i = 0; i < 40; ++i) {
      const OpExample& example = op.examples[static_cast<size_t>(i) % op.examples.size()];
      const std::optional<RandomCall> call = MakeRandomCall(op, example, dtype, SIZE_MAX, random);
      if (!call) continue;
      const Tensor& result = call->expected.results()[0];
      for (int64_t at = 0; at < result.num_elements(); ++at) most = std::max(most, result.At(at));
    }
    return most;
  };
  EXPECT_LT(largest("prod", DataType::Int(16)), 32767);
  EXPECT_LT(largest("nn.conv3d", kUInt8), 255);
}

}  // namespace
}  // namespace collage
