// pattern.cc: finding all matches of a pattern by backtracking with continuations.
#include "dataflow/pattern.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>

namespace collage {
namespace {

/// Whether the attribute's value is what `text` says: 1, 0.5, True, None, name, "name", [1, 2].
bool HasValue(const AttrValue& value, std::string_view text) {
  if (const std::string* s = value.as_string()) return *s == text || '"' + *s + '"' == text;
  if (const bool* b = value.as_bool()) return text == (*b ? "True" : "False") || text == (*b ? "1" : "0");
  if (const int64_t* i = value.as_int()) return text == std::to_string(*i);
  if (const double* d = value.as_double()) {
    double wanted = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), wanted);
    return code == std::errc() && end == text.data() + text.size() && *d == wanted;
  }
  const AttrValue::List* list = value.as_list();
  if (list == nullptr) return text == "None";
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  text = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < list->size(); ++i) {
    size_t end = 0;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
    }
    if (!HasValue((*list)[i], text.substr(0, end))) return false;
    const bool is_last = i + 1 == list->size();
    if (is_last != (end == text.size())) return false;
    text.remove_prefix(is_last ? end : end + 1);
  }
  return text.empty();
}

bool HasType(const Type& type, const DFPattern& pattern) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) return false;
  if (!pattern.dtype.empty() && tensor->dtype().ToString() != pattern.dtype) return false;
  if (pattern.any_shape) return true;
  const auto fits = [](int64_t wanted, const Dim& dim) {
    return wanted < 0 || (!dim.is_any() && dim.size() == wanted);
  };
  return std::equal(pattern.shape.begin(), pattern.shape.end(), tensor->shape().begin(), tensor->shape().end(), fits);
}

/// Depth of recursion is the pattern's depth, not the graph's.
class PatternMatcher {
 public:
  PatternMatcher(const DataflowGraph& graph, const std::function<void(const std::vector<int>&)>& found)
      : graph_(graph), found_(found) {}

  void Run(const DFPattern& pattern, int root) {
    Match(pattern, root, [this] {
      std::vector<int> inside = inside_;
      std::sort(inside.begin(), inside.end());
      inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
      if (!inside.empty() && reported_.insert(inside).second) found_(inside);
    });
  }

 private:
  using Next = std::function<void()>;

  void Match(const DFPattern& pattern, int index, const Next& next) {
    const DataflowGraph::Node& node = graph_.node(index);
    switch (pattern.kind) {
      case DFPattern::Kind::kWildcard: return next();
      case DFPattern::Kind::kVar:
        if (node.expr->kind() == ExprKind::kVar) next();
        return;
      case DFPattern::Kind::kConstant:
        if (!graph_.IsConstant(index)) return;
        return graph_.CanInline(index) ? next() : MatchInside(index, {}, {}, next);
      case DFPattern::Kind::kAlternative:
        for (const DFPatternPtr& choice : pattern.args) Match(*choice, index, next);
        return;
      case DFPattern::Kind::kTuple:
        if (node.expr->kind() != ExprKind::kTuple || node.inputs.size() != pattern.args.size()) return;
        return MatchInside(index, pattern.args, node.inputs, next);
      case DFPattern::Kind::kProjection: {
        const TupleGetItemNode* item = As<TupleGetItemNode>(node.expr);
        if (item == nullptr || (pattern.index >= 0 && item->index() != pattern.index)) return;
        return MatchInside(index, pattern.args, node.inputs, next);
      }
      case DFPattern::Kind::kTyped:
        if (HasType(node.expr->checked_type(), pattern)) Match(*pattern.args[0], index, next);
        return;
      case DFPattern::Kind::kCall: return MatchCall(pattern, index, next);
      case DFPattern::Kind::kDominates: return MatchDominates(pattern, index, next);
    }
  }

