#include "target/forwarding_toolchain.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace collage {
namespace {

/// Has the defaults of all functions that have one.
class Defaults : public Toolchain {
 public:
  std::string name() const override { return "defaults"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
};

/// Its first virtual function comes behind the last one of `Toolchain`.
class OneMore : public Defaults {
 public:
  virtual void Last() const {}
};

/// Entries for `Toolchain`'s functions in the tables of virtual functions, as the Itanium C++ ABI lays them out: a
/// pointer to a virtual member function is 1 more than the entry's place in bytes.
size_t NumEntries() {
  const auto last = &OneMore::Last;
  uintptr_t place = 0;
  std::memcpy(&place, &last, sizeof place);
  return (place - 1) / sizeof(void*);
}

const void* EntryOf(const Toolchain& toolchain, size_t number) {
  const void* const* table = nullptr;
  std::memcpy(&table, static_cast<const void*>(&toolchain), sizeof table);
  return table[number];
}

TEST(ForwardingToolchain, OverridesEveryVirtualFunction) {
  const Defaults defaults;
  const ForwardingToolchain forwarding(defaults);
  ASSERT_GT(NumEntries(), 25u);
  ASSERT_LT(NumEntries(), 100u);
  for (size_t i = 0; i < NumEntries(); ++i) {
    EXPECT_NE(EntryOf(defaults, i), EntryOf(forwarding, i))
        << "virtual function " << i << " of Toolchain, in the order of toolchain.h (0 and 1: the destructor), is not "
        << "forwarded: add it to forwarding_toolchain.h";
  }
}

TEST(ForwardingToolchain, ForwardsHowOthersCompileElsewhere) {
  class Elsewhere : public Defaults, public CompilesElsewhere {
   public:
    Availability ProbeCompiler() const override { return {true, "c", "", ""}; }
    Availability ProbeRunner() const override { return {false, "", "no device", ""}; }
    std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
      return compiler + "+" + runner;
    }
  };
  const Elsewhere elsewhere;
  const ForwardingToolchain forwarding(elsewhere);
  EXPECT_EQ(ProbeCompilerOf(forwarding).version, "c");
  EXPECT_EQ(ProbeRunnerOf(forwarding).reason, "no device");
  EXPECT_EQ(JoinedVersion(forwarding, "c", "r"), "c+r");
  EXPECT_FALSE(CompilesForThisProcessor(forwarding));

  // Without the base class: it compiles where it is, for where it is.
  const Defaults defaults;
  const ForwardingToolchain plain(defaults);
  EXPECT_EQ(ProbeCompilerOf(plain).version, "1");
  EXPECT_EQ(JoinedVersion(plain, "1", "1"), "1");
  EXPECT_EQ(JoinedVersion(plain, "1", "2"), std::nullopt);
  EXPECT_TRUE(CompilesForThisProcessor(plain));
}

TEST(ForwardingToolchain, ForwardsPatternsAndLibrariesOfThoseThatHaveThem) {
  class Fusing : public Defaults, public HasFusionPatterns, public CallsLibraries {
   public:
    std::vector<std::string> FusionPatterns() const override { return {"nn.dense(cast(*), *)"}; }
    std::vector<const Toolchain*> CalledLibraries() const override { return {this}; }
  };
  const Fusing fusing;
  EXPECT_EQ(FusionPatternsOf(ForwardingToolchain(fusing)), fusing.FusionPatterns());
  EXPECT_TRUE(FusionPatternsOf(ForwardingToolchain(Defaults())).empty());
  EXPECT_TRUE(FusionPatternsOf(Defaults()).empty());
  EXPECT_EQ(CalledLibrariesOf(ForwardingToolchain(fusing)), fusing.CalledLibraries());
  EXPECT_TRUE(CalledLibrariesOf(ForwardingToolchain(Defaults())).empty());
  EXPECT_TRUE(CalledLibrariesOf(Defaults()).empty());
}

}  // namespace
}  // namespace collage
