// Packs as files: what is written is read back, and no damage goes unnoticed.
#include "driver/pack/measuring_pack.h"

#include <gtest/gtest.h>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "lowering/compiled_store.h"
#include "support/file.h"
#include "target/annotations.h"

namespace collage {
namespace {

/// Weights that are used twice, and stored once.
Tensor Weights() {
  const Tensor weights = Tensor::Empty({64, 8}, kFloat32);
  for (int64_t i = 0; i < weights.num_elements(); ++i) weights.Set(i, 0.25 * static_cast<double>(i % 17));
  return weights;
}

MeasuringPack Pack() {
  const Tensor weights = Weights();
  ParseOptions options;
  options.constants = {MakeConstant(weights)};
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(4, 8), float32]) { nn.relu(nn.dense(%x, meta[relay.Constant][0])) }", "dense", options);
  MeasuringPack pack;
  pack.collage = CollageVersion();
  pack.machine = "x86-64";
  pack.cpu = "a processor";
  pack.num_threads = 2;
  pack.toolchains = {{"native", "22", "abc", true}};
  CompiledPartition compiled;
  compiled.loader = "native";
  compiled.blob.assign(300, std::byte{7});
  compiled.constants = {weights};
  compiled.workspace_bytes = 128;
  compiled.workspace_memory = Memory::kCuda;
  pack.compiled = {compiled};
  pack.compiled_names = {"name"};
  PackedPartition partition;
  partition.request = {module.main(), {{Layout::kPlain}, {Layout::kPlain}}, 2};
  partition.toolchain = 0;
  partition.codes = {{"", 0, ""}, {"rows=4", -1, "declined: too many rows"}};
  pack.partitions = {partition};
  PackedModel model{"model.onnx", 4096, "", 90, {}, {}};
  model.candidates.push_back({0, "digest", {1, 2, 3, true, 4}, "nn.dense+nn.relu", "native", {1, 0.5}});
  model.conversions.push_back({{1, 4, 2, 2}, kFloat32, Layout::kPlain, Layout::kChannelsLast});
  pack.models = {model};
  ContenderModule contender{"collage", false, true, InferTypes(module), 0.125, "", {}, true};
  contender.module.Set("main", WithAttr(contender.module.main(), kAttrEstimate, 0.1 + 0.2));
  pack.play_offs = {{"model.onnx", InferTypes(module), {contender}, "x86-64", {{"native", "22+abc"}}}};
  return pack;
}

TEST(MeasuringPackTest, EverythingIsReadBack) {
  const TemporaryFolder folder;
  const MeasuringPack pack = Pack();
  WritePack(pack, folder / "pack");
  const MeasuringPack read = ReadPack(folder / "pack");
  EXPECT_EQ(read.machine, pack.machine);
  EXPECT_EQ(read.num_threads, 2);
  ASSERT_EQ(read.toolchains.size(), 1U);
  EXPECT_EQ(read.toolchains[0].compiler, "22");
  ASSERT_EQ(read.compiled.size(), 1U);
  EXPECT_EQ(read.compiled_names, pack.compiled_names);
  EXPECT_EQ(read.compiled[0].blob, pack.compiled[0].blob);
  EXPECT_EQ(read.compiled[0].workspace_bytes, 128U);
  EXPECT_EQ(read.compiled[0].workspace_memory, Memory::kCuda);
  ASSERT_EQ(read.partitions.size(), 1U);
  EXPECT_TRUE(StructuralEqual(read.partitions[0].request.function, pack.partitions[0].request.function));
  EXPECT_EQ(read.partitions[0].request.layouts, pack.partitions[0].request.layouts);
  EXPECT_EQ(read.partitions[0].codes[1].failure, "declined: too many rows");
  ASSERT_EQ(read.models.size(), 1U);
  EXPECT_EQ(read.models[0].percentile, 90);
  EXPECT_EQ(read.models[0].candidates[0].label, "nn.dense+nn.relu");
  EXPECT_EQ(read.models[0].candidates[0].work.boundary_bytes, 3);
  EXPECT_EQ(read.models[0].candidates[0].rank.share, 0.5);
  EXPECT_EQ(read.models[0].conversions, pack.models[0].conversions);
}

