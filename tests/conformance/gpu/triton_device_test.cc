// Kernels compiled by Triton for GPUs that are not here: all that rows of the pattern table need, without spilling
// registers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda_driver/gpus.h"
#include "backends/triton/compile.h"
#include "backends/triton/describe.h"
#include "collage/ir/infer_type.h"
#include "collage/target/compiles_elsewhere.h"
#include "conformance/conformance.h"
#include "conformance/gpu/gpu_test.h"
#include "conformance/gpu/triton_cases.h"

namespace collage {
namespace {

using testing::HasSubstr;
using triton::Description;

class TritonDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    AddBuiltins();
    const Availability availability = triton::FindCompiler(compiler_);
    if (!availability.available) GTEST_SKIP() << availability.reason;
  }

  void ExpectCompiles(const Description& description, const triton::Schedule& schedule,
                      const std::string& architecture) const {
    const triton::Compiled compiled = triton::Compile(compiler_, description.instance, schedule, architecture);
    SCOPED_TRACE(fmt::format("{} for {}\n{}", schedule.text(), architecture,
                             triton::GeneratedText(description.instance, schedule)));
    EXPECT_GT(compiled.images.at(0).bytes.size(), 1000u);
    EXPECT_EQ(compiled.images.at(0).kind, architecture);
    EXPECT_THAT(compiled.notes, HasSubstr("0 bytes spill stores, 0 bytes spill loads"));
    EXPECT_EQ(compiled.warps, schedule.warps);
    EXPECT_EQ(compiled.num_parameters, static_cast<int64_t>(description.instance.parameters.size()) + 1 + 2)
        << "what it reads, its result, and scratch memory";
    EXPECT_LE(compiled.shared_bytes, cuda_driver::GpuLike(architecture).shared_bytes);
  }

  triton::Compiler compiler_;
};

Description DescriptionOf(const Function& function, triton::Precision precision = {}) {
  const Result<Description> described =
      triton::Describe(function, PlainLayouts(function->params().size(), 1), precision);
  EXPECT_TRUE(described.ok()) << described.reason().text;
  return *described;
}

PatternCase CaseOf(DataType dtype, const std::string& pattern) {
  for (PatternCase& one : TritonCases(dtype)) {
    if (one.pattern == pattern) return one;
  }
  ADD_FAILURE() << "there is no case of " << pattern;
  return {};
}

TEST_F(TritonDeviceTest, OneOfEachProgramCompilesWithoutSpills) {
  for (const char* pattern : {"dense_bias_gelu", "attention", "layer_norm", "chain"}) {
    const Description description = DescriptionOf(CaseOf(kFloat16, pattern).function());
    ExpectCompiles(description, triton::RankSchedules(description, "sm_90").front(), "sm_90");
  }
}

