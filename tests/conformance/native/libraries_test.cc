// native_libraries_test.cc: native kernels that call a library for the tiles of their products (target option `libs`).
// The library "counting" is the test's own (micro_kernels/counting.cc); others are tried where they are installed.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "collage/target/micro_kernels.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "support/dynamic_library.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::HasSubstr;
using testing::Not;
using V = std::vector<int64_t>;

/// Takes nothing by itself.
class MicroKernelToolchain : public Toolchain, public HasMicroKernels {
 public:
  MicroKernelToolchain(std::string name, std::string missing) : name_(std::move(name)), missing_(std::move(missing)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return "a micro-kernel of the tests"; }
  int priority() const override { return 1000; }
  bool is_default() const override { return false; }
  Availability Probe() const override {
    if (!missing_.empty()) return {false, "", missing_, "apt-get install " + name_};
    return {true, "1.0", "", ""};
  }
  std::vector<MicroKernel> MicroKernels() const override {
    return {{"product",
             {kFloat32},
             "i32:m i64:n i32:k element:1 a i64:lda b i64:ldb element:beta c i64:ldc",
             /*takes_transposed=*/false,
             "apt-get install " + name_}};
  }

 private:
  std::string name_, missing_;
};

void AddTestLibraries() {
  BuiltinToolchain("native");  // and all others
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("counting") != nullptr) return;
  const char* before = std::getenv("COLLAGE_MODULE_PATH");
  setenv("COLLAGE_MODULE_PATH", (COLLAGE_TEST_MICRO_KERNELS + (before ? ":" + std::string(before) : "")).c_str(), 1);
  registry.Add(std::make_unique<MicroKernelToolchain>("counting", ""));
  registry.Add(std::make_unique<MicroKernelToolchain>("absent", "its library is on the moon"));
}

std::unique_ptr<const Toolchain> NativeWith(const std::string& options) {
  AddTestLibraries();
  return ToolchainConfiguration::Parse("native " + options, ToolchainRegistry::Global()).Make();
}

int64_t NumCalls() {
  using Fn = int64_t();
  return reinterpret_cast<Fn*>(FindModuleSymbol("libcollage_rt_counting.so", "collage_num_calls"))();
}

std::string LoopsOf(const Toolchain& toolchain, const Function& function, BoundaryLayouts layouts = {}) {
  InferType(function);
  if (layouts == BoundaryLayouts{}) layouts = PlainLayouts(function->params().size(), 1);
  const Result<LoweredPartition> lowered = toolchain.RelayToTIR({function, layouts, 1});
  return lowered.ok() ? lowered->mlir : lowered.reason().text;
}

struct Case {
  std::string name;
  Function function;
  Options options = {};
};

