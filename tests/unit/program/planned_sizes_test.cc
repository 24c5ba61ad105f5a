// planned_sizes_test.cc: kernels for any size at sizes that were seen before: memory of values and results.
#include <gtest/gtest.h>

#include "backends/builtin_toolchains.h"
#include "bytecode/replay.h"
#include "collage/ir/text.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "program/regions.h"

namespace collage {
namespace {

/// Several kernels, values that live long beside others that do not, a view as a result, and one of two results.
constexpr const char* kChain = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.softmax(%x, axis=-1);
  %1 = nn.dense(%0, %w);
  %2 = nn.softmax(%1, axis=-1);
  %3 = nn.dense(add(%2, %0), %w);
  %4 = nn.softmax(%3, axis=-1);
  (reshape(add(%4, %1), newshape=[-1]), %2)
})";

const Toolchain& Native() {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  return *ToolchainRegistry::Global().Native();
}

class PlannedSizesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Native().Probe().available) GTEST_SKIP() << Native().Probe().reason;
    module_ = ParseModule(kChain, "t.relay");
    const ProgramRegions program =
        FindRegions(PrepareForPartitioning(module_), /*few_elements=*/16,
                    {[](const CallNode& call) { return Native().SupportsDynamicShapes(call).ok(); },
                     [](const CallNode& call) { return Native().SupportsCall(call).ok(); }});
    vm::CompileOptions options;
    options.for_dynamic_shapes = &Native();
    machine_ = std::make_unique<vm::Machine>(vm::Compile(program.module, options));
  }

  static Tensor Filled(const Shape& shape, int64_t seed) {
    const Tensor tensor = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.Set(i, static_cast<double>((i * 37 + seed * 11) % 17) / 8 - 1);
    }
    return tensor;
  }

  std::vector<Value> Arguments(int64_t rows, int64_t seed) const { return {Filled({rows, 8}, seed), weights_}; }

  void ExpectRight(const Value& result, const std::vector<Value>& args) const {
    EXPECT_TRUE(ValuesEqual(Interpret(module_, "main", args), result, 1e-5)) << ToString(result);
  }

  IRModule module_;
  Tensor weights_ = Filled({8, 8}, 5);
  std::unique_ptr<vm::Machine> machine_;
};

TEST_F(PlannedSizesTest, ValuesThatLiveAtTheSameTimeAreApart) {
  for (int round = 0; round < 3; ++round) {
    for (const int64_t rows : {3, 300, 1, 0}) {
      const std::vector<Value> args = Arguments(rows, round);
      ExpectRight(machine_->Invoke("main", args), args);
    }
  }
}

TEST_F(PlannedSizesTest, ResultsGoWhereTheyAreWanted) {
  const std::vector<Tensor> given{Tensor::Zeros({24}, kFloat32), Tensor::Zeros({3, 8}, kFloat32)};
  for (int run = 0; run < 4; ++run) {
    const std::vector<Value> args = Arguments(3, run);
    const Value result = machine_->Invoke("main", args, {.destinations = given});
    ExpectRight(result, args);
    if (run == 0) continue;  // not planned yet
    for (const size_t i : {0, 1}) EXPECT_EQ(result.fields()[i].tensor().raw(), given[i].raw()) << "run " << run;
  }
}

TEST_F(PlannedSizesTest, NoResultIsWrittenOverAnArgument) {
  for (int run = 0; run < 4; ++run) {
    const std::vector<Value> args = Arguments(3, run);
    const std::vector<Tensor> given{Tensor::Zeros({24}, kFloat32), args[0].tensor()};
    const Value result = machine_->Invoke("main", args, {.destinations = given});
    ExpectRight(result, args);
    EXPECT_NE(result.fields()[1].tensor().raw(), args[0].tensor().raw());
  }
}

}  // namespace
}  // namespace collage
