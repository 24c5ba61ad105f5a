// proposals.cc: the table of what is computed as one, and its matches.
#include "backends/native/proposals.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/native/description/attention.h"
#include "backends/native/description/depthwise_chain.h"
#include "backends/native/description/scaled_convolution.h"
#include "backends/native/operators.h"
#include "backends/native/parallel_products.h"
#include "collage/ir/visitor.h"
#include "partition/partition_rule.h"

namespace collage::native {
namespace {

Result<void> AreLowered(const Expr& body) {
  Result<void> answer;
  PostOrder(body, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || !answer.ok()) return;
    answer = IsLowered(*call);
  });
  return answer;
}

Result<void> IsAttention(const Function& function) {
  if (Result<void> lowered = AreLowered(function->body()); !lowered.ok()) return lowered;
  Expr result = function->body();
  const CallNode* call = As<CallNode>(result);
  for (; call != nullptr && call->op() != nullptr && IsMovement(*call->op()); call = As<CallNode>(result)) {
    result = call->args()[0];
  }
  const Result<Attention> attention = AttentionFinder(function->body()).Find(result);
  return attention.ok() ? Result<void>() : attention.reason();
}

/// Whether a convolution in `function` has weights that take over the scale of its data.
Result<void> IsScaledConvolution(const Function& function) {
  if (Result<void> lowered = AreLowered(function->body()); !lowered.ok()) return lowered;
  if (AsTensorType(function->body()->checked_type()) == nullptr) return Reason{"its data are wanted, too", "native"};
  Result<void> answer = Reason{"has no convolution", "native"};
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->op()->name != "nn.conv2d") return;
    const Result<ChannelScale> scale = ScaleOfWeights(*call);
    answer = scale.ok() ? Result<void>() : scale.reason();
  });
  return answer;
}

/// Whether `function` gives what is made, element by element, of a chain that is worth one kernel, and has no more in
/// it.
Result<void> IsDepthwiseChain(const Function& function) {
  if (Result<void> lowered = AreLowered(function->body()); !lowered.ok()) return lowered;
  if (AsTensorType(function->body()->checked_type()) == nullptr) return Reason{"others read it, too", "native"};
  const Expr last = ConvolutionUnder(function->body());
  if (last == nullptr) return Reason{"does not end in a convolution", "native"};
  const Result<DepthwiseChain> chain = DepthwiseChainFinder(function->body()).Find(last);
  if (!chain.ok()) return chain.reason();
  int num_convolutions = 0;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr && IsConvolution(call->op()->name)) ++num_convolutions;
  });
  const int in_chain = 1 + (chain->expansion != nullptr ? 1 : 0) + (chain->projection != nullptr ? 1 : 0);
  if (num_convolutions != in_chain) return Reason{"has other convolutions, too", "native"};
  return IsWorthOneKernel(*chain);
}

bool IsNearestResize(const CallNode& call) {
  return call.op()->name.starts_with("image.resize") && call.attrs().String("method") == "nearest_neighbor";
}

/// Whether a pool takes elements that repeat others: it reads those.
Result<void> IsPoolOfRepeated(const Function& function) {
  if (Result<void> lowered = AreLowered(function->body()); !lowered.ok()) return lowered;
  const CallNode* resize = As<CallNode>(As<CallNode>(function->body())->args()[0]);
  if (!IsNearestResize(*resize)) return Reason{"its elements are between those of the image", "native"};
  return {};
}

