// op.h: the op table. One row per operator holds everything the compiler knows of it: attributes with types and
// defaults, type relation, fusion kind, traits, reference evaluation, test shapes. Rows live in src/ir/ops/FAMILY.cc.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/ir/expr.h"
#include "collage/ir/type.h"
#include "collage/runtime/tensor.h"
#include "collage/support/result.h"

namespace collage {

/// Fusion kinds, Relay's "TOpPattern" (RFC 0.81, Phase 1), ordered: a larger kind is harder to fuse.
enum class OpPatternKind : uint8_t {
  kElemWise = 0,         ///< E: output element depends on the same element of each input
  kBroadcast = 1,        ///< B: as E, after broadcasting
  kInjective = 2,        ///< I: each output element is one input element
  kCommReduce = 3,       ///< R: reduction
  kOutEWiseFusable = 4,  ///< A: anchor, element-wise operators may follow inside the kernel
  kTuple = 7,            ///< T
  kOpaque = 8,           ///< O: never fused
};

/// 'E' 'B' 'I' 'R' 'A' 'T' 'O'.
char KindLetter(OpPatternKind kind);

enum class AttrKind : uint8_t { kBool, kInt, kDouble, kString, kDType, kInts, kAny };

/// One attribute of an operator. Optional attributes have a default, possibly None.
struct AttrField {
  std::string name;
  AttrKind kind;
  AttrValue default_value;
  std::string doc;
  bool required = false;
};

/// An attribute that the operator has elsewhere and that says nothing here: calls may state it, nodes do not keep it.
struct ForeignAttr {
  std::string name;
  /// The values that change nothing; empty: any, since the arguments say the same.
  std::vector<AttrValue> accepted;
};

/// Input of a type relation: the types of the arguments (tensors, or tuples of tensors) and the complete attributes.
struct OpCall {
  std::span<const Type> args;
  const Attrs& attrs;
};

/// Result type, or why the arguments do not fit ("expects 4-d data, got Tensor[(1, 3), float32]").
using TypeRelation = std::function<Result<Type>(const OpCall& call)>;

/// Computes the operator plainly: `inputs` and `outputs` are the tensors of arguments and result with tuples flattened;
/// outputs are allocated with the inferred type where it is static, and assigned by the function where sizes depend on
/// the data. Slow and obviously right.
using ReferenceFn = std::function<void(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs)>;

/// As ReferenceFn, for an operator that rounds: what lies between two results becomes the upper one with the likelihood
/// of its distance to the lower one, so that the mean over `seed`s is what was to be rounded.
using RandomRoundingFn =
    std::function<void(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, uint64_t seed)>;

/// Products that the operator adds up, computed by its definition; those with padding are not counted. Shapes are
/// static.
using MultiplyAddsFn = std::function<double(const OpCall& call)>;

/// Arguments on which conformance tests try the operator. Tuple arguments are given as tuple types.
struct OpExample {
  std::vector<Type> args;
  Attrs attrs;
  /// Inputs are drawn uniformly from [low, high] (integers within bounds too).
  double low = -1.0;
  double high = 1.0;
};

// ---- traits: what analyses and passes ask of an operator in place of its name ----
//
// A trait is a promise: a row that does not state it promises nothing. tests/unit/ir/op_traits_test.cc holds rows to
// their reference evaluation.

/// A dimension of a call: `dim` of the tensor that argument `argument` is, or of field `field` of a tuple.
struct DimRef {
  static constexpr int kResult = -1;  ///< as `argument`: the result
  int argument = kResult;
  int field = 0;
  int dim = 0;
};

/// Takes in which dimensions of a call are equal in every run, whatever `?` stands for.
class DimEquations {
 public:
  virtual ~DimEquations() = default;
  virtual void Equal(const DimRef& a, const DimRef& b) = 0;
  /// `operands`, none of which is known to be 1, broadcast to `result`.
  virtual void Broadcast(const DimRef& result, const std::vector<DimRef>& operands) = 0;
};

/// States the equal dimensions of `call` and its `result`; the types may have dimensions `?`.
using EqualDimsFn = std::function<void(const OpCall& call, const Type& result, DimEquations& equations)>;

/// Whether row i of `result`, along its first dimension, is computed from row i of those arguments that are batches:
/// whose first dimension is `?` and no other. Arguments of static shapes are read as a whole.
using KeepsRowsFn = std::function<bool(const OpCall& call, const Type& result)>;

/// For an argument that holds indices, lengths or sizes: the first number above 0 that is too large, -1 where that is
/// not known; nothing for other arguments.
using IndexLimitFn = std::function<std::optional<int64_t>(const OpCall& call, size_t argument)>;

/// The elements that are added up for one element of the result.
enum class SummedOver : uint8_t {
  kReduced,  ///< the elements that the result has fewer of than the first argument
  kAxis,     ///< elements along attribute `axis`
  kAxes,     ///< elements along several
  kSample,   ///< all of a sample: the dimensions behind the first
};

/// How a constant argument hints at the integers that the other argument is meant to hold.
enum class ConstantHint : uint8_t {
  kNone,
  kUpTo,    ///< numbers up to the constant: equal, mod, maximum
  kBeyond,  ///< numbers on both sides of it: less, greater
};

struct OpDef {
  std::string name;
  std::string doc;
  /// Names of the arguments; calls must have between `min_args` and `args.size()` of them (min_args < 0: all).
  std::vector<std::string> args;
  std::vector<AttrField> attrs;
  std::vector<ForeignAttr> foreign_attrs;
  OpPatternKind pattern = OpPatternKind::kOpaque;
  TypeRelation relation;
  ReferenceFn reference;
  std::vector<OpExample> examples;
  /// Set for operators whose results are rounded to integers (qnn.quantize …); empty for others.
  RandomRoundingFn random_rounding;
  int min_args = -1;
  /// Set for contractions; empty for operators that move more than they compute.
  MultiplyAddsFn multiply_adds;
  /// The result is the first argument's elements under another shape, unmoved: reshape, expand_dims, squeeze …
  bool is_reshape = false;
  /// Whether the layout of the result may be that of the first argument at no cost (relu, add, max_pool2d …).
  bool layout_agnostic = false;
  /// Works on images, [N, C, spatial…]: the layout of the first argument decides how fast it is.
  bool spatial = false;
  /// Each element of the result is made from the elements at its index in the arguments, which are broadcast.
  bool elementwise = false;
  /// As `elementwise`, but that the second argument is a vector along attribute `axis`.
  bool per_channel = false;
  /// The result's elements are elements of the first argument, or of its fields; attributes and other arguments say
  /// where they go.
  bool moves_elements = false;
  /// Arguments whose elements are the result's, be they moved, chosen, ordered, limited or cast.
  std::vector<size_t> value_sources;
  /// Nothing is rounded: results are as exact as the arguments.
  bool is_exact = false;
  SummedOver summed_over = SummedOver::kReduced;
  ConstantHint constant_hint = ConstantHint::kNone;
  /// Empty: nothing is known; not asked of `elementwise` operators, whose dimensions broadcast.
  EqualDimsFn equal_dims;
  /// Empty: never.
  KeepsRowsFn keeps_rows;
  /// Empty: all arguments are data.
  IndexLimitFn index_limit;

  const AttrField* FindAttr(std::string_view attr_name) const;
};

/// The operator called `name`; null when there is none. Nodes are unique: equal operators are the same node.
Op FindOp(std::string_view name);
/// As FindOp, but throws kInput with near misses for an unknown name.
Op GetOp(std::string_view name);
/// All operators, by name.
std::span<const Op> AllOps();
/// Up to three names of operators that resemble `name`.
std::vector<std::string> SimilarOps(std::string_view name);

/// Checks `attrs` against the schema, adds the defaults of what is absent and drops what is foreign. Throws kInput
/// naming operator and field.
Attrs CompleteAttrs(const OpDef& op, Attrs attrs);

}  // namespace collage