TEST(MeasuringPackTest, ContendersAreReadBackToTheBit) {
  const TemporaryFolder folder;
  const MeasuringPack pack = Pack();
  WritePack(pack, folder / "pack");
  const MeasuringPack read = ReadPack(folder / "pack");
  ASSERT_EQ(read.play_offs.size(), 1U);
  const PackedPlayOff &before = pack.play_offs[0], &after = read.play_offs[0];
  EXPECT_EQ(after.model, "model.onnx");
  EXPECT_EQ(after.machine, "x86-64");
  EXPECT_EQ(after.versions, before.versions);
  EXPECT_EQ(StructuralHash(after.original.main()), StructuralHash(before.original.main()));
  ASSERT_EQ(after.contenders.size(), 1U);
  const ContenderModule& one = after.contenders[0];
  EXPECT_EQ(one.name, "collage");
  EXPECT_EQ(one.is_single, false);
  EXPECT_EQ(one.is_extra, true);
  EXPECT_EQ(one.is_costed, true);
  EXPECT_EQ(one.estimated_seconds, 0.125);
  // Results have keys with such digests: they must be those of the compilation that looks for them.
  EXPECT_EQ(StructuralHash(one.module.main()), StructuralHash(before.contenders[0].module.main()));
  EXPECT_EQ(one.module.main()->attrs().Double(kAttrEstimate), 0.1 + 0.2);
}

TEST(MeasuringPackTest, WeightsAreStoredOnce) {
  const TemporaryFolder folder;
  MeasuringPack pack = Pack();
  WritePack(pack, folder / "one");
  for (int i = 0; i < 10; ++i) {
    pack.compiled.push_back(pack.compiled[0]);
    pack.compiled_names.push_back("name " + std::to_string(i));
  }
  WritePack(pack, folder / "eleven");
  const auto more = std::filesystem::file_size(folder / "eleven") - std::filesystem::file_size(folder / "one");
  EXPECT_LT(more, 10 * Weights().size_bytes());
}

/// The category of the error of reading `content`; nothing if there is none.
std::optional<ErrorCategory> ErrorOf(const std::string& content, const std::filesystem::path& path) {
  WriteFile(path, content);
  try {
    ReadPack(path);
  } catch (const Error& error) {
    EXPECT_NE(error.where().find(path.filename().string()), std::string::npos) << error.message();
    return error.category();
  }
  return std::nullopt;
}

TEST(MeasuringPackTest, NoTruncationIsTakenForAPack) {
  const TemporaryFolder folder;
  WritePack(Pack(), folder / "pack");
  const std::string content = ReadFile(folder / "pack");
  for (size_t size = 0; size < content.size(); size += size < 200 ? 1 : 37) {
    EXPECT_EQ(ErrorOf(content.substr(0, size), folder / "cut"), ErrorCategory::kCorrupt) << size << " bytes";
  }
  EXPECT_EQ(ErrorOf(content + "x", folder / "cut"), ErrorCategory::kCorrupt);
}

TEST(MeasuringPackTest, NoChangedByteGoesUnnoticed) {
  const TemporaryFolder folder;
  WritePack(Pack(), folder / "pack");
  const std::string content = ReadFile(folder / "pack");
  for (size_t at = 0; at < content.size(); at += at < 64 ? 1 : 13) {
    std::string changed = content;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_EQ(ErrorOf(changed, folder / "changed"), ErrorCategory::kCorrupt) << "byte " << at;
  }
}

/// Writes `pack`, which its own code would not make, and expects that it is refused.
void ExpectRefused(const MeasuringPack& pack, const std::string& words) {
  const TemporaryFolder folder;
  WritePack(pack, folder / "pack");
  try {
    ReadPack(folder / "pack");
    FAIL() << "was read: " << words;
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
  }
}

TEST(MeasuringPackTest, NumbersMustFit) {
  MeasuringPack pack = Pack();
  pack.partitions[0].toolchain = 1;
  ExpectRefused(pack, "the number of a toolchain");
  pack = Pack();
  pack.partitions[0].codes[0].compiled = 1;
  ExpectRefused(pack, "code that is not there");
  pack = Pack();
  pack.partitions[0].codes.clear();
  ExpectRefused(pack, "has no code");
  pack = Pack();
  pack.models[0].candidates[0].partition = 1;
  ExpectRefused(pack, "a partition that is not there");
  pack = Pack();
  pack.partitions[0].request.layouts.inputs.clear();
  ExpectRefused(pack, "layouts of a partition do not fit");
  pack = Pack();
  pack.play_offs[0].contenders.clear();
  ExpectRefused(pack, "a play-off has no contenders");
  pack = Pack();
  pack.collage = "0.0.1";
  ExpectRefused(pack, "was made by Collage 0.0.1");
}

}  // namespace
}  // namespace collage
