// values.h: values of ONNX that are no tensors, while a model is imported. A sequence is a tuple that is written out,
// since its length is known then; an optional value is the value itself, or the one that stands for none. So nothing of
// them is left when the import is done.
#pragma once

#include "frontend/onnx/importer.h"

namespace collage {

/// A typed sequence of `elements`.
Expr MakeSequence(std::vector<Expr> elements);
/// The elements of a sequence; null where `expr` is another value.
const std::vector<Expr>* AsSequence(const Expr& expr);

/// The optional value that is not there, always the same node.
const Expr& AbsentValue();
inline bool IsAbsent(const Expr& expr) { return expr == AbsentValue(); }

/// The tensors of `values`, those of sequences one after the other; none where a value is absent.
std::vector<Expr> TensorsOf(const std::vector<Expr>& values);
/// `tensors` as values of the form of `like`.
std::vector<Expr> ValuesLike(const std::vector<Expr>& like, const std::vector<Expr>& tensors);
/// "x.0": the name that an element of the sequence `name` has as an input or a result of a model.
std::string ElementName(const std::string& name, size_t index);
/// "a sequence of 2", "a tensor", "no value": the form that `value` has.
std::string FormOf(const Expr& value);

}  // namespace collage