  void MatchCall(const DFPattern& pattern, int index, const Next& next) {
    const OpDef* op = graph_.OpAt(index);
    if (op == nullptr || op->name != pattern.op) return;
    const CallNode* call = As<CallNode>(graph_.node(index).expr);
    for (const auto& [name, text] : pattern.attrs) {
      const AttrValue* value = call->attrs().Find(name);
      if (value == nullptr || !HasValue(*value, text)) return;
    }
    if (pattern.any_args) return MatchInside(index, {}, {}, next);
    const std::vector<int>& inputs = graph_.node(index).inputs;
    std::vector<int> args(inputs.begin() + 1, inputs.end());  // behind the operator
    if (args.size() != pattern.args.size()) return;
    MatchInside(index, pattern.args, args, next);
    if (args.size() == 2 && args[0] != args[1] && (pattern.op == "add" || pattern.op == "multiply")) {
      std::swap(args[0], args[1]);
      MatchInside(index, pattern.args, args, next);
    }
  }

  /// `index` is inside, and `patterns` match `nodes`.
  void MatchInside(int index, const std::vector<DFPatternPtr>& patterns, const std::vector<int>& nodes,
                   const Next& next) {
    inside_.push_back(index);
    MatchAll(patterns, nodes, 0, next);
    inside_.pop_back();
  }

  void MatchAll(const std::vector<DFPatternPtr>& patterns, const std::vector<int>& nodes, size_t from,
                const Next& next) {
    if (from == patterns.size()) return next();
    Match(*patterns[from], nodes[from], [&] { MatchAll(patterns, nodes, from + 1, next); });
  }

  /// args: parent, path, child.
  void MatchDominates(const DFPattern& pattern, int index, const Next& next) {
    Match(*pattern.args[2], index, [&] {
      for (int parent : ParentsOf(index)) {
        Match(*pattern.args[0], parent, [&] {
          const size_t before = inside_.size();
          if (AddPath(*pattern.args[1], parent, index)) next();
          inside_.resize(before);
        });
      }
    });
  }

  /// Nodes above `index` all of whose uses come together in it, nearest first.
  std::vector<int> ParentsOf(int index) {
    if (dominators_.empty()) dominators_ = DominatorParents(graph_);
    std::vector<int> parents;
    std::unordered_set<int> seen;
    std::vector<int> work{index};
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int input : graph_.node(node).inputs) {
        if (graph_.IsInlinedInPartitions(input) || !seen.insert(input).second) continue;
        int dominator = dominators_[static_cast<size_t>(input)];
        while (dominator >= 0 && dominator < index) dominator = dominators_[static_cast<size_t>(dominator)];
        if (dominator == index) parents.push_back(input);
        work.push_back(input);
      }
    }
    std::sort(parents.rbegin(), parents.rend());
    return parents;
  }

  /// Puts the nodes between `parent` and `child` inside; false when one of them does not match.
  bool AddPath(const DFPattern& path, int parent, int child) {
    std::unordered_set<int> on_path;
    std::vector<int> work{parent};
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int output : graph_.node(node).outputs) {
        if (output >= child || !on_path.insert(output).second) continue;
        if (!MatchesAt(path, output)) return false;
        work.push_back(output);
      }
    }
    inside_.insert(inside_.end(), on_path.begin(), on_path.end());
    return true;
  }

  /// Whether `pattern` matches at `index` in some way; nothing that it matches goes inside.
  bool MatchesAt(const DFPattern& pattern, int index) {
    bool matches = false;
    const std::vector<int> inside = inside_;
    Match(pattern, index, [&] { matches = true; });
    inside_ = inside;
    return matches;
  }

  const DataflowGraph& graph_;
  const std::function<void(const std::vector<int>&)>& found_;
  std::vector<int> inside_;
  std::set<std::vector<int>> reported_;
  std::vector<int> dominators_;
};

}  // namespace

void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>&)>& found) {
  PatternMatcher(graph, found).Run(pattern, root);
}

}  // namespace collage
