#include "driver/play_off/play_off.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "collage/ir/infer_type.h"
#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "driver/play_off/messages.h"
#include "driver/write_executable.h"
#include "support/file.h"
#include "unit/driver/fake_library.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

/// relu, as a model, and as a partition of toolchain `name`.
IRModule Relu() {
  const Var x = testing_graphs::Param("x", {64});
  return InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {x}))));
}

ContenderModule ReluBy(const std::string& name) {
  testing_library::Library(name);
  const Var x = testing_graphs::Param("x", {64});
  const Var inner = testing_graphs::Param("y", {64});
  const Function partition =
      WithAttr(WithAttr(MakeFunction({inner}, MakeCall("nn.relu", {inner})), "Primitive", 1), "Compiler", name);
  return {name, true, false, InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall(partition, {x})))), 1, ""};
}

class PlayOffTest : public testing::Test {
 protected:
  PlayOffResult Run(const std::vector<ContenderModule>& contenders) {
    PlayOffOptions options;
    options.first_seconds = options.final_seconds = 0;
    options.max_rounds = options.min_rounds;
    options.check = EvaluateReference(Relu(), options, nullptr);
    return RunPlayOff(Relu(), contenders, database_, "machine", options, nullptr);
  }

  TemporaryFolder folder_;
  TuningDatabase database_{(folder_ / "tuning.db").string()};
};

int64_t Write(BuiltExecutable& executable, const std::filesystem::path& output) {
  return WriteExecutable(
      output, [&](const std::filesystem::path& file) { return executable.SerialiseTo(file); }, nullptr);
}

TEST_F(PlayOffTest, TheWinnerIsWrittenByWhoeverWantsIt) {
  const PlayOffResult result = Run({ReluBy("paper"), ReluBy("scissors")});
  ASSERT_GE(result.winner, 0);
  EXPECT_EQ(result.seconds.write, 0);
  for (const Contender& one : result.contenders) EXPECT_EQ(one.failure, "") << one.name;
  const std::filesystem::path output = folder_ / "model.clg";
  const int64_t bytes = Write(*result.executable, output);
  EXPECT_EQ(bytes, static_cast<int64_t>(std::filesystem::file_size(output)));
  const Executable executable = Executable::Load(output);
  EXPECT_EQ(executable.plan().kernels.at(0).toolchain, result.contenders[static_cast<size_t>(result.winner)].name);
  const std::string first = ReadFile(output);
  Write(*result.executable, output);
  EXPECT_EQ(ReadFile(output), first);
}

TEST_F(PlayOffTest, AFileThatCannotBeWrittenIsNoFaultOfAContender) {
  const PlayOffResult result = Run({ReluBy("paper")});
  ExpectError([&] { Write(*result.executable, folder_ / "missing/model.clg"); }, ErrorCategory::kResource,
              "cannot create");
  EXPECT_EQ(result.contenders[0].failure, "");
  EXPECT_GT(Write(*result.executable, folder_ / "model.clg"), 0);
}

TEST_F(PlayOffTest, ARankingThatIsKnownIsNotTimedAgain) {
  const std::vector<ContenderModule> contenders{ReluBy("paper"), ReluBy("scissors")};
  const PlayOffResult first = Run(contenders);
  const PlayOffResult again = Run(contenders);
  EXPECT_EQ(again.winner, first.winner);
  EXPECT_EQ(again.seconds.timing, 0);
  for (size_t i = 0; i < contenders.size(); ++i) {
    Contender known = again.contenders[i];
    known.max_error = first.contenders[i].max_error;
    EXPECT_EQ(ToJsonText(known), ToJsonText(first.contenders[i]));
    EXPECT_EQ(known.name, first.contenders[i].name);
  }
  Write(*again.executable, folder_ / "model.clg");
  EXPECT_NO_THROW(Executable::Verify(folder_ / "model.clg"));
}

TEST(PlayOffMessagesTest, AreReadBack) {
  ContenderAnswer answer{2, {}};
  answer.found.name = "not sent";
  answer.found.p50 = 1.0 / 3;
  answer.found.samples = 7;
  answer.found.partitions = {{"paper", 3}};
  answer.found.is_finalist = true;
  answer.found.failure = "\"quoted\"";
  const PlayOffAnswer whole{{answer}, -1, {.check = 1, .build = 2, .timing = 3, .write = 4}};
  const auto read = FromJsonText<PlayOffAnswer>(ToJsonText(whole));
  ASSERT_EQ(read.contenders.size(), 1U);
  EXPECT_EQ(read.contenders[0].contender, 2);
  EXPECT_EQ(read.contenders[0].found.name, "");
  EXPECT_EQ(ToJsonText(read.contenders[0]), ToJsonText(answer));
  EXPECT_EQ(read.winner, -1);
  EXPECT_EQ(read.seconds.timing, 3);
  const auto news = FromJsonText<PlayOffNews>(ToJsonText(PlayOffNews{PlayOffNews::Kind::kBuild, 0, 0, 0}));
  EXPECT_EQ(news.kind, PlayOffNews::Kind::kBuild);
  EXPECT_EQ(news.contender, 0);
}

}  // namespace
}  // namespace collage
