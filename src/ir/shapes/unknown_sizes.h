// unknown_sizes.h: the sizes that a function's types leave open (`?`), as variables that a run has values for.
//
// Dimensions of which operators say that they are equal share a variable, so that whoever makes loops of the function
// sees one extent where there is one. A run finds all shapes by the operators' type relations (ShapesOf), looks whether
// the variables hold, and passes their values on:
//
//     fn (%x: Tensor[(?, 64), float32], %y: Tensor[(?, 64), float32]) { nn.relu(add(%x, %y)) }
//         n0: %x.0, %y.0, add.0, relu.0      assumed: add would stretch an operand of one row, too
#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

/// What is known of a function's values, of which there is one for each parameter and then for each constant, call,
/// tuple and projection in post-order.
struct UnknownSizes {
  struct Step {
    enum Kind : uint8_t { kParameter, kConstant, kCall, kTuple, kField } kind;
    const OpDef* op = nullptr;  ///< kCall
    Attrs attrs;
    std::vector<int> args;  ///< values
    int field = 0;          ///< kField
    Type type;              ///< kConstant
  };
  /// Dimension `dim` of tensor `field` of a value, those of a tuple being flattened.
  struct Place {
    int value;
    int field;
    int dim;
    bool operator==(const Place&) const = default;
  };
  struct Variable {
    std::vector<Place> places;
    int64_t known = -1;       ///< what it must be; -1: anything
    bool is_assumed = false;  ///< whether the operators allow that places differ
  };

  std::vector<Step> steps;
  std::vector<Variable> variables;
  int result = -1;  ///< the value of the body

  /// The variable of a place; -1 where the type knows the size.
  int VariableAt(const Place& place) const;
  bool is_assumed() const;
};

/// Whether some parameter or result of the typed `function` has a dimension `?`.
bool HasUnknownSizes(const Function& function);

/// Throws kUnsupported for functions that are not operators on tensors alone. Those of `exprs`, unless null, are the
/// values in order.
UnknownSizes FindUnknownSizes(const Function& function, std::vector<Expr>* exprs = nullptr);

/// The types of all values for parameters of `types`, all static. Throws kInput where a relation does not hold.
std::vector<Type> TypesOfValues(const UnknownSizes& sizes, const std::vector<Type>& types);

/// What the variables are where values have `types`; nothing where places of one differ.
std::optional<std::vector<int64_t>> ValuesOf(const UnknownSizes& sizes, const std::vector<Type>& types);

/// Whether the elements of `op`'s result are made of those in the same place of its arguments, which are stretched and
/// lined up from the right as broadcasting has it.
bool IsPlaceByPlace(const OpDef& op);

/// Whether the elements of `op`'s result are elements of its first argument, or of the fields of that; other arguments
/// and attributes say where they go.
bool MovesElements(const OpDef& op);

/// Whether tensors of `type` are rows of known shape, as many as a run says: `?` is the first dimension and no other.
bool AreRows(const Type& type);

/// That type of `rows` rows; other types as they are.
Type WithRows(const Type& type, int64_t rows);
/// `function` for parameters of `rows` rows each; typed.
Function WithRows(const Function& function, int64_t rows);

}  // namespace collage