std::vector<PatternTableEntry> MakeTable() {
  // Each score is made from the one in its place.
  const std::string in_place =
      "(reshape | expand_dims | squeeze | cast | add | subtract | multiply | divide | where | maximum | minimum | clip"
      " | tanh)(...)";
  const auto attention = [&](const char* queries, const char* keys, const char* values) {
    return fmt::format("dominates(dominates(nn.batch_matmul({}, {}), {}, nn.softmax(*)), {}, nn.batch_matmul(*, {}))",
                       queries, keys, in_place, in_place, values);
  };
  // With the heads split off before, and joined behind.
  const char* split = "reshape?(transpose(*))";
  const char* split_queries =
      "(reshape?(transpose(*)) | reshape?(divide(transpose(*), *)) | reshape?(multiply(transpose(*), *)))";
  const auto and_then = [](const std::string& parent, const std::string& child) {
    return fmt::format(
        "dominates({}, (add | subtract | multiply | divide | maximum | minimum | clip | nn.relu | sigmoid"
        " | tanh | erf)(...), {})",
        parent, child);
  };
  const std::string convolution = "nn.conv2d(*, *)";
  const std::string pair = and_then(convolution, convolution);
  const std::string three = and_then(pair, convolution);
  const char* last = "(add | multiply | maximum | clip | nn.relu)(...)";
  return {{"native.depthwise_pair", pair, IsDepthwiseChain},
          {"native.depthwise_pair_then", and_then(pair, last), IsDepthwiseChain},
          {"native.depthwise_block", three, IsDepthwiseChain},
          {"native.depthwise_block_then", and_then(three, last), IsDepthwiseChain},
          {"native.attention", attention("*", "*", "*"), IsAttention},
          {"native.attention_heads", fmt::format("transpose(reshape?({}))", attention(split_queries, split, split)),
           IsAttention},
          {"native.scaled_conv2d", "add?(nn.conv2d(multiply(*, *), *), *)", IsScaledConvolution},
          {"native.scaled_conv2d_sum", "add(add(nn.conv2d(multiply(*, *), *), *), *)", IsScaledConvolution},
          {"native.repeated_pool1d", "(nn.max_pool1d | nn.avg_pool1d)(image.resize1d(*))", IsPoolOfRepeated},
          {"native.repeated_pool2d", "(nn.max_pool2d | nn.avg_pool2d)(image.resize2d(*))", IsPoolOfRepeated},
          {"native.repeated_pool3d", "(nn.max_pool3d | nn.avg_pool3d)(image.resize3d(*))", IsPoolOfRepeated}};
}

/// Whether `function` holds an operator without which no row matches.
bool MayMatch(const Function& function) {
  bool may_match = false;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return;
    may_match = may_match || call->op()->name == "nn.softmax" || IsNearestResize(*call) || ScaleOfWeights(*call).ok() ||
                IsDepthwise(*call);
  });
  return may_match;
}

int NumConvolutions(const std::vector<Expr>& inside) {
  return static_cast<int>(std::ranges::count_if(inside, [](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    return call != nullptr && call->op() != nullptr && IsConvolution(call->op()->name);
  }));
}

/// Leaves chains of the same convolutions out that end before others do.
void KeepLongest(std::vector<std::vector<Expr>>& chains) {
  const auto is_part = [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return a.size() < b.size() && NumConvolutions(a) == NumConvolutions(b) &&
           std::ranges::all_of(a, [&](const Expr& expr) { return std::ranges::find(b, expr) != b.end(); });
  };
  const std::vector<std::vector<Expr>> all = chains;
  std::erase_if(chains, [&](const std::vector<Expr>& one) {
    return std::ranges::any_of(all, [&](const std::vector<Expr>& other) { return is_part(one, other); });
  });
}

}  // namespace

const std::vector<PatternTableEntry>& ProposedPatterns() {
  static const std::vector<PatternTableEntry> table = MakeTable();
  return table;
}

std::vector<std::vector<Expr>> ProposalsIn(const Function& function, const Toolchain& toolchain) {
  const DataflowGraph graph(function);
  std::vector<std::vector<Expr>> proposals = ParallelProducts(graph);
  if (!MayMatch(function)) return proposals;
  std::vector<std::vector<Expr>> chains;
  RuleLog log;
  for (const PatternTableEntry& row : ProposedPatterns()) {
    const PartitionRulePtr rule = DFPatternRule(row.name, ParsePattern(row.pattern), row.predicate);
    for (const CandidatePartition& match : rule->AllCandidates(graph, toolchain, log)) {
      std::vector<Expr>& inside = (row.name.starts_with("native.depthwise") ? chains : proposals).emplace_back();
      for (const int index : match.sub_graph.members()) inside.push_back(graph.node(index).expr);
    }
  }
  KeepLongest(chains);
  proposals.insert(proposals.end(), chains.begin(), chains.end());
  return proposals;
}

}  // namespace collage::native
