// combine_parallel_dense.cc: dense layers of one value become one batch of products, or one layer with more outputs.
#include "collage/ir/infer_type.h"
#include "transform/passes/combine_parallel.h"

namespace collage {

ParallelAnchor WideDense() {
  return {.op = "nn.dense",
          .fits = [](const CallNode& a, const CallNode& b) { return WeightsFit(a, b, 0); },
          .combine =
              [](const Expr& data, const std::vector<const CallNode*>& anchors) {
                Attrs attrs = anchors[0]->attrs();
                attrs.Set("units", {});
                return TypedCall("nn.dense", {data, ConcatenatedWeights(anchors, 0)}, *anchors[0], std::move(attrs));
              },
          .result_axis = 1,
          .free_attrs = {"units"}};
}

namespace {

/// x [1, M, K] times weights [B, N, K] transposed: [B, M, N], one product per layer.
Expr BatchProduct(const Expr& data, const std::vector<const CallNode*>& anchors) {
  std::vector<Expr> weights;
  for (const CallNode* anchor : anchors) {
    weights.push_back(TypedCall("expand_dims", {anchor->args()[1]}, *anchor, {{"axis", 0}, {"num_newaxis", 1}}));
  }
  const Expr tuple = MakeTuple(std::move(weights));
  InferType(tuple);
  const Expr stacked = TypedCall("concatenate", {tuple}, *anchors[0], {{"axis", 0}});
  const Expr x = TypedCall("expand_dims", {data}, *anchors[0], {{"axis", 0}, {"num_newaxis", 1}});
  return TypedCall("nn.batch_matmul", {x, stacked}, *anchors[0],
                   {{"transpose_b", true}, {"out_dtype", anchors[0]->attrs().String("out_dtype")}});
}

ParallelAnchor BatchedDense() {
  return {.op = "nn.dense",
          .fits = [](const CallNode& a, const CallNode& b) { return WeightsFit(a, b, -1); },
          .combine = BatchProduct,
          .result_axis = 1,
          .free_attrs = {"units"},
          .part =
              [](const Expr& wide, int64_t index, const ExprNode& origin) {
                const Expr slice = TypedCall("strided_slice", {wide}, origin,
                                             {{"begin", std::vector<int64_t>{index}},
                                              {"end", std::vector<int64_t>{index + 1}},
                                              {"axes", std::vector<int64_t>{0}}});
                return TypedCall("squeeze", {slice}, origin, {{"axis", std::vector<int64_t>{0}}});
              }};
}

}  // namespace

Function CombineParallelDense(const Function& function, const IRModule&, const PassContext& context) {
  const bool to_batch = context.ConfigBool("relay.CombineParallelDense.to_batch");
  return CombineParallel(function, to_batch ? BatchedDense() : WideDense(),
                         context.ConfigInt("relay.CombineParallelDense.min_num_branches"));
}

}  // namespace collage
