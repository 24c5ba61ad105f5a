// executable_test.cc: the file format, and what is refused.
#include "collage/runtime/executable.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "support/file.h"
#include "support/machine.h"
#include "unit/runtime/executable_bytes.h"
#include "unit/runtime/test_plan.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using Json = nlohmann::json;

class ExecutableTest : public testing::Test {
 protected:
  ExecutableTest() { RegisterAddLoader(); }

  /// The file of a plan with something of everything.
  std::string ExampleBytes() {
    Executable::FromPlan(ExamplePlan()).Save(folder_ / "example.clg");
    return ReadFile(folder_ / "example.clg");
  }

  static ExecutionPlan ExamplePlan() {
    PlanWriter writer;
    const Shape shape{1, 3, 2, 2};
    const int x = writer.AddInput("x", shape);
    const int last = writer.AddArenaValue(shape, Layout::kChannelsLast);
    const int sum = writer.AddArenaValue(shape);
    writer.Move(ExecutionPlan::Step::kConvertLayout, x, last);
    writer.Add(x, sum, 1.5f, 64);
    const int flat = writer.AddAlias({12}, sum);
    writer.Add(flat, writer.AddOutput("y", {12}), 2.5f);
    const int constant = writer.AddConstant(Tensor::Zeros({3}, kFloat32));
    writer.Move(ExecutionPlan::Step::kCopy, constant, writer.AddOutput("z", {3}));
    writer.Move(ExecutionPlan::Step::kConvertLayout, x, writer.AddArenaValue(shape, Layout::kPlainBFloat16));
    writer.plan.num_threads = 2;
    writer.plan.kernels[0].work = ExecutionPlan::KernelWork{12, 6, 1.5, 4, {12}};
    writer.plan.metadata_json = R"({"model": "mödel"})";
    return writer.plan;
  }

  Executable LoadBytes(const std::string& bytes) {
    WriteFile(folder_ / "a.clg", bytes);
    return Executable::Load(folder_ / "a.clg");
  }

  void ExpectRefused(const std::string& bytes, ErrorCategory category, const std::string& part) {
    ExpectError([&] { LoadBytes(bytes); }, category, part);
  }

  TemporaryFolder folder_;
};

TEST_F(ExecutableTest, PlanComesBack) {
  const ExecutionPlan plan = ExamplePlan();
  Executable::FromPlan(plan).Save(folder_ / "a.clg");
  const ExecutionPlan read = Executable::Load(folder_ / "a.clg").plan();
  ASSERT_EQ(read.values.size(), plan.values.size());
  for (size_t i = 0; i < plan.values.size(); ++i) {
    EXPECT_EQ(read.values[i].shape, plan.values[i].shape);
    EXPECT_EQ(read.values[i].dtype, plan.values[i].dtype);
    EXPECT_EQ(read.values[i].layout, plan.values[i].layout);
    EXPECT_EQ(read.values[i].storage, plan.values[i].storage);
    EXPECT_EQ(read.values[i].offset_or_index, plan.values[i].offset_or_index);
    EXPECT_EQ(read.values[i].alias_of, plan.values[i].alias_of);
  }
  ASSERT_EQ(read.steps.size(), plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(read.steps[i].kind, plan.steps[i].kind);
    EXPECT_EQ(read.steps[i].kernel, plan.steps[i].kernel);
    EXPECT_EQ(read.steps[i].inputs, plan.steps[i].inputs);
    EXPECT_EQ(read.steps[i].outputs, plan.steps[i].outputs);
    EXPECT_EQ(read.steps[i].workspace_offset, plan.steps[i].workspace_offset);
  }
  ASSERT_EQ(read.kernels.size(), plan.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    EXPECT_EQ(read.kernels[i].loader, plan.kernels[i].loader);
    EXPECT_EQ(read.kernels[i].blob, plan.kernels[i].blob);
    EXPECT_EQ(read.kernels[i].constants, plan.kernels[i].constants);
    EXPECT_EQ(read.kernels[i].workspace_bytes, plan.kernels[i].workspace_bytes);
    EXPECT_EQ(read.kernels[i].toolchain, plan.kernels[i].toolchain);
    EXPECT_EQ(read.kernels[i].label, plan.kernels[i].label);
    EXPECT_EQ(read.kernels[i].nodes, plan.kernels[i].nodes);
    EXPECT_EQ(read.kernels[i].estimated_seconds, plan.kernels[i].estimated_seconds);
    EXPECT_EQ(read.kernels[i].work.has_value(), plan.kernels[i].work.has_value());
  }
  ASSERT_TRUE(read.kernels[0].work);
  EXPECT_EQ(read.kernels[0].work->products, 12);
  EXPECT_EQ(read.kernels[0].work->multiply_adds, 6);
  EXPECT_EQ(read.kernels[0].work->spared, 1.5);
  EXPECT_EQ(read.kernels[0].work->constant_bytes, 4);
  EXPECT_EQ(read.kernels[0].work->node_products, std::vector<double>{12});
  ASSERT_EQ(read.constants.size(), plan.constants.size());
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    EXPECT_TRUE(BitEqual(read.constants[i], plan.constants[i]));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.constants[i].raw()) % 64, 0u);
  }
  EXPECT_EQ(read.arena_bytes, plan.arena_bytes);
  EXPECT_EQ(read.num_threads, plan.num_threads);
  EXPECT_EQ(read.metadata_json, plan.metadata_json);
}