/// Odd sizes at random; everything that may follow a product in the same kernel.
class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) {}

  std::vector<Case> Make() {
    AddProducts();
    AddBatches();
    AddConvolutions();
    return std::move(cases_);
  }

 private:
  int64_t Draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  int Threads() { return static_cast<int>(Draw(1, 3)); }
  void Add(const std::string& name, const std::vector<Var>& params, const Expr& body, BoundaryLayouts layouts = {}) {
    Options options;
    options.layouts = std::move(layouts);
    options.num_threads = Threads();
    cases_.push_back({name, MakeFunction(params, body), options});
  }

  void AddProducts() {
    for (const int64_t m : {int64_t{1}, Draw(2, 63), int64_t{64}, Draw(65, 200)}) {
      const int64_t k = Draw(1, 90), n = Draw(1, 130);
      const Var x = Input("x", {m, k}), y = Input("y", {k, n}), residual = Input("residual", {m, n});
      const Expr dense = MakeCall("nn.dense", {x, RandomConstant({n, k}, 4, -0.3, 0.3)});
      const Expr biased = Plus(dense, RandomConstant({n}, 5));
      Add("dense", {x}, dense);
      const auto activations = Activations();
      const Activation& any = activations[static_cast<size_t>(Draw(0, static_cast<int64_t>(activations.size()) - 1))];
      Add(std::string("dense, bias, ") + any.suffix, {x}, any.apply(biased));
      Add("dense, bias, residual, relu", {x, residual}, MakeCall("nn.relu", {Plus(biased, residual)}));
      Add("dense, to half", {x}, MakeCall("cast", {biased}, {{"dtype", "float16"}}));
      cases_.back().options.tolerance = 2e-3;  // sums in another order fall on the other side of a tie
      const Expr product = MakeCall("nn.matmul", {x, y});
      Add("matmul of inputs, scaled", {x, y}, Mul(product, Scalar(0.125)));
      const Var turned = Input("turned", {k, m});
      Add("matmul, transposed", {turned, y},
          MakeCall("tanh", {MakeCall("nn.matmul", {turned, y}, {{"transpose_a", true}, {"transpose_b", false}})}));
    }
  }

  void AddBatches() {
    const int64_t m = Draw(1, 80), n = Draw(1, 70), k = Draw(1, 50);
    const Var x = Input("x", {3, m, k}), y = Input("y", {3, n, k}), z = Input("z", {3, k, n}),
              one = Input("one", {1, k, n});
    const Var mask = Input("mask", {3, 1, n});
    Add("batches", {x, y, mask}, Plus(MakeCall("nn.batch_matmul", {x, y}, {{"transpose_b", true}}), mask));
    Add("batches, plain", {x, z}, MakeCall("nn.batch_matmul", {x, z}, {{"transpose_b", false}}));
    Add("batches by one", {x, one},
        MakeCall("nn.relu", {MakeCall("nn.batch_matmul", {x, one}, {{"transpose_b", false}})}));
    const Var c = Input("c", {m, k}, kFloat64), d = Input("d", {k, n}, kFloat64);
    Add("doubles", {c, d}, MakeCall("exp", {MakeCall("nn.matmul", {c, d})}));
  }

  void AddConvolutions() {
    const Layout last = Layout::kChannelsLast;
    const BoundaryLayouts one{{last}, {last}}, two{{last, last}, {last}};
    const int64_t in = Draw(1, 40), out = Draw(1, 70), size = Draw(5, 15);
    const Var x = Input("x", {2, in, size, 9});
    const auto conv = [&](Shape weight, Attrs attrs, const char* op = "nn.conv2d") {
      return MakeCall(op, {x, RandomConstant(weight, 3, -0.2, 0.2)}, std::move(attrs));
    };
    const Var residual = Input("residual", {2, out, size, 9});
    const Expr bias = RandomConstant({out, 1, 1}, 6);
    const Expr pointwise = conv({out, in, 1, 1}, {});
    Add("1x1", {x}, pointwise, one);
    Add("1x1, bias, residual, relu", {x, residual}, MakeCall("nn.relu", {Plus(Plus(pointwise, bias), residual)}), two);
    Add("1x1, strided", {x}, conv({out, in, 1, 1}, {{"strides", V{2, 2}}}), one);
    Add("3x3, strided, bias, clip", {x},
        Clip(Plus(conv({out, in, 3, 3}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}}), bias), 0, 1), one);
    Add("3x2, dilated", {x}, conv({out, in, 3, 2}, {{"dilation", V{2, 1}}, {"padding", V{2, 1}}}), one);
    Add("transposed", {x}, conv({in, out, 3, 3}, {{"strides", V{2, 2}}}, "nn.conv2d_transpose"), one);
    const Var wide = Input("wide", {1, 48, size, 7});
    Add("groups", {wide}, MakeCall("nn.conv2d", {wide, RandomConstant({80, 24, 3, 3}, 3, -0.2, 0.2)}, {{"groups", 2}}),
        one);
  }

  std::mt19937 random_;
  std::vector<Case> cases_;
};

class NativeLibraryTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    AddTestLibraries();
    const Availability here = ToolchainRegistry::Global().Find(GetParam())->Probe();
    if (!here.available) GTEST_SKIP() << GetParam() << " is not here: " << here.reason << "; " << here.hint;
  }
  std::string Options() const { return std::string("-libs=") + GetParam(); }
};

TEST_P(NativeLibraryTest, WhatIsComputedPerTileAgrees) {
  const std::unique_ptr<const Toolchain> native = NativeWith(Options());
  for (const uint32_t seed : {1U, 2U}) {
    for (const Case& one : Cases(seed).Make()) {
      SCOPED_TRACE(one.name);
      ExpectAgrees(*native, one.function, one.options);
    }
  }
}

/// In the kernel's text, and nothing else of it in the object.
TEST_P(NativeLibraryTest, KernelsSayWhatTheyCall) {
  const std::unique_ptr<const Toolchain> native = NativeWith(Options());
  const std::string call = std::string(GetParam()) + "|product float32 ";
  size_t num_calling = 0;
  const std::vector<Case> cases = Cases(1).Make();
  for (const Case& one : cases) {
    num_calling += LoopsOf(*native, one.function, one.options.layouts).find(call) != std::string::npos ? 1 : 0;
    EXPECT_THAT(LoopsOf(BuiltinToolchain("native"), one.function, one.options.layouts), Not(HasSubstr("|product ")));
  }
  EXPECT_GE(num_calling * 4, cases.size() * 3) << "of " << cases.size();
}

