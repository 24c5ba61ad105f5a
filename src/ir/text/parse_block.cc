// parse_block.cc: blocks, their statements and the variables that they bind. Statements are read in a loop, so that
// only nesting uses the machine's stack; lets are put together from the last to the first.
#include <fmt/format.h>

#include "collage/support/error.h"
#include "ir/text/parser.h"
#include "support/edit_distance.h"

namespace collage {

// ---- blocks ----

Expr Parser::Braces() {
  Expect("{");
  Expr result = Block("}");
  Expect("}");
  return result;
}

bool Parser::IsEnd(std::string_view ends) const {
  if (Peek().kind == TokenKind::kEnd) return true;
  return Peek().kind == TokenKind::kPunctuation && Peek().text.size() == 1 &&
         ends.find(Peek().text) != std::string_view::npos;
}

Expr Parser::Block(std::string_view ends, Expr first) {
  const Nesting nesting(*this);
  const Token begin = Peek();
  scopes_.emplace_back();
  const size_t num_scopes = scopes_.size();
  const size_t num_type_scopes = type_scopes_.size();
  std::vector<Statement> lets;
  if (first) {
    lets.push_back({At(MakeVar("_"), begin), std::move(first)});
    Expect(";");
  }
  Expr result;
  while (!result) {
    try {
      if (IsEnd(ends)) Fail(Peek(), "a block ends without a result");
      if (!StatementOrResult(lets, &result)) continue;
      if (IsEnd(ends) && (ends.empty() || Peek().kind != TokenKind::kEnd)) continue;
      std::string wanted = ends.empty() ? " or the end of the text" : "";
      for (char end : ends) wanted += fmt::format(" or '{}'", end);
      Fail(Peek(), fmt::format("expected ';'{}, got {}", wanted, Describe(Peek())));
    } catch (ParseFailure& failure) {
      Record(std::move(failure));
      scopes_.resize(num_scopes);
      type_scopes_.resize(num_type_scopes);
      SkipStatement(ends);
      result = IsEnd(ends) || IsNext("}") || (IsNext("def") && Peek(1).kind == TokenKind::kGlobal)
                   ? Expr(Anything(begin))
                   : nullptr;
    }
  }
  scopes_.pop_back();
  for (size_t i = lets.size(); i-- > 0;) {
    std::shared_ptr<const LetNode> let = std::make_shared<LetNode>(lets[i].var, lets[i].value, std::move(result));
    let->share_span(*lets[i].var);
    result = std::move(let);
  }
  return result;
}

Expr Parser::ExpressionOrBlock(std::string_view ends) {
  if (StartsStatement()) return Block(ends);
  Expr expr = Expression();
  return IsNext(";") ? Block(ends, std::move(expr)) : expr;
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
  const VarNotes notes = ParseVarNotes();
  Expect("=");
  // A function may call itself by the variable it is bound to; any other value sees the variable's former meaning.
  Var var = IsNext("fn") ? DeclareVar(name, notes) : nullptr;
  Expr value;
  try {
    value = Expression();
  } catch (const ParseFailure&) {
    DeclareVar(name, notes);
    throw;
  }
  if (!var) var = DeclareVar(name, notes);
  return {std::move(var), std::move(value)};
}

void Parser::FreeVar() {
  Expect("free_var");
  const Token name = ExpectKind(TokenKind::kLocal, "a variable");
  VarNotes notes = ParseVarNotes();
  // Declared for the whole text.
  Var var = At(MakeVar(NameOf(name), std::move(notes.type)), name);
  if (notes.device) var->set_virtual_device(*std::move(notes.device));
  scopes_.front()[NameOf(name)] = std::move(var);
}

/// Moves behind the statement's `;`, or before what ends its block.
void Parser::SkipStatement(std::string_view ends) {
  for (int depth = 0; Peek().kind != TokenKind::kEnd; Take()) {
    if (depth == 0 && IsNext(";")) {
      Take();
      return;
    }
    if (depth == 0 && (IsNext("}") || IsEnd(ends))) return;
    if (IsNext("def") && Peek(1).kind == TokenKind::kGlobal) return;
    if (IsNext("{") || IsNext("(")) ++depth;
    if ((IsNext("}") || IsNext(")")) && depth > 0) --depth;
  }
}

// ---- variables ----

Var Parser::DeclareVar(const Token& token, VarNotes notes) {
  Var var = At(MakeVar(NameOf(token), std::move(notes.type)), token);
  if (notes.device) var->set_virtual_device(*std::move(notes.device));
  scopes_.back()[NameOf(token)] = var;
  return var;
}

/// Stands where something could not be read; never leaves the parser, since the text has an error.
Var Parser::Anything(const Token& token) const { return At(MakeVar("unreadable"), token); }

Expr Parser::LookupLocal(const Token& token) {
  const std::string name = NameOf(token);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto it = scope->find(name);
    if (it != scope->end()) return it->second;
  }
  std::vector<std::string> names;
  for (const auto& scope : scopes_) {
    for (const auto& [known, var] : scope) names.push_back(known);
  }
  const std::vector<std::string> similar = NearMisses(name, names);
  Fail(token, fmt::format("unknown variable '%{}'", name),
       similar.empty() ? "" : "did you mean '%" + similar[0] + "'?");
}

}  // namespace collage
