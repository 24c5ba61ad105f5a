// parse_expr.cc: blocks, statements and expressions in Relay text. A block's statements are read in a loop, so that only
// nesting uses the machine's stack; its lets are put together from the last to the first.
#include <fmt/format.h>

#include <limits>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/parser.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

struct InfixOp {
  std::string_view symbol;
  int precedence;
  std::string_view op;
};
constexpr InfixOp kInfixOps[] = {
    {"*", 12, "multiply"}, {"/", 12, "divide"},     {"+", 10, "add"},         {"-", 10, "subtract"},
    {"<", 8, "less"},      {"<=", 8, "less_equal"}, {">", 8, "greater"},      {">=", 8, "greater_equal"},
    {"==", 7, "equal"},    {"!=", 7, "not_equal"},
};

}  // namespace

// ---- blocks ----

Expr Parser::Block(std::string_view close) {
  const Nesting nesting(*this);
  const Token begin = Peek();
  const auto is_end = [&] { return close.empty() ? Peek().kind == TokenKind::kEnd : IsNext(close); };
  scopes_.emplace_back();
  const size_t num_scopes = scopes_.size();
  const size_t num_type_scopes = type_scopes_.size();
  std::vector<Statement> lets;
  Expr result;
  while (!result) {
    try {
      if (is_end() || Peek().kind == TokenKind::kEnd) Fail(Peek(), "a block ends without a result");
      if (!StatementOrResult(lets, &result)) continue;
      if (!is_end()) {
        const std::string wanted = close.empty() ? "the end of the text" : fmt::format("'{}'", close);
        Fail(Peek(), fmt::format("expected ';' or {}, got {}", wanted, Describe(Peek())));
      }
    } catch (ParseFailure& failure) {
      Record(std::move(failure));
      scopes_.resize(num_scopes);
      type_scopes_.resize(num_type_scopes);
      SkipStatement(close);
      result = is_end() || Peek().kind == TokenKind::kEnd || IsNext("}") ? Expr(Anything(begin)) : nullptr;
    }
  }
  scopes_.pop_back();
  if (!close.empty()) Expect(close);
  for (size_t i = lets.size(); i-- > 0;) {
    std::shared_ptr<const LetNode> let = std::make_shared<LetNode>(lets[i].var, lets[i].value, std::move(result));
    let->share_span(*lets[i].var);
    result = std::move(let);
  }
  return result;
}

bool Parser::StartsStatement() const {
  return IsNext("let") || IsNext("free_var") || (Peek().kind == TokenKind::kGraph && IsNext("=", 1));
}

bool Parser::StatementOrResult(std::vector<Statement>& lets, Expr* result) {
  if (Peek().kind == TokenKind::kGraph && IsNext("=", 1)) {
    GraphBinding();
  } else if (IsNext("let")) {
    lets.push_back(Let());
  } else if (IsNext("free_var")) {
    FreeVar();
  } else {
    const Token token = Peek();
    Expr value = Expression();
    if (!IsNext(";")) {
      *result = std::move(value);
      return true;
    }
    lets.push_back({At(MakeVar("_"), token), std::move(value)});
  }
  Expect(";");
  return false;
}

void Parser::GraphBinding() {
  const Token name = Take();
  const int64_t number = Integer(name);
  // Stands for the value if that cannot be read.
  graph_[number] = Anything(name);
  Expect("=");
  graph_[number] = Expression();
}

Parser::Statement Parser::Let() {
  Expect("let");
  const Token name = ExpectKind(TokenKind::kLocal, "a variable");
  const Type type = Accept(":") ? ParseType() : nullptr;
  Expect("=");
  // A function may call itself by the variable it is bound to; any other value sees the variable's former meaning.
  Var var = IsNext("fn") ? DeclareVar(name, type) : nullptr;
  Expr value;
  try {
    value = Expression();
  } catch (const ParseFailure&) {
    DeclareVar(name, type);
    throw;
  }
  if (!var) var = DeclareVar(name, type);
  return {std::move(var), std::move(value)};
}

void Parser::FreeVar() {
  Expect("free_var");
  const Token name = ExpectKind(TokenKind::kLocal, "a variable");
  const Type type = Accept(":") ? ParseType() : nullptr;
  // Declared for the whole text.
  scopes_.front()[std::string(name.text)] = At(MakeVar(std::string(name.text), type), name);
}

void Parser::SkipStatement(std::string_view close) {
  for (int depth = 0; Peek().kind != TokenKind::kEnd; Take()) {
    if (depth == 0 && IsNext(";")) {
      Take();
      return;
    }
    if (depth == 0 && (IsNext("}") || (!close.empty() && IsNext(close)))) return;
    if (IsNext("def") && Peek(1).kind == TokenKind::kGlobal) return;
    if (IsNext("{") || IsNext("(")) ++depth;
    if ((IsNext("}") || IsNext(")")) && depth > 0) --depth;
  }
}

// ---- expressions ----

