// equal_channels_test.cc: channels with equal weights have equal results, bit by bit, also those of the last panel,
// which may have fewer vectors than others.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using conformance::Input;
using V = std::vector<int64_t>;

/// Weights of a channel, `channels` times.
Constant Repeated(int64_t channels, Shape of_channel) {
  const Tensor one = conformance::RandomTensor(of_channel, kFloat32, -1, 1, 7);
  of_channel.insert(of_channel.begin(), channels);
  const Tensor all = Tensor::Empty(of_channel, kFloat32);
  for (int64_t i = 0; i < all.num_elements(); ++i) all.Set(i, one.At(i % one.num_elements()));
  return MakeConstant(all);
}

/// By code for this processor, or, with registers of 8 floats, for `mcpu`.
Tensor Compute(const Function& function, const Tensor& data, const std::string& mcpu) {
  InferType(function);
  const Toolchain& standard = conformance::BuiltinToolchain("native");
  const auto told = mcpu.empty() ? nullptr : ToolchainConfiguration(standard).With("mcpu", mcpu).Make();
  const Toolchain& native = told ? *told : standard;
  const Result<CompiledPartition> compiled = native.RelayToRuntime({function, PlainLayouts(1, 1), 1});
  if (!compiled.ok()) throw Error(ErrorCategory::kUnsupported, compiled.reason().text);
  const std::unique_ptr<Kernel> kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants});
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 64}, kUInt8);
  Tensor result = Tensor::Zeros(AsTensorType(function->body()->checked_type())->static_shape(), kFloat32);
  const std::vector<void*> sources{data.raw()}, targets{result.raw()};
  kernel->Bind(sources, targets, workspace.raw());
  kernel->Run();
  return result;
}

/// Numbers of channels that leave one vector or less, or some, behind whole panels of all widths.
constexpr int64_t kChannels[] = {40, 72, 100, 1000};

class NativeEqualChannelsTest : public testing::TestWithParam<const char*> {};

TEST_P(NativeEqualChannelsTest, OfProducts) {
  for (const int64_t channels : kChannels) {
    for (const int64_t rows : {1, 3, 7}) {
      const Var x = Input("x", {rows, 256});
      const Function function = MakeFunction({x}, MakeCall("nn.dense", {x, Repeated(channels, {256})}));
      const Tensor result = Compute(function, conformance::RandomTensor({rows, 256}, kFloat32, -1, 1, 3), GetParam());
      for (int64_t i = 0; i < result.num_elements(); ++i) {
        ASSERT_EQ(result.At(i), result.At(i / channels * channels)) << channels << " channels, row " << i / channels;
      }
    }
  }
}

TEST_P(NativeEqualChannelsTest, OfConvolutions) {
  for (const int64_t channels : kChannels) {
    for (const int64_t window : {1, 3}) {
      const Var x = Input("x", {1, 16, 7, 7});
      const Expr call = MakeCall("nn.conv2d", {x, Repeated(channels, {16, window, window})},
                                 {{"padding", V{window / 2, window / 2, window / 2, window / 2}}});
      const Tensor result =
          Compute(MakeFunction({x}, call), conformance::RandomTensor({1, 16, 7, 7}, kFloat32, -1, 1, 3), GetParam());
      for (int64_t i = 0; i < result.num_elements(); ++i) {
        ASSERT_EQ(result.At(i), result.At(i % 49)) << channels << " channels, element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, NativeEqualChannelsTest, testing::Values("", "x86-64-v3"),
                         [](const auto& info) { return *info.param == '\0' ? "this" : "avx2"; });

}  // namespace
}  // namespace collage