TEST_F(ExecutableTest, PortsAreDescribed) {
  const Executable executable = LoadBytes(ExampleBytes());
  ASSERT_EQ(executable.inputs().size(), 1u);
  EXPECT_EQ(executable.inputs()[0].name, "x");
  EXPECT_EQ(executable.inputs()[0].shape, (Shape{1, 3, 2, 2}));
  ASSERT_EQ(executable.outputs().size(), 2u);
  EXPECT_EQ(executable.outputs()[1].name, "z");
  EXPECT_EQ(executable.outputs()[1].dtype, kFloat32);
}

TEST_F(ExecutableTest, LoadedExecutableRunsAndOutlivesItsHandleAndFile) {
  std::optional<ExecutionInstance> instance(LoadBytes(ExampleBytes()));
  std::filesystem::remove(folder_ / "a.clg");
  const Tensor x = Tensor::Zeros({1, 3, 2, 2}, kFloat32);
  instance->SetInput(0, x);
  instance->Run();
  EXPECT_EQ(instance->Output(0).At(11), 4.0);
}

TEST_F(ExecutableTest, SavingALoadedExecutableGivesTheSameFile) {
  const std::string bytes = ExampleBytes();
  LoadBytes(bytes).Save(folder_ / "again.clg");
  EXPECT_EQ(ReadFile(folder_ / "again.clg"), bytes);
}

TEST_F(ExecutableTest, EqualConstantsAreStoredOnce) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {4});
  writer.Add(x, writer.AddOutput("y", {4}), 1.0f);
  const Tensor large = Tensor::Zeros({100'000}, kFloat32);
  for (int i = 0; i < 10; ++i) writer.AddConstant(large.Clone());
  Executable::FromPlan(writer.plan).Save(folder_ / "a.clg");
  EXPECT_LT(std::filesystem::file_size(folder_ / "a.clg"), 2 * large.size_bytes());
}

TEST_F(ExecutableTest, SavingWhereNothingCanBeWrittenFails) {
  ExpectError([&] { Executable::FromPlan(ExamplePlan()).Save(folder_ / "none/a.clg"); }, ErrorCategory::kResource,
              "cannot create");
}

TEST_F(ExecutableTest, OtherFilesAreRefused) {
  ExpectError([&] { Executable::Load(folder_ / "none.clg"); }, ErrorCategory::kInput, "none.clg: error: cannot open");
  ExpectRefused("", ErrorCategory::kCorrupt, "not a Collage executable: too short");
  ExpectRefused(std::string(1000, 'x'), ErrorCategory::kCorrupt, "not a Collage executable: wrong magic number");
  std::string bytes = ExampleBytes();
  bytes[kVersionAt] = 99;
  ExpectRefused(bytes, ErrorCategory::kCorrupt, "its header has a wrong checksum");
  ExpectRefused(WithHeaderSealed(bytes), ErrorCategory::kUnavailable,
                "the executable has format 99, this Collage reads 2");
}

TEST_F(ExecutableTest, TruncatedFilesAreCorrupt) {
  const std::string bytes = ExampleBytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ExpectRefused(bytes.substr(0, length), ErrorCategory::kCorrupt, "a.clg");
  }
  ExpectRefused(bytes + "x", ErrorCategory::kCorrupt, "its header does not fit the file");
}

