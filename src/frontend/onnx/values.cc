// values.cc: sequences as tuples, and the optional value that is not there.
#include "frontend/onnx/values.h"

#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage {

Expr MakeSequence(std::vector<Expr> elements) {
  Expr sequence = MakeTuple(std::move(elements));
  InferType(sequence);
  return sequence;
}

const std::vector<Expr>* AsSequence(const Expr& expr) {
  const TupleNode* tuple = As<TupleNode>(expr);
  return tuple == nullptr ? nullptr : &tuple->fields();
}

const Expr& AbsentValue() {
  static const Expr absent = [] {
    const Var var = MakeVar("absent", TupleType({}));
    var->set_checked_type(var->type_annotation());
    return var;
  }();
  return absent;
}

std::vector<Expr> TensorsOf(const std::vector<Expr>& values) {
  std::vector<Expr> tensors;
  for (const Expr& value : values) {
    if (const std::vector<Expr>* elements = AsSequence(value)) {
      tensors.insert(tensors.end(), elements->begin(), elements->end());
    } else if (!IsAbsent(value)) {
      tensors.push_back(value);
    }
  }
  return tensors;
}

std::vector<Expr> ValuesLike(const std::vector<Expr>& like, const std::vector<Expr>& tensors) {
  std::vector<Expr> values;
  auto next = tensors.begin();
  for (const Expr& form : like) {
    if (IsAbsent(form)) {
      values.push_back(form);
      continue;
    }
    const std::vector<Expr>* elements = AsSequence(form);
    const auto end = next + static_cast<int64_t>(elements == nullptr ? 1 : elements->size());
    values.push_back(elements == nullptr ? *next : MakeSequence({next, end}));
    next = end;
  }
  COLLAGE_CHECK(next == tensors.end()) << "as many tensors as the values have";
  return values;
}

std::string ElementName(const std::string& name, size_t index) { return fmt::format("{}.{}", name, index); }

std::string FormOf(const Expr& value) {
  if (IsAbsent(value)) return "no value";
  const std::vector<Expr>* elements = AsSequence(value);
  return elements == nullptr ? "a tensor" : fmt::format("a sequence of {}", elements->size());
}

}  // namespace collage
