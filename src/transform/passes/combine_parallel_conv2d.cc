// combine_parallel_conv2d.cc: convolutions of one value become one with more output channels.
#include "transform/passes/combine_parallel.h"

namespace collage {

ParallelAnchor WideConv2D() {
  return {.op = "nn.conv2d",
          .fits =
              [](const CallNode& a, const CallNode& b) {
                return a.attrs().Int("groups") == 1 && a.attrs().String("data_layout") == "NCHW" &&
                       a.attrs().String("kernel_layout") == "OIHW" && WeightsFit(a, b, 0);
              },
          .combine =
              [](const Expr& data, const std::vector<const CallNode*>& anchors) {
                Attrs attrs = anchors[0]->attrs();
                attrs.Set("channels", {});
                return TypedCall("nn.conv2d", {data, ConcatenatedWeights(anchors, 0)}, *anchors[0], std::move(attrs));
              },
          .result_axis = 1,
          .free_attrs = {"channels"}};
}

Function CombineParallelConv2D(const Function& function, const IRModule&, const PassContext& context) {
  return CombineParallel(function, WideConv2D(), context.ConfigInt("relay.CombineParallelConv2D.min_num_branches"));
}

}  // namespace collage
