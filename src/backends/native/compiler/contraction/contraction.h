// contraction.h: the common form of convolutions and matrix products, and the register tiles that compute it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

/// The contents of one element of a and of b, which decide the instruction that adds their product to a sum.
enum class DotKind : uint8_t {
  kOne,       ///< one number of the sums' type
  kBFloat16,  ///< a pair of bfloat16, described as float32 (pair_dot.h)
  kFloat16,   ///< a pair of float16, described as float32
  kInt16,     ///< a pair of int16, described as int32 (int8_dot.h)
  kBytes,     ///< four bytes, described as int32: a's without sign, b's with one
};

/// Whether it is a pair of floats.
constexpr bool IsPair(DotKind kind) { return kind == DotKind::kBFloat16 || kind == DotKind::kFloat16; }

/// A contraction: result[outer, row, channel] += a(outer, row, inner…) * b(outer, inner…, channel).
struct Contraction {
  DataType dtype = kFloat32;  ///< dtype of a, b and the sums: float32, float64, int32 or int64
  DotKind factors = DotKind::kOne;
  bool flips_signs = false;    ///< kBytes: a's have signs; 128 is added to each of them, which `start` makes up for
  std::vector<int64_t> outer;  ///< sizes of the outer dimensions
  int64_t rows = 1;
  int64_t channels = 1;
  /// Vectors of a whole panel, if there is one: sums of what is left behind whole panels are added up in as many parts
  /// as theirs, so that equal channels have equal sums, wherever they lie. 0: there are no whole panels.
  int64_t panel_vectors = 0;
  std::vector<int64_t> inner;  ///< sizes of the dimensions that are summed over, innermost last
  /// The address of a(outer, row, inner); rows follow each other at `row_stride` elements.
  std::function<Ptr(const I64s& outer, const I64& row, const I64s& inner)> a_address;
  int64_t row_stride = 1;
  /// A dimension of some that a coordinate is made of, the innermost last: its size, and the distance of a's elements
  /// along it.
  struct Part {
    int64_t size, stride;
  };
  /// If there are any, what rows, or positions of the only dimension in `inner`, are made of. Neither row_stride nor
  /// depth_stride then holds for all of them, and `a_address` is asked for 0 only. For blocks of warps (block_tile.h).
  std::vector<Part> row_parts, depth_parts;
  int64_t line = 0;          ///< if not 0, rows come in lines of this length, which begin `line_stride` elements
  int64_t line_stride = 0;   ///< apart, and all rows are one register tile
  int64_t depth_stride = 0;  ///< distance of a's elements along the innermost of `inner`; 0: unknown, or varying
  /// The address of b(outer, inner, first channel of panel); channels follow each other.
  std::function<Ptr(const I64s& outer, const I64& panel, const I64s& inner)> b_address;
  /// Whether b's vectors may be read beyond the last channel (packed) or must be masked.
  bool b_is_padded = true;
  bool may_pack = false;      ///< whether b could be packed, and is not
  bool a_is_aligned = false;  ///< innermost elements follow each other, every fourth at a multiple of 16 bytes
  int b_constant = -1;        ///< b's number among the constants, if it is one that nothing else reads
  /// Distance of b's rows of channels along the innermost of `inner`; set if depth_stride is.
  int64_t b_row_stride = 0;
  int64_t b_panel_stride = 0;     ///< distance of neighbouring panels of b; 0: unknown
  int64_t result_row_stride = 0;  ///< distance of neighbouring rows in the result; 0: as depth_stride
  /// The int32 values that sums of integers begin with, for the vector at channel `first` of a panel; null: 0.
  std::function<Vector(const I64s& outer, const I64& panel, int64_t first)> start;
  /// The float32 scales that turn such sums into real numbers; null: sums stay integers.
  std::function<Vector(const I64s& outer, const I64& panel, int64_t first)> scale;
  /// Indices of the result.
  std::function<Indices(const I64s& outer, const I64& row, const Index& channel)> result;

