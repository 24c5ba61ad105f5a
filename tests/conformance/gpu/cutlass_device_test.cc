// Instances compiled by nvcc for GPUs that are not here: all that rows of the pattern table need, without spilling
// registers. The operations behind a sum and the numbers of a launch are code for the host, too, which is run here.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cutlass/compile.h"
#include "backends/cutlass/describe.h"
#include "collage/target/compiles_elsewhere.h"
#include "conformance/gpu/cutlass_cases.h"
#include "driver/builtins.h"
#include "support/file.h"
#include "support/programs/run_tool.h"

namespace collage {
namespace {

using cutlass::Combination;
using cutlass::Element;
using cutlass::Instance;
using testing::HasSubstr;

class CutlassDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    AddBuiltins();
    const Availability availability = cutlass::FindCompiler(compiler_);
    if (!availability.available) GTEST_SKIP() << availability.reason;
  }

  void ExpectCompiles(const Instance& instance, const std::string& architecture) const {
    SCOPED_TRACE(ToJsonText(instance) + " for " + architecture);
    const cutlass::Compiled compiled = cutlass::Compile(compiler_, instance, architecture);
    EXPECT_GT(compiled.code.size(), 1000u);
    EXPECT_THAT(compiled.notes, HasSubstr("'collage_run' for '" + architecture + "'"));
    EXPECT_THAT(compiled.notes, HasSubstr("0 bytes spill stores, 0 bytes spill loads"));
    EXPECT_THAT(compiled.notes, testing::Not(testing::ContainsRegex("[1-9][0-9]* bytes spill")));
  }

  cutlass::Compiler compiler_;
};

/// A case as an instance, but for its tile, and the schedules that it may have.
struct Candidate {
  Instance instance;
  cutlass::ProductSizes sizes;
  cutlass::CutlassKernel kernel;
  std::vector<cutlass::Schedule> schedules;
};

Candidate CandidateFor(const PatternCase& one, cutlass::Precision precision = {}) {
  const Function function = one.function();
  const auto described = cutlass::Describe(function, cutlass::NaturalLayouts(function), precision);
  EXPECT_TRUE(described.ok()) << one.pattern << ": " << described.reason().text;
  return {described->instance, described->sizes, described->kernel,
          cutlass::RankSchedules(described->instance.element, described->multipliers, described->sizes, "sm_80")};
}

PatternCase CaseOf(DataType dtype, const std::string& pattern) {
  for (PatternCase& one : CutlassCases(dtype)) {
    if (one.pattern == pattern) return one;
  }
  ADD_FAILURE() << "there is no case of " << pattern;
  return {};
}

TEST_F(CutlassDeviceTest, OneOfEachFamilyCompilesWithoutSpills) {
  for (const char* pattern : {"conv2d_bias_hardswish_residual_add_relu", "dense_bias_gelu"}) {
    Candidate candidate = CandidateFor(CaseOf(kFloat16, pattern));
    cutlass::Apply(candidate.schedules.front(), candidate.instance);
    ExpectCompiles(candidate.instance, "sm_80");
  }
}

