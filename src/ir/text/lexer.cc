// lexer.cc: one pass over the text. A dot with digits behind it is a projection, since no number begins with a dot;
// that keeps `%0.0.1` free of the numbers that a greedy lexer would see in it. `#` begins a comment unless it begins
// `#[…]`: Relay has the second, the listings of RFC 0.81 the first.
#include "ir/text/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr std::string_view kMetadataMark = "#[metadata]";

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsWord(char c) { return IsDigit(c) || IsLetter(c); }

class Lexer {
 public:
  Lexer(std::string_view text, Diagnostics& diagnostics) : text_(text), diagnostics_(diagnostics) {}

  TokenList Run() {
    while (SkipBlanks()) {
      if (text_.substr(at_).starts_with(kMetadataMark)) {
        list_.metadata = text_.substr(at_ + kMetadataMark.size());
        break;
      }
      try {
        Next();
      } catch (ParseFailure& failure) {
        diagnostics_.Add(std::move(failure));
        if (diagnostics_.size() >= Diagnostics::kMost) break;
      }
    }
    list_.tokens.push_back({TokenKind::kEnd, {}, std::min(at_, text_.size())});
    return std::move(list_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  /// Moves to the next token; false at the end.
  bool SkipBlanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if ((Peek() == '/' && Peek(1) == '/') || (Peek() == '#' && Peek(1) != '[')) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (Peek() == '/' && Peek(1) == '*') {
        SkipComment();
      } else {
        return true;
      }
    }
    return false;
  }

  /// Comments nest.
  void SkipComment() {
    const size_t begin = at_;
    int depth = 0;
    do {
      if (at_ >= text_.size()) {
        diagnostics_.Add({begin, "this comment is not closed", ""});
        return;
      }
      const std::string_view two = text_.substr(at_, 2);
      depth += two == "/*" ? 1 : two == "*/" ? -1 : 0;
      at_ += two == "/*" || two == "*/" ? 2 : 1;
    } while (depth > 0);
  }

  void Add(TokenKind kind, size_t begin, size_t skip = 0) {
    list_.tokens.push_back({kind, text_.substr(begin + skip, at_ - begin - skip), begin});
  }

  void Next() {
    const size_t begin = at_;
    const char c = Peek();
    if (c == '%' || c == '@') return Sigil();
    if (IsDigit(c)) return Number();
    if (IsLetter(c)) return Identifier();
    if (c == '"') return String();
    if (c == '.' && IsDigit(Peek(1))) {
      for (++at_; IsDigit(Peek());) ++at_;
      return Add(TokenKind::kProjection, begin, 1);
    }
    static constexpr std::array<std::string_view, 6> kPairs{"->", "=>", "<=", ">=", "==", "!="};
    const bool is_pair = std::find(kPairs.begin(), kPairs.end(), text_.substr(at_, 2)) != kPairs.end();
    if (!is_pair && std::string_view("(){}[],;:=+-*/<>?#.").find(c) == std::string_view::npos) {
      ++at_;
      throw ParseFailure{begin, fmt::format("unexpected character '{}'", c), ""};
    }
    at_ += is_pair ? 2 : 1;
    Add(TokenKind::kPunctuation, begin);
  }

  /// `%x`, `%0`, `@main`, `@"any name"`; names may hold slashes between words (`%base/x`).
  void Sigil() {
    const size_t begin = at_;
    const bool is_global = Peek() == '@';
    ++at_;
    if (Peek() == '"') {
      SkipString(begin);
      return Add(is_global ? TokenKind::kGlobal : TokenKind::kLocal, begin, 1);
    }
    if (!IsWord(Peek())) throw ParseFailure{begin, fmt::format("expected a name behind '{}'", text_[begin]), ""};
    const bool is_graph = !is_global && IsDigit(Peek());
    while (is_graph ? IsDigit(Peek()) : IsWord(Peek()) || (Peek() == '/' && IsWord(Peek(1)))) ++at_;
    Add(is_global ? TokenKind::kGlobal : is_graph ? TokenKind::kGraph : TokenKind::kLocal, begin, 1);
  }

  void Identifier() {
    const size_t begin = at_;
    while (IsWord(Peek()) || (Peek() == '.' && IsLetter(Peek(1)))) ++at_;
    Add(TokenKind::kIdentifier, begin);
  }

  void Number() {
    const size_t begin = at_;
    while (IsDigit(Peek())) ++at_;
    if (Peek() == '.') {
      for (++at_; IsDigit(Peek());) ++at_;
    }
    const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
    if ((Peek() == 'e' || Peek() == 'E') && IsDigit(Peek(1 + sign))) {
      for (at_ += 1 + sign; IsDigit(Peek());) ++at_;
    }
    while (IsWord(Peek())) ++at_;
    Add(TokenKind::kNumber, begin);
  }

  void String() {
    const size_t begin = at_;
    SkipString(begin);
    Add(TokenKind::kString, begin);
  }

  /// Moves from an opening quote to behind the closing one.
  void SkipString(size_t begin) {
    for (++at_; Peek() != '"'; ++at_) {
      if (Peek() == '\\') ++at_;
      if (at_ >= text_.size() || Peek() == '\n') throw ParseFailure{begin, "this string is not closed", ""};
    }
    ++at_;
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
  TokenList list_;
};

}  // namespace

TokenList Tokenize(std::string_view text, Diagnostics& diagnostics) { return Lexer(text, diagnostics).Run(); }

void Diagnostics::FindLines() const {
  if (!line_starts_.empty()) return;
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

Diagnostics::Place Diagnostics::PlaceOf(size_t offset) const {
  FindLines();
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return {static_cast<int>(next - line_starts_.begin()), static_cast<int>(offset - *(next - 1)) + 1};
}

size_t Diagnostics::OffsetOf(Place place) const {
  FindLines();
  const size_t line = std::min(static_cast<size_t>(std::max(place.line, 1)), line_starts_.size());
  return std::min(line_starts_[line - 1] + static_cast<size_t>(std::max(place.column, 1)) - 1, text_.size());
}

std::string Diagnostics::Where(size_t offset) const {
  const Place place = PlaceOf(offset);
  return fmt::format("{}:{}:{}", file_name_, place.line, place.column);
}

std::string Diagnostics::Excerpt(size_t offset) const {
  const size_t column = static_cast<size_t>(PlaceOf(offset).column) - 1;
  const size_t begin = offset - column;
  std::string_view line = text_.substr(begin, std::min(text_.find('\n', begin), text_.size()) - begin);
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string margin;
  for (char c : line.substr(0, column)) margin += c == '\t' ? '\t' : ' ';
  return fmt::format("  {}\n  {}^", line, margin);
}

void Diagnostics::ThrowIfAny() const {
  if (failures_.empty()) return;
  std::string message;
  for (const ParseFailure& failure : failures_) {
    // The first one's place is the error's.
    if (!message.empty()) message += fmt::format("\n{}: error: ", Where(failure.offset));
    message += failure.message + "\n" + Excerpt(failure.offset);
    if (&failure != &failures_.back() && !failure.hint.empty()) message += "\nhint: " + failure.hint;
  }
  if (failures_.size() >= kMost) message += "\ntoo many errors, the rest of the text was not read";
  throw Error(ErrorCategory::kInput, message, Where(failures_.front().offset), failures_.back().hint);
}

}  // namespace collage
