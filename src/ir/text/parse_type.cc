// parse_type.cc: types in Relay text.
#include <fmt/format.h>

#include "ir/text/parser.h"
#include "support/edit_distance.h"

namespace collage {

Type Parser::ParseType() {
  const Nesting nesting(*this);
  if (Accept("_")) return std::make_shared<IncompleteTypeNode>();
  if (Accept("(")) {
    std::vector<Type> fields;
    while (!Accept(")")) {
      fields.push_back(ParseType());
      const bool more = Accept(",");
      if (more) continue;
      Expect(")");
      // Parentheses around one type without a comma only group.
      return fields.size() == 1 ? fields[0] : TupleType(std::move(fields));
    }
    return TupleType(std::move(fields));
  }
  if (Accept("fn")) {
    std::vector<TypeVar> params = TypeParams();
    Expect("(");
    std::vector<Type> args = TypeList(")");
    Expect("->");
    const Type result = ParseType();
    type_scopes_.pop_back();
    return FuncType(std::move(args), result, std::move(params));
  }
  if (Accept("Tensor")) return TensorTypeRest();
  if (IsNext("ref") && IsNext("(", 1)) {
    Take();
    Take();
    const Type value = ParseType();
    Expect(")");
    return std::make_shared<RefTypeNode>(value);
  }
  return NamedType();
}

Type Parser::TensorTypeRest() {
  Expect("[");
  Expect("(");
  std::vector<Dim> shape;
  while (!Accept(")")) {
    if (Accept("?")) {
      shape.push_back(Dim::Any());
    } else {
      shape.emplace_back(Integer(ExpectKind(TokenKind::kNumber, "a dimension")));
    }
    if (!IsNext(")")) Expect(",");
  }
  Expect(",");
  const Token dtype = ExpectKind(TokenKind::kIdentifier, "a dtype");
  if (!DataType::IsName(dtype.text)) Fail(dtype, fmt::format("unknown dtype '{}'", dtype.text));
  Expect("]");
  return TensorType(std::move(shape), DataType::FromString(dtype.text));
}

Type Parser::NamedType() {
  const Token token = ExpectName("a type");
  const std::string name = NameOf(token);
  for (auto scope = type_scopes_.rbegin(); scope != type_scopes_.rend(); ++scope) {
    auto it = scope->find(name);
    if (it != scope->end()) return it->second;
  }
  auto it = type_names_.find(name);
  if (it != type_names_.end()) {
    std::vector<Type> args;
    if (Accept("[")) args = TypeList("]");
    auto arity = type_arity_.find(name);
    if (arity != type_arity_.end() && arity->second != args.size()) {
      Fail(token, fmt::format("type '{}' takes {} arguments, got {}", name, arity->second, args.size()));
    }
    return std::make_shared<TypeCallNode>(it->second, std::move(args));
  }
  if (DataType::IsName(name)) return TensorType(std::vector<Dim>{}, DataType::FromString(name));
  std::vector<std::string> names{"Tensor", "float32", "int32", "int64", "bool"};
  for (const auto& [known, type] : type_names_) names.push_back(known);
  const std::vector<std::string> similar = NearMisses(name, names);
  Fail(token, fmt::format("unknown type '{}'", name), similar.empty() ? "" : "did you mean '" + similar[0] + "'?");
}

std::vector<Type> Parser::TypeList(std::string_view close) {
  std::vector<Type> types;
  while (!Accept(close)) {
    types.push_back(ParseType());
    if (!IsNext(close)) Expect(",");
  }
  return types;
}

std::vector<TypeVar> Parser::TypeParams() {
  type_scopes_.emplace_back();
  std::vector<TypeVar> params;
  if (!Accept("[")) return params;
  while (!Accept("]")) {
    const std::string name = NameOf(ExpectName("a type variable"));
    params.push_back(std::make_shared<TypeVarNode>(name));
    type_scopes_.back()[name] = params.back();
    if (!IsNext("]")) Expect(",");
  }
  return params;
}

}  // namespace collage