TEST_P(NativeLibraryTest, OtherKernelsAreTheSame) {
  const std::unique_ptr<const Toolchain> native = NativeWith(Options());
  const Var x = Input("x", {13, 33});
  const Var image = Input("image", {1, 24, 9, 10});
  const Expr depthwise = MakeCall("nn.conv2d", {image, RandomConstant({24, 1, 3, 3}, 1)}, {{"groups", 24}});
  for (const Function& function : {MakeFunction({x}, MakeCall("nn.softmax", {x})), MakeFunction({image}, depthwise),
                                   MakeFunction({x}, MakeCall("sum", {x}, {{"axis", V{1}}}))}) {
    EXPECT_EQ(LoopsOf(*native, function), LoopsOf(BuiltinToolchain("native"), function));
  }
  const Expr conv = MakeCall("nn.conv2d", {image, RandomConstant({32, 24, 3, 3}, 1)});
  const Function function = MakeFunction({image}, conv);
  EXPECT_EQ(LoopsOf(*NativeWith(Options() + " -winograd_tile=4"), function),
            LoopsOf(*NativeWith("-winograd_tile=4"), function));
}

TEST_P(NativeLibraryTest, ThreadsMayCallAtOnce) {
  const std::unique_ptr<const Toolchain> native = NativeWith(Options());
  const Var x = Input("x", {70, 41});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({75, 41}, 1, -0.3, 0.3)});
  const Function function = MakeFunction({x}, MakeCall("tanh", {dense}));
  ExpectThreadsAgree(*native, function);
}

INSTANTIATE_TEST_SUITE_P(Libraries, NativeLibraryTest, testing::Values("counting", "xsmm", "blas"),
                         [](const auto& info) { return std::string(info.param); });

// ---- what the loops do ----

TEST(NativeLibrariesTest, EveryTileIsACall) {
  const auto native = NativeWith("-libs=counting -schedule=lanes=4,rows=35,width=2");
  const Var x = Input("x", {73, 40});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({75, 40}, 1, -0.3, 0.3)});
  for (const Expr& body : {dense, MakeCall("nn.relu", {dense})}) {
    const int64_t before = NumCalls();
    ExpectAgrees(*native, MakeFunction({x}, body));
    // 2 tiles of 35 rows and one of 3; 9 panels of 8 channels and one of 3; run twice.
    EXPECT_EQ(NumCalls() - before, 2 * 3 * 10);
  }
  const Var image = Input("image", {1, 16, 9, 9});
  const Expr conv = MakeCall("nn.conv2d", {image, RandomConstant({8, 16, 3, 2}, 2, -0.2, 0.2)}, {{"strides", V{2, 2}}});
  const int64_t before = NumCalls();
  ExpectAgrees(*native, MakeFunction({image}, conv), {.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}}});
  // 4 rows of 4 pixels, 8 channels, 6 taps; run twice.
  EXPECT_EQ(NumCalls() - before, 2 * 4 * 6);
}

TEST(NativeLibrariesTest, WhatNoLibraryHasIsComputedByLoops) {
  const auto native = NativeWith("-libs=counting");
  const Var x = Input("x", {7, 501}), d = Input("d", {7, 50}, kFloat64), n = Input("n", {7, 50}, kInt32);
  const std::vector<Function> functions{
      MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({9, 501}, 1, -0.1, 0.1)})),
      MakeFunction({d}, MakeCall("nn.dense", {d, MakeConstant(RandomTensor({9, 50}, kFloat64, -1, 1, 2))})),
      MakeFunction({n}, MakeCall("nn.dense", {n, MakeConstant(RandomTensor({9, 50}, kInt32, -9, 9, 2))}))};
  for (const Function& function : functions) {
    EXPECT_EQ(LoopsOf(*native, function), LoopsOf(BuiltinToolchain("native"), function));
    ExpectAgrees(*native, function);
  }
}

TEST(NativeLibrariesTest, TheFirstLibraryThatCanIsCalled) {
  AddTestLibraries();
  if (!BuiltinToolchain("xsmm").Probe().available) GTEST_SKIP() << BuiltinToolchain("xsmm").Probe().reason;
  const auto native = NativeWith("-libs=counting,xsmm");
  const auto loops = [&](int64_t depth) {
    const Var x = Input("x", {7, depth});
    return LoopsOf(*native, MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({9, depth}, 1)})));
  };
  EXPECT_THAT(loops(500), HasSubstr("counting|product"));
  EXPECT_THAT(loops(501), HasSubstr("xsmm|product"));
}

