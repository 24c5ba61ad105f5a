// Explanations come back as they were kept, and no other text is taken for one.
#include "explain/explanation_file.h"

#include <gtest/gtest.h>

#include "collage/support/error.h"
#include "explain/deflate.h"
#include "runtime/plan/executable_format.h"
#include "support/file.h"
#include "unit/explain/small_explanation.h"

namespace collage {
namespace {

using testing_explanations::Small;

/// An executable that copies its input to its output.
ExecutionPlan SmallPlan() {
  ExecutionPlan plan;
  plan.values.resize(2);
  for (ExecutionPlan::Value& value : plan.values) {
    value.shape = {4};
    value.dtype = kFloat32;
  }
  plan.values[0].storage = ExecutionPlan::Value::Storage::kInput;
  plan.values[1].storage = ExecutionPlan::Value::Storage::kOutput;
  plan.steps = {{.kind = ExecutionPlan::Step::kCopy, .inputs = {0}, .outputs = {1}}};
  plan.inputs = {{"x", 0}};
  plan.outputs = {{"y", 1}};
  return plan;
}

class ExplanationFileTest : public testing::Test {
 protected:
  /// The error of reading `text` as a file.
  Error ErrorOf(const std::string& text) {
    WriteFile(folder_ / "e.json", text);
    try {
      ReadExplanation(folder_ / "e.json");
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it was read";
    return {ErrorCategory::kInternal, ""};
  }

  TemporaryFolder folder_;
};

TEST_F(ExplanationFileTest, AllFieldsComeBack) {
  const nlohmann::json before = ToJson(Small());
  WriteFile(folder_ / "e.json", before.dump());
  EXPECT_EQ(ToJson(ReadExplanation(folder_ / "e.json")), before);
}

TEST_F(ExplanationFileTest, IsInsideOfAnExecutableThatRunsAndIsSavedWithIt) {
  const std::filesystem::path file = folder_ / "m.clg";
  Executable::FromPlan(SmallPlan()).Save(file);
  EXPECT_EQ(FindExplanationText(file), std::nullopt);
  EXPECT_EQ(ExplanationTextOf(Executable::Load(file)), std::nullopt);
  const ExplainedMemory memory = MemoryOf(file);
  EXPECT_EQ(memory.file_bytes, static_cast<int64_t>(std::filesystem::file_size(file)));
  const std::string text = ToJsonText(Small());
  PutInside(file, text);
  EXPECT_EQ(FindExplanationText(file), text);
  EXPECT_EQ(ToJson(ReadExplanation(file)), ToJson(Small()));
  Executable::Verify(file);
  const Executable loaded = Executable::Load(file);
  EXPECT_EQ(ExplanationTextOf(loaded), text);
  ExecutionInstance instance(loaded);
  const Tensor x = Tensor::Zeros({4}, kFloat32);
  instance.SetInput(0, x);
  instance.Run();
  loaded.Save(folder_ / "again.clg");
  EXPECT_EQ(FindExplanationText(folder_ / "again.clg"), text);
}

TEST_F(ExplanationFileTest, ADamagedOneIsFoundAndDoesNotKeepTheExecutableFromRunning) {
  const std::filesystem::path file = folder_ / "m.clg";
  Executable::FromPlan(SmallPlan()).Save(file);
  PutInside(file, ToJsonText(Small()));
  std::string bytes = ReadFile(file);
  const std::vector<std::byte> deflated = Deflate(ToJsonText(Small()));
  const size_t place = bytes.find(std::string(reinterpret_cast<const char*>(deflated.data()), deflated.size()));
  ASSERT_NE(place, std::string::npos);
  bytes[place + deflated.size() / 2] ^= 1;
  WriteFile(file, bytes);
  const Executable loaded = Executable::Load(file);
  ExecutionInstance instance(loaded);
  EXPECT_THROW(Executable::Verify(file), Error);
  EXPECT_THROW(FindExplanationText(file), Error);
  EXPECT_THROW(ExplanationTextOf(loaded), Error);
  EXPECT_THROW(loaded.Save(folder_ / "again.clg"), Error) << "a damaged one must not get a checksum that fits";
}

TEST_F(ExplanationFileTest, OtherTextsAreRefused) {
  nlohmann::json json = ToJson(Small());
  json["schema"] = 2;
  const Error newer = ErrorOf(json.dump());
  EXPECT_EQ(newer.category(), ErrorCategory::kUnavailable);
  EXPECT_EQ(newer.message(), "the explanation has schema 2, this Collage reads 1");
  EXPECT_EQ(ErrorOf("{}").message(), "\"format\" is not \"collage-explanation\"");
  EXPECT_EQ(ErrorOf("{\"format\"").message(), "\"format\" is not \"collage-explanation\"");
  EXPECT_EQ(ErrorOf("x").category(), ErrorCategory::kCorrupt) << "no executable either";
}

TEST_F(ExplanationFileTest, NumbersThatReferToNothingAreRefused) {
  const auto refused = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = ToJson(Small());
    json[nlohmann::json::json_pointer(pointer)] = value;
    const Error error = ErrorOf(json.dump());
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << pointer;
    return error.message();
  };
  EXPECT_EQ(refused("/graphs/0/partitions/0/candidate", 5), "the explanation is damaged: there is no candidate 5");
  EXPECT_EQ(refused("/graphs/0/candidates/0/nodes/0", -1), "the explanation is damaged: there is no node -1");
  refused("/graphs/0/candidates/0/cost", 99);
  refused("/graphs/0/candidates/0/toolchain", 3);
  refused("/graphs/0/partitions/0/alternatives/0/replaces/0", 2);
  refused("/graphs/0/partitions/0/nodes/0", 77);
  refused("/graphs/0/refusals/0/toolchain", 9);
  refused("/graphs/0/nodes/1/inputs/0", 5);
  refused("/graphs/0/costs/0/state", "guessed");
  refused("/machine", "fast");
}

TEST(DeflateTest, TextsComeBackAndOtherBytesDoNot) {
  const std::string text(10000, 'a');
  std::vector<std::byte> small = Deflate(text);
  EXPECT_LT(small.size(), 200U);
  EXPECT_EQ(Inflate(small, 10000), text);
  EXPECT_EQ(Inflate(small, 9999), std::nullopt) << "too long";
  EXPECT_EQ(Inflate(std::span(small).first(7), 10000), std::nullopt);
  EXPECT_EQ(Inflate(std::span(small).first(12), 10000), std::nullopt);
  EXPECT_EQ(Inflate(Deflate(""), 0), "");
}

}  // namespace
}  // namespace collage
