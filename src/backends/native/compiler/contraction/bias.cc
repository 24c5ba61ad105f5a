// bias.cc: finds the addition behind an anchor.
#include "backends/native/compiler/contraction/bias.h"

#include <algorithm>

#include "backends/native/compiler/contraction/contraction.h"
#include "collage/ir/visitor.h"

namespace collage::native {
namespace {

/// Whether `shape` has one element for each place along `axis` of a tensor of `rank` dimensions.
bool IsAlong(const Shape& shape, size_t axis, size_t rank, int64_t size) {
  return shape.size() <= rank && axis + shape.size() >= rank && shape[axis + shape.size() - rank] == size &&
         NumElements(shape) == size;
}

/// The only call below `root` that reads `expr`; null where there are several.
Expr OnlyReader(const Expr& root, const Expr& expr) {
  Expr reader;
  int count = 0;
  PostOrder(root, [&](const Expr& node) {
    for (const Expr& child : Children(node)) {
      if (child != expr) continue;
      reader = node;
      ++count;
    }
  });
  return count == 1 && As<CallNode>(reader) != nullptr ? reader : nullptr;
}

}  // namespace

std::optional<Bias> BiasOf(PartitionState& state, const StageOutput& output, size_t axis, int64_t width) {
  const Shape shape = ShapeOf(output.result);
  if (output.epilogue == output.result || TensorTypeOf(output.result).dtype() != kFloat32) return {};
  const Expr sum = OnlyReader(output.epilogue, output.result);
  const CallNode* call = sum == nullptr ? nullptr : As<CallNode>(sum);
  if (call == nullptr || call->op() == nullptr || call->op()->name != "add" || ShapeOf(sum) != shape) return {};
  const Expr& addend = call->args()[call->args()[0] == output.result ? 1 : 0];
  const int64_t channels = shape[axis];
  if (TensorTypeOf(addend).dtype() != kFloat32 || !IsAlong(ShapeOf(addend), axis, shape.size(), channels)) return {};
  const std::optional<Tensor> value = ConstantValue(addend);
  if (!value) return {};
  const Tensor padded = Tensor::Zeros({(channels + width - 1) / width * width}, kFloat32);
  std::copy_n(value->data<float>(), channels, padded.data<float>());
  return Bias{state.AddConstant(padded), {sum, output.epilogue, output.buffer}};
}

}  // namespace collage::native
