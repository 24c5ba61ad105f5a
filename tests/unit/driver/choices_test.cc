// Reports of compilations say what else could have computed the partitions of the best mix.
#include <gtest/gtest.h>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "driver/builtins.h"
#include "support/file.h"

namespace collage {
namespace {

/// Compiles a product, tanh and relu, whose kernel costs 1.75 s, for native code.
CompileReport Compile(const std::string& partition_for) {
  AddBuiltins();
  const TemporaryFolder folder;
  CompileOptions options;
  options.output = folder / "m.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.toolchains = {"native"};
  options.estimator = R"(mock={"op_cost": {"native": 1}, "fusion_benefit": 0.5})";
  options.max_optimality_covers = 0;
  options.partition_for = partition_for;
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { nn.relu(tanh(nn.dense(%x, %w))) }",
      "m");
  return CompileModule(module, "m", options);
}

TEST(ChoicesTest, AreThoseOfTheBestMixByCosts) {
  const CompileReport report = Compile("");
  ASSERT_EQ(report.choices.size(), 1U);
  EXPECT_EQ(report.choices[0].operators, "nn.dense+tanh+nn.relu");
  EXPECT_EQ(report.choices[0].toolchain, "native");
  EXPECT_NEAR(report.choices[0].seconds, 1.75, 1e-6);
  EXPECT_NEAR(report.choices[0].share, 1, 1e-6);
  ASSERT_EQ(report.choices[0].alternatives.size(), 1U);
  const PartitionAlternative& pair = report.choices[0].alternatives[0];
  EXPECT_EQ(pair.partitions, (std::map<std::string, int>{{"native", 2}}));
  EXPECT_NEAR(pair.extra_seconds, 0.75, 1e-6);
  EXPECT_FALSE(pair.is_bound);
}

TEST(ChoicesTest, WithoutASearchThereAreNone) { EXPECT_TRUE(Compile("native").choices.empty()); }

}  // namespace
}  // namespace collage
