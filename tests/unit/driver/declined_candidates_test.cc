// A candidate whose toolchain declines it when it is to be compiled, after costs that no measurement found.
#include <gmock/gmock.h>

#include <algorithm>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "driver/covers/cover_portfolio.h"
#include "unit/driver/fake_library.h"

namespace collage {
namespace {

/// Takes nn.relu, and declines to compile those of many elements.
class FussyLibrary : public testing_library::FakeLibrary {
 public:
  using FakeLibrary::FakeLibrary;
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const TensorTypeNode& type = *AsTensorType(request.function->body()->checked_type());
    if (NumElements(type.static_shape()) > 20) return Reason{"has no kernel for so many elements", name()};
    return FakeLibrary::RelayToRuntime(request);
  }
};

class DeclinedCandidatesTest : public testing::Test {
 protected:
  void SetUp() override {
    ProbeToolchains();  // registers the built-in ones
    ToolchainRegistry& registry = ToolchainRegistry::Global();
    if (registry.Find("fussy") != nullptr) return;
    AddKernelLoader("fussy", std::make_unique<testing_library::FakeLoader>());
    registry.Add(std::make_unique<FussyLibrary>("fussy"));
  }

  CompileReport Compile(const std::string& text) const {
    CompileOptions options;
    options.output = folder_ / "model.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.toolchains = {"fussy"};
    options.estimator = R"(mock={"op_cost": {"native": 10, "fussy": 1}})";
    return CompileModule(ParseModule(text, "m.relay"), "m", options);
  }

  /// "NAME: failure" of contenders that searches chose, and that are out.
  static std::vector<std::string> FailuresOf(const CompileReport& report) {
    std::vector<std::string> failures;
    for (const Contender& one : report.contenders) {
      const bool is_searched = !one.name.starts_with(kPartitionFor);
      if (is_searched && !one.failure.empty()) failures.push_back(one.name + ": " + one.failure);
    }
    return failures;
  }

  TemporaryFolder folder_;
};

TEST_F(DeclinedCandidatesTest, TheSearchGoesRoundThem) {
  const CompileReport report =
      Compile("def @main(%x: Tensor[(64), float32], %y: Tensor[(3, 5), float32]) { (nn.relu(%x), nn.relu(%y)) }");
  EXPECT_THAT(FailuresOf(report), testing::IsEmpty());
  const auto has_both = [](const Contender& one) {
    return one.partitions == std::map<std::string, int>{{"native", 1}, {"fussy", 1}};
  };
  EXPECT_TRUE(std::ranges::any_of(report.contenders, has_both));
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures.begin()->second.second, testing::HasSubstr("has no kernel for so many elements"));
}

TEST_F(DeclinedCandidatesTest, OneThatDeclinesAllLeavesThemToOthers) {
  const CompileReport report = Compile("def @main(%x: Tensor[(64), float32]) { nn.relu(nn.relu(%x)) }");
  EXPECT_THAT(FailuresOf(report), testing::IsEmpty());
  for (const Contender& one : report.contenders) {
    EXPECT_FALSE(one.partitions.contains("fussy")) << one.name;
  }
}

}  // namespace
}  // namespace collage