  /// How many elements behind the first row of a register tile its row `t` begins in a.
  int64_t RowOffset(int64_t t) const {
    return line == 0 ? t * row_stride : t / line * line_stride + t % line * row_stride;
  }
};

/// Channels per panel.
int64_t PanelWidth(const PartitionState& state, DataType dtype);

/// Vectors that are multiplied and added in a cycle.
int MultipliersOf(const PartitionState& state);

/// Returns the stride of rows of `floats` floats: one cache line more if multiples of the row would fall on one or two
/// sets of a cache.
int64_t SpreadRow(int64_t floats);

/// Rows of a register tile, at most.
int64_t MostTileRows(const PartitionState& state, DataType dtype, DotKind factors = DotKind::kOne);
/// Rows of the register tiles that `rows` rows are cut into: a divisor where there is a good one, else even parts.
int64_t TileRows(const PartitionState& state, DataType dtype, int64_t rows);

/// Returns the number of parts that a sum over `depth` is split into, given `count` independent sums in a register
/// tile: too few sums leave multipliers idle.
int64_t ChainsOf(int64_t count, int64_t depth);

/// Writes where the emitter stands the sums of one register tile: `rows` rows from `row` times the first `vectors`
/// vectors of `panel`, of whose channels `width` exist. Vector v of row t is element t * vectors + v.
Vectors EmitRegisterTile(PartitionState& state, const Contraction& form, const I64s& outer, const I64& row,
                         int64_t rows, const I64& panel, int vectors, int64_t width);

/// Returns the choices of schedules of a product in register tiles of `rows`, `tiles` for each panel.
ProductSpace SpaceOf(const PartitionState& state, const Contraction& form, int64_t rows, int64_t tiles);

/// A sum of `form` as a value that epilogues compute with. `scale` is none where it stays an integer.
Value SumAsValue(Emitter& e, const Contraction& form, const Vector& sum, const Vector& scale);

/// Emits the stages of a product.
void EmitContraction(PartitionState& state, const Contraction& form, const StageOutput& output);

/// Whether elements of a buffer along `axis` follow each other, every fourth at a multiple of 16 bytes. Elements
/// have 4.
bool HasAlignedRows(const Buffer& buffer, size_t axis);

/// A buffer's number among the constants; -1 for others.
int ConstantNumber(const Buffer& buffer);

/// The dtype in which products of `dtype` are summed: float32 for narrower floats, int32 for narrower integers.
DataType SumType(DataType dtype);

/// The value of an expression without parameters; nothing when it has some.
std::optional<Tensor> ConstantValue(const Expr& expr);

/// Weights as [panel][inner][width], channels innermost: a constant when they are known, else packed by a stage. `at`
/// gives the weight's indices of (channel, position in inner).
struct PackedWeights {
  Shape inner;           ///< sizes that `at` gets coordinates of
  int64_t groups = 1;    ///< outermost: packed one after the other
  int64_t channels = 1;  ///< in each group
  std::function<Indices(const Index& group, const Index& channel, const Indices& inner)> at;
  /// The position of an element in a constant of `shape`: linear in each of the coordinates.
  std::function<int64_t(const Shape& shape, int64_t group, int64_t channel, const std::vector<int64_t>& inner)> offset;
  /// Whether a panel of a group is read at all; null: always.
  std::function<I1(const I64& group, const I64& panel)> is_read;
};
/// Constant weights so packed, in panels of `width` channels; nothing for others.
std::optional<Tensor> PackedConstant(const Expr& weight, const PackedWeights& packing, DataType dtype, int64_t width);
/// Writes the stage that packs into `buffer`: [groups, panels, inner…, width].
void EmitPacked(PartitionState& state, const Expr& weight, const PackedWeights& packing, const Buffer& buffer);
/// The result has shape [groups, panels, product of inner, width].
Buffer PackWeights(PartitionState& state, const Expr& weight, const PackedWeights& packing, DataType dtype);

}  // namespace collage::native
