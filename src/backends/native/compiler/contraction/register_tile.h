// register_tile.h: the sums of a register tile: so many rows times so many vectors of a panel, in registers while the
// inner dimensions are walked.
#pragma once

#include <algorithm>
#include <string>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

/// Writes the sums of register tiles of a product, which must outlive it.
class RegisterTile {
 public:
  RegisterTile(PartitionState& state, const Contraction& form)
      : state_(state),
        e_(state.emitter),
        form_(form),
        is_gpu_(state.target.has_tensor_cores),
        has_vnni_(state.target.has_byte_products && !is_gpu_),
        unroll_(std::max<int64_t>(state.schedule().unroll, 1)),
        element_(fmt::format("{}{}", form.dtype.is_floating() ? "f" : "i", form.dtype.bits)) {}

  /// Returns the MLIR type of a vector of the emitter's present lanes.
  std::string type() const { return fmt::format("vector<{}x{}>", e_.lanes(), element_); }

  /// Makes each position of the sums that are written next prefetch the data at `base`, `step` bytes further each, into
  /// the caches from number `nearest` on. Without a base nothing is prefetched.
  void FetchAhead(const Ptr& base, int64_t step, int nearest) {
    ahead_ = base;
    ahead_step_ = step;
    ahead_nearest_ = nearest;
  }

  /// The sums of `vectors` vectors of the panel from its channel `first` on, of which `width` channels exist: vector v
  /// of row t is element t * vectors + v.
  Vectors Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t first, int vectors,
               int64_t width);

 private:
  Vector Zeros();
  /// Returns the values that the sums of a tile begin with.
  Vectors Starts(const I64s& outer, int64_t rows, const I64& panel, int vectors);
  Vector Combine(const Vector& a, const Vector& b, const Vector& sum);
  /// Loops over the inner dimensions that `inner` lacks, carrying the accumulators.
  Vectors Accumulate(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int vectors, int64_t width,
                     int64_t chains, const I64s& inner, const Vectors& sums);
  Ptr Offset(const Ptr& base, int64_t elements);
  void Fetch(const I64s& inner);
  /// One position of the inner dimensions.
  void Step(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int vectors, int64_t width,
            const I64s& inner, const Vectors& sums, size_t first, Vectors& next);

  PartitionState& state_;
  Emitter& e_;
  const Contraction& form_;
  bool is_gpu_;
  bool has_vnni_;
  int64_t unroll_;  ///< positions of the innermost dimension that a turn of its loop should do, for each chain
  std::string element_;
  Ptr ahead_;  ///< address of the data to prefetch
  int64_t ahead_step_ = 0;
  int ahead_nearest_ = 0;
  // The tile that is being written:
  int64_t turns_ = 1;  ///< positions that a turn of the loop does
  std::string type_;
  int64_t first_ = 0;
};

}  // namespace collage::native
