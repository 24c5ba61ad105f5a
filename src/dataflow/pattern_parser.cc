// pattern_parser.cc: patterns from text, by recursive descent (as deep as the text's brackets).
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <map>

#include "collage/support/error.h"
#include "dataflow/pattern.h"

namespace collage {
namespace {

// Brackets nest at most this deep: a pattern is written by hand.
constexpr int kMaxDepth = 500;

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  DFPatternPtr Parse() {
    DFPatternPtr pattern = ParseOne();
    Skip();
    if (at_ != text_.size()) Fail("expected the end");
    if (pattern->kind == DFPattern::Kind::kOp) Fail("expected '(': an operator alone computes nothing");
    return pattern;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ErrorCategory::kInput, fmt::format("{} at character {} of pattern '{}'", what, at_ + 1, text_));
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Accept(std::string_view token) {
    Skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void Expect(std::string_view token) {
    if (!Accept(token)) Fail(fmt::format("expected '{}'", token));
  }
  std::string Word() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("._").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (begin == at_) Fail("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  int64_t Number() {
    Skip();
    int64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (code != std::errc() || number < 0 || number > INT32_MAX) Fail("expected a number");
    at_ += static_cast<size_t>(end - begin);
    return number;
  }

  /// An attribute's value up to ',' or '}' outside of brackets, without spaces.
  std::string Value() {
    std::string value;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == '}')) break;
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      if (c != ' ') value += c == '(' ? '[' : c == ')' ? ']' : c;
    }
    if (value.empty() || depth != 0) Fail("expected a value");
    return value;
  }

  std::vector<DFPatternPtr> ParseArgs() {
    std::vector<DFPatternPtr> args;
    Expect("(");
    if (Accept(")")) return args;
    do args.push_back(ParseOne());
    while (Accept(","));
    Expect(")");
    return args;
  }

  DFPatternPtr ParseOne() {
    if (++depth_ > kMaxDepth) Fail("brackets nest too deeply");
    DFPatternPtr pattern = ParseUntyped();
    while (Accept(":")) {
      auto typed = std::make_shared<DFPattern>();
      typed->kind = DFPattern::Kind::kTyped;
      typed->args = {std::move(pattern)};
      if (Accept("[")) {
        typed->any_shape = false;
        if (!Accept("]")) {
          do typed->shape.push_back(Accept("?") ? -1 : Number());
          while (Accept(","));
          Expect("]");
        }
      }
      Skip();
      const bool has_dtype = at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0;
      if (typed->any_shape || has_dtype) typed->dtype = Word();
      pattern = std::move(typed);
    }
    --depth_;
    return pattern;
  }

  DFPatternPtr ParseUntyped() {
    auto pattern = std::make_shared<DFPattern>();
    if (Accept("*")) return pattern;
    if (Accept("$")) return ParseNamed();
    if (Accept("%")) {
      pattern->kind = DFPattern::Kind::kVar;
      pattern->op = Word();
      return pattern;
    }
    if (Accept("(")) {
      pattern->kind = DFPattern::Kind::kAlternative;
      do pattern->args.push_back(ParseOne());
      while (Accept("|"));
      Expect(")");
      return MaybeCalled(pattern->args.size() == 1 ? pattern->args[0] : pattern);
    }
    Skip();
    const size_t begin = at_;
    const std::string word = Word();
    if (word == "const") {
      pattern->kind = DFPattern::Kind::kConstant;
    } else if (word == "var") {
      pattern->kind = DFPattern::Kind::kVar;
    } else if (word == "tuple") {
      pattern->kind = DFPattern::Kind::kTuple;
      pattern->args = ParseArgs();
    } else if (word == "fn") {
      ParseFunction(*pattern);
      return MaybeCalled(pattern);
    } else if (word == "let" || word == "if" || word == "dominates") {
      pattern->kind = word == "let"  ? DFPattern::Kind::kLet
                      : word == "if" ? DFPattern::Kind::kIf
                                     : DFPattern::Kind::kDominates;
      pattern->args = ParseArgs();
      if (pattern->args.size() != 3) {
        Fail(word == "let"  ? "'let' takes a variable, a value and a body"
             : word == "if" ? "'if' takes a condition and two branches"
                            : "'dominates' takes a parent, a path and a child");
      }
    } else if (word == "proj") {
      pattern->kind = DFPattern::Kind::kProjection;
      Expect("(");
      pattern->args = {ParseOne()};
      if (Accept(",")) pattern->index = static_cast<int>(Number());
      Expect(")");
    } else {
      return ParseCall(word, begin, pattern);
    }
    return pattern;
  }

  /// `$x=P`, or `$x` for what was named so; anything, where nothing was.
  DFPatternPtr ParseNamed() {
    const std::string name = Word();
    if (!Accept("=")) {
      DFPatternPtr& named = named_[name];
      if (named == nullptr) named = std::make_shared<DFPattern>();
      return named;
    }
    const size_t end = at_;
    DFPatternPtr pattern = ParseOne();
    if (named_.emplace(name, pattern).second) return pattern;
    at_ = end - 1;
    Fail(fmt::format("'${}' stands for something already,", name));
  }

  /// `callee`, or a call of it when arguments follow.
  DFPatternPtr MaybeCalled(DFPatternPtr callee) {
    if (at_ >= text_.size() || (text_[at_] != '(' && text_[at_] != '{')) return callee;
    auto call = std::make_shared<DFPattern>();
    call->kind = DFPattern::Kind::kCall;
    call->args = {std::move(callee)};
    ParseAttrs(*call);
    ParseCallArgs(*call);
    return call;
  }

  void ParseAttrs(DFPattern& pattern) {
    if (!Accept("{")) return;
    do {
      std::string name = Word();
      Expect("=");
      pattern.attrs.emplace_back(std::move(name), Value());
    } while (Accept(","));
    Expect("}");
  }

  void ParseCallArgs(DFPattern& pattern) {
    if (Accept("(...)")) {
      pattern.any_args = true;
      return;
    }
    for (DFPatternPtr& arg : ParseArgs()) pattern.args.push_back(std::move(arg));
  }

  void ParseFunction(DFPattern& pattern) {
    pattern.kind = DFPattern::Kind::kFunction;
    ParseAttrs(pattern);
    Expect("(");
    if (Accept("...")) {
      pattern.any_args = true;
      Expect("->");
    } else if (!Accept("->")) {
      do pattern.args.push_back(ParseOne());
      while (Accept(","));
      Expect("->");
    }
    pattern.args.push_back(ParseOne());
    Expect(")");
  }

  DFPatternPtr ParseCall(const std::string& op, size_t begin, const std::shared_ptr<DFPattern>& pattern) {
    pattern->kind = DFPattern::Kind::kOp;
    pattern->op = op;
    if (FindOp(op) == nullptr) {
      at_ = begin;
      std::string similar;
      for (const std::string& name : SimilarOps(op)) similar += (similar.empty() ? "did you mean " : " or ") + name;
      throw Error(ErrorCategory::kInput,
                  fmt::format("there is no operator '{}', at character {} of pattern '{}'", op, at_ + 1, text_), "",
                  similar);
    }
    const bool is_optional = Accept("?");
    Skip();
    const bool is_called = at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '{');
    if (!is_called && !is_optional) return pattern;  // the operator itself
    pattern->kind = DFPattern::Kind::kCall;
    ParseAttrs(*pattern);
    ParseCallArgs(*pattern);
    if (!is_optional) return pattern;
    if (pattern->args.empty()) Fail("an optional call needs the pattern of its first argument");
    auto either = std::make_shared<DFPattern>();
    either->kind = DFPattern::Kind::kAlternative;
    either->args = {pattern, pattern->args[0]};
    return either;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, DFPatternPtr> named_;
};

}  // namespace

DFPatternPtr ParsePattern(std::string_view text) { return PatternParser(text).Parse(); }

}  // namespace collage
