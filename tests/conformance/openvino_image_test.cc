// openvino_image_test.cc: kernels of OpenVINO as executables hold them: what is in their blobs, other versions of
// OpenVINO, precision, and memory that they read and write in place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::Input;
using conformance::RandomConstant;
using conformance::RandomTensor;
using V = std::vector<int64_t>;

class OpenVinoImage : public testing::Test {
 protected:
  void SetUp() override {
    const Availability here = toolchain_.Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }

  static CompiledPartition Compile(const Toolchain& toolchain, const Function& function) {
    InferType(function);
    Result<CompiledPartition> compiled =
        toolchain.RelayToRuntime({function, PlainLayouts(function->params().size(), 1), 1});
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    return *compiled;
  }

  /// The largest difference of what `blob` computes from the reference.
  static double Error(const std::vector<std::byte>& blob, const Function& function) {
    const std::unique_ptr<Kernel> kernel = GetKernelLoader("openvino").Load({blob, {}, 1});
    std::vector<Tensor> inputs;
    std::vector<void*> addresses;
    for (const Var& param : function->params()) {
      inputs.push_back(RandomTensor(AsTensorType(param->type_annotation())->static_shape(), kFloat32, -1, 1, 7));
      addresses.push_back(inputs.back().raw());
    }
    const Tensor want = Evaluate(function, inputs).at(0);
    const Tensor got = Tensor::Zeros(want.shape(), want.dtype());
    void* output = got.raw();
    kernel->Bind(addresses, {&output, 1}, nullptr);
    kernel->Run();
    double error = 0;
    for (int64_t i = 0; i < want.num_elements(); ++i) error = std::max(error, std::abs(want.At(i) - got.At(i)));
    return error;
  }

  const Toolchain& toolchain_ = BuiltinToolchain("openvino");
};

/// Two products of 256 KB each, and a bias.
Function Network() {
  const Var x = Input("x", {3, 256});
  Expr y = MakeCall("nn.dense", {x, RandomConstant({256, 256}, 1, -0.1, 0.1)});
  y = MakeCall("nn.relu", {MakeCall("add", {y, RandomConstant({256}, 2)})});
  return MakeFunction({x}, MakeCall("nn.dense", {y, RandomConstant({256, 256}, 3, -0.1, 0.1)}));
}

/// Where `text` begins for the last time.
std::vector<std::byte>::iterator FindLast(std::vector<std::byte>& bytes, std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return std::find_end(bytes.begin(), bytes.end(), begin, begin + text.size());
}

/// `blob` as another version of OpenVINO would have written it: the version's last digit is another one, and what the
/// plugin exported (behind the header of 64 bytes, its size in the second word) cannot be read.
std::vector<std::byte> OfAnotherVersion(std::vector<std::byte> blob, bool damage_export) {
  uint64_t exported = 0;
  uint64_t version = 0;
  std::memcpy(&exported, blob.data() + 8, 8);
  std::memcpy(&version, blob.data() + 16, 8);
  EXPECT_GT(version, 0u);
  std::byte& digit = blob.at(64 + exported + version - 1);
  digit = digit == std::byte{'0'} ? std::byte{'1'} : std::byte{'0'};
  // Only its description: weights are shared with the model.
  if (damage_export) std::fill_n(blob.begin() + 64, 48, std::byte{0});
  return blob;
}

TEST_F(OpenVinoImage, IsImportedByTheVersionThatExported) {
  const Function function = Network();
  const CompiledPartition compiled = Compile(toolchain_, function);
  EXPECT_LT(Error(compiled.blob, function), 1e-4);
}

TEST_F(OpenVinoImage, IsCompiledAgainByAnotherVersion) {
  const Function function = Network();
  const CompiledPartition compiled = Compile(toolchain_, function);
  EXPECT_LT(Error(OfAnotherVersion(compiled.blob, false), function), 1e-4);
  EXPECT_LT(Error(OfAnotherVersion(compiled.blob, true), function), 1e-4);
}

