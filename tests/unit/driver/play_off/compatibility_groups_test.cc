#include "driver/play_off/compatibility_groups.h"

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

TEST(CompatibilityGroupsTest, IncompatibleToolchainsAreInDifferentGroups) {
  const Loner a("a", "b"), b("b", "a"), c("c", "nobody");
  using Toolchains = std::vector<std::vector<const Toolchain*>>;
  using Indices = std::vector<std::vector<size_t>>;
  EXPECT_EQ(CompatibilityGroups(Toolchains{{&a}, {&c}, {&a, &c}}), (Indices{{0, 1, 2}}));
  EXPECT_EQ(CompatibilityGroups(Toolchains{{&a}, {&b}, {&c}, {&b, &c}, {&a, &c}}), (Indices{{0, 2, 4}, {1, 3}}));
  EXPECT_TRUE(CompatibilityGroups({}).empty());
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

/// An executable that is nothing but its contender's name.
class NamedExecutable : public BuiltExecutable {
 public:
  explicit NamedExecutable(std::string name) : name_(std::move(name)) {}
  Result<void> SerialiseTo(const std::filesystem::path& file) override {
    WriteFile(file, name_);
    return {};
  }

 private:
  std::string name_;
};

TEST(CompatibilityGroupsTest, TheFastestOfTheWinnersWins) {
  const std::vector<ContenderModule> modules{{"slow", true, false, ComputedBy("hermit"), 1, ""},
                                             {"fast", true, false, ComputedBy("crowd"), 1, ""},
                                             {"other", false, false, ComputedBy("hermit"), 1, ""}};
  std::vector<std::vector<std::string>> groups;
  const RunGroup run = [&](const std::vector<ContenderModule>& group) {
    PlayOffResult result;
    groups.emplace_back();
    for (const ContenderModule& module : group) {
      groups.back().push_back(module.name);
      Contender& contender = result.contenders.emplace_back();
      contender.name = module.name;
      contender.p50 = module.name == "fast" ? 1 : 2;
      contender.relative = 1;
    }
    result.winner = 0;
    result.executable = std::make_unique<NamedExecutable>(group[0].name);
    return result;
  };
  const PlayOffResult result = RunInGroups(modules, run);
  EXPECT_EQ(groups, (std::vector<std::vector<std::string>>{{"slow", "other"}, {"fast"}}));
  EXPECT_EQ(result.winner, 1);
  const TemporaryFolder folder;
  ASSERT_TRUE(result.executable->SerialiseTo(folder / "winner").ok());
  EXPECT_EQ(ReadFile(folder / "winner"), "fast");
  EXPECT_EQ(result.contenders[2].name, "other");
  EXPECT_EQ(result.contenders[2].relative, 2);
}

TEST(CompatibilityGroupsTest, AGroupWithoutAWinnerLeavesTheOthers) {
  const std::vector<ContenderModule> modules{{"breaks", true, false, ComputedBy("hermit"), 1, ""},
                                             {"works", true, false, ComputedBy("crowd"), 1, ""}};
  bool all_break = false;
  const RunGroup run = [&](const std::vector<ContenderModule>& group) {
    if (group[0].name == "breaks" || all_break) {
      throw Error(ErrorCategory::kUnsupported, "no cover of the model could be built and run", "", "it is broken");
    }
    PlayOffResult result;
    result.contenders.push_back({});
    result.winner = 0;
    return result;
  };
  const PlayOffResult result = RunInGroups(modules, run);
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(result.contenders[0].failure, "it is broken");
  all_break = true;
  EXPECT_THROW(RunInGroups(modules, run), Error);
}

}  // namespace
}  // namespace collage
