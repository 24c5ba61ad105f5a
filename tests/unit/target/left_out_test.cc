// left_out_test.cc: what toolchains say in a bundle that was made without them.
#include "target/left_out.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/file.h"

namespace collage {
namespace {

class Made : public Toolchain {
 public:
  explicit Made(Availability availability) : availability_(std::move(availability)) {}
  std::string name() const override { return "made"; }
  std::string description() const override { return "of a test"; }
  Availability Probe() const override { return availability_; }
  int priority() const override { return 5; }

 private:
  Availability availability_;
};

/// Probes a toolchain that says `own`, in a bundle whose list of toolchains that were left out is `list`.
Availability SaidIn(const std::string& list, const Availability& own) {
  const TemporaryFolder folder;
  WriteFile(folder / kLeftOutFile, list);
  setenv("COLLAGE_MODULE_PATH", folder.path().c_str(), 1);
  const std::unique_ptr<Toolchain> toolchain = UnlessLeftOut(std::make_unique<Made>(own));
  unsetenv("COLLAGE_MODULE_PATH");
  EXPECT_EQ(toolchain->priority(), 5);
  return toolchain->Probe();
}

const Availability kMissing{false, "", "its module is gone", "run ./setup"};

TEST(LeftOut, SaysHowToGetIt) {
  const Availability said = SaidIn("other\nmade\n", kMissing);
  EXPECT_FALSE(said.available);
  EXPECT_EQ(said.reason, "this bundle was made without it");
  EXPECT_EQ(said.hint, "`collage bundle --toolchains made` makes one that has it");
}

TEST(LeftOut, OthersGiveReasonsOfTheirOwn) {
  for (const char* list : {"", "other\n", "made2\n"}) EXPECT_EQ(SaidIn(list, kMissing).reason, kMissing.reason) << list;
}

TEST(LeftOut, FilesThatWereAddedLaterCount) {
  const Availability said = SaidIn("made\n", {true, "1.0", "", ""});
  EXPECT_TRUE(said.available);
  EXPECT_EQ(said.version, "1.0");
}

}  // namespace
}  // namespace collage
