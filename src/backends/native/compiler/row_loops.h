// row_loops.h: units of a reduction that are rows along the lanes, several of them at a time: the steps of one fill the
// gaps that another leaves while its lanes are combined, and what all of them take is read once.
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/reduction_loops.h"

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
  /// Of a packed number those of each row, in all lanes.
  Values Spread(const Value& packed);
  /// Combines values over each row, packed.
  Value Fold(const Combiner& combiner, ElementKind kind, const ValuesFn& values);
  /// Visits all vectors.
  void Each(const std::function<void(const std::vector<Indices>& at)>& visit);

  // ---- rows that registers hold ----

  /// Visits all vectors, each with its number.
  void EachVector(const std::function<void(const std::vector<Indices>& at, size_t number)>& visit);
  /// What `values` gives of each vector: by vector, by row.
  std::vector<Values> Read(const ValuesFn& values);
  /// Combines such vectors, packed.
  Value FoldVectors(const Combiner& combiner, const std::vector<Values>& vectors);

 private:
  std::vector<Indices> At(const std::string& first) const;
  Value Pack(const Combiner& combiner, const Values& rows);

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

}  // namespace collage::native
