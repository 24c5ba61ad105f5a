// Partitionings that the user gives meet the covers that searches find, and the winner's module can be written.
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

class GivenPartitioningsTest : public testing::Test {
 protected:
  CompileOptions Options() const {
    CompileOptions options;
    options.output = folder_ / "m.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.toolchains = {"native"};
    options.estimator = R"(mock={"op_cost": {"native": 1}})";
    options.max_optimality_covers = 0;
    return options;
  }

  std::filesystem::path Given(const std::string& name, const std::string& partitions) const {
    const std::filesystem::path file = folder_ / name;
    WriteFile(file, R"({"format": "collage-partitioning", "version": 1, "partitions": [)" + partitions + "]}");
    return file;
  }

  const IRModule module_ = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { nn.relu(nn.dense(%x, %w)) }", "m");
  const TemporaryFolder folder_;
};

const Contender* Find(const CompileReport& report, const std::string& name) {
  const auto it = std::ranges::find(report.contenders, name, &Contender::name);
  return it == report.contenders.end() ? nullptr : &*it;
}

constexpr const char* kSplit = R"({"toolchain": "native", "inside": [4]}, {"toolchain": "native", "inside": [5]})";

TEST_F(GivenPartitioningsTest, EnterThePlayOffAndTheLossIsAgainstThem) {
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { nn.relu(tanh(nn.dense(%x, %w))) }",
      "m");
  CompileOptions options = Options();
  options.also = {
      Given("mine.json", R"({"toolchain": "native", "inside": [5, 6]}, {"toolchain": "native", "inside": [7]})")};
  const CompileReport report = CompileModule(module, "m", options);
  const Contender* mine = Find(report, "given mine");
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(mine->failure, "");
  EXPECT_EQ(mine->partitions.at("native"), 2);
  EXPECT_TRUE(report.apparent_loss_seconds.contains("given mine"));
  EXPECT_FALSE(report.optimality_loss_seconds) << "a choice of the user says nothing of the search";
}

TEST_F(GivenPartitioningsTest, TheOnlyOneThatCanBeBuiltWins) {
  CompileOptions options = Options();
  options.partitioning = Given("first.json", kSplit);
  options.also = {Given("second.json", R"({"toolchain": "native", "inside": [4, 5]})")};
  const CompileReport report = CompileModule(module_, "m", options);
  ASSERT_EQ(report.contenders.size(), 2U);
  EXPECT_NE(Find(report, "given"), nullptr);
  EXPECT_EQ(Find(report, "given second")->partitions.at("native"), 1);
}

TEST_F(GivenPartitioningsTest, AKnownChoiceIsNotTimedTwice) {
  CompileOptions options = Options();
  options.write_partitioning = folder_ / "written.json";
  const size_t num_contenders = CompileModule(module_, "m", options).contenders.size();
  options.also = {options.write_partitioning};
  options.write_partitioning.clear();
  EXPECT_EQ(CompileModule(module_, "m", options).contenders.size(), num_contenders);
}

TEST_F(GivenPartitioningsTest, MistakesAreFoundBeforeTheSearch) {
  CompileOptions options = Options();
  options.estimate = [](const IRModule&, const Target&) -> double {
    ADD_FAILURE() << "the search began";
    return 1;
  };
  options.also = {Given("wrong.json", R"({"toolchain": "native", "inside": [4]})")};
  ExpectError([&] { CompileModule(module_, "m", options); }, ErrorCategory::kInput, "operators are in no partition");
}

TEST_F(GivenPartitioningsTest, TheModuleOfTheWinnerIsWritten) {
  CompileOptions options = Options();
  options.partitioning = Given("mine.json", kSplit);
  options.write_module = folder_ / "m.relay";
  CompileModule(module_, "m", options);
  const std::string text = ReadFile(options.write_module);
  EXPECT_NE(text.find("Primitive=1"), std::string::npos) << text;
  const IRModule written = InferTypes(ParseModule(text, "m.relay"));
  EXPECT_EQ(PrintModule(written), text);
  options.write_module = options.output;
  ExpectError([&] { CompileModule(module_, "m", options); }, ErrorCategory::kInput, "go to the same file");
}

TEST_F(GivenPartitioningsTest, AProgramsModuleHoldsTheRegionsPartitions) {
  const IRModule program = ParseModule(
      "def @main(%x: Tensor[(64, 64), float32], %b: bool) -> Tensor[(64, 64), float32] {"
      "  if (%b) { nn.softmax(nn.relu(%x)) } else { nn.relu(exp(%x)) } }",
      "p");
  CompileOptions options = Options();
  options.write_module = folder_ / "p.relay";
  options.write_partitioning = folder_ / "p.json";
  const CompileReport report = CompileModule(program, "p", options);
  ASSERT_EQ(report.regions.size(), 2U);
  const std::string text = ReadFile(options.write_module);
  EXPECT_NE(text.find("if (%b)"), std::string::npos) << text;
  EXPECT_NE(text.find("estimated_seconds"), std::string::npos) << text;
  EXPECT_NO_THROW(InferTypes(ParseModule(text, "p.relay")));
  options.write_module.clear();
  options.also = {options.write_partitioning};
  options.write_partitioning.clear();
  EXPECT_EQ(CompileModule(program, "p", options).regions.size(), 2U);
  WriteFile(options.also[0], R"({"format": "collage-partitioning", "version": 1, "regions": []})");
  ExpectError([&] { CompileModule(program, "p", options); }, ErrorCategory::kInput, "chooses for 0 regions");
}

}  // namespace
}  // namespace collage
