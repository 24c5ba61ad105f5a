// dynamic_sizes.h: the dynamic sizes (`?`) of a function's types, as variables that get values in a run.
//
// Dimensions that operators require to be equal share a variable, so that a code generator sees them as one extent. A
// run finds all shapes by the operators' type relations (ShapesOf), looks whether the variables hold, and passes their
// values on:
//
//     fn (%x: Tensor[(?, 64), float32], %y: Tensor[(?, 64), float32]) { nn.relu(add(%x, %y)) }
//         n0: %x.0, %y.0, add.0, relu.0      assumed: add would stretch an operand of one row, too
#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

/// Sizes of a function's values: one value for each parameter, then one for each constant, call, tuple and projection
/// in post-order.
struct DynamicSizes {
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
    int64_t known = -1;       ///< required value; -1: any
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
bool HasDynamicSizes(const Function& function);

/// Throws kUnsupported for functions that are not operators on tensors alone. `exprs`, unless null, receives the values
/// in order.
DynamicSizes FindDynamicSizes(const Function& function, std::vector<Expr>* exprs = nullptr);

/// The types of all values for parameters of `types`, all static. Throws kInput where a relation does not hold.
std::vector<Type> TypesOfValues(const DynamicSizes& sizes, const std::vector<Type>& types);

/// Returns the variables' values for values of `types`; nothing if the places of one variable differ.
std::optional<std::vector<int64_t>> ValuesOf(const DynamicSizes& sizes, const std::vector<Type>& types);

/// Whether tensors of `type` are rows of known shape, as many as a run says: `?` is the first dimension and no other.
bool IsBatch(const Type& type);

/// Returns a tensor type with `rows` rows; other types unchanged.
Type WithBatchSize(const Type& type, int64_t rows);
/// `function` for parameters of `rows` rows each; typed.
Function WithBatchSize(const Function& function, int64_t rows);

}  // namespace collage
