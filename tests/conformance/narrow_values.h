// narrow_values.h: functions whose values at the boundary are kept as types below float32.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage::conformance {

/// Everything that may be is channels-last, and kept as `dtype`. Types `function`.
inline BoundaryLayouts AllKeptAs(DataType dtype, const Function& function) {
  InferType(function);
  const auto eligible = [](const Type& type) {
    const int rank = AsTensorType(type)->rank();
    return rank >= 3 && rank <= 5;
  };
  std::vector<bool> inputs, outputs;
  for (const Var& param : function->params()) inputs.push_back(eligible(param->checked_type()));
  for (const Type& type : FlattenTensorTypes(function->body()->checked_type())) outputs.push_back(eligible(type));
  return Keeping(ChannelsLastLayouts(inputs, outputs), dtype, function, inputs, outputs);
}

/// `x` through one operator of each kind that has loops of its own, and some that are computed in place: (2, 24, 15,
/// 14).
inline std::vector<Expr> OneOfEachKind(const Var& x) {
  using V = std::vector<int64_t>;
  const Expr same = RandomConstant({1, 24, 1, 1}, 4);
  const auto depthwise = [&](const V& strides, const V& padding, int64_t taps) {
    return MakeCall("nn.conv2d", {x, RandomConstant({24, 1, taps, taps}, 3)},
                    {{"groups", 24}, {"strides", strides}, {"padding", padding}});
  };
  const V spatial{2, 3};
  return {
      MakeCall("nn.conv2d", {x, RandomConstant({40, 24, 1, 1}, 3, -0.1, 0.1)}),
      MakeCall("nn.conv2d", {x, RandomConstant({40, 24, 1, 1}, 3, -0.1, 0.1)}, {{"strides", V{2, 2}}}),
      MakeCall(
          "nn.relu",
          {Plus(MakeCall("nn.conv2d", {x, RandomConstant({24, 24, 3, 3}, 3, -0.1, 0.1)}, {{"padding", V{1, 1}}}), x)}),
      MakeCall("nn.conv2d", {x, RandomConstant({48, 8, 3, 3}, 3, -0.1, 0.1)}, {{"groups", 3}, {"padding", V{1, 1}}}),
      MakeCall("nn.conv2d_transpose", {x, RandomConstant({24, 10, 4, 4}, 3, -0.1, 0.1)},
               {{"strides", V{2, 2}}, {"padding", V{1, 1}}}),
      depthwise({1, 1}, {1, 1}, 3),
      depthwise({2, 2}, {0, 0, 1, 1}, 3),
      depthwise({1, 1}, {7, 7}, 15),
      MakeCall("nn.conv2d", {x, RandomConstant({24, 2, 3, 3}, 3)}, {{"groups", 12}, {"padding", V{1, 1}}}),
      MakeCall("nn.max_pool2d", {x}, {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}}),
      MakeCall("nn.avg_pool2d", {x}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}}),
      MakeCall("nn.global_avg_pool2d", {x}),
      MakeCall("mean", {x}, {{"axis", spatial}, {"keepdims", true}}),
      MakeCall("multiply", {MakeCall("sigmoid", {MakeCall("add", {x, same})}), x}),
      MakeCall("nn.softmax", {x}, {{"axis", 1}}),
      MakeCall("nn.instance_norm", {x, RandomConstant({24}, 5), RandomConstant({24}, 6)}),
      MakeCall("concatenate", {MakeTuple({x, MakeCall("tanh", {x}), RandomConstant({2, 8, 15, 14}, 7)})},
               {{"axis", 1}}),
      MakeCall("image.resize2d", {x}, {{"size", V{30, 28}}, {"method", std::string("linear")}}),
      MakeCall("nn.pad", {x, RandomConstant({}, 8)},
               {{"pad_width", AttrValue::List{V{0, 0}, V{0, 0}, V{1, 2}, V{0, 1}}}}),
      MakeCall("strided_slice", {x}, {{"begin", V{0, 1, 2, 3}}, {"end", V{2, 20, 15, 14}}}),
      MakeCall("transpose", {x}, {{"axes", V{0, 2, 3, 1}}}),
      MakeCall("cumsum", {x}, {{"axis", 2}}),
  };
}

}  // namespace collage::conformance