/// Any changed byte is found, wherever it is.
TEST_F(ExecutableTest, ChangedBytesAreFound) {
  const std::string bytes = ExampleBytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    WriteFile(folder_ / "a.clg", changed);
    bool found = false;
    try {
      Executable::Verify(folder_ / "a.clg");
    } catch (const Error& error) {
      found = error.category() == ErrorCategory::kCorrupt;
      ASSERT_TRUE(found) << error.Format();
    }
    ASSERT_TRUE(found) << "byte " << at << " of " << bytes.size();
  }
}

TEST_F(ExecutableTest, VerifySaysWhatIsDamaged) {
  std::string bytes = ExampleBytes();
  const Json plan = PlanOf(bytes);
  std::string changed = bytes;
  changed[plan["constants"][1]["place"][0].get<size_t>()] ^= 1;
  WriteFile(folder_ / "a.clg", changed);
  ExpectError([&] { Executable::Verify(folder_ / "a.clg"); }, ErrorCategory::kCorrupt,
              "constant 1 has a wrong checksum");
  changed = bytes;
  changed[plan["blobs"][0][0].get<size_t>()] ^= 1;
  WriteFile(folder_ / "a.clg", changed);
  ExpectError([&] { Executable::Verify(folder_ / "a.clg"); }, ErrorCategory::kCorrupt,
              "machine code 0 has a wrong checksum");
}

TEST_F(ExecutableTest, DamagedMachineCodeIsFoundWhenLoading) {
  ExecutionPlan plan = ExamplePlan();
  for (auto& kernel : plan.kernels) kernel.loader = "object";
  Executable::FromPlan(plan).Save(folder_ / "a.clg");
  std::string bytes = ReadFile(folder_ / "a.clg");
  bytes[PlanOf(bytes)["blobs"][0][0].get<size_t>()] ^= 1;
  ExpectRefused(bytes, ErrorCategory::kCorrupt, "machine code 0 has a wrong checksum");
}

TEST_F(ExecutableTest, MissingProcessorFeaturesAreNamed) {
  const std::string bytes = ExampleBytes();
  Json plan = PlanOf(bytes);
  plan["features"].push_back("avx4096");
  ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kUnavailable, "the executable needs avx4096; this machine (");
  plan = PlanOf(bytes);
  plan["isa"] = "vax";
  ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kUnavailable, "the executable needs vax");
}

/// Plans with the right checksum that would make the executor touch memory that is not its own.
TEST_F(ExecutableTest, PlansThatReachOutsideAreCorrupt) {
  const std::string bytes = ExampleBytes();
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& part) {
    Json plan = PlanOf(bytes);
    change(plan);
    ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kCorrupt, part);
  };
  refused([](Json& p) { p["values"][1][4] = 1 << 20; }, "a value lies outside of the arena");
  refused([](Json& p) { p["values"][1][4] = INT64_MAX - 63; }, "a value lies outside of the arena");
  refused([](Json& p) { p["values"][1][4] = -64; }, "a value's place is out of range");
  refused([](Json& p) { p["values"][1][4] = 4; }, "a value lies outside of the arena");
  refused([](Json& p) { p["values"][1][0] = Shape{1, 1 << 20, 1 << 20, 1 << 20}; }, "a value's shape is out of range");
  refused([](Json& p) { p["values"][1][0] = Shape{1, -3, 2, 2}; }, "a dimension of a shape is out of range");
  refused([](Json& p) { p["values"][1][2] = 7; }, "a value's layout is out of range");
  refused([](Json& p) { p["values"][3][2] = 1; }, "a value's layout does not fit");
  refused([](Json& p) { p["values"][7][1] = "int32"; }, "a value's layout does not fit");
  refused([](Json& p) { p["values"][1][3] = 9; }, "a value's storage is out of range");
  refused([](Json& p) { p["values"][3][5] = 3; }, "an alias stands before");
  refused([](Json& p) { p["values"][3][0] = Shape{13}; }, "an alias is too large");
  refused([](Json& p) { p["values"][1][1] = "float7"; }, "the dtype of a value is unknown: 'float7'");
  refused([](Json& p) { p["values"][0][4] = 1; }, "an input's number");
  refused([](Json& p) { p["outputs"][0][1] = 1; }, "'y' is not where an input or output must be");
  refused([](Json& p) { p["outputs"][0][1] = 99; }, "is out of range");
  refused(
      [](Json& p) {
        p["values"][1][3] = 1;
        p["values"][1][4] = 0;
        p["values"][1][0] = Shape{9, 9, 9};
      },
      "'x' is smaller than what uses it");
  refused(
      [](Json& p) {
        p["kernels"][0]["blob"] = 2;
        p["kernels"][0]["constants"] = {5};
      },
      "is out of range");
  refused([](Json& p) { p["steps"][1][1] = -1; }, "a step's kernel is out of range");
  refused([](Json& p) { p["steps"][1][2] = {77}; }, "a step's input is out of range");
  refused([](Json& p) { p["steps"][1][4] = -1; }, "a workspace lies outside of the arena");
  refused([](Json& p) { p["steps"][0][0] = 5; }, "the kind of a step is out of range");
  refused([](Json& p) { p["steps"][0][2] = Json::array(); }, "a step is malformed");
  refused([](Json& p) { p["steps"][0][3] = {3}; }, "a copy changes the type");
  refused([](Json& p) { p["constants"][0]["place"][0] = UINT64_MAX - 63; }, "the place of a piece is out of range");
  refused([](Json& p) { p["constants"][0]["shape"] = {2}; }, "a constant's size");
  refused([](Json& p) { p["constants"][0]["shape"] = {-1, -1}; }, "a dimension of a shape is out of range");
  refused([](Json& p) { p["constants"][0]["dtype"] = "int7"; }, "the dtype of a constant is unknown");
  refused([](Json& p) { p.erase("inputs"); }, "inputs");
  refused([](Json& p) { p["values"] = "text"; }, "damaged");
  ExpectRefused(WithPlanText(bytes, "not json"), ErrorCategory::kCorrupt, "its plan cannot be read");
}

