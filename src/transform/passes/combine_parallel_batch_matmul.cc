// combine_parallel_batch_matmul.cc: batch products with one left factor become one with more columns.
#include "transform/passes/combine_parallel.h"

namespace collage {
namespace {

/// Dimension of the right factor that becomes the result's columns.
int ColumnAxis(const CallNode& call) { return call.attrs().Bool("transpose_b") ? 1 : 2; }

}  // namespace

ParallelAnchor WideBatchMatmul() {
  return {.op = "nn.batch_matmul",
          .fits = [](const CallNode& a, const CallNode& b) { return WeightsFit(a, b, ColumnAxis(a)); },
          .combine =
              [](const Expr& data, const std::vector<const CallNode*>& anchors) {
                return TypedCall("nn.batch_matmul", {data, ConcatenatedWeights(anchors, ColumnAxis(*anchors[0]))},
                                 *anchors[0], anchors[0]->attrs());
              },
          .result_axis = 2,
          .free_attrs = {}};
}

Function CombineParallelBatchMatmul(const Function& function, const IRModule&, const PassContext& context) {
  return CombineParallel(function, WideBatchMatmul(),
                         context.ConfigInt("relay.CombineParallelBatchMatmul.min_num_branches"));
}

}  // namespace collage
