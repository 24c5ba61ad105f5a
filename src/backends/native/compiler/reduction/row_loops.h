// row_loops.h: units of a reduction that are rows along the lanes, several of them at a time: the steps of one fill the
// gaps that another leaves while its lanes are combined, and what all of them take is read once.
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/reduction/reduction_loops.h"

namespace collage::native {

inline constexpr int64_t kMostRows = 4;

/// One to `kMostRows` rows. A number for each of them is in a vector together: "packed", row i's in lanes i, i + 4, i +
/// 8 …
class RowGroup {
 public:
  /// `places` as in ReductionUnit.
  RowGroup(PartitionState& state, const ReductionSpace& space, std::vector<Indices> places)
      : e_(state.emitter), m_(state.math()), space_(space), places_(std::move(places)) {}

  using Values = std::vector<Value>;
  /// Gets the same vector of each row; gives a value for each.
  using ValuesFn = std::function<Values(const std::vector<Indices>& at)>;

  size_t count() const { return places_.size(); }
  /// Indices of the vector of each row whose first lane is at `first`.
  std::vector<Indices> At(const I64& first) const;
  /// Broadcasts each row's value from a packed vector to all lanes.
  Values Spread(const Value& packed);
  /// Combines values over each row, packed.
  Value Fold(const Combiner& combiner, ElementKind kind, const ValuesFn& values);
  /// Carries values over all vectors in order.
  Values Carry(const Values& start, const std::function<Values(const I64& first, const Values&)>& step);
  /// Packs what is carried of each row; `rows` has one value for each.
  Value Pack(const Combiner& combiner, const Values& rows);
  /// Visits all vectors.
  void Each(const std::function<void(const std::vector<Indices>& at)>& visit);

  // ---- rows that registers hold ----

  /// Visits all vectors, each with its number.
  void EachVector(const std::function<void(const std::vector<Indices>& at, size_t number)>& visit);
  /// Reads `values` of all vectors: by vector, by row.
  std::vector<Values> Read(const ValuesFn& values);
  /// Combines such vectors, packed.
  Value FoldVectors(const Combiner& combiner, const std::vector<Values>& vectors);

 private:
  Emitter& e_;
  VectorMath& m_;
  const ReductionSpace& space_;
  std::vector<Indices> places_;
};

/// Whether units are rows along the lanes.
bool IsOfRows(const Emitter& e, const ReductionSpace& space);
/// How many such rows registers hold, beside as many values in use: at most `kMostRows`.
int64_t RowsInRegisters(const Emitter& e, const ReductionSpace& space);

/// Emits a stage that runs `body` for all rows, `together` of them at a time, and for what is left of
/// them. `flops`: of the whole.
void ForEachRows(PartitionState& state, const ReductionSpace& space, int64_t together, double flops,
                 const std::function<void(RowGroup& rows)>& body);

/// Three passes over rows; each of the first two ends with the values of the whole row that the next one needs.
struct RowPasses {
  using Values = RowGroup::Values;
  /// The first pass alone: gives what is carried to `step`.
  std::function<Values(RowGroup& first)> start;
  /// The last pass over `before`, which is null for the first group, the second one over `now`, and the first one over
  /// `next`, in one walk. For the last group `next` is `now`, and what is carried of it is not used.
  std::function<Values(RowGroup* before, RowGroup& now, RowGroup& next, const Values& carried)> step;
  /// The last pass alone.
  std::function<void(RowGroup& last, const Values& carried)> finish;
};

/// As ForEachRows, but groups overlap: while one waits for its lanes to be combined there is work of two others. `rest`
/// gets the rows that are left over.
void ForEachRowsOverlapping(PartitionState& state, const ReductionSpace& space, int64_t together, double flops,
                            const RowPasses& passes, const std::function<void(RowGroup& rows)>& rest);

}  // namespace collage::native
