// build_ahead_test.cc: another process compiles into the store, and is gone with its object.
#include "driver/play_off/build_ahead.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"
#include "lowering/lower.h"
#include "support/file.h"
#include "unit/driver/fake_library.h"

namespace collage {
namespace {

/// A relu of `size` numbers as a partition of toolchain `name`.
ContenderModule ReluBy(const std::string& name, int64_t size) {
  const Var x = testing_graphs::Param("x", {size});
  const Var inner = testing_graphs::Param("y", {size});
  const Function partition =
      WithAttr(WithAttr(MakeFunction({inner}, MakeCall("nn.relu", {inner})), "Primitive", 1), "Compiler", name);
  return {name, true, false, InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall(partition, {x})))), 1, ""};
}

bool IsKept(const ContenderModule& contender, const CompiledStore& store) {
  const ModulePartition partition = PartitionsOf(contender.module, 1).at(0);
  return store.Find(*ToolchainRegistry::Global().Find(partition.toolchain), partition.request).has_value();
}

TEST(BuildAheadTest, CompilesWhatIsAskedForAndNothingElse) {
  if (AvailableProcessors() < 2) GTEST_SKIP() << "there is one processor";
  testing_library::Library("ahead");
  const std::vector<ContenderModule> modules{ReluBy("ahead", 3), ReluBy("ahead", 4), ReluBy("nobody", 5),
                                             ReluBy("ahead", 6)};
  const TemporaryFolder folder;
  CompiledStore store(folder / "compiled");
  PlayOffOptions options;
  options.compiled = &store;
  {
    const BuildAhead ahead(modules, {1, 2, 3}, options);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!IsKept(modules[1], store) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  EXPECT_TRUE(IsKept(modules[3], store));  // the last one comes first
  EXPECT_TRUE(IsKept(modules[1], store));  // a toolchain that is not here stops nothing
  EXPECT_FALSE(IsKept(modules[0], store));
}

TEST(BuildAheadTest, NeedsAStore) {
  const std::vector<ContenderModule> modules{ReluBy("ahead", 3)};
  const BuildAhead ahead(modules, {0}, PlayOffOptions());
}

}  // namespace
}  // namespace collage
