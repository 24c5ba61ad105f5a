// pattern.cc: parsing patterns, and finding all their matches by backtracking with continuations.
#include "dataflow/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "collage/support/error.h"

namespace collage {
namespace {

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  DFPatternPtr Parse() {
    DFPatternPtr pattern = ParseOne();
    Skip();
    if (at_ != text_.size()) Fail("expected the end");
    return pattern;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ErrorCategory::kInput, fmt::format("{} at character {} of pattern '{}'", what, at_ + 1, text_));
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Accept(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(fmt::format("expected '{}'", c));
  }
  std::string Word() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("._-").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (begin == at_) Fail("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::vector<DFPatternPtr> ParseArgs() {
    std::vector<DFPatternPtr> args;
    Expect('(');
    if (Accept(')')) return args;
    do args.push_back(ParseOne());
    while (Accept(','));
    Expect(')');
    return args;
  }

  DFPatternPtr ParseOne() {
    auto pattern = std::make_shared<DFPattern>();
    if (Accept('*')) return pattern;
    if (Accept('(')) {
      pattern->kind = DFPattern::Kind::kAlternative;
      do pattern->args.push_back(ParseOne());
      while (Accept('|'));
      Expect(')');
      return pattern->args.size() == 1 ? pattern->args[0] : pattern;
    }
    const std::string word = Word();
    if (word == "const") {
      pattern->kind = DFPattern::Kind::kConstant;
      return pattern;
    }
    if (word == "tuple") {
      pattern->kind = DFPattern::Kind::kTuple;
      pattern->args = ParseArgs();
      return pattern;
    }
    if (word == "proj") {
      pattern->kind = DFPattern::Kind::kProjection;
      Expect('(');
      pattern->args = {ParseOne()};
      if (Accept(',')) pattern->index = std::stoi(Word());
      Expect(')');
      return pattern;
    }
    pattern->kind = DFPattern::Kind::kCall;
    pattern->op = word;
    if (FindOp(word) == nullptr) GetOp(word);  // throws with near misses
    if (Accept('{')) {
      do {
        std::string name = Word();
        Expect('=');
        pattern->attrs.emplace_back(std::move(name), Word());
      } while (Accept(','));
      Expect('}');
    }
    pattern->args = ParseArgs();
    return pattern;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool HasValue(const Attrs& attrs, const std::string& name, const std::string& text) {
  const AttrValue* value = attrs.Find(name);
  if (value == nullptr) return false;
  if (const std::string* s = value->as_string()) return *s == text;
  if (const bool* b = value->as_bool()) return text == (*b ? "True" : "False");
  if (const int64_t* i = value->as_int()) return text == std::to_string(*i);
  if (const double* d = value->as_double()) {
    double wanted = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), wanted);
    return code == std::errc() && end == text.data() + text.size() && *d == wanted;
  }
  return value->is_none() && text == "None";
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
    const Expr& expr = graph_.node(index).expr;
    switch (pattern.kind) {
      case DFPattern::Kind::kWildcard: return next();
      case DFPattern::Kind::kConstant:
        if (expr->kind() == ExprKind::kConstant) next();
        return;
      case DFPattern::Kind::kAlternative:
        for (const DFPatternPtr& choice : pattern.args) Match(*choice, index, next);
        return;
      case DFPattern::Kind::kTuple: {
        if (expr->kind() != ExprKind::kTuple || graph_.node(index).inputs.size() != pattern.args.size()) return;
        inside_.push_back(index);
        MatchAll(pattern.args, graph_.node(index).inputs, 0, next);
        inside_.pop_back();
        return;
      }
      case DFPattern::Kind::kProjection: {
        const TupleGetItemNode* item = As<TupleGetItemNode>(expr);
        if (item == nullptr || (pattern.index >= 0 && item->index() != pattern.index)) return;
        inside_.push_back(index);
        Match(*pattern.args[0], graph_.node(index).inputs[0], next);
        inside_.pop_back();
        return;
      }
      case DFPattern::Kind::kCall: return MatchCall(pattern, index, next);
    }
  }

  void MatchCall(const DFPattern& pattern, int index, const Next& next) {
    const OpDef* op = graph_.OpAt(index);
    if (op == nullptr || op->name != pattern.op) return;
    const CallNode* call = As<CallNode>(graph_.node(index).expr);
    if (call->args().size() != pattern.args.size()) return;
    for (const auto& [name, text] : pattern.attrs) {
      if (!HasValue(call->attrs(), name, text)) return;
    }
    const std::vector<int>& inputs = graph_.node(index).inputs;
    std::vector<int> args(inputs.begin() + 1, inputs.end());  // behind the operator
    inside_.push_back(index);
    MatchAll(pattern.args, args, 0, next);
    if (args.size() == 2 && (pattern.op == "add" || pattern.op == "multiply")) {
      std::swap(args[0], args[1]);
      MatchAll(pattern.args, args, 0, next);
    }
    inside_.pop_back();
  }

  void MatchAll(const std::vector<DFPatternPtr>& patterns, const std::vector<int>& nodes, size_t from, const Next& next) {
    if (from == patterns.size()) return next();
    Match(*patterns[from], nodes[from], [&] { MatchAll(patterns, nodes, from + 1, next); });
  }

  const DataflowGraph& graph_;
  const std::function<void(const std::vector<int>&)>& found_;
  std::vector<int> inside_;
  std::set<std::vector<int>> reported_;
};

}  // namespace

DFPatternPtr ParsePattern(std::string_view text) { return PatternParser(text).Parse(); }

void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>&)>& found) {
  PatternMatcher(graph, found).Run(pattern, root);
}

}  // namespace collage
