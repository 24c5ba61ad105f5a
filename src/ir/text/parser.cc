// parser.cc: modules in Relay text: type definitions first, since functions may use them before they are written down.
#include "ir/text/parser.h"

#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/metadata.h"
#include "ir/text/expression_text.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

// Deep enough for anything written or printed, far from the stack's end.
constexpr int kDeepestNesting = 250;

}  // namespace

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ <= kDeepestNesting) return;
  --parser_.depth_;
  parser_.Fail(parser_.Peek(), fmt::format("nested more than {} levels deep", kDeepestNesting),
               "bind inner expressions with %0 = …;");
}

Parser::Parser(std::string_view text, const std::string& file_name, const ParseOptions& options)
    : text_(text), file_name_(file_name), options_(options), diagnostics_(text, file_name) {
  list_ = Tokenize(text, diagnostics_);
  if (!list_.metadata.empty()) {
    try {
      Metadata metadata = ReadMetadata(list_.metadata);
      constants_ = std::move(metadata.constants);
      virtual_devices_ = std::move(metadata.virtual_devices);
      meta_values_ = std::move(metadata.values);
    } catch (const Error& error) {
      diagnostics_.Add({static_cast<size_t>(list_.metadata.data() - text.data()), error.message(), error.hint()});
    }
  }
  constants_.insert(constants_.end(), options.constants.begin(), options.constants.end());
  virtual_devices_.insert(virtual_devices_.end(), options.virtual_devices.begin(), options.virtual_devices.end());
}

// ---- tokens ----

const Token& Parser::Peek(size_t ahead) const { return list_.tokens[std::min(next_ + ahead, list_.tokens.size() - 1)]; }

bool Parser::IsNext(std::string_view text, size_t ahead) const {
  const Token& token = Peek(ahead);
  return (token.kind == TokenKind::kPunctuation || token.kind == TokenKind::kIdentifier) && token.text == text;
}

Token Parser::Take() {
  const Token token = Peek();
  if (next_ + 1 < list_.tokens.size()) ++next_;
  return token;
}

bool Parser::Accept(std::string_view text) {
  if (!IsNext(text)) return false;
  Take();
  return true;
}

Token Parser::Expect(std::string_view text) {
  if (!IsNext(text)) Fail(Peek(), fmt::format("expected '{}', got {}", text, Describe(Peek())));
  return Take();
}

Token Parser::ExpectKind(TokenKind kind, std::string_view what) {
  if (Peek().kind != kind) Fail(Peek(), fmt::format("expected {}, got {}", what, Describe(Peek())));
  return Take();
}

void Parser::Fail(const Token& token, std::string message, std::string hint) const {
  throw ParseFailure{token.offset, std::move(message), std::move(hint)};
}

void Parser::Record(ParseFailure failure) {
  diagnostics_.Add(std::move(failure));
  if (diagnostics_.size() >= Diagnostics::kMost) throw StopParsing{};
}

std::string Parser::Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd: return "the end of the text";
    case TokenKind::kLocal:
    case TokenKind::kGraph: return fmt::format("'%{}'", token.text);
    case TokenKind::kGlobal: return fmt::format("'@{}'", token.text);
    case TokenKind::kProjection: return fmt::format("'.{}'", token.text);
    case TokenKind::kString: return fmt::format("the string {}", token.text);
    default: return fmt::format("'{}'", token.text);
  }
}

std::string Parser::NameOf(const Token& token) {
  return token.text.starts_with('"') ? StringValue(token) : std::string(token.text);
}

Token Parser::ExpectName(std::string_view what) {
  if (Peek().kind == TokenKind::kString) return Take();
  return ExpectKind(TokenKind::kIdentifier, what);
}

// ---- modules ----