/// Numbers that do not fit their fields are not made fit.
TEST_F(ExecutableTest, PlansOfOtherTypesAreCorrupt) {
  const std::string bytes = ExampleBytes();
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& part) {
    Json plan = PlanOf(bytes);
    change(plan);
    ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kCorrupt, part);
  };
  refused([](Json& p) { p["values"][1][2] = 256; }, "a value's layout is out of range");
  refused([](Json& p) { p["values"][1][5] = (int64_t{1} << 32) - 1; }, "what a value is an alias of is out of range");
  refused([](Json& p) { p["values"][1][5] = -2; }, "what a value is an alias of is out of range");
  refused([](Json& p) { p["values"][1][4] = 0.0; }, "a value's place is out of range");
  refused([](Json& p) { p["steps"][1][1] = 1e300; }, "a step's kernel is out of range");
  refused([](Json& p) { p["steps"][1][2] = {{"a", 0}}; }, "a step's inputs are no list");
  refused([](Json& p) { p["kernels"][0]["workspace_bytes"] = -1; }, "the size of a workspace is out of range");
  refused([](Json& p) { p["arena_bytes"] = UINT64_MAX; }, "the arena's size is out of range");
  refused([](Json& p) { p["num_threads"] = 0; }, "the number of threads is out of range");
  refused([](Json& p) { p["num_threads"] = 1 << 20; }, "the number of threads is out of range");
  refused([](Json& p) { p["metadata"] = "text"; }, "the metadata are no JSON");
  refused([](Json& p) { p["metadata"] = std::string(100'000, '['); }, "the metadata are no JSON, or nest too deep");
  refused([](Json& p) { p["blobs"][0][2] = "text"; }, "a checksum is none");
}

/// Steps rely on it that their memory is their own.
TEST_F(ExecutableTest, PlansWhoseMemoryOverlapsAreCorrupt) {
  const std::string bytes = ExampleBytes();
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& part) {
    Json plan = PlanOf(bytes);
    change(plan);
    ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kCorrupt, part);
  };
  refused([](Json& p) { p["steps"][0][3] = p["steps"][0][2]; }, "a step writes an input or a constant");
  refused([](Json& p) { p["steps"][3][3] = p["steps"][3][2]; }, "a step writes an input or a constant");
  refused([](Json& p) { p["steps"][1][4] = p["values"][2][4]; }, "a step writes memory twice");
  refused([](Json& p) { p["steps"][1][2] = p["steps"][1][3]; }, "a step writes what it reads");
  refused([](Json& p) { p["steps"][0][4] = 0; }, "a workspace lies outside of the arena");
  refused([](Json& p) { p["arena_bytes"] = p["arena_bytes"].get<int64_t>() + 64; }, "the arena is larger than");
  refused(
      [](Json& p) {
        p["values"][3][5] = p["values"].size();
        p["values"].push_back(p["values"][2]);
      },
      "an alias stands before");
  refused([](Json& p) { p["steps"].erase(1); }, "no step runs one of the kernels");
  refused(
      [](Json& p) {
        p["constants"][0]["place"][0] = p["constants"][1]["place"][0];
        p["constants"][0]["place"][1] = 8;
        p["constants"][0]["shape"] = {2};
      },
      "pieces overlap");
  refused(
      [](Json& p) {
        p["constants"][1]["place"] = p["constants"][0]["place"];
        p["constants"][1]["place"][2] = 2;
      },
      "a piece has two checksums");
}

/// Code cannot be asked how far it reads and writes, so what it was compiled for is beside it.
TEST_F(ExecutableTest, PlansThatAreNotTheCodesAreCorrupt) {
  const std::string bytes = ExampleBytes();
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json plan = PlanOf(bytes);
    change(plan);
    ExpectRefused(WithPlan(bytes, plan), ErrorCategory::kCorrupt,
                  "('add') was compiled for other shapes, constants or workspace than the plan gives");
  };
  refused([](Json& p) { p["values"][3][0] = Shape{11}; });
  refused([](Json& p) { p["values"][2][1] = "int32"; });
  refused([](Json& p) { p["values"][2][2] = 1; });
  refused([](Json& p) { p["steps"][1][2] = Json::array(); });
  refused([](Json& p) { p["steps"][1][2] = {0, 0}; });
  refused([](Json& p) { p["kernels"][0]["workspace_bytes"] = 1; });
  refused([](Json& p) { p["kernels"][0]["constants"] = Json::array(); });
  refused([](Json& p) { p["kernels"][0]["constants"] = {1}; });
  refused([](Json& p) { p["kernels"][0]["loader"] = "object"; });
  refused([](Json& p) { p["num_threads"] = 3; });
  refused([](Json& p) { p["constants"][0]["dtype"] = "int32"; });
  refused([](Json& p) { p["constants"][0]["place"][2] = 1; });
}

