#include "driver/play_off/heats.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/target/toolchain.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

class Loner : public testing_graphs::AnyToolchain {
 public:
  Loner(const std::string& name, std::string enemy) : AnyToolchain(name), enemy_(std::move(enemy)) {}
  std::vector<Incompatibility> Incompatible() const override { return {{enemy_, "for the test"}}; }

 private:
  std::string enemy_;
};

TEST(HeatsTest, EnemiesNeverMeetAndFriendsDo) {
  const Loner a("a", "b"), b("b", "a"), c("c", "nobody");
  using Entrants = std::vector<std::vector<const Toolchain*>>;
  using Indices = std::vector<std::vector<size_t>>;
  EXPECT_EQ(Heats(Entrants{{&a}, {&c}, {&a, &c}}), (Indices{{0, 1, 2}}));
  EXPECT_EQ(Heats(Entrants{{&a}, {&b}, {&c}, {&b, &c}, {&a, &c}}), (Indices{{0, 2, 4}, {1, 3}}));
  EXPECT_TRUE(Heats({}).empty());
}

/// A module that "hermit" or "crowd" computes, which cannot meet.
IRModule ComputedBy(const std::string& name) {
  if (ToolchainRegistry::Global().Find(name) == nullptr) {
    ToolchainRegistry::Global().Add(std::make_unique<Loner>(name, name == "hermit" ? "crowd" : "hermit"));
  }
  const Var x = testing_graphs::Param("x", {2}), inner = testing_graphs::Param("y", {2});
  const Function partition =
      WithAttr(WithAttr(MakeFunction({inner}, MakeCall("exp", {inner})), "Primitive", 1), "Compiler", name);
  return InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall(partition, {x}))));
}

TEST(HeatsTest, TheFastestOfTheWinnersIsWritten) {
  const TemporaryFolder folder;
  PlayOffOptions options;
  options.output = folder / "model.clg";
  const std::vector<Entrant> entrants{{"slow", true, false, ComputedBy("hermit"), 1, ""},
                                      {"fast", true, false, ComputedBy("crowd"), 1, ""},
                                      {"other", false, false, ComputedBy("hermit"), 1, ""}};
  std::vector<std::vector<std::string>> fields;
  const RunHeat run = [&](const std::vector<Entrant>& field, const PlayOffOptions& own) {
    PlayOffResult result;
    fields.emplace_back();
    for (const Entrant& entrant : field) {
      fields.back().push_back(entrant.name);
      result.contestants.push_back({});
      result.contestants.back().name = entrant.name;
      result.contestants.back().p50 = entrant.name == "fast" ? 1 : 2;
      result.contestants.back().relative = 1;
    }
    result.winner = 0;
    WriteFile(own.output, field[0].name);
    return result;
  };
  const PlayOffResult result = RunHeats(entrants, options, run);
  EXPECT_EQ(fields, (std::vector<std::vector<std::string>>{{"slow", "other"}, {"fast"}}));
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(ReadFile(options.output), "fast");
  EXPECT_EQ(result.contestants[2].name, "other");
  EXPECT_EQ(result.contestants[2].relative, 2);
}

TEST(HeatsTest, AHeatThatNobodySurvivesLeavesTheOthers) {
  const TemporaryFolder folder;
  PlayOffOptions options;
  options.output = folder / "model.clg";
  const std::vector<Entrant> entrants{{"breaks", true, false, ComputedBy("hermit"), 1, ""},
                                      {"works", true, false, ComputedBy("crowd"), 1, ""}};
  bool all_break = false;
  const RunHeat run = [&](const std::vector<Entrant>& field, const PlayOffOptions& own) {
    if (field[0].name == "breaks" || all_break) {
      throw Error(ErrorCategory::kUnsupported, "no cover of the model could be built and run", "", "it is broken");
    }
    PlayOffResult result;
    result.contestants.push_back({});
    result.winner = 0;
    WriteFile(own.output, "x");
    return result;
  };
  const PlayOffResult result = RunHeats(entrants, options, run);
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(result.contestants[0].failure, "it is broken");
  all_break = true;
  EXPECT_THROW(RunHeats(entrants, options, run), Error);
}

}  // namespace
}  // namespace collage