TEST(NativeLibrariesTest, SchedulesAreOfTilesAndRight) {
  const auto native = NativeWith("-libs=counting");
  const Var x = Input("x", {70, 24});
  const Function function =
      MakeFunction({x}, MakeCall("nn.relu", {MakeCall("nn.dense", {x, RandomConstant({75, 24}, 1)})}));
  InferType(function);
  const Result<std::vector<std::string>> listed = native->Schedules({function, PlainLayouts(1, 1), 2});
  ASSERT_TRUE(listed.ok()) << listed.reason().text;
  EXPECT_THAT(*listed, testing::Contains(HasSubstr("rows=")));
  const std::string loops = native->RelayToTIR({function, PlainLayouts(1, 1), 2})->mlir;
  for (const std::string& schedule : *listed) {
    SCOPED_TRACE(schedule);
    EXPECT_NE(native->RelayToTIR({function, PlainLayouts(1, 1), 2, schedule})->mlir, loops) << "measured in vain";
    ExpectAgrees(*native, function, {.num_threads = 2, .schedule = schedule});
  }
}

// ---- what there is not ----

Error ErrorOf(const std::string& options) {
  try {
    NativeWith(options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCategory::kInternal, "nothing was thrown");
}

TEST(NativeLibrariesTest, UnknownLibrariesAreRefused) {
  const Error unknown = ErrorOf("-libs=counting,xsnn");
  EXPECT_EQ(unknown.category(), ErrorCategory::kInput);
  EXPECT_EQ(unknown.message(), "option 'libs' of 'native': there is no library 'xsnn' to call");
  EXPECT_THAT(unknown.hint(), testing::StartsWith("there are: dnnl, blas, xsmm"));
  EXPECT_THAT(unknown.hint(), HasSubstr("counting, absent"));
  EXPECT_EQ(ErrorOf("-libs=openvino").message(), "option 'libs' of 'native': there is no library 'openvino' to call");
  EXPECT_EQ(ErrorOf("-libs=counting,counting").message(), "option 'libs' of 'native': 'counting' is given twice");
}

TEST(NativeLibrariesTest, LibrariesThatAreNotHereAreRefused) {
  const Error absent = ErrorOf("-libs=absent");
  EXPECT_EQ(absent.category(), ErrorCategory::kUnavailable);
  EXPECT_EQ(absent.message(), "option 'libs' of 'native': 'absent' is not here: its library is on the moon");
  EXPECT_EQ(absent.hint(), "apt-get install absent");
}

TEST(NativeLibrariesTest, TimesAreOfTheLibraryToo) {
  const std::string version = NativeWith("-libs=counting")->Probe().version;
  EXPECT_THAT(version, HasSubstr("counting 1.0"));
  EXPECT_NE(version, BuiltinToolchain("native").Probe().version);
}

TEST(NativeLibrariesTest, CodeForAnotherMachineCallsNone) {
  const Var x = Input("x", {7, 40});
  const Function function = MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({9, 40}, 1)}));
  EXPECT_EQ(LoopsOf(*NativeWith("-libs=counting -mtriple=aarch64-linux-gnu"), function),
            "libraries are called by code for this kind of machine only");
}

Error WhyNotLoaded(const CompiledPartition& compiled) {
  try {
    GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, 1});
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCategory::kInternal, "it was loaded");
}

TEST(NativeLibrariesTest, KernelsAreRefusedWhereTheirLibraryIsMissing) {
  const Var x = Input("x", {7, 240});
  const Function function = MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({9, 240}, 1)}));
  InferType(function);
  const Result<CompiledPartition> compiled =
      NativeWith("-libs=counting")->RelayToRuntime({function, PlainLayouts(1, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const auto forged = [&](const std::string& known, const std::string& other) {
    CompiledPartition copy = *compiled;
    const auto* needle = reinterpret_cast<const std::byte*>(known.data());
    const auto at = std::search(copy.blob.begin(), copy.blob.end(), needle, needle + known.size());
    EXPECT_NE(at, copy.blob.end()) << known;
    if (at != copy.blob.end()) std::memcpy(&*at, other.data(), other.size());
    return copy;
  };
  const Error missing = WhyNotLoaded(forged("counting|", "c0unting|"));
  EXPECT_EQ(missing.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(missing.message(), HasSubstr("a kernel calls 'c0unting', which is not here: cannot open module "
                                           "'libcollage_rt_c0unting.so'"));
  EXPECT_EQ(missing.hint(), "apt-get install counting");
  const Error unable = WhyNotLoaded(forged(" k=240 ", " k=999 "));
  EXPECT_EQ(unable.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(unable.message(), HasSubstr("which it does not have on this processor ("));
}

}  // namespace
}  // namespace collage