/// A kernel that is handed damaged weights would compute with them, so they are looked at before.
TEST_F(ExecutableTest, DamagedConstantsAreFoundWhenAnInstanceIsMade) {
  const std::string bytes = ExampleBytes();
  const Json plan = PlanOf(bytes);
  for (size_t i = 0; i < plan["constants"].size(); ++i) {
    const auto offset = plan["constants"][i]["place"][0].get<size_t>();
    const auto size = plan["constants"][i]["place"][1].get<size_t>();
    for (const size_t at : {offset, offset + size - 1, offset + size}) {  // the last is what fills up the piece
      std::string changed = bytes;
      changed[at] ^= 0x10;
      const Executable executable = LoadBytes(changed);
      const std::string what = "a.clg: error: the executable is damaged: constant " + std::to_string(i);
      ExpectError([&] { ExecutionInstance instance(executable); }, ErrorCategory::kCorrupt, what);
      ExpectError([&] { executable.Save(folder_ / "again.clg"); }, ErrorCategory::kCorrupt, what);
      ExpectError([&] { Executable::Verify(folder_ / "a.clg"); }, ErrorCategory::kCorrupt, what);
    }
  }
}

TEST_F(ExecutableTest, RandomlyChangedPlansGiveErrorsOrLoad) {
  const std::string bytes = ExampleBytes();
  const PlanPlace place = FindPlan(bytes);
  const std::string text = bytes.substr(place.offset, place.size);
  const std::string alphabet = "0123456789-,[]{}\":e.tfn";
  std::mt19937 random(17);
  int refused = 0;
  constexpr int kRounds = 1000;
  for (int i = 0; i < kRounds; ++i) {
    std::string changed = text;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      changed[random() % changed.size()] = alphabet[random() % alphabet.size()];
    }
    try {
      LoadBytes(WithPlanText(bytes, changed));
    } catch (const Error& error) {
      ++refused;
      ASSERT_TRUE(error.category() == ErrorCategory::kCorrupt || error.category() == ErrorCategory::kUnavailable)
          << error.Format();
    }
  }
  EXPECT_GT(refused, kRounds / 4);
}

TEST_F(ExecutableTest, OurOwnWrongPlanIsAnInternalError) {
  ExecutionPlan plan = ExamplePlan();
  plan.steps[1].kernel = 9;
  ExpectError([&] { Executable::FromPlan(plan); }, ErrorCategory::kInternal, "a step's kernel is out of range");
}

}  // namespace
}  // namespace collage
