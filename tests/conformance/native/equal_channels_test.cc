// equal_channels_test.cc: channels with equal weights have equal results, bit by bit, also those of the last panel,
// which may have fewer vectors than others.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"

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

Tensor Compute(const Function& function, const Tensor& data) {
  InferType(function);
  const Result<CompiledPartition> compiled =
      conformance::BuiltinToolchain("native").RelayToRuntime({function, PlainLayouts(1, 1), 1});
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

TEST(NativeEqualChannelsTest, OfProducts) {
  for (const int64_t channels : kChannels) {
    for (const int64_t rows : {1, 3, 7}) {
      const Var x = Input("x", {rows, 256});
      const Function function = MakeFunction({x}, MakeCall("nn.dense", {x, Repeated(channels, {256})}));
      const Tensor result = Compute(function, conformance::RandomTensor({rows, 256}, kFloat32, -1, 1, 3));
      for (int64_t i = 0; i < result.num_elements(); ++i) {
        ASSERT_EQ(result.At(i), result.At(i / channels * channels)) << channels << " channels, row " << i / channels;
      }
    }
  }
}

TEST(NativeEqualChannelsTest, OfConvolutions) {
  for (const int64_t channels : kChannels) {
    for (const int64_t window : {1, 3}) {
      const Var x = Input("x", {1, 16, 7, 7});
      const Expr call = MakeCall("nn.conv2d", {x, Repeated(channels, {16, window, window})},
                                 {{"padding", V{window / 2, window / 2, window / 2, window / 2}}});
      const Tensor result =
          Compute(MakeFunction({x}, call), conformance::RandomTensor({1, 16, 7, 7}, kFloat32, -1, 1, 3));
      for (int64_t i = 0; i < result.num_elements(); ++i) {
        ASSERT_EQ(result.At(i), result.At(i % 49)) << channels << " channels, element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace collage