TEST_F(CutlassDeviceTest, PartitionsCompileForAGpuThatIsNotHere) {
  const Toolchain& toolchain = *ToolchainRegistry::Global().Find("cutlass");
  Attrs options;
  for (const AttrField& option : toolchain.Options()) options.Set(option.name, option.default_value);
  options.Set("arch", "sm_80");
  const std::unique_ptr<const Toolchain> for_other = toolchain.WithOptions(options);
  const Availability compiler = ProbeCompilerOf(*for_other);
  EXPECT_TRUE(compiler.available) << compiler.reason;
  EXPECT_THAT(compiler.version, testing::MatchesRegex("CUTLASS [0-9.]+, CUDA [0-9.]+"));
  const Function function = CaseOf(kFloat16, "dense_bias_gelu").function();
  const auto compiled = for_other->RelayToRuntime({function, In(Memory::kCuda, PlainLayouts(1, 1)), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const cutlass::CutlassKernel kernel = cutlass::CutlassKernelFrom(compiled->blob, compiled->constants);
  EXPECT_EQ(kernel.architecture, "sm_80");
  EXPECT_EQ(kernel.made_by, compiler.version);
  EXPECT_GT(kernel.images.at(0).bytes.size(), 1000u);
  const std::vector<Listing> listings = for_other->Listings({}, *compiled);
  ASSERT_EQ(listings.size(), 1u);
  EXPECT_EQ(listings[0].extension, "cu");
  EXPECT_THAT(listings[0].text, HasSubstr("bytes spill stores"));
}

/// The code behind a sum is one text for all types and tiles: all of it is compiled with one tile and in one type, and
/// all tiles in all types, with whatever alignments cases have, with one of these.
class CutlassDeviceAllTest : public CutlassDeviceTest, public testing::WithParamInterface<const char*> {};

TEST_P(CutlassDeviceAllTest, AllTilesCompileWithoutSpills) {
  if (std::getenv("COLLAGE_TEST_PLANS") == nullptr) GTEST_SKIP() << "takes minutes: set COLLAGE_TEST_PLANS";
  std::set<Instance> seen;
  for (const DataType dtype : {kFloat16, kFloat32, kBFloat16, kInt8}) {
    for (const char* pattern : {"conv2d", "dense", "dense_bias", "matmul", "batch_matmul"}) {
      for (const PatternCase& one : CutlassCases(dtype)) {
        if (one.pattern != pattern) continue;
        for (const bool allows_tf32 : {false, true}) {
          Candidate candidate = CandidateFor(one, {.allows_tf32 = allows_tf32});
          for (const cutlass::Schedule& schedule : candidate.schedules) {
            Instance instance = candidate.instance;
            cutlass::Apply(schedule, instance);
            // Each tile with the first alignments that come, each alignment with the first tile.
            const bool is_first = schedule.text() == candidate.schedules.front().text();
            Instance tiled = instance;
            tiled.alignment_a = tiled.alignment_b = tiled.alignment_result = 0;
            tiled.transposes_a = tiled.transposes_b = false;
            if (seen.insert(is_first ? instance : tiled).second) ExpectCompiles(instance, GetParam());
          }
        }
      }
    }
  }
  EXPECT_GT(seen.size(), 40u);
}

TEST_P(CutlassDeviceAllTest, AllRowsCompileWithoutSpills) {
  if (std::getenv("COLLAGE_TEST_PLANS") == nullptr) GTEST_SKIP() << "takes minutes: set COLLAGE_TEST_PLANS";
  using Behind = std::tuple<cutlass::Operation, cutlass::Function, Combination, cutlass::Function>;
  std::set<Behind> seen;
  for (const PatternCase& one : CutlassCases(kFloat16)) {
    Candidate candidate = CandidateFor(one);
    Instance& instance = candidate.instance;
    if (!seen.emplace(instance.operation, instance.function, instance.combination, instance.end).second) continue;
    cutlass::Apply(candidate.schedules.front(), instance);
    ExpectCompiles(instance, GetParam());
  }
  EXPECT_GT(seen.size(), 40u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CutlassDeviceAllTest, testing::Values("sm_80", "sm_90a"),
                         [](const auto& one) { return std::string(one.param); });

/// The output of a program of an instance's text for the host prints: lines of a name and numbers.
constexpr const char* kProgram = R"(
#include <cstdio>
template <int kFunction>
void ShowFunction() {
  for (int i = -40; i <= 40; ++i) {
    float const y = collage::Apply<collage::Function(kFunction), float>(float(i) / 8, -1.5F, 2.5F);
    std::printf("function %d %d %.9g\n", kFunction, i, double(y));
  }
  if constexpr (kFunction > 0) ShowFunction<kFunction - 1>();
}
int main() {
  ShowFunction<8>();
  collage::Arguments arguments{};
  arguments.problem = collage::Problem{PROBLEM};
  Instance::Params const params = Instance::Parameters(arguments);
  dim3 const grid = Instance::Grid(params);
  std::printf("launch %u %u %u %d %d %d\n", grid.x, grid.y, grid.z, Instance::Kernel::kThreadCount,
              int(sizeof(Instance::Kernel::SharedStorage)), int(sizeof(Instance::Params)));
  Types::Behind const behind({-1.5F, 2.5F});
  Types::Behind::FragmentAccumulator sums;
  Types::Behind::FragmentCompute bias;
  Types::Behind::FragmentC other;
  Types::Behind::FragmentZ result;
  for (int i = 0; i < Types::Behind::kCount; ++i) {
    sums[i] = 2 * i - 4;
    bias[i] = 3 - i;
    other[i] = Types::Behind::ElementC(i - 2);
  }
  if (behind.is_source_needed()) {
    behind(result, result, sums, other, bias);
  } else {
    behind(result, result, sums, bias);
  }
  for (int i = 0; i < Types::Behind::kCount; ++i) {
    Types::Behind::ElementZ const element = result[i];
    std::printf("behind %d %.9g\n", i, double(element));
  }
}
)";

double Exactly(cutlass::Function function, double x) {
  using F = cutlass::Function;
  switch (function) {
    case F::kNone: return x;
    case F::kRelu: return std::max(x, 0.0);
    case F::kClip: return std::min(std::max(x, -1.5), 2.5);
    case F::kSigmoid: return 1 / (1 + std::exp(-x));
    case F::kTanh: return std::tanh(x);
    case F::kSwish: return x / (1 + std::exp(-x));
    case F::kGelu: return x * (1 + std::erf(x / std::sqrt(2))) / 2;
    case F::kGeluTanh: return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    case F::kHardSwish: return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
  }
  return NAN;
}

/// Sizes as the fields of cutlass_interface::Problem, in their order.
std::string FieldsOf(const cutlass_interface::Problem& p) {
  return fmt::format("{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}",
                     p.batch, p.m, p.n, p.k, p.lda, p.ldb, p.stride_a, p.stride_b, p.images, p.height, p.width,
                     p.channels, p.filters, p.kernel_height, p.kernel_width, p.result_height, p.result_width,
                     p.before_height, p.before_width, p.stride_height, p.stride_width, p.dilation_height,
                     p.dilation_width);
}

/// Compares what a program for `candidate` says with what is expected.
class Comparison {
 public:
  explicit Comparison(const Candidate& candidate) : candidate_(candidate) {}

  void Take(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "function") return TakeFunction(words);
    if (name == "launch") return TakeLaunch(words);
    ASSERT_EQ(name, "behind") << line;
    TakeBehind(words);
  }

  int num_functions = 0, num_launches = 0, num_behind = 0;

 private:
  void TakeFunction(std::istringstream& words) {
    int function = 0, i = 0;
    double y = 0;
    words >> function >> i >> y;
    EXPECT_NEAR(y, Exactly(static_cast<cutlass::Function>(function), i / 8.0), 2e-6) << function << " of " << i / 8.0;
    ++num_functions;
  }

  void TakeLaunch(std::istringstream& words) {
    int64_t x = 0, y = 0, z = 0, threads = 0, shared = 0, parameters = 0;
    words >> x >> y >> z >> threads >> shared >> parameters;
    const cutlass::Tile& tile = candidate_.instance.tile;
    const cutlass::ProductSizes& sizes = candidate_.sizes;
    const int64_t tiles = ((sizes.m + tile.m - 1) / tile.m) * ((sizes.n + tile.n - 1) / tile.n);
    EXPECT_EQ(z, sizes.batch);
    EXPECT_GE(x * y, tiles);
    EXPECT_EQ(threads, tile.threads());
    EXPECT_GE(shared, cutlass::SharedBytes(tile, candidate_.instance.element));
    EXPECT_LE(shared, int64_t{163} << 10);
    EXPECT_LE(parameters, cutlass_interface::Prepared::kMostParameterBytes);
    ++num_launches;
  }

  void TakeBehind(std::istringstream& words) {
    int i = 0;
    double y = 0;
    words >> i >> y;
    const Instance& instance = candidate_.instance;
    double expected = Exactly(instance.function, 2 * i - 4 + 3 - i);
    if (instance.combination == Combination::kAdd) expected += i - 2;
    if (instance.combination == Combination::kMultiply) expected *= i - 2;
    expected = Exactly(instance.end, expected);
    const double rounding = instance.element == Element::kFloat16 ? 1e-3 : 1e-6;
    EXPECT_NEAR(y, expected, rounding * (1 + std::abs(expected))) << "element " << i;
    ++num_behind;
  }

  const Candidate& candidate_;
};

TEST_F(CutlassDeviceTest, WhatFollowsASumAgreesOnTheHost) {
  const std::vector<std::pair<DataType, const char*>> cases{{kFloat16, "batch_matmul_bias_gelu"},
                                                            {kFloat32, "conv2d_bias_hardswish_residual_add_relu"},
                                                            {kInt8, "dense_bias_relu"}};
  for (const auto& [dtype, pattern] : cases) {
    SCOPED_TRACE(pattern);
    Candidate candidate = CandidateFor(CaseOf(dtype, pattern));
    cutlass::Apply(candidate.schedules.front(), candidate.instance);
    std::string program = kProgram;
    const std::string hole = "PROBLEM";
    program.replace(program.find(hole), hole.size(), FieldsOf(candidate.kernel.problem));
    const TemporaryFolder folder;
    const std::string file = (folder / "check.cu").string(), binary = (folder / "check").string();
    WriteFile(file, cutlass::DeviceText(candidate.instance) + program);
    const ToolResult compiled =
        RunTool({compiler_.nvcc.string(), "-std=c++17", "-arch=sm_80", "-DNDEBUG", "-w", "--expt-relaxed-constexpr",
                 "-I" + compiler_.headers.string(), "-o", binary, file});
    ASSERT_EQ(compiled.status, 0) << compiled.output.substr(0, 2000);
    const ToolResult told = RunTool({binary});
    ASSERT_EQ(told.status, 0) << told.output;
    Comparison comparison(candidate);
    std::istringstream lines(told.output);
    for (std::string line; std::getline(lines, line);) comparison.Take(line);
    EXPECT_EQ(comparison.num_functions, 9 * 81);
    EXPECT_EQ(comparison.num_launches, 1);
    EXPECT_EQ(comparison.num_behind, candidate.instance.alignment_result);
  }
}

}  // namespace
}  // namespace collage
