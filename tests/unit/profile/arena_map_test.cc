#include "profile/arena_map.h"

#include <gtest/gtest.h>

#include "unit/runtime/test_plan.h"

namespace collage {
namespace {

TEST(ArenaMapTest, SaysWhatLiesWhereAndWhen) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {4, 8});
  const int first = writer.AddArenaValue({4, 8});
  const int view = writer.AddAlias({32}, first);
  const int second = writer.AddArenaValue({32});
  writer.Add(x, first, 1);                              // step 0
  writer.Add(view, second, 1, /*workspace_bytes=*/64);  // step 1
  writer.Add(second, writer.AddOutput("y", {32}), 1);   // step 2
  const std::vector<ArenaMap> arenas = ArenasOf({"kernel_1", &writer.plan});
  ASSERT_EQ(arenas.size(), 1u);
  const ArenaMap& arena = arenas[0];
  EXPECT_EQ(arena.plan, "kernel_1");
  EXPECT_EQ(arena.memory, "host");
  EXPECT_EQ(arena.bytes, 128 + 128 + 64);
  ASSERT_EQ(arena.values.size(), 3u) << "neither input, output nor the view";
  const ArenaValue& made = arena.values[0];
  EXPECT_EQ(made.value, first);
  EXPECT_EQ(made.offset, 0);
  EXPECT_EQ(made.bytes, 128);
  EXPECT_EQ(made.first_step, 0);
  EXPECT_EQ(made.last_step, 1) << "read under another shape";
  EXPECT_EQ(made.type, "float32(4, 8)");
  const ArenaValue& workspace = arena.values[2];
  EXPECT_FALSE(workspace.value);
  EXPECT_EQ(workspace.type, "workspace");
  EXPECT_EQ(workspace.offset, 256);
  EXPECT_EQ(workspace.first_step, 1);
  EXPECT_EQ(workspace.last_step, 1);
  EXPECT_EQ(UsedBytes(arena, 3), (std::vector<int64_t>{128, 320, 128}));
  EXPECT_EQ(arena.used_bytes, 320);
}

TEST(ArenaMapTest, AProgramHasMemoryOfItsOwn) {
  const ArenaMap arena = ArenaOf({{0, 64, 0, 1, {4}, kFloat32}, {64, 128, 1, 2, {3, 8}, kFloat32}});
  EXPECT_EQ(arena.plan, "@main");
  EXPECT_EQ(arena.bytes, 192);
  EXPECT_EQ(arena.used_bytes, 192);
  ASSERT_EQ(arena.values.size(), 2u);
  EXPECT_EQ(arena.values[1].type, "float32(3, 8)");
}

TEST(ArenaMapTest, APlanWithoutWorkingMemoryHasNone) {
  PlanWriter writer;
  writer.Add(writer.AddInput("x", {4}), writer.AddOutput("y", {4}), 1);
  EXPECT_EQ(ArenasOf({"", &writer.plan}).size(), 0u);
}

}  // namespace
}  // namespace collage