TEST_F(OpenVinoImage, KeepsWeightsOnce) {
  const CompiledPartition compiled = Compile(toolchain_, Network());
  const size_t weights = 2 * 256 * 256 * sizeof(float);
  EXPECT_GT(compiled.blob.size(), weights);
  EXPECT_LT(compiled.blob.size(), weights + weights / 4);
}

TEST_F(OpenVinoImage, RefusesDamagedBlobs) {
  std::vector<std::byte> blob = Compile(toolchain_, Network()).blob;
  const auto load = [&](std::span<const std::byte> bytes) { GetKernelLoader("openvino").Load({bytes, {}, 1}); };
  EXPECT_THROW(load(std::span(blob).first(40)), collage::Error);
  EXPECT_THROW(load(std::span(blob).first(blob.size() / 2)), collage::Error);
  std::vector<std::byte> other = blob;
  other[0] = std::byte{'X'};
  EXPECT_THROW(load(other), collage::Error);
  // Neither what was exported nor the model.
  other = OfAnotherVersion(blob, true);
  const auto model = FindLast(other, "<?xml");  // the export has one too
  ASSERT_NE(model, other.end());
  std::fill_n(model, 200, std::byte{' '});
  try {
    load(other);
    FAIL() << "a kernel without a model was loaded";
  } catch (const collage::Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt);
    EXPECT_NE(error.message().find("cannot load a kernel of version"), std::string::npos) << error.message();
  }
}

TEST_F(OpenVinoImage, ComputesInThePrecisionThatIsAskedFor) {
  const Function function = Network();
  const auto with = [&](const char* precision) {
    return toolchain_.WithOptions(Attrs{{"inference_precision", precision}});
  };
  const CompiledPartition full = Compile(*with("f32"), function);
  const double exact = Error(full.blob, function);
  EXPECT_EQ(exact, Error(Compile(toolchain_, function).blob, function)) << "f32 is the default";
  const CompiledPartition half = Compile(*with("bf16"), function);
  const double rounded = Error(half.blob, function);
  EXPECT_LT(exact, 1e-5);
  EXPECT_LT(rounded, 0.05);
  // Processors without bfloat16 compute in float32.
  if (half.source.find("bf16") != std::string::npos) {
    EXPECT_GT(rounded, 10 * exact);
    EXPECT_GT(Error(OfAnotherVersion(half.blob, true), function), 10 * exact) << "also when compiled again";
  }
  EXPECT_NE(with("bf16")->Probe().version, toolchain_.Probe().version);
  EXPECT_THROW(with("int4"), collage::Error);
}

/// Memory of this process in physical pages, bytes.
double ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

TEST_F(OpenVinoImage, ReadsAndWritesInPlace) {
  constexpr int64_t kElements = 24 << 20;  // 96 MB each of input and output
  const Var x = Input("x", {8, kElements / 8});
  const Function function = MakeFunction({x}, MakeCall("nn.relu", {MakeCall("negative", {x})}));
  const CompiledPartition compiled = Compile(toolchain_, function);
  const std::unique_ptr<Kernel> kernel = GetKernelLoader("openvino").Load({compiled.blob, {}, 1});
  const Tensor input = Tensor::Zeros({kElements}, kFloat32);
  const Tensor output = Tensor::Zeros({kElements}, kFloat32);
  std::fill_n(input.data<float>(), kElements, -2.0F);
  std::fill_n(output.data<float>(), kElements, 0.0F);
  void* from = input.raw();
  void* to = output.raw();
  const double before = ResidentBytes();
  kernel->Bind({&from, 1}, {&to, 1}, nullptr);
  kernel->Run();
  EXPECT_EQ(output.data<float>()[0], 2.0F);
  EXPECT_EQ(output.data<float>()[kElements - 1], 2.0F);
  // A copy of either would be 96 MB more.
  EXPECT_LT(ResidentBytes() - before, 32e6);
}

}  // namespace
}  // namespace collage