TEST_F(TritonDeviceTest, PartitionsCompileForAGpuThatIsNotHere) {
  const auto for_other = Configured(*ToolchainRegistry::Global().Find("triton"), {{"arch", "sm_80"}});
  const Availability compiler = ProbeCompilerOf(*for_other);
  EXPECT_TRUE(compiler.available) << compiler.reason;
  EXPECT_THAT(compiler.version, testing::MatchesRegex("Triton [0-9.]+"));
  const Function function = CaseOf(kFloat16, "dense_bias_gelu").function();
  const auto compiled = for_other->RelayToRuntime({function, In(Memory::kCuda, PlainLayouts(1, 1)), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const triton::TritonKernel kernel = triton::TritonKernelFrom(compiled->blob, compiled->constants);
  EXPECT_EQ(kernel.architecture, "sm_80");
  EXPECT_EQ(kernel.made_by, compiler.version);
  ASSERT_EQ(kernel.images.size(), 2u) << "machine code, and PTX for later GPUs";
  EXPECT_EQ(kernel.images[1].kind, "ptx");
  const std::vector<Listing> listings = for_other->Listings({}, *compiled);
  ASSERT_EQ(listings.size(), 1u);
  EXPECT_EQ(listings[0].extension, "py");
  EXPECT_THAT(listings[0].text, HasSubstr("bytes spill stores"));
}

TEST_F(TritonDeviceTest, CodeForOneArchitectureHasNoPtx) {
  const Description description = DescriptionOf(CaseOf(kFloat32, "softmax").function());
  const triton::Schedule schedule = triton::RankSchedules(description, "sm_90").front();
  EXPECT_EQ(triton::Compile(compiler_, description.instance, schedule, "sm_90").images.size(), 1u);
}

TEST_F(TritonDeviceTest, ErrorsOfTritonAreTold) {
  Description description = DescriptionOf(CaseOf(kFloat32, "softmax").function());
  description.instance.behind =
      "@triton.jit\ndef behind(row, column, row_there, column_there, others):\n    return absent\n";
  const triton::Schedule schedule = triton::RankSchedules(description, "sm_90").front();
  try {
    triton::Compile(compiler_, description.instance, schedule, "sm_90");
    ADD_FAILURE() << "it was compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_THAT(error.message(), HasSubstr("Triton makes no kernel for sm_90: "));
    EXPECT_THAT(error.message(), HasSubstr("absent"));
  }
}

TEST_F(TritonDeviceTest, AMissingTritonIsNamed) {
  setenv("COLLAGE_PYTHON", "/usr/bin/env", 1);
  triton::Compiler compiler;
  const Availability availability = triton::FindCompiler(compiler);
  unsetenv("COLLAGE_PYTHON");
  EXPECT_FALSE(availability.available);
  EXPECT_THAT(availability.reason, HasSubstr("'/usr/bin/env' has no module 'triton'"));
  EXPECT_THAT(availability.hint, HasSubstr("./setup gpu"));
}

/// Sizes of models, for which tiles are as large as they get.
class TritonDeviceAllTest : public TritonDeviceTest, public testing::WithParamInterface<const char*> {};

Function LargeProduct(DataType dtype) {
  const Var a = conformance::Input("a", {512, 1000}, dtype), b = conformance::Input("b", {1000, 768}, dtype);
  const Expr product = MakeCall("nn.matmul", {a, b}, {{"out_dtype", dtype == kInt8 ? kInt32 : dtype}});
  const Function function = MakeFunction({a, b}, MakeCall("nn.relu", {product}));
  InferType(function);
  return function;
}

Function LargeAttention(DataType dtype, int64_t depth) {
  const auto input = [&](const char* name) { return conformance::Input(name, {24, 512, depth}, dtype); };
  const Var q = input("q"), k = input("k"), v = input("v"), mask = conformance::Input("mask", {1, 1, 512}, dtype);
  const Expr scores =
      MakeCall("multiply", {MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}}), MakeScalar(0.125, dtype)});
  const Expr weights = MakeCall("nn.softmax", {MakeCall("add", {scores, mask})});
  const Function function =
      MakeFunction({q, k, v, mask}, MakeCall("nn.batch_matmul", {weights, v}, {{"transpose_b", false}}));
  InferType(function);
  return function;
}

TEST_P(TritonDeviceAllTest, AllTilesCompileWithoutSpills) {
  if (std::getenv("COLLAGE_TEST_PLANS") == nullptr) GTEST_SKIP() << "takes minutes: set COLLAGE_TEST_PLANS";
  size_t count = 0;
  const auto expect_all = [&](const Function& function, triton::Precision precision) {
    const Description description = DescriptionOf(function, precision);
    for (const triton::Schedule& schedule : triton::RankSchedules(description, GetParam())) {
      ExpectCompiles(description, schedule, GetParam());
      ++count;
    }
  };
  for (const DataType dtype : {kFloat32, kFloat16, kBFloat16}) {
    for (const bool allows_tf32 : {false, true}) {
      if (allows_tf32 && dtype != kFloat32) continue;
      expect_all(LargeProduct(dtype), {.allows_tf32 = allows_tf32});
      for (const int64_t depth : {64, 128}) expect_all(LargeAttention(dtype, depth), {.allows_tf32 = allows_tf32});
    }
  }
  expect_all(LargeProduct(kInt8), {});
  for (const int64_t columns : {64, 768, 4096, 16384}) {
    const Var x = conformance::Input("x", {512, columns}, kFloat16);
    const Function function = MakeFunction({x}, MakeCall("nn.softmax", {x}));
    InferType(function);
    expect_all(function, {});
  }
  EXPECT_GT(count, 40u);
}

TEST_P(TritonDeviceAllTest, AllRowsCompileWithoutSpills) {
  if (std::getenv("COLLAGE_TEST_PLANS") == nullptr) GTEST_SKIP() << "takes minutes: set COLLAGE_TEST_PLANS";
  for (const DataType dtype : {kFloat32, kFloat16, kBFloat16, kInt8}) {
    for (const PatternCase& one : TritonCasesInShort(dtype)) {
      SCOPED_TRACE(one.pattern);
      const Description description = DescriptionOf(one.function());
      ExpectCompiles(description, triton::RankSchedules(description, GetParam()).front(), GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, TritonDeviceAllTest, testing::Values("sm_80", "sm_90", "sm_100"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace collage
