// parser.cc: modules in Relay text: type definitions first, since functions may use them before they are written down.
#include "ir/parser.h"

#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "ir/metadata.h"
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
      constants_ = ReadMetadata(list_.metadata);
    } catch (const Error& error) {
      diagnostics_.Add({static_cast<size_t>(list_.metadata.data() - text.data()), error.message(), error.hint()});
    }
  }
  constants_.insert(constants_.end(), options.constants.begin(), options.constants.end());
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
    case TokenKind::kString: return std::string(token.text);
    default: return fmt::format("'{}'", token.text);
  }
}

// ---- modules ----

IRModule Parser::Module() {
  try {
    Header();
    const size_t begin = next_;
    CollectTypeNames();
    next_ = begin;
    TypeDefinitions();
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
    // What was found is reported below.
  }
  diagnostics_.ThrowIfAny();
  if (options_.infer_types) Infer([this] { module_ = InferTypes(std::move(module_)); });
  return std::move(module_);
}

Expr Parser::Single() {
  Expr result;
  try {
    scopes_.emplace_back();
    result = Block("");
    CheckGlobals();
  } catch (const StopParsing&) {
    // What was found is reported below.
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

void Parser::Header() {
  try {
    if (!Accept("#")) return;
    Expect("[");
    Expect("version");
    Expect("=");
    const Token version = ExpectKind(TokenKind::kString, "a version");
    if (StringValue(version) != "0.0.5") {
      Fail(version, fmt::format("version {} of the text format is not known", version.text), "0.0.5 is");
    }
    Expect("]");
  } catch (ParseFailure& failure) {
    Record(std::move(failure));
    SkipToDefinition();
  }
}

void Parser::CollectTypeNames() {
  int depth = 0;
  for (; Peek().kind != TokenKind::kEnd; Take()) {
    depth += IsNext("{") ? 1 : IsNext("}") ? -1 : 0;
    if (depth != 0 || !IsNext("type") || Peek(1).kind != TokenKind::kIdentifier) continue;
    const std::string name(Peek(1).text);
    if (type_names_.emplace(name, std::make_shared<GlobalTypeVarNode>(name)).second) continue;
    Record({Peek(1).offset, fmt::format("type '{}' is defined twice", name), ""});
  }
}

void Parser::TypeDefinitions() {
  int depth = 0;
  while (Peek().kind != TokenKind::kEnd) {
    if (depth != 0 || !IsNext("type")) {
      depth += IsNext("{") ? 1 : IsNext("}") ? -1 : 0;
      Take();
      continue;
    }
    try {
      TypeDefinition();
    } catch (ParseFailure& failure) {
      type_scopes_.clear();
      Record(std::move(failure));
      SkipToDefinition();
    }
  }
}

void Parser::TypeDefinition() {
  Expect("type");
  const Token name = ExpectKind(TokenKind::kIdentifier, "the name of a type");
  TypeData data{type_names_.find(name.text)->second, TypeParams(), {}};
  type_arity_[std::string(name.text)] = data.type_vars.size();
  if (Accept("{")) {
    while (!Accept("}")) {
      const Token constructor = ExpectKind(TokenKind::kIdentifier, "a constructor");
      std::vector<Type> inputs;
      if (Accept("(")) inputs = TypeList(")");
      const std::string text(constructor.text);
      Constructor node = At(std::make_shared<const ConstructorNode>(text, std::move(inputs), data.header), constructor);
      if (!constructors_.emplace(text, node).second) {
        Fail(constructor, fmt::format("constructor '{}' is defined twice", text));
      }
      data.constructors.push_back(std::move(node));
      if (!IsNext("}")) Expect(",");
    }
  }
  type_scopes_.pop_back();
  if (module_.types().find(name.text) == module_.types().end()) module_.AddType(std::move(data));
}

void Parser::Definition() {
  if (IsNext("type") || IsNext("extern")) {
    // Read before, by TypeDefinitions.
    Take();
    SkipToDefinition();
    return;
  }
  if (!IsNext("def")) Fail(Peek(), fmt::format("expected 'def' or 'type', got {}", Describe(Peek())));
  Take();
  const Token name = ExpectKind(TokenKind::kGlobal, "the name of a function");
  if (module_.Has(name.text)) {
    Record({name.offset, fmt::format("function '@{}' is defined twice", name.text), ""});
  }
  const Token token = Peek();
  Function function = FunctionRest(token);
  module_.Set(std::string(name.text), At(std::move(function), name));
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

Expr ParseExpr(std::string_view text, const std::string& file_name, const ParseOptions& options) {
  return Parser(text, file_name, options).Single();
}

}  // namespace collage
