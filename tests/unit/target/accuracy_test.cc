#include "target/accuracy.h"

#include <gtest/gtest.h>

#include <memory>

#include "target/toolchain_configuration.h"

namespace collage {
namespace {

/// Goes by its name, or by another where it was told what.
class Plain : public Toolchain {
 public:
  Plain(std::string name, bool declares) : name_(std::move(name)), declares_(declares) {}
  std::string name() const override { return name_; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  std::vector<AttrField> Options() const override {
    if (!declares_) return {};
    return {{kAccuracyOption, AttrKind::kString, "standard", "how exact"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs&) const override {
    return std::make_unique<Plain>(name_, declares_);
  }

 private:
  std::string name_;
  bool declares_;
};

TEST(AccuracyTest, WhoDeclaresTheOptionIsExactWhenToldSo) {
  EXPECT_TRUE(IsExact(Plain("library", false)));
  const Plain fast("fast", true);
  EXPECT_FALSE(IsExact(fast));
  const ToolchainConfiguration configuration(fast);
  EXPECT_TRUE(IsExact(*configuration.With(kAccuracyOption, kExact).Make()));
}

}  // namespace
}  // namespace collage
