// Models of which TensorRT computes sub-graphs on a GPU, found by the search, checked, written, and run; and what the
// stand-in for the library assumes of it. Single operators are in conformance.table.tensorrt.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/tensorrt/engine.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/recorded_work.h"
#include "conformance/conformance.h"
#include "conformance/gpu/gpu_test.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

using testing::HasSubstr;
using V = std::vector<int64_t>;

class TensorRtTest : public GpuTest {
 protected:
  TensorRtTest() : GpuTest("tensorrt") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=tensorrt"); }
  static const Toolchain& TensorRt() { return *ToolchainRegistry::Global().Find("tensorrt"); }
  static std::unique_ptr<const Toolchain> With(const std::map<std::string, std::string>& told) {
    Attrs options;
    for (const AttrField& option : TensorRt().Options()) options.Set(option.name, option.default_value);
    for (const auto& [name, value] : told) options.Set(name, value);
    return TensorRt().WithOptions(options);
  }
};

/// A convolution with bias and relu, a pool, and a classifier.
IRModule SmallNetwork() {
  const Var x = conformance::Input("x", {1, 3, 8, 8});
  const Expr convolution =
      MakeCall("nn.conv2d", {x, conformance::RandomConstant({4, 3, 3, 3}, 1, -0.3, 0.3)}, {{"padding", V{1, 1}}});
  const Expr active = MakeCall("nn.relu", {MakeCall("add", {convolution, conformance::RandomConstant({4, 1, 1}, 2)})});
  const Expr pooled = MakeCall("nn.max_pool2d", {active}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}});
  const Expr scores = MakeCall(
      "nn.dense", {MakeCall("nn.batch_flatten", {pooled}), conformance::RandomConstant({10, 64}, 3, -0.1, 0.1)});
  return IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.softmax", {scores})));
}

Function Typed(const std::vector<Var>& params, const Expr& body) {
  Function function = MakeFunction(params, body);
  InferType(function);
  return function;
}

Function Product() {
  const Var x = conformance::Input("x", {5, 40});
  return Typed({x}, MakeCall("nn.relu", {MakeCall("nn.dense", {x, conformance::RandomConstant({7, 40}, 1)})}));
}

BoundaryLayouts OnGpu(size_t num_inputs = 1) { return In(Memory::kCuda, PlainLayouts(num_inputs, 1)); }

TEST_F(TensorRtTest, WholeModelsAgree) {
  const std::map<std::string, std::string> models{
      {"chain", "def @main(%x: Tensor[(5, 77), float32]) { nn.softmax(tanh(nn.relu(%x))) }"},
      {"two_results", "def @main(%x: Tensor[(4, 6), float32]) { let %y = nn.relu(%x); (%y, sum(%y, axis=[1])) }"},
      {"types",
       "def @main(%x: Tensor[(33), float32], %i: Tensor[(7), int64]) { cast(take(%x, %i, axis=0), dtype=\"float16\") "
       "}"},
      {"unused", "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { (tanh(%x), shape_of(%y)) }"}};
  for (const auto& [name, text] : models) {
    CompileOptions options = Options(name);
    options.partition_for = "tensorrt";
    const CompileReport report = CompileModule(Module(text), name, options);
    EXPECT_EQ(FailuresOf(report), "") << name;
    ASSERT_EQ(report.contenders.size(), 1u) << name;
    EXPECT_TRUE(report.contenders[0].partitions.contains("tensorrt")) << name;
  }
  for (const auto& [name, text] : models) ExpectAgrees(Module(text), Options(name));
}

TEST_F(TensorRtTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("measured");
  const CompileReport measured = CompileModule(module, "measured", options);
  EXPECT_EQ(FailuresOf(measured), "");
  const Contender* alone = Find(measured, "tensorrt");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->failure, "");
  EXPECT_EQ(alone->partitions, (std::map<std::string, int>{{"tensorrt", 1}})) << "the model is one engine";
  ExpectAgrees(module, options);
}

TEST_F(TensorRtTest, SeveralToolchainsShareTheGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("shared");
  options.targets.emplace_back("cuda -compiler=cudnn");
  options.targets.emplace_back("cuda");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 4, "cudnn": 1, "tensorrt": 2}, "copy": 0.5})";
  const CompileReport report = CompileModule(module, "shared", options);
  EXPECT_EQ(FailuresOf(report), "");
  const bool has_both = std::ranges::any_of(report.contenders, [](const Contender& one) {
    return one.failure.empty() && one.partitions.contains("cudnn") && one.partitions.contains("tensorrt");
  });
  EXPECT_TRUE(has_both);
  for (const ExecutionPlan::Value& value : Executable::Load(options.output).plan().values) {
    if (value.storage != ExecutionPlan::Value::Storage::kArena || MemoryOf(value.layout) != Memory::kCuda) continue;
    EXPECT_EQ(value.offset_or_index % 256, 0) << "the library would want it elsewhere";
  }
  ExpectAgrees(module, options);
}

