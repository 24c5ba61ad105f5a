// reduction_loops.h: the loops that reductions and normalisations share: units of work, each of which owns the elements
// that are combined with each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// How elements are combined.
struct Combiner {
  std::function<Value(VectorMath& m, const Value& a, const Value& b)> combine;
  const char* horizontal_float;  ///< kind of vector.reduction
  const char* horizontal_int;
  double neutral;  ///< infinities stand for the extreme integers
};

const Combiner& SumCombiner();
const Combiner& ProductCombiner();
const Combiner& MaxCombiner();
const Combiner& MinCombiner();
const Combiner& AllCombiner();
const Combiner& AnyCombiner();

/// Neutral element of `combiner` among values of `kind`.
Value NeutralOf(VectorMath& m, const Combiner& combiner, ElementKind kind);
/// All lanes combined, in all lanes.
Value CombineLanes(VectorMath& m, const Combiner& combiner, const Value& value);

/// The index space of a reduction: `reduced` dimensions are combined, lanes run along `lane_axis`.
struct ReductionSpace {
  Shape shape;
  std::vector<bool> reduced;
  size_t lane_axis = 0;

  bool lane_reduced() const { return reduced[lane_axis]; }
  bool is_symbolic() const { return HasSymbolic(shape); }
  /// How many elements are combined into one, where that is known.
  int64_t elements() const;
  /// `sum` over as many elements as are combined into one, but `fewer`.
  Value Mean(VectorMath& m, const Value& sum, int64_t fewer = 0) const;
};

/// The axis along which `expr` lies one element apart in memory: a buffer's, else the last one.
size_t LaneAxisOf(PartitionState& state, const Expr& expr);

/// One unit: a place of the dimensions that are not reduced, all lanes of it when those run along one of them.
class ReductionUnit {
 public:
  ReductionUnit(PartitionState& state, const ReductionSpace& space, Indices place)
      : e_(state.emitter), m_(state.math()), space_(space), place_(std::move(place)) {}

  /// The indices of results: coordinates of reduced dimensions are 0.
  const Indices& place() const { return place_; }
  /// Combines `value(indices)` over all elements; every lane that has a result holds it.
  Value Fold(const Combiner& combiner, ElementKind kind, const std::function<Value(const Indices&)>& value);
  /// Carries values over all elements in order, lane by lane.
  std::vector<Value> Carry(const std::vector<Value>& start,
                           const std::function<std::vector<Value>(const Indices&, const std::vector<Value>&)>& step);
  /// Visits all elements.
  void Each(const std::function<void(const Indices&)>& visit);

 private:
  Value FoldRow(const Combiner& combiner, Value start, const std::function<Value(const I64& first)>& value);
  Value FoldDynamicRow(const Combiner& combiner, const Value& start,
                       const std::function<Value(const I64& first)>& value);
  std::vector<Value> CarryDynamicRow(
      Indices at, const std::vector<Value>& start,
      const std::function<std::vector<Value>(const Indices&, const std::vector<Value>&)>& step);
  std::vector<Value> FoldInner(size_t d, const Indices& at, std::vector<Value> sums,
                               const std::function<Value(const Indices& at, const Value& carried)>& step);
  Indices At(const I64& inner) const;
  std::vector<size_t> InnerAxes() const;
  std::vector<int64_t> InnerSizes() const;

  Emitter& e_;
  VectorMath& m_;
  const ReductionSpace& space_;
  Indices place_;
};

/// Emits a stage that runs `body` for each unit. `flops`: of the whole.
void ForEachUnit(PartitionState& state, const ReductionSpace& space, double flops,
                 const std::function<void(ReductionUnit& unit)>& body);

}  // namespace collage::native
