// sub_graph.cc: derived node sets, validity, extraction.
#include "collage/sub_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

void AddOnce(std::vector<int>& list, int index) {
  if (std::find(list.begin(), list.end(), index) == list.end()) list.push_back(index);
}

}  // namespace

SubGraph::SubGraph(const DataflowGraph& graph, std::vector<int> inside)
    : inside_(graph.size(), inside), members_(std::move(inside)) {
  COLLAGE_CHECK(!members_.empty()) << "an empty sub-graph";
  std::sort(members_.begin(), members_.end());
  std::unordered_map<int, int> depth_of;
  for (int index : members_) {
    const DataflowGraph::Node& node = graph.node(index);
    int depth = 0;
    for (int input : node.inputs) {
      if (inside_.Contains(input)) {
        depth = std::max(depth, depth_of[input]);
      } else if (!graph.CanInline(input)) {
        AddOnce(input_, input);
        AddOnce(entry_, index);
      }
    }
    const bool counts = graph.OpAt(index) != nullptr;
    depth_of[index] = depth + (counts ? 1 : 0);
    depth_ = std::max(depth_, depth_of[index]);
    for (int output : node.outputs) {
      if (inside_.Contains(output)) continue;
      AddOnce(exit_, index);
      AddOnce(output_, output);
    }
    if (node.is_external) AddOnce(exit_, index);
    kind_ = std::max(kind_, graph.KindAt(index));
  }
}

std::string SubGraph::Label(const DataflowGraph& graph) const {
  std::string label;
  for (int index : members_) {
    if (graph.OpAt(index) != nullptr) label += (label.empty() ? "" : "+") + graph.LabelAt(index);
  }
  return label;
}

Result<void> SubGraph::CheckValid(const DataflowGraph& graph, const SubGraphConfig& config) const {
  if (config.max_exits > 0 && static_cast<int>(exit_.size()) > config.max_exits) {
    return Reason{fmt::format("{} exits, at most {} are allowed", exit_.size(), config.max_exits), "sub-graph"};
  }
  if (config.max_depth > 0 && depth_ > config.max_depth) {
    return Reason{fmt::format("depth {}, at most {} is allowed", depth_, config.max_depth), "sub-graph"};
  }
  if (!config.allow_taps) {
    for (int index : exit_) {
      for (int output : graph.node(index).outputs) {
        if (inside_.Contains(output)) return Reason{fmt::format("node {} is a tap", index), "sub-graph"};
      }
    }
  }
  // Nodes between first and last that depend on the sub-graph from outside must not feed it: post-dfs order is
  // topological, so one sweep finds them.
  std::vector<char> tainted(static_cast<size_t>(last() - first() + 1));
  for (int index = first(); index <= last(); ++index) {
    const bool is_inside = inside_.Contains(index);
    for (int input : graph.node(index).inputs) {
      if (input < first()) continue;
      const bool from_tainted = tainted[static_cast<size_t>(input - first())] != 0;
      if (is_inside && from_tainted) {
        return Reason{fmt::format("a path leaves and comes back at node {}", index), "sub-graph"};
      }
      if (!is_inside && (from_tainted || inside_.Contains(input))) tainted[static_cast<size_t>(index - first())] = 1;
    }
  }
  return {};
}

namespace {

/// Builds the function of one sub-graph.
class Extractor {
 public:
  Extractor(const DataflowGraph& graph, const SubGraph& sub_graph) : graph_(graph), sub_graph_(sub_graph) {}

  ExtractedFunction Run() {
    ExtractedFunction extracted;
    for (const NestedSubGraph& nested : sub_graph_.nested) {
      for (int index : nested.inside) nested_of_[index] = &nested;
    }
    for (int index : sub_graph_.members()) {
      auto nested = nested_of_.find(index);
      if (nested == nested_of_.end()) {
        values_[index] = Rebuild(index, values_);
      } else if (index == nested->second->inside.back()) {
        CallNested(*nested->second);
      }
    }
    extracted.output_nodes = sub_graph_.exit();
    std::vector<Expr> results;
    for (int index : extracted.output_nodes) results.push_back(values_.at(index));
    const Expr body = results.size() == 1 ? results[0] : MakeTuple(results);
    extracted.input_nodes = inputs_;
    extracted.function = MakeFunction(params_, body);
    InferType(extracted.function);
    return extracted;
  }

 private:
  using Values = std::unordered_map<int, Expr>;

  /// Node `index` with its inputs taken from `values`, from the parameters, or inlined.
  Expr Rebuild(int index, Values& values) {
    const Expr& expr = graph_.node(index).expr;
    std::vector<Expr> children;
    for (int input : graph_.node(index).inputs) {
      auto it = values.find(input);
      children.push_back(it != values.end()         ? it->second
                         : graph_.CanInline(input) ? graph_.node(input).expr
                                                    : Outside(input, values));
    }
    const Expr result = WithChildren(expr, children);
    result->set_checked_type(expr->checked_type());
    return result;
  }

  Expr Outside(int index, Values& values) {
    if (&values != &values_) {  // within a nested function: a parameter of its own
      auto outer = values_.find(index);
      const Expr argument = outer != values_.end() ? outer->second : Outside(index, values_);
      nested_params_.push_back(NewParam(index));
      nested_args_.push_back(argument);
      return values[index] = nested_params_.back();
    }
    inputs_.push_back(index);
    params_.push_back(NewParam(index));
    return values_[index] = params_.back();
  }

  Var NewParam(int index) {
    const Type& type = graph_.node(index).expr->checked_type();
    if (AsTensorType(type) == nullptr) {
      throw Error(ErrorCategory::kUnsupported, "a partition's input is no tensor: " + ToString(type));
    }
    const Var param = MakeVar(fmt::format("FunctionVar_{}", num_params_++), type);
    param->set_checked_type(type);
    return param;
  }

  void CallNested(const NestedSubGraph& nested) {
    nested_params_.clear();
    nested_args_.clear();
    Values inner;
    for (int index : nested.inside) inner[index] = Rebuild(index, inner);
    const int root = nested.inside.back();
    const Function function = MakeFunction(nested_params_, inner.at(root), nullptr, nested.attrs);
    InferType(function);
    const Expr call = MakeCall(Expr(function), nested_args_);
    call->share_span(*graph_.node(root).expr);
    InferType(call);
    values_[root] = call;
  }

  const DataflowGraph& graph_;
  const SubGraph& sub_graph_;
  std::unordered_map<int, const NestedSubGraph*> nested_of_;
  Values values_;
  std::vector<Var> params_;
  std::vector<int> inputs_;
  std::vector<Var> nested_params_;
  std::vector<Expr> nested_args_;
  int num_params_ = 0;
};

}  // namespace

ExtractedFunction Extract(const DataflowGraph& graph, const SubGraph& sub_graph) {
  return Extractor(graph, sub_graph).Run();
}

}  // namespace collage