TEST_F(TensorRtTest, LevelsAreSchedules) {
  const IRModule module = IRModule::FromFunction(Product());
  CompileOptions options = Options("tuned");
  options.toolchains = {"tensorrt"};
  options.tuning_trials = 6;
  options.estimator = "measure";
  const CompileReport report = CompileModule(module, "tuned", options);
  EXPECT_EQ(FailuresOf(report), "");
  EXPECT_GT(report.tuning.trials, 0);
  ExpectAgrees(module, options);
  const auto schedules = TensorRt().Schedules({Product(), OnGpu(), 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  for (const std::string& schedule : *schedules) {
    conformance::Options options;
    options.schedule = schedule;
    options.layouts = OnGpu();
    conformance::ExpectAgrees(TensorRt(), Product(), options);
  }
}

TEST_F(TensorRtTest, FactorsAreRoundedOnlyWhereThatIsAllowed) {
  conformance::Options options;
  options.layouts = OnGpu();
  options.tolerance = 1e-6;  // rounded to TF32, factors would be off by up to 5e-4
  conformance::ExpectAgrees(TensorRt(), Product(), options);
  options.tolerance = 5e-3;
  conformance::ExpectAgrees(*With({{"inference_precision", "tf32"}}), Product(), options);
  conformance::ExpectAgrees(*With({{"inference_precision", "f16"}}), Product(), options);
  options.tolerance = 4e-2;
  conformance::ExpectAgrees(*With({{"inference_precision", "bf16"}}), Product(), options);
}

TEST_F(TensorRtTest, OptionsAreChecked) {
  EXPECT_THROW(With({{"arch", "gfx90a"}}), Error);
  EXPECT_THROW(With({{"inference_precision", "int4"}}), Error);
  EXPECT_THROW(With({{"accuracy", "high"}}), Error);
  EXPECT_THROW(With({{"module", "tensorrt_lean"}}), Error);
  const Var x = conformance::Input("x", {1, 3, 8, 8});
  const auto exact = With({{"accuracy", "exact"}});
  for (const int64_t size : {int64_t{1}, int64_t{3}}) {
    const Function function =
        Typed({x}, MakeCall("nn.conv2d", {x, conformance::RandomConstant({4, 3, size, size}, 1)}));
    const auto& call = *As<CallNode>(function->body());
    EXPECT_TRUE(TensorRt().SupportsCall(call).ok());
    EXPECT_EQ(exact->SupportsCall(call).ok(), size == 1) << "Winograd's algorithm needs several elements";
  }
}

// Loading.

CompiledPartition WithEngine(CompiledPartition compiled, const tensorrt::Engine& engine) {
  compiled.blob = ToBlob(engine);
  return compiled;
}

TEST_F(TensorRtTest, EnginesOfOthersAreRefused) {
  const auto compiled = TensorRt().RelayToRuntime({Product(), OnGpu(), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const tensorrt::Engine engine = tensorrt::EngineFrom(compiled->blob);
  tensorrt::Engine changed = engine;
  changed.architecture = "sm_1";
  EXPECT_THAT(LoadingError(WithEngine(*compiled, changed)).message(), HasSubstr("made for sm_1, and the GPU here is"));
  changed = engine;
  changed.version = "TensorRT 9.9.9";
  const Error of_version = LoadingError(WithEngine(*compiled, changed));
  EXPECT_EQ(of_version.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(of_version.message(), HasSubstr("made by TensorRT 9.9.9, here is TensorRT"));
  changed = engine;
  changed.inputs[0].shape = {6, 40};
  const Error of_shape = LoadingError(WithEngine(*compiled, changed));
  EXPECT_EQ(of_shape.category(), ErrorCategory::kCorrupt);
  EXPECT_THAT(of_shape.message(), HasSubstr("has 'input_0' of"));
  changed = engine;
  changed.outputs[0].name = "output_1";
  EXPECT_THAT(LoadingError(WithEngine(*compiled, changed)).message(), HasSubstr("'output_0' that there is not"));
}

TEST_F(TensorRtTest, CorruptEnginesAreRefused) {
  const auto compiled = TensorRt().RelayToRuntime({Product(), OnGpu(), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const size_t size = compiled->blob.size();
  for (const size_t kept :
       {size_t{0}, size_t{4}, size_t{40}, size - tensorrt::EngineFrom(compiled->blob).bytes.size()}) {
    CompiledPartition shortened = *compiled;
    shortened.blob.resize(kept);
    const Error error = LoadingError(shortened);
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << kept << " bytes: " << error.message();
  }
  const auto kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, {}, 1});
  EXPECT_THROW(kernel->Bind({}, {}, nullptr), Error);
}

TEST_F(TensorRtTest, ModelsThatTheLibraryRefusesHaveItsReason) {
  // Twice the same name in ONNX, and nothing that the exporter would write.
  Result<std::string> bytes = Reason{"", ""};
  const auto build =
      reinterpret_cast<tensorrt::BuildFn*>(FindModuleSymbol("libcollage_rt_tensorrt.so", "collage_tensorrt_build"));
  build("this is no model", {}, bytes);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.reason().text, "");
}

// Assumptions about the library: tests/standins/python/tensorrt lists them.

/// A kernel for `Product`, its operands in memory of the GPU, and what it should compute.
struct Loaded {
  explicit Loaded(const Toolchain& toolchain) {
    const auto compiled = toolchain.RelayToRuntime({Product(), OnGpu(), 1});
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
  }

  /// Puts input number `seed` `shift` bytes behind an aligned address.
  void Write(DeviceBuffer& buffer, size_t shift, uint32_t seed) {
    input = conformance::RandomTensor({5, 40}, kFloat32, -1, 1, seed);
    buffer.device().CopyIn(static_cast<std::byte*>(buffer.address()) + shift, input.raw(), input.size_bytes());
  }
  void Bind(const DeviceBuffer& from, const DeviceBuffer& to, size_t shift) {
    const std::vector<void*> inputs{static_cast<std::byte*>(from.address()) + shift};
    const std::vector<void*> outputs{static_cast<std::byte*>(to.address()) + shift};
    kernel->Bind(inputs, outputs, nullptr);
  }
  void ExpectResult(const DeviceBuffer& to, size_t shift) const {
    const Tensor expected = Evaluate(Product(), std::vector<Tensor>{input})[0];
    const Tensor got = Tensor::Empty(expected.shape(), expected.dtype());
    to.device().CopyOut(got.raw(), static_cast<const std::byte*>(to.address()) + shift, got.size_bytes());
    EXPECT_TRUE(Compare(got, expected, ToleranceFor(expected, std::nullopt)).agrees);
  }

  std::unique_ptr<Kernel> kernel;
  Tensor input;
};

TEST_F(TensorRtTest, AssumesThatAddressesMayChangeBetweenRuns) {
  Loaded one(TensorRt());
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    DeviceBuffer from(Memory::kCuda, 4096), to(Memory::kCuda, 4096);
    one.Write(from, 0, seed);
    one.Bind(from, to, 0);
    one.kernel->Run();
    one.ExpectResult(to, 0);
  }
}

TEST_F(TensorRtTest, AssumesThatAlignedTensorsAreEnough) {
  Loaded one(TensorRt());
  DeviceBuffer from(Memory::kCuda, 4096), to(Memory::kCuda, 4096);
  for (const size_t shift : {size_t{64}, size_t{0}, size_t{128}}) {
    one.Write(from, shift, 4);
    one.Bind(from, to, shift);
    one.kernel->Run();
    one.ExpectResult(to, shift);
  }
}

TEST_F(TensorRtTest, AssumesThatRunsAfterTheFirstCanBeRecorded) {
  Loaded one(TensorRt());
  DeviceBuffer from(Memory::kCuda, 4096), to(Memory::kCuda, 4096);
  one.Write(from, 0, 5);
  one.Bind(from, to, 0);
  one.kernel->Run();
  auto* records = dynamic_cast<RecordsWork*>(&GetDevice(Memory::kCuda));
  ASSERT_NE(records, nullptr);
  const auto recorded = records->Record([&] { one.kernel->Run(); });
  ASSERT_NE(recorded, nullptr);
  one.Write(from, 0, 6);
  recorded->Run();
  one.ExpectResult(to, 0);
}

TEST_F(TensorRtTest, AssumesThatSeveralKernelsOfAnEngineAreIndependent) {
  Loaded one(TensorRt()), other(TensorRt());
  DeviceBuffer from(Memory::kCuda, 4096), to(Memory::kCuda, 4096), of_other(Memory::kCuda, 4096),
      to_other(Memory::kCuda, 4096);
  one.Write(from, 0, 7);
  other.Write(of_other, 0, 8);
  one.Bind(from, to, 0);
  other.Bind(of_other, to_other, 0);
  one.kernel->Run();
  other.kernel->Run();
  one.ExpectResult(to, 0);
  other.ExpectResult(to_other, 0);
}

}  // namespace
}  // namespace collage