Expr Parser::Expression() {
  const Nesting nesting(*this);
  return Infix(0);
}

/// Precedence climbing; all operators associate to the left.
Expr Parser::Infix(int least_precedence) {
  Expr left = Postfix();
  for (;;) {
    const InfixOp* found = nullptr;
    for (const InfixOp& infix : kInfixOps) {
      if (IsNext(infix.symbol) && infix.precedence >= least_precedence) found = &infix;
    }
    if (found == nullptr) return left;
    const Token token = Take();
    Expr right = Infix(found->precedence + 1);
    left = MakeOpCall(token, found->op, {std::move(left), std::move(right)}, {});
  }
}

/// An atom with calls and projections behind it.
Expr Parser::Postfix() {
  const Token token = Peek();
  Expr expr = Atom();
  for (;;) {
    if (IsNext("(")) {
      expr = Call(std::move(expr), token);
    } else if (Peek().kind == TokenKind::kProjection) {
      const int64_t index = Integer(Peek());
      if (index > std::numeric_limits<int>::max()) Fail(Peek(), "a tuple has no such field");
      Take();
      expr = At(MakeTupleGetItem(std::move(expr), static_cast<int>(index)), token);
    } else if (const ConstructorNode* constructor = As<ConstructorNode>(expr);
               constructor != nullptr && constructor->inputs().empty()) {
      // A constructor without fields is its value.
      return At(MakeCall(std::move(expr), {}), token);
    } else {
      return expr;
    }
  }
}

Expr Parser::Atom() {
  const Token token = Peek();
  switch (token.kind) {
    case TokenKind::kLocal: return LookupLocal(Take());
    case TokenKind::kGraph: {
      auto it = graph_.find(Integer(Take()));
      if (it == graph_.end()) Fail(token, fmt::format("'%{}' is not bound before its use", token.text));
      return it->second;
    }
    case TokenKind::kGlobal: {
      Take();
      GlobalVar& global = globals_[std::string(token.text)];
      if (!global) global = At(std::make_shared<const GlobalVarNode>(std::string(token.text)), token);
      global_uses_.emplace_back(global, token);
      return global;
    }
    case TokenKind::kNumber: return NumberLiteral(/*is_negative=*/false);
    case TokenKind::kIdentifier: return IdentifierAtom();
    default: break;
  }
  if (IsNext("-") && (Peek(1).kind == TokenKind::kNumber || IsNext("inff", 1))) {
    Take();
    return NumberLiteral(/*is_negative=*/true);
  }
  if (IsNext("(")) return Parenthesised();
  if (Accept("{")) return Block("}");
  Fail(token, fmt::format("expected an expression, got {}", Describe(token)));
}

Expr Parser::IdentifierAtom() {
  const Token token = Peek();
  const std::string_view text = token.text;
  if (text == "fn") return FunctionLiteral(Take());
  if (text == "if") return If();
  if (text == "match") return Match();
  if (text == "meta" && IsNext("[", 1)) return Meta();
  if ((text == "ref" || text == "ref_read" || text == "ref_write") && IsNext("(", 1)) return Reference(Take());
  if (text == "inff" || text == "nanf") return NumberLiteral(/*is_negative=*/false);
  Take();
  if (text == "True" || text == "False") return At(MakeScalar(text == "True" ? 1 : 0, kBool), token);
  auto constructor = constructors_.find(text);
  if (constructor != constructors_.end()) return constructor->second;
  try {
    return GetOp(text);
  } catch (const Error& error) {
    Fail(token, error.message(), error.hint());
  }
}

Expr Parser::Parenthesised() {
  const Token token = Take();
  if (StartsStatement()) return Block(")");
  std::vector<Expr> fields;
  while (!Accept(")")) {
    fields.push_back(Expression());
    if (Accept(",")) continue;
    Expect(")");
    // Parentheses around one expression without a comma only group.
    return fields.size() == 1 ? fields[0] : At(MakeTuple(std::move(fields)), token);
  }
  return At(MakeTuple(std::move(fields)), token);
}

// ---- functions, control flow, references ----

Expr Parser::FunctionLiteral(const Token& token) { return At(FunctionRest(token), token); }

Function Parser::FunctionRest(const Token& token) {
  std::vector<TypeVar> type_params = TypeParams();
  scopes_.emplace_back();
  std::vector<Var> params;
  Attrs attrs;
  Expect("(");
  while (!Accept(")")) {
    if (Peek().kind == TokenKind::kLocal) {
      const Token name = Take();
      params.push_back(DeclareVar(name, Accept(":") ? ParseType() : nullptr));
    } else {
      Attribute(&attrs);
    }
    if (!IsNext(")")) Expect(",");
  }
  const Type result = Accept("->") ? ParseType() : nullptr;
  Expect("{");
  Expr body = Block("}");
  scopes_.pop_back();
  type_scopes_.pop_back();
  return At(MakeFunction(std::move(params), std::move(body), result, std::move(attrs), std::move(type_params)), token);
}

