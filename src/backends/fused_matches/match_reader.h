// match_reader.h: a matched sub-graph as its calls and operands.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/fused_matches/pointwise.h"
#include "collage/ir/expr.h"
#include "collage/target/composite.h"
#include "collage/target/toolchain.h"

namespace collage::matches {

/// Thrown while a match is read: why a toolchain does not compute it.
struct Refusal {
  std::string text;
};

/// A value from outside of the match.
struct Operand {
  int64_t input = -1;  ///< number of the partition's parameter; -1 for constants
  Tensor constant;
  Shape shape;
  DataType dtype = kFloat32;
  Layout layout = Layout::kPlain;
};

/// The type of `expr`, a tensor of static shape that is not empty; else a Refusal.
const TensorTypeNode& TensorOf(const Expr& expr);

/// Whether `call`, an addition to a value of `rank` axes, adds the constant `operand`: a number for each of `channels`
/// along `axis`.
bool IsBias(const CallNode& call, const Operand& operand, int64_t channels, int64_t axis, int64_t rank);

/// [N, C, W] as an image of one row; images as they are.
Shape AsImage(Shape shape);

/// The reader of a value within a match: one call, or a function of the value that is written out as several.
struct Follower {
  Call call;
  std::optional<Pointwise> function;  ///< set if `call` ends one
};

/// The calls of a composite, or of a partition whose body calls one.
class MatchReader {
 public:
  /// `layouts` must outlive it. Throws a Refusal where there is more than one composite.
  MatchReader(const Function& function, const BoundaryLayouts& layouts);

  const std::vector<Call>& calls() const { return calls_; }
  const Expr& root() const { return body_.root(); }
  Layout result_layout() const { return layouts_.outputs.at(0); }

  /// Throws a Refusal where `expr` is computed inside of the match.
  Operand OperandOf(const Expr& expr) const;

  /// Returns the reader of `current`, a call of the match. Throws a Refusal where nothing does.
  Follower FollowerOf(const Call& current) const;

 private:
  const BoundaryLayouts& layouts_;
  std::unordered_map<const ExprNode*, int64_t> parameters_;
  CompositeBody body_;
  std::vector<Call> calls_;
};

}  // namespace collage::matches
