#include "lowering/partition_dump.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "collage/support/error.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using testing_graphs::AnyToolchain;

PartitionRequest AddOf(double value) {
  const Var x = testing_graphs::Param("x", {2, 3});
  const Tensor tensor = Tensor::Empty({3}, kFloat32);
  for (int64_t i = 0; i < 3; ++i) tensor.Set(i, value);
  return {testing_graphs::Typed({x}, MakeCall("add", {x, MakeConstant(tensor)})), PlainLayouts(1, 1), 1, "tile=4"};
}

CompiledPartition CodeOf(char byte) {
  CompiledPartition compiled;
  compiled.loader = "any loader";
  compiled.blob = {static_cast<std::byte>(byte), std::byte{0}};
  compiled.workspace_bytes = 64;
  compiled.source = "how it is done\n";
  return compiled;
}

std::set<std::string> FilesIn(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

TEST(PartitionDumpTest, WritesOneSetOfFilesForEachPartition) {
  const TemporaryFolder folder;
  const AnyToolchain toolchain("some -option=a/b");
  PartitionDump dump(folder / "new" / "dump");
  dump.Add(toolchain, AddOf(1), CodeOf('a'), {"Add_7"});
  dump.Add(toolchain, AddOf(2), CodeOf('a'), {"Add_8"});
  dump.Add(toolchain, AddOf(2), CodeOf('b'), {});
  const std::string first = "000-some__option_a_b-add", second = "001-some__option_a_b-add",
                    third = "002-some__option_a_b-add";
  EXPECT_EQ(FilesIn(folder / "new" / "dump"),
            (std::set<std::string>{first + ".json", first + ".relay", first + ".txt", second + ".json", third + ".json",
                                   third + ".relay", third + ".txt"}));
  const auto read = [&](const std::string& name) { return ReadFile(folder / "new" / "dump" / name); };
  EXPECT_EQ(read(first + ".txt"), "how it is done\n");
  EXPECT_NE(read(first + ".relay").find("add(%x, meta[relay.Constant][0] /*Tensor[(3), float32]*/)"), std::string::npos)
      << read(first + ".relay");
  const auto json = nlohmann::json::parse(read(first + ".json"));
  EXPECT_EQ(json, (nlohmann::json{{"toolchain", "some -option=a/b"},
                                  {"operators", "add"},
                                  {"nodes", {"Add_7"}},
                                  {"schedule", "tile=4"},
                                  {"layouts", {{"inputs", {"plain"}}, {"outputs", {"plain"}}}},
                                  {"threads", 1},
                                  {"loader", "any loader"},
                                  {"code_bytes", 2},
                                  {"workspace_bytes", 64},
                                  {"constants", nlohmann::json::array()}}));
  EXPECT_EQ(nlohmann::json::parse(read(second + ".json")).at("same_as"), first) << "it has other weights only";
  EXPECT_FALSE(nlohmann::json::parse(read(third + ".json")).contains("same_as")) << "it has other code";
}

TEST(PartitionDumpTest, LongNamesAreCut) {
  const TemporaryFolder folder;
  const Var x = testing_graphs::Param("x", {2, 3});
  Expr value = x;
  for (int i = 0; i < 100; ++i) value = MakeCall("nn.relu", {value});
  PartitionDump(folder / "dump")
      .Add(AnyToolchain("any"), {testing_graphs::Typed({x}, value), PlainLayouts(1, 1), 1}, CodeOf('a'), {});
  for (const std::string& name : FilesIn(folder / "dump")) EXPECT_LT(name.size(), 120U) << name;
}

TEST(PartitionDumpTest, RefusesAFolderWithFiles) {
  const TemporaryFolder folder;
  WriteFile(folder / "old.txt", "from before");
  try {
    PartitionDump{folder.path()};
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    EXPECT_EQ(error.message(), "the folder for a dump has files already");
    EXPECT_EQ(error.where(), folder.path().string());
  }
  EXPECT_THROW(PartitionDump(folder / "old.txt"), Error) << "not a folder";
}

}  // namespace
}  // namespace collage
