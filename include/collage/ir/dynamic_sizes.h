// dynamic_sizes.h: the dynamic dimensions (`?`) of a function's types, as variables that each run gives values to.
//
// Dimensions that are equal by the operators' rows (OpDef::equal_dims) share a variable, so that generated loops have
// one extent for them. A run infers all shapes by the operators' type relations (TypesOfValues), checks that the
// variables hold (ValuesOf), and passes their values on:
//
//     fn (%x: Tensor[(?, 64), float32], %y: Tensor[(?, 64), float32]) { nn.relu(add(%x, %y)) }
//         n0: %x.0, %y.0, add.0, relu.0      assumed: add would also broadcast an operand of one row
#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

/// A function's values and the variables of their dimensions. Values are the parameters, then each constant, call,
/// tuple and projection in post-order.
struct DynamicSizes {
  struct Step {
    enum Kind : uint8_t { kParameter, kConstant, kCall, kTuple, kField } kind;
    const OpDef* op = nullptr;  ///< kCall
    Attrs attrs;
    std::vector<int> args;  ///< values
    int field = 0;          ///< kField
    Type type;              ///< kConstant
  };
  /// Dimension `dim` of tensor `field` of a value; tuples are flattened.
  struct Place {
    int value;
    int field;
    int dim;
    bool operator==(const Place&) const = default;
  };
  struct Variable {
    std::vector<Place> places;
    int64_t known = -1;       ///< the only value that it may have; -1: any
    bool is_assumed = false;  ///< whether operators also accept different sizes at its places
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

/// Finds the variables of `function`, and in `exprs`, unless null, the values in order. Throws kUnsupported unless the
/// function consists of operators on tensors.
DynamicSizes FindDynamicSizes(const Function& function, std::vector<Expr>* exprs = nullptr);

/// Returns the types of all values for parameters of static `types`. Throws kInput where a type relation does not hold.
std::vector<Type> TypesOfValues(const DynamicSizes& sizes, const std::vector<Type>& types);

/// Returns the variables' values where values have `types`; nothing where the places of a variable differ.
std::optional<std::vector<int64_t>> ValuesOf(const DynamicSizes& sizes, const std::vector<Type>& types);

/// Whether `type` is a batch: the first dimension is `?`, and no other is.
bool IsBatch(const Type& type);

/// `type` with a batch of `rows` rows; other types as they are.
Type WithBatchSize(const Type& type, int64_t rows);
/// `function` with batches of `rows` rows as parameters; typed.
Function WithBatchSize(const Function& function, int64_t rows);

}  // namespace collage
