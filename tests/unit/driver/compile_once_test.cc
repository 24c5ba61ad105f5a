// What a compilation compiles, it compiles once, whichever of its processes wants it.
#include <gtest/gtest.h>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "support/file.h"
#include "unit/driver/fake_library.h"

namespace collage {
namespace {

TEST(CompileOnceTest, APartitionThatWasMeasuredIsNotCompiledForThePlayOff) {
  ProbeToolchains();  // registers the built-in ones
  const testing_library::FakeLibrary& library = testing_library::Library("once");
  const TemporaryFolder folder;
  CompileOptions options;
  options.output = folder / "model.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.toolchains = {"once"};
  options.partition_for = "once";
  options.explanation = "none";  // it has times
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(64), float32], %y: Tensor[(3, 5), float32]) { (nn.relu(%x), nn.relu(%y)) }", "relus");
  const CompileReport report = CompileModule(module, "relus", options);
  EXPECT_GE(report.num_measured, 2);
  EXPECT_EQ(report.contenders.at(0).failure, "");
  EXPECT_EQ(library.NumCompiled(64), 1);
  EXPECT_EQ(library.NumCompiled(15), 1);

  // With nothing to measure, the play-off compiles; what comes of it is the same to the byte.
  const std::string bytes = ReadFile(options.output);
  const CompileReport again = CompileModule(module, "relus", options);
  EXPECT_EQ(again.num_measured, 0);
  EXPECT_EQ(library.NumCompiled(64), 2);
  EXPECT_EQ(library.NumCompiled(15), 2);
  EXPECT_EQ(ReadFile(options.output), bytes);
}

}  // namespace
}  // namespace collage
