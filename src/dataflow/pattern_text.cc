// pattern_text.cc: patterns as text, by recursion (as deep as the pattern).
#include <fmt/format.h>

#include "collage/support/error.h"
#include "dataflow/pattern.h"

namespace collage {
namespace {

/// Prints one pattern; sub-patterns that stand in several places are named where they come first.
class PatternPrinter {
 public:
  explicit PatternPrinter(const DFPattern& pattern) : num_uses_(CountUses(pattern)) {}

  std::string Print(const DFPattern& pattern) {
    const auto uses = num_uses_.find(&pattern);
    if (uses == num_uses_.end() || uses->second == 1) return PrintNew(pattern);
    const auto [name, is_new] = names_.emplace(&pattern, names_.size() + 1);
    const std::string reference = fmt::format("${}", name->second);
    return is_new && pattern.kind != DFPattern::Kind::kWildcard ? reference + "=" + PrintNew(pattern) : reference;
  }

 private:
  std::string PrintNew(const DFPattern& pattern) {
    switch (pattern.kind) {
      case DFPattern::Kind::kWildcard: return "*";
      case DFPattern::Kind::kConstant: return "const";
      case DFPattern::Kind::kVar: return pattern.op.empty() ? "var" : "%" + pattern.op;
      case DFPattern::Kind::kExpr: throw Error(ErrorCategory::kInput, "a pattern of a given expression has no text");
      case DFPattern::Kind::kOp: return pattern.op;
      case DFPattern::Kind::kCall: return CallText(pattern, "");
      case DFPattern::Kind::kTuple: return "tuple(" + Joined(pattern.args, 0, ", ") + ")";
      case DFPattern::Kind::kProjection: {
        const std::string tuple = Print(*pattern.args[0]);
        return fmt::format("proj({}{})", tuple, pattern.index < 0 ? "" : ", " + std::to_string(pattern.index));
      }
      case DFPattern::Kind::kAlternative:
        if (IsOptional(pattern) && num_uses_.at(pattern.args[0].get()) == 1) return CallText(*pattern.args[0], "?");
        return "(" + Joined(pattern.args, 0, " | ") + ")";
      case DFPattern::Kind::kFunction: {
        const std::vector<DFPatternPtr> params(pattern.args.begin(), pattern.args.end() - 1);
        const std::string params_text = pattern.any_args ? "..." : Joined(params, 0, ", ");
        return fmt::format("fn{}({} -> {})", AttrsText(pattern), params_text, Print(*pattern.args.back()));
      }
      case DFPattern::Kind::kLet: return "let(" + Joined(pattern.args, 0, ", ") + ")";
      case DFPattern::Kind::kIf: return "if(" + Joined(pattern.args, 0, ", ") + ")";
      case DFPattern::Kind::kDominates: return "dominates(" + Joined(pattern.args, 0, ", ") + ")";
      case DFPattern::Kind::kTyped: return Print(*pattern.args[0]) + ":" + TypeText(pattern);
    }
    return "";
  }

  std::string Joined(const std::vector<DFPatternPtr>& patterns, size_t from, const char* separator) {
    std::string text;
    for (size_t i = from; i < patterns.size(); ++i) text += (i > from ? separator : "") + Print(*patterns[i]);
    return text;
  }

  static std::string AttrsText(const DFPattern& pattern) {
    std::string text;
    for (const auto& [name, value] : pattern.attrs) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
    }
    return text.empty() ? "" : "{" + text + "}";
  }

  static std::string TypeText(const DFPattern& pattern) {
    if (pattern.any_shape) return pattern.dtype;
    std::string dims;
    for (int64_t dim : pattern.shape) dims += (dims.empty() ? "" : ", ") + (dim < 0 ? "?" : std::to_string(dim));
    return "[" + dims + "]" + pattern.dtype;
  }

  /// `mark` stands between the callee and what follows.
  std::string CallText(const DFPattern& pattern, const char* mark) {
    std::string callee = pattern.op;
    if (callee.empty()) {
      callee = Print(*pattern.args[0]);
      if (!callee.starts_with('(')) callee = "(" + callee + ")";
    }
    const std::string args = pattern.any_args ? "..." : Joined(pattern.args, pattern.op.empty() ? 1 : 0, ", ");
    return callee + mark + AttrsText(pattern) + "(" + args + ")";
  }

  std::unordered_map<const DFPattern*, int> num_uses_;
  std::unordered_map<const DFPattern*, size_t> names_;
};

}  // namespace

bool IsOptional(const DFPattern& pattern) {
  if (pattern.kind != DFPattern::Kind::kAlternative || pattern.args.size() != 2) return false;
  const DFPattern& call = *pattern.args[0];
  return call.kind == DFPattern::Kind::kCall && !call.op.empty() && !call.any_args && !call.args.empty() &&
         call.args[0] == pattern.args[1];
}

std::string PatternText(const DFPattern& pattern) { return PatternPrinter(pattern).Print(pattern); }

}  // namespace collage