Expr Parser::If() {
  const Token token = Take();
  Expect("(");
  Expr condition = Expression();
  Expect(")");
  Expect("{");
  Expr then_branch = Block("}");
  Expect("else");
  Expect("{");
  Expr else_branch = Block("}");
  return At(std::make_shared<const IfNode>(std::move(condition), std::move(then_branch), std::move(else_branch)), token);
}

Expr Parser::Match() {
  const Token token = Take();
  const bool is_complete = !Accept("?");
  Expr data = Postfix();
  Expect("{");
  std::vector<Clause> clauses;
  while (!Accept("}")) {
    scopes_.emplace_back();
    Pattern pattern = ParsePattern();
    Expect("=>");
    Expect("{");
    Expr body = Block("}");
    clauses.push_back({std::move(pattern), std::move(body)});
    scopes_.pop_back();
    if (!IsNext("}")) Expect(",");
  }
  return At(std::make_shared<const MatchNode>(std::move(data), std::move(clauses), is_complete), token);
}

Pattern Parser::ParsePattern() {
  const Nesting nesting(*this);
  const Token token = Take();
  if (token.text == "_" && token.kind == TokenKind::kIdentifier) return {};
  if (token.kind == TokenKind::kLocal) {
    return {Pattern::Kind::kVar, DeclareVar(token, Accept(":") ? ParseType() : nullptr), nullptr, {}};
  }
  Pattern pattern;
  if (token.kind == TokenKind::kIdentifier) {
    auto it = constructors_.find(token.text);
    if (it == constructors_.end()) Fail(token, fmt::format("unknown constructor '{}'", token.text));
    pattern.kind = Pattern::Kind::kConstructor;
    pattern.constructor = it->second;
    const size_t wanted = it->second->inputs().size();
    if (Accept("(")) {
      while (!Accept(")")) {
        pattern.sub_patterns.push_back(ParsePattern());
        if (!IsNext(")")) Expect(",");
      }
    }
    if (pattern.sub_patterns.size() != wanted) {
      Fail(token, fmt::format("constructor '{}' has {} fields, the pattern {}", token.text, wanted,
                              pattern.sub_patterns.size()));
    }
    return pattern;
  }
  if (token.kind != TokenKind::kPunctuation || token.text != "(") {
    Fail(token, fmt::format("expected a pattern, got {}", Describe(token)));
  }
  pattern.kind = Pattern::Kind::kTuple;
  while (!Accept(")")) {
    pattern.sub_patterns.push_back(ParsePattern());
    if (!IsNext(")")) Expect(",");
  }
  return pattern;
}

Expr Parser::Reference(const Token& token) {
  Expect("(");
  Expr first = Expression();
  Expr second;
  if (token.text == "ref_write") {
    Expect(",");
    second = Expression();
  }
  Expect(")");
  if (token.text == "ref") return At(std::make_shared<const RefCreateNode>(std::move(first)), token);
  if (token.text == "ref_read") return At(std::make_shared<const RefReadNode>(std::move(first)), token);
  return At(std::make_shared<const RefWriteNode>(std::move(first), std::move(second)), token);
}

// ---- calls ----

Expr Parser::Call(Expr callee, const Token& token) {
  Expect("(");
  std::vector<Expr> args;
  Attrs attrs;
  while (!Accept(")")) {
    if ((Peek().kind == TokenKind::kIdentifier || Peek().kind == TokenKind::kString) && IsNext("=", 1)) {
      Attribute(&attrs);
    } else {
      args.push_back(Expression());
    }
    if (!IsNext(")")) Expect(",");
  }
  if (const OpNode* op = As<OpNode>(callee)) return MakeOpCall(token, op->name(), std::move(args), std::move(attrs));
  return At(MakeCall(std::move(callee), std::move(args), std::move(attrs)), token);
}

Expr Parser::MakeOpCall(const Token& token, std::string_view op, std::vector<Expr> args, Attrs attrs) {
  try {
    return At(MakeCall(op, std::move(args), std::move(attrs)), token);
  } catch (const Error& error) {
    Fail(token, error.message(), error.hint());
  }
}

// ---- variables ----

Var Parser::DeclareVar(const Token& token, Type type) {
  Var var = At(MakeVar(std::string(token.text), std::move(type)), token);
  scopes_.back()[std::string(token.text)] = var;
  return var;
}

/// Stands where something could not be read; never leaves the parser, since the text has an error.
Var Parser::Anything(const Token& token) const { return At(MakeVar("unreadable"), token); }

Expr Parser::LookupLocal(const Token& token) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto it = scope->find(token.text);
    if (it != scope->end()) return it->second;
  }
  std::vector<std::string> names;
  for (const auto& scope : scopes_) {
    for (const auto& [name, var] : scope) names.push_back(name);
  }
  const std::vector<std::string> similar = NearMisses(token.text, names);
  Fail(token, fmt::format("unknown variable '%{}'", token.text), similar.empty() ? "" : "did you mean '%" + similar[0] + "'?");
}

}  // namespace collage