IRModule Parser::Module() {
  try {
    Header();
    const size_t begin = next_;
    TypeDefinitions(FindTypeDefinitions());
    next_ = begin;
    while (Peek().kind != TokenKind::kEnd) {
      try {
        Definition();
      } catch (ParseFailure& failure) {
        scopes_.clear();
        type_scopes_.clear();
        Record(std::move(failure));
        SkipToDefinition();
      }
    }
    CheckGlobals();
  } catch (const StopParsing&) {
    // The findings are reported below.
  }
  diagnostics_.ThrowIfAny();
  if (options_.infer_types) Infer([this] { module_ = InferTypes(std::move(module_)); });
  return std::move(module_);
}

Expr Parser::Single() {
  Expr result;
  try {
    Header();
    scopes_.emplace_back();
    result = Block("");
    if (Peek().kind != TokenKind::kEnd)
      Record({Peek().offset, "expected the end of the text, got " + Describe(Peek()), ""});
    CheckGlobals();
  } catch (const StopParsing&) {
    // The findings are reported below.
  }
  diagnostics_.ThrowIfAny();
  if (options_.infer_types) Infer([&] { InferType(result); });
  return result;
}

/// Shows where in the text types do not fit.
void Parser::Infer(const std::function<void()>& infer) const {
  try {
    infer();
  } catch (const Error& error) {
    const std::string prefix = file_name_ + ":";
    Diagnostics::Place place{0, 0};
    const bool is_here = error.where().starts_with(prefix) &&
                         std::sscanf(error.where().c_str() + prefix.size(), "%d:%d", &place.line, &place.column) == 2;
    if (!is_here) throw;
    throw Error(error.category(), error.message() + "\n" + diagnostics_.Excerpt(diagnostics_.OffsetOf(place)),
                error.where(), error.hint());
  }
}

/// `#[version = "0.0.5"]`, and `#[attributes = {…}]` for those of the module, where there are any.
void Parser::Header() {
  while (IsNext("#")) {
    try {
      HeaderEntry();
    } catch (ParseFailure& failure) {
      Record(std::move(failure));
      SkipToDefinition();
    }
  }
}

void Parser::HeaderEntry() {
  Expect("#");
  Expect("[");
  const Token name = ExpectKind(TokenKind::kIdentifier, "'version' or 'attributes'");
  Expect("=");
  if (name.text == "version") {
    const Token version = ExpectKind(TokenKind::kString, "a version");
    if (StringValue(version) != "0.0.5") {
      Fail(version, fmt::format("version {} of the text format is not known", version.text), "0.0.5 is");
    }
  } else if (name.text == "attributes") {
    Expect("{");
    while (!Accept("}")) {
      Attribute(&module_.attrs);
      if (!IsNext("}")) Expect(",");
    }
  } else {
    Fail(name, fmt::format("expected 'version' or 'attributes', got '{}'", name.text));
  }
  Expect("]");
}

std::vector<size_t> Parser::FindTypeDefinitions() {
  std::vector<size_t> places;
  int depth = 0;
  for (; Peek().kind != TokenKind::kEnd; Take()) {
    if (IsNext("def") && Peek(1).kind == TokenKind::kGlobal) depth = 0;
    depth += IsNext("{") || IsNext("(") || IsNext("[") ? 1 : IsNext("}") || IsNext(")") || IsNext("]") ? -1 : 0;
    if (depth > 0 || !IsNext("type")) continue;
    const Token& token = Peek(1);
    if (token.kind != TokenKind::kIdentifier && token.kind != TokenKind::kString) continue;
    places.push_back(next_);
    std::string name = NameOf(token);
    if (type_names_.emplace(name, std::make_shared<GlobalTypeVarNode>(name)).second) continue;
    Record({token.offset, fmt::format("type '{}' is defined twice", name), ""});
  }
  return places;
}

void Parser::TypeDefinitions(const std::vector<size_t>& places) {
  for (size_t place : places) {
    next_ = place;
    try {
      TypeDefinition();
    } catch (ParseFailure& failure) {
      type_scopes_.clear();
      Record(std::move(failure));
    }
  }
}

