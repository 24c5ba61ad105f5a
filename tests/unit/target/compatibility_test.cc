#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "collage/target/toolchain.h"

namespace collage {
namespace {

/// Has a name and enemies, nothing else.
class Hostile : public Toolchain {
 public:
  Hostile(std::string name, std::set<std::string> enemies) : name_(std::move(name)), enemies_(std::move(enemies)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return ""; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  std::vector<Incompatibility> Incompatible() const override {
    std::vector<Incompatibility> all;
    for (const std::string& enemy : enemies_) all.push_back({enemy, "brings a runtime that clashes"});
    return all;
  }

 private:
  std::string name_;
  std::set<std::string> enemies_;
};

std::vector<std::vector<std::string>> NamesOf(const std::vector<std::vector<const Toolchain*>>& sets) {
  std::vector<std::vector<std::string>> names;
  for (const auto& set : sets) {
    names.emplace_back();
    for (const Toolchain* toolchain : set) names.back().push_back(toolchain->name());
  }
  return names;
}

TEST(CompatibilityTest, OneObjectionIsEnoughAndItsReasonIsKept) {
  const Hostile a("a", {"b", "nobody"}), b("b", {}), c("c", {});
  EXPECT_EQ(WhyIncompatible(a, b), "brings a runtime that clashes");
  EXPECT_EQ(WhyIncompatible(b, a), "brings a runtime that clashes");
  EXPECT_EQ(WhyIncompatible(b, c), std::nullopt);
  using Names = std::vector<std::vector<std::string>>;
  EXPECT_EQ(NamesOf(CompatibleSets(std::vector<const Toolchain*>{&a, &b, &c})), (Names{{"a", "c"}, {"b", "c"}}));
  EXPECT_EQ(NamesOf(CompatibleSets(std::vector<const Toolchain*>{&b, &c})), (Names{{"b", "c"}}));
  EXPECT_EQ(CompatibleSets({}).size(), 1u) << "of nobody there is one set, the empty one";
}

TEST(CompatibilityTest, SetsAreAllThatCannotGrow) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int count = 1 + static_cast<int>(random() % 7);
    std::vector<std::unique_ptr<Hostile>> owned;
    std::vector<const Toolchain*> toolchains;
    for (int i = 0; i < count; ++i) {
      std::set<std::string> enemies;
      for (int other = 0; other < count; ++other) {
        if (random() % 4 == 0) enemies.insert(std::to_string(other));
      }
      enemies.erase(std::to_string(i));
      owned.push_back(std::make_unique<Hostile>(std::to_string(i), enemies));
      toolchains.push_back(owned.back().get());
    }
    const auto fits = [&](int bits) {
      for (int i = 0; i < count; ++i) {
        for (int j = 0; j < i; ++j) {
          const bool both = (bits >> i & 1) != 0 && (bits >> j & 1) != 0;
          if (both && WhyIncompatible(*toolchains[static_cast<size_t>(i)], *toolchains[static_cast<size_t>(j)])) {
            return false;
          }
        }
      }
      return true;
    };
    std::set<std::vector<const Toolchain*>> expected;
    for (int bits = 1; bits < 1 << count; ++bits) {
      bool can_grow = false;
      for (int i = 0; i < count; ++i) can_grow = can_grow || ((bits >> i & 1) == 0 && fits(bits | 1 << i));
      if (!fits(bits) || can_grow) continue;
      std::vector<const Toolchain*> set;
      for (int i = 0; i < count; ++i) {
        if ((bits >> i & 1) != 0) set.push_back(toolchains[static_cast<size_t>(i)]);
      }
      expected.insert(set);
    }
    const auto found = CompatibleSets(toolchains);
    EXPECT_EQ(found.size(), expected.size());
    EXPECT_EQ((std::set(found.begin(), found.end())), expected);
  }
}

TEST(HooksTest, WhatIsNotSetAnswersWithAReason) {
  const Hostile toolchain("plain", {});
  const PartitionRequest request{nullptr, {}, 1};
  EXPECT_TRUE(toolchain.Has(Hook::kRelayToRuntime));
  EXPECT_FALSE(toolchain.Has(Hook::kRelayToTIR));
  EXPECT_EQ(toolchain.RelayToTIR(request).reason().text, "has no hook RelayToTIR");
  EXPECT_EQ(toolchain.RelayToRuntime(request).reason().text, "has no hook RelayToTIR");
  EXPECT_EQ(toolchain.UpdateConstants(request, {}).reason().text, "has no hook UpdateConstants");
  EXPECT_STREQ(ToString(Hook::kTIRToRuntime), "TIRToRuntime");
}

}  // namespace
}  // namespace collage
