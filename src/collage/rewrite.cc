// rewrite.cc: partitions and left-over nodes are units; a unit is emitted when all that it reads is there.
#include "collage/rewrite.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "target/annotations.h"

namespace collage {
namespace {

class Rewriter {
 public:
  Rewriter(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen) : graph_(graph), chosen_(chosen) {}

  std::optional<Function> Run() {
    for (size_t i = 0; i < chosen_.size(); ++i) {
      extracted_.push_back(Extract(graph_, chosen_[i].candidate->sub_graph));
      for (int node : extracted_.back().output_nodes) producer_[node] = i;
    }
    const int body = graph_.IndexOf(graph_.function()->body());
    if (!Emit(body)) return std::nullopt;
    Function result = MakeFunction(graph_.function()->params(), values_.at(body), graph_.function()->result_type(),
                                   graph_.function()->attrs(), graph_.function()->type_params());
    result->share_span(*graph_.function());
    InferType(result);
    return result;
  }

 private:
  /// Units that node `index` must wait for: the inputs of its partition, or its own.
  std::vector<int> Needs(int index) const {
    auto partition = producer_.find(index);
    if (partition != producer_.end()) return extracted_[partition->second].input_nodes;
    std::vector<int> needs;
    for (int input : graph_.node(index).inputs) {
      if (!graph_.CanInline(input)) needs.push_back(input);
    }
    return needs;
  }

  /// Depth-first with an explicit stack; false for a circle.
  bool Emit(int root) {
    struct Frame {
      int node;
      std::vector<int> needs;
      size_t next = 0;
    };
    std::vector<Frame> stack{{root, Needs(root), 0}};
    std::map<std::pair<bool, size_t>, bool> open;  // units on the stack
    const auto unit = [&](int node) {
      auto partition = producer_.find(node);
      return partition != producer_.end() ? std::pair(true, partition->second) : std::pair(false, static_cast<size_t>(node));
    };
    open[unit(root)] = true;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.needs.size()) {
        if (!values_.contains(frame.node)) Make(frame.node);
        open[unit(frame.node)] = false;
        stack.pop_back();
        continue;
      }
      const int need = frame.needs[frame.next++];
      if (values_.contains(need)) continue;
      if (open[unit(need)]) return false;
      open[unit(need)] = true;
      stack.push_back({need, Needs(need), 0});
    }
    return true;
  }

  void Make(int index) {
    auto partition = producer_.find(index);
    if (partition != producer_.end()) return CallPartition(partition->second);
    const Expr& expr = graph_.node(index).expr;
    if (graph_.CanInline(index) || expr->kind() == ExprKind::kVar) {
      values_[index] = expr;
      return;
    }
    std::vector<Expr> children;
    for (int input : graph_.node(index).inputs) {
      children.push_back(graph_.CanInline(input) ? graph_.node(input).expr : values_.at(input));
    }
    const Expr copy = WithChildren(expr, children);
    InferType(copy);
    values_[index] = copy;
  }

  void CallPartition(size_t number) {
    const ChosenPartition& chosen = chosen_[number];
    const ExtractedFunction& extracted = extracted_[number];
    const Toolchain& toolchain = *chosen.candidate->toolchain;
    Attrs attrs{{kAttrPrimitive, 1}, {kAttrEstimate, chosen.estimated_seconds}};
    if (!toolchain.is_native()) attrs.Set(kAttrCompiler, toolchain.name());
    attrs.Set("global_symbol", fmt::format("collage_{}_{}", toolchain.name(), number));
    Function function = MakeFunction(extracted.function->params(), extracted.function->body(), nullptr, std::move(attrs));
    InferType(function);
    function = WithLayouts(function, chosen.layouts);
    std::vector<Expr> args;
    for (int node : extracted.input_nodes) args.push_back(values_.at(node));
    const Expr call = MakeCall(Expr(function), std::move(args));
    InferType(call);
    const std::vector<int>& outputs = extracted.output_nodes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Expr value = outputs.size() == 1 ? call : MakeTupleGetItem(call, static_cast<int>(i));
      InferType(value);
      values_[outputs[i]] = value;
    }
  }

  const DataflowGraph& graph_;
  const std::vector<ChosenPartition>& chosen_;
  std::vector<ExtractedFunction> extracted_;
  std::unordered_map<int, size_t> producer_;
  std::unordered_map<int, Expr> values_;
};

}  // namespace

std::optional<Function> RewritePartitions(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen) {
  return Rewriter(graph, chosen).Run();
}

}  // namespace collage
