// pattern_text.cc: patterns as text, by recursion (as deep as the pattern).
#include <fmt/format.h>

#include "collage/support/error.h"
#include "dataflow/pattern.h"

namespace collage {
namespace {

std::string Joined(const std::vector<DFPatternPtr>& patterns, size_t from, const char* separator) {
  std::string text;
  for (size_t i = from; i < patterns.size(); ++i) text += (i > from ? separator : "") + PatternText(*patterns[i]);
  return text;
}

std::string AttrsText(const DFPattern& pattern) {
  std::string text;
  for (const auto& [name, value] : pattern.attrs) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "" : "{" + text + "}";
}

std::string TypeText(const DFPattern& pattern) {
  if (pattern.any_shape) return pattern.dtype;
  std::string dims;
  for (int64_t dim : pattern.shape) dims += (dims.empty() ? "" : ", ") + (dim < 0 ? "?" : std::to_string(dim));
  return "[" + dims + "]" + pattern.dtype;
}

std::string CallText(const DFPattern& pattern) {
  std::string callee = pattern.op;
  if (callee.empty()) {
    callee = PatternText(*pattern.args[0]);
    if (pattern.args[0]->kind != DFPattern::Kind::kAlternative) callee = "(" + callee + ")";
  }
  const std::string args = pattern.any_args ? "..." : Joined(pattern.args, pattern.op.empty() ? 1 : 0, ", ");
  return callee + AttrsText(pattern) + "(" + args + ")";
}

}  // namespace

std::string PatternText(const DFPattern& pattern) {
  switch (pattern.kind) {
    case DFPattern::Kind::kWildcard: return "*";
    case DFPattern::Kind::kConstant: return "const";
    case DFPattern::Kind::kVar: return pattern.op.empty() ? "var" : "%" + pattern.op;
    case DFPattern::Kind::kExpr: throw Error(ErrorCategory::kInput, "a pattern of a given expression has no text");
    case DFPattern::Kind::kOp: return pattern.op;
    case DFPattern::Kind::kCall: return CallText(pattern);
    case DFPattern::Kind::kTuple: return "tuple(" + Joined(pattern.args, 0, ", ") + ")";
    case DFPattern::Kind::kProjection:
      return fmt::format("proj({}{})", PatternText(*pattern.args[0]),
                         pattern.index < 0 ? "" : ", " + std::to_string(pattern.index));
    case DFPattern::Kind::kAlternative: return "(" + Joined(pattern.args, 0, " | ") + ")";
    case DFPattern::Kind::kFunction: {
      std::vector<DFPatternPtr> params(pattern.args.begin(), pattern.args.end() - 1);
      return fmt::format("fn{}({} -> {})", AttrsText(pattern), pattern.any_args ? "..." : Joined(params, 0, ", "),
                         PatternText(*pattern.args.back()));
    }
    case DFPattern::Kind::kLet: return "let(" + Joined(pattern.args, 0, ", ") + ")";
    case DFPattern::Kind::kIf: return "if(" + Joined(pattern.args, 0, ", ") + ")";
    case DFPattern::Kind::kDominates: return "dominates(" + Joined(pattern.args, 0, ", ") + ")";
    case DFPattern::Kind::kTyped: return PatternText(*pattern.args[0]) + ":" + TypeText(pattern);
  }
  return "";
}

}  // namespace collage
