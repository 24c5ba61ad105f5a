// lexer.h: Relay text to tokens, and the errors that point into it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collage {

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,  ///< `nn.conv2d`, `let`, `Tensor`
  kLocal,       ///< `%x` or `%"any name"`; the text is what follows `%`, quotes included
  kGraph,       ///< `%0`; the text is what follows `%`
  kGlobal,      ///< `@main` or `@"any name"`; as kLocal
  kNumber,      ///< digits, fraction, exponent, suffix; without sign
  kString,      ///< with its quotes and escapes
  kProjection,  ///< `.1`; the text is what follows the dot
  kPunctuation,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  size_t offset = 0;  ///< offset of its first character in the text
};

/// Thrown inside lexer and parser; caught where reading can go on.
struct ParseFailure {
  size_t offset;
  std::string message;
  std::string hint;
};

/// Errors in a text, in the order found.
class Diagnostics {
 public:
  /// After this many, the rest of a text is not read.
  static constexpr size_t kMost = 20;

  /// Both must outlive this.
  Diagnostics(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  void Add(ParseFailure failure) { failures_.push_back(std::move(failure)); }
  size_t size() const { return failures_.size(); }
  /// Throws kInput with all that was added; returns when nothing was.
  void ThrowIfAny() const;

  struct Place {
    int line;
    int column;
  };
  /// Counted from 1; columns count bytes.
  Place PlaceOf(size_t offset) const;
  /// "file:line:column".
  std::string Where(size_t offset) const;
  /// The line of `offset`, and below it a caret under its column.
  std::string Excerpt(size_t offset) const;
  /// The offset of a line and column, both counted from 1.
  size_t OffsetOf(Place place) const;

 private:
  void FindLines() const;

  std::string_view text_;
  const std::string& file_name_;
  std::vector<ParseFailure> failures_;
  mutable std::vector<size_t> line_starts_;
};

struct TokenList {
  std::vector<Token> tokens;  ///< the last one is kEnd
  std::string_view metadata;  ///< text behind `#[metadata]`; empty when absent
};

/// All tokens of `text`, comments dropped. Characters that start no token are reported to `diagnostics` and skipped.
TokenList Tokenize(std::string_view text, Diagnostics& diagnostics);

}  // namespace collage
