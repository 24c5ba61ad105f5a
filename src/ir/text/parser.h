// parser.h: the recursive-descent parser of Relay text: definitions in parser.cc, the rest in parse_block.cc,
// parse_expr.cc, parse_value.cc and parse_type.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/text.h"
#include "ir/text/lexer.h"

namespace collage {

/// Reads one text. An error inside a statement is recorded, the statement skipped, and what it would have bound stands
/// for anything from then on, so that one mistake gives one message.
class Parser {
 public:
  /// `text` and `file_name` must outlive the parser.
  Parser(std::string_view text, const std::string& file_name, const ParseOptions& options);

  IRModule Module();
  Expr Single();

 private:
  // ---- tokens ----
  const Token& Peek(size_t ahead = 0) const;
  bool IsNext(std::string_view text, size_t ahead = 0) const;  ///< punctuation or a word
  Token Take();
  bool Accept(std::string_view text);
  Token Expect(std::string_view text);
  Token ExpectKind(TokenKind kind, std::string_view what);
  [[noreturn]] void Fail(const Token& token, std::string message, std::string hint = "") const;
  /// Keeps a failure; throws StopParsing when there are too many.
  void Record(ParseFailure failure);
  static std::string Describe(const Token& token);
  /// The name in a kLocal, kGlobal, kIdentifier or kString token, without quotes and escapes.
  static std::string NameOf(const Token& token);
  /// A name that may be quoted: of a type or a constructor.
  Token ExpectName(std::string_view what);
  template <typename T>
  std::shared_ptr<const T> At(std::shared_ptr<const T> expr, const Token& token) const;

  // ---- parser.cc: modules ----
  void Header();
  void HeaderEntry();
  /// The places of `type` at the top level.
  std::vector<size_t> FindTypeDefinitions();
  void TypeDefinitions(const std::vector<size_t>& places);
  void TypeDefinition();
  Constructor ConstructorDefinition(const GlobalTypeVar& type);
  void Definition();
  void SkipToDefinition();
  void CheckGlobals();
  void Infer(const std::function<void()>& infer) const;

  // ---- parse_expr.cc ----
  struct Statement {
    Var var;
    Expr value;
  };
  /// `{ statements result }`, with the braces.
  Expr Braces();
  /// Statements and a result, up to one of the characters `ends` or the end of the text, which stay. `first` is what
  /// was read already when it turned out to be a statement.
  Expr Block(std::string_view ends, Expr first = nullptr);
  /// One statement, added to `lets` when it binds a variable; true when it was the block's result instead.
  bool StatementOrResult(std::vector<Statement>& lets, Expr* result);
  /// An expression, or a block without braces, before one of `ends`.
  Expr ExpressionOrBlock(std::string_view ends);
  bool IsEnd(std::string_view ends) const;
  void GraphBinding();
  Statement Let();
  void FreeVar();
  void SkipStatement(std::string_view ends);
  bool StartsStatement() const;

  Expr Expression();
  Expr Infix(int least_precedence);
  Expr Postfix();
  Expr Atom();
  Expr IdentifierAtom();
  Expr Parenthesised();
  Expr FunctionLiteral(const Token& token);
  Function FunctionRest(const Token& token);
  /// Annotations behind a bound variable: ` {virtual_device=…}: T`.
  struct VarNotes {
    std::optional<VirtualDevice> device;
    Type type;
  };
  VarNotes ParseVarNotes();
  Expr If();
  Expr Match();
  Clause ParseClause();
  Pattern ParsePattern();
  Pattern ConstructorPattern(const Token& token);
  Expr Reference(const Token& token);
  Expr Call(Expr callee, const Token& token);
  Expr MakeOpCall(const Token& token, std::string_view op, std::vector<Expr> args, Attrs attrs);
  Var DeclareVar(const Token& token, VarNotes notes);
  Var Anything(const Token& token) const;
  Expr LookupLocal(const Token& token);

  // ---- parse_value.cc ----
  /// `meta[kind][index]`.
  struct MetaReference {
    Token kind, index;
  };
  MetaReference ParseMetaReference();
  /// The index, which must be below `count`, of a reference to `kind`.
  size_t MetaIndex(const MetaReference& reference, std::string_view kind, size_t count) const;
  Expr Meta();
  AttrValue MetaAttribute();
  VirtualDevice ParseVirtualDevice();
  /// `-`, any number of times; true when they are odd.
  bool Signs();
  Expr NumberLiteral(bool is_negative);
  void Attribute(Attrs* attrs);
  AttrValue AttributeValue();
  AttrValue AttributeNumber(bool is_negative);
  static std::string StringValue(const Token& token);
  int64_t Integer(const Token& token) const;

  // ---- parse_type.cc ----
  Type ParseType();
  Type TensorTypeRest();
  Type NamedType();
  std::vector<Type> TypeList(std::string_view close);
  /// `[A, B]` or nothing; the variables are in scope until `type_scopes_` is popped.
  std::vector<TypeVar> TypeParams();

  /// Guards the machine's stack against texts that nest too deeply.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  struct StopParsing {};

  std::string_view text_;
  const std::string& file_name_;
  const ParseOptions& options_;
  mutable Diagnostics diagnostics_;
  TokenList list_;
  size_t next_ = 0;
  int depth_ = 0;

  IRModule module_;
  std::vector<Constant> constants_;
  std::vector<VirtualDevice> virtual_devices_;
  std::map<std::string, std::vector<std::optional<AttrValue>>, std::less<>> meta_values_;
  std::map<std::string, GlobalTypeVar, std::less<>> type_names_;
  std::map<std::string, size_t, std::less<>> type_arity_;
  std::map<std::string, Constructor, std::less<>> constructors_;
  std::map<std::string, GlobalVar, std::less<>> globals_;
  std::vector<std::pair<GlobalVar, Token>> global_uses_;
  std::unordered_map<int64_t, Expr> graph_;                      // `%N` → value, through the whole text
  std::vector<std::map<std::string, Var, std::less<>>> scopes_;  // innermost last
  std::vector<std::map<std::string, TypeVar, std::less<>>> type_scopes_;
};

template <typename T>
std::shared_ptr<const T> Parser::At(std::shared_ptr<const T> expr, const Token& token) const {
  const Diagnostics::Place place = diagnostics_.PlaceOf(token.offset);
  expr->set_span({file_name_, place.line, place.column});
  return expr;
}

}  // namespace collage
