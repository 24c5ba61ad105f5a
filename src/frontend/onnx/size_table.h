// size_table.h: what is known while a model is imported of sizes that only a run knows.
//
// Every dimension of every value has a symbolic size (collage/ir/symbolic_size.h): type relations hand on those of the
// inputs, and what they leave plain `Any` gets a symbol of its own, "dimension 2 of this value". Integer tensors that
// are computed of sizes have symbolic elements. So whether a reshape only merges two dimensions is decided for all
// sizes at once, and what cannot be decided is left to the run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Sizes of a shape, or elements of an integer tensor in row-major order.
class Sizes : public std::vector<SymbolicSize> {
 public:
  using vector::vector;
  Sizes(const Shape& shape) : std::vector<SymbolicSize>(shape.begin(), shape.end()) {}  // NOLINT: a shape is one

  bool is_known() const;
  /// The numbers; all must be known.
  Shape known() const;
  SymbolicSize Product() const;
  /// "[batch, 2*width, 3]".
  std::string ToString() const;
};

/// As Sizes, of which some may be nothing: they are not known.
using PartialSizes = std::vector<std::optional<SymbolicSize>>;

/// Symbols of one model and what they stand for. Expressions must be typed.
class SizeTable {
 public:
  /// The size that the model calls `name`: the same for equal names. `range`: of the first one.
  SymbolicSize Named(const std::string& name, SizeRange range = {});
  /// A size unequal to all others.
  SymbolicSize Unnamed(const std::string& name, SizeRange range = {}) { return NewSymbol(name, nullptr, 0, range); }
  /// Says that a run finds the symbols in the type of `param` in its dimensions, unless it finds them elsewhere.
  void FoundIn(const Var& param);
  /// Gives every dimension of `expr`'s type that is plain `Any` a symbol of its own.
  void NameSizes(const Expr& expr);
  /// The dimensions of a tensor whose sizes have been named.
  static Sizes Of(const TensorTypeNode& type);

  /// The elements of a constant of integers or of what is computed of sizes; nothing where they are not known.
  std::optional<Sizes> ValuesOf(const Expr& expr) const;
  void SetValues(const Expr& expr, Sizes values);
  /// Notes what a call computes of sizes. Returns the constant that it is for all sizes; null where it is none.
  Expr Follow(const Expr& call);
  /// Whether `expr` depends on constants and sizes only, not on the data of a run.
  bool IsComputedFromSizes(const Expr& expr) const;

  /// A vector of int64 that a run computes.
  Expr Compute(const Sizes& sizes);

 private:
  /// Place at which a run finds a symbol's value.
  struct Origin {
    SymbolicSize symbol;  ///< keeps the factor that is the key
    Expr value;
    int dim;
  };
  struct Less {
    bool operator()(const SymbolicSize& a, const SymbolicSize& b) const { return SymbolicSize::Compare(a, b) < 0; }
  };
  struct Values {
    Expr expr;  ///< keeps the node that is the key
    Sizes values;
  };

  SymbolicSize NewSymbol(const std::string& name, const Expr& value, int dim, SizeRange range = {});
  Type WithSymbols(const Type& type, const Expr& value);
  Expr ComputeOne(const SymbolicSize& size);
  Expr ComputeFactor(const SymbolicSize::Factor& factor);
  std::optional<Sizes> Evaluate(const CallNode& call) const;

  std::unordered_map<const SymbolicSize::Factor*, Origin> origins_;
  std::map<std::string, SymbolicSize> named_;
  std::unordered_map<const ExprNode*, Values> values_;
  std::unordered_map<const ExprNode*, Expr> from_sizes_;
  std::map<SymbolicSize, Expr, Less> computed_;
};

}  // namespace collage