void Parser::TypeDefinition() {
  const bool is_extern = next_ > 0 && list_.tokens[next_ - 1].text == "extern";
  Expect("type");
  const Token token = ExpectName("the name of a type");
  const std::string name = NameOf(token);
  if (DataType::IsName(name)) Fail(token, fmt::format("'{}' is the name of a dtype", name));
  TypeData data{type_names_.find(name)->second, TypeParams(), {}};
  type_arity_[name] = data.type_vars.size();
  if (Accept("{")) {
    while (!Accept("}")) {
      data.constructors.push_back(ConstructorDefinition(data.header));
      if (!IsNext("}")) Expect(",");
    }
  }
  type_scopes_.pop_back();
  if (is_extern && !data.constructors.empty()) {
    Fail(token, fmt::format("type '{}' is extern, so it cannot have constructors", name));
  }
  if (module_.types().find(name) == module_.types().end()) module_.AddType(std::move(data));
}

Constructor Parser::ConstructorDefinition(const GlobalTypeVar& type) {
  const Token token = ExpectName("a constructor");
  std::vector<Type> inputs;
  if (Accept("(")) inputs = TypeList(")");
  const std::string name = NameOf(token);
  if (FindOp(name)) Fail(token, fmt::format("'{}' is the name of an operator", name));
  Constructor constructor = At(std::make_shared<const ConstructorNode>(name, std::move(inputs), type), token);
  if (!constructors_.emplace(name, constructor).second) {
    Fail(token, fmt::format("constructor '{}' is defined twice", name));
  }
  return constructor;
}

void Parser::Definition() {
  if (IsNext("type") || (IsNext("extern") && IsNext("type", 1))) {
    // Read before, by TypeDefinitions.
    if (Accept("extern")) Expect("type");
    Take();
    SkipToDefinition();
    return;
  }
  if (!IsNext("def")) Fail(Peek(), fmt::format("expected 'def', 'type' or 'extern type', got {}", Describe(Peek())));
  Take();
  const Token token = ExpectKind(TokenKind::kGlobal, "the name of a function");
  const std::string name = NameOf(token);
  if (module_.Has(name)) Record({token.offset, fmt::format("function '@{}' is defined twice", name), ""});
  const Token begin = Peek();
  Function function = FunctionRest(begin);
  module_.Set(name, At(std::move(function), token));
}

void Parser::SkipToDefinition() {
  int depth = 0;
  for (; Peek().kind != TokenKind::kEnd; Take()) {
    if (IsNext("def") && Peek(1).kind == TokenKind::kGlobal) return;
    if (depth <= 0 && (IsNext("type") || IsNext("extern"))) return;
    depth += IsNext("{") ? 1 : IsNext("}") ? -1 : 0;
  }
}

void Parser::CheckGlobals() {
  std::vector<std::string> names;
  for (const auto& [name, function] : module_.functions()) names.push_back(name);
  for (const auto& [global, token] : global_uses_) {
    if (module_.Has(global->name())) continue;
    const std::vector<std::string> similar = NearMisses(global->name(), names);
    Record({token.offset, fmt::format("there is no function '@{}'", global->name()),
            similar.empty() ? "" : "did you mean '@" + similar[0] + "'?"});
  }
}

IRModule ParseModule(std::string_view text, const std::string& file_name, const ParseOptions& options) {
  return Parser(text, file_name, options).Module();
}

bool IsExpressionText(std::string_view text) {
  const std::string name;
  Diagnostics ignored(text, name);
  const std::vector<Token> tokens = Tokenize(text, ignored).tokens;
  size_t next = 0;
  const auto is = [&](size_t at, std::string_view word) { return at < tokens.size() && tokens[at].text == word; };
  while (is(next, "#") && is(next + 1, "[")) {  // to the bracket that closes this one
    int depth = 0;
    do {
      ++next;
      depth += is(next, "[") ? 1 : is(next, "]") ? -1 : 0;
    } while (depth > 0 && next < tokens.size());
    ++next;
  }
  if (next >= tokens.size() || tokens[next].kind == TokenKind::kEnd) return false;
  return !is(next, "def") && !is(next, "type") && !is(next, "extern");
}

Expr ParseExpr(std::string_view text, const std::string& file_name, const ParseOptions& options) {
  return Parser(text, file_name, options).Single();
}

}  // namespace collage
