// parse_expr.cc: expressions in Relay text.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/text/parser.h"

namespace collage {
namespace {

struct InfixOp {
  std::string_view symbol;
  int precedence;
  std::string_view op;
};
constexpr InfixOp kInfixOps[] = {
    {"*", 12, "multiply"}, {"/", 12, "divide"},     {"+", 10, "add"},    {"-", 10, "subtract"},
    {"<", 8, "less"},      {"<=", 8, "less_equal"}, {">", 8, "greater"}, {">=", 8, "greater_equal"},
    {"==", 7, "equal"},    {"!=", 7, "not_equal"},
};

}  // namespace

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
    } else if (Peek().kind == TokenKind::kProjection || (IsNext(".") && Peek(1).kind == TokenKind::kNumber)) {
      Accept(".");
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
      GlobalVar& global = globals_[NameOf(token)];
      if (!global) global = At(std::make_shared<const GlobalVarNode>(NameOf(token)), token);
      global_uses_.emplace_back(global, token);
      return global;
    }
    case TokenKind::kNumber: return NumberLiteral(/*is_negative=*/false);
    case TokenKind::kIdentifier: return IdentifierAtom();
    default: break;
  }
  if (IsNext("-")) return NumberLiteral(Signs());
  if (IsNext("(")) return Parenthesised();
  if (IsNext("{")) return Braces();
  if (token.kind == TokenKind::kString) {
    auto constructor = constructors_.find(StringValue(token));
    if (constructor == constructors_.end()) Fail(token, fmt::format("there is no constructor {}", token.text));
    Take();
    return constructor->second;
  }
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
  std::vector<Expr> fields;
  while (!Accept(")")) {
    fields.push_back(ExpressionOrBlock(",)"));
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
  std::optional<VirtualDevice> device;
  Expect("(");
  while (!Accept(")")) {
    if (Peek().kind == TokenKind::kLocal) {
      const Token name = Take();
      VarNotes notes = ParseVarNotes();
      params.push_back(DeclareVar(name, std::move(notes)));
    } else if (IsNext("virtual_device") && IsNext("=", 1)) {
      Take();
      Take();
      device = ParseVirtualDevice();
    } else {
      Attribute(&attrs);
    }
    if (!IsNext(")")) Expect(",");
  }
  const Type result = Accept("->") ? ParseType() : nullptr;
  Expr body = Braces();
  scopes_.pop_back();
  type_scopes_.pop_back();
  Function function =
      At(MakeFunction(std::move(params), std::move(body), result, std::move(attrs), std::move(type_params)), token);
  if (device) function->set_virtual_device(*std::move(device));
  return function;
}

Parser::VarNotes Parser::ParseVarNotes() {
  VarNotes notes;
  if (Accept("{")) {
    Expect("virtual_device");
    Expect("=");
    notes.device = ParseVirtualDevice();
    Accept(",");
    Expect("}");
  }
  if (Accept(":")) notes.type = ParseType();
  return notes;
}

Expr Parser::If() {
  const Token token = Take();
  Expect("(");
  Expr condition = ExpressionOrBlock(")");
  Expect(")");
  Expr then_branch = Braces();
  Expect("else");
  Expr else_branch = Braces();
  return At(std::make_shared<const IfNode>(std::move(condition), std::move(then_branch), std::move(else_branch)),
            token);
}

Expr Parser::Match() {
  const Token token = Take();
  const bool is_complete = !Accept("?");
  Expr data = Postfix();
  Expect("{");
  std::vector<Clause> clauses;
  while (!Accept("}")) {
    clauses.push_back(ParseClause());
    if (!IsNext("}")) Expect(",");
  }
  return At(std::make_shared<const MatchNode>(std::move(data), std::move(clauses), is_complete), token);
}

/// `pattern => body`, the body in braces or not.
Clause Parser::ParseClause() {
  scopes_.emplace_back();
  Pattern pattern = ParsePattern();
  Expect("=>");
  Expr body = ExpressionOrBlock(",}");
  scopes_.pop_back();
  return {std::move(pattern), std::move(body)};
}

Pattern Parser::ParsePattern() {
  const Nesting nesting(*this);
  const Token token = Take();
  if (token.text == "_" && token.kind == TokenKind::kIdentifier) return {};
  if (token.kind == TokenKind::kLocal) {
    return {Pattern::Kind::kVar, DeclareVar(token, ParseVarNotes()), nullptr, {}};
  }
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kString) return ConstructorPattern(token);
  if (token.kind != TokenKind::kPunctuation || token.text != "(") {
    Fail(token, fmt::format("expected a pattern, got {}", Describe(token)));
  }
  Pattern pattern;
  pattern.kind = Pattern::Kind::kTuple;
  while (!Accept(")")) {
    pattern.sub_patterns.push_back(ParsePattern());
    if (!IsNext(")")) Expect(",");
  }
  return pattern;
}

Pattern Parser::ConstructorPattern(const Token& token) {
  const std::string name = NameOf(token);
  auto it = constructors_.find(name);
  if (it == constructors_.end()) {
    Fail(token, fmt::format("unknown constructor '{}'", name), fmt::format("a variable is '%{}'", name));
  }
  Pattern pattern;
  pattern.kind = Pattern::Kind::kConstructor;
  pattern.constructor = it->second;
  if (Accept("(")) {
    while (!Accept(")")) {
      pattern.sub_patterns.push_back(ParsePattern());
      if (!IsNext(")")) Expect(",");
    }
  }
  const size_t wanted = it->second->inputs().size();
  if (pattern.sub_patterns.size() != wanted) {
    Fail(token,
         fmt::format("constructor '{}' has {} fields, the pattern {}", name, wanted, pattern.sub_patterns.size()));
  }
  return pattern;
}

Expr Parser::Reference(const Token& token) {
  Expect("(");
  Expr first = ExpressionOrBlock(",)");
  Expr second;
  if (token.text == "ref_write") {
    Expect(",");
    second = ExpressionOrBlock(")");
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
      args.push_back(ExpressionOrBlock(",)"));
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

}  // namespace collage
