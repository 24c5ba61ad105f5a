// determinant.cc: linalg.det by elimination with the largest pivot of each column, in double.
#include "backends/native/compiler/kernels/determinant.h"

#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

class DeterminantEmitter {
 public:
  DeterminantEmitter(PartitionState& state, const CallNode& call)
      : state_(state), e_(state.emitter), m_(state.math()), data_(call.args()[0]), n_(ShapeOf(data_).back()) {
    matrix_ = state.AddWorkspace({n_, n_}, Layout::kPlain, kFloat64);
    product_ = state.AddWorkspace({1}, Layout::kPlain, kFloat64);
  }

  /// Returns the determinant of the matrix at `place`.
  Value Of(const Indices& place) {
    ForEach(e_.Int(0), [&](const I64& row) {
      ForEach(e_.Int(0), [&](const I64& column) {
        Indices at = place;
        at.insert(at.end(), {Index{row, 0}, Index{column, 0}});
        Set(row, column, m_.Convert(state_.expressions.At(data_, at), kFloat64));
      });
    });
    e_.Store(product_, {e_.Zero()}, Double(1));
    ForEach(e_.Int(0), [&](const I64& step) {
      const I64 pivot = PivotOf(step);
      e_.If(e_.IntCompare("ne", pivot, step), [&] { Swap(step, pivot); });
      const Value diagonal = Get(step, step);
      e_.Store(product_, {e_.Zero()}, m_.Multiply(e_.Load(product_, {e_.Zero()}), diagonal));
      const Value is_regular = m_.Compare("une", "ne", diagonal, Double(0));
      e_.If(e_.FirstTruth(is_regular), [&] { Eliminate(step, diagonal); });
    });
    return e_.Load(product_, {e_.Zero()});
  }

 private:
  Value Double(double value) { return m_.Number(value, ElementKind::kDouble); }
  Value Get(const I64& row, const I64& column) { return e_.Load(matrix_, {{row, 0}, {column, 0}}); }
  void Set(const I64& row, const I64& column, const Value& value) { e_.Store(matrix_, {{row, 0}, {column, 0}}, value); }
  void ForEach(const I64& from, const std::function<void(const I64&)>& body) { e_.For(from, e_.Int(n_), 1, body); }

  /// The first row from `step` on with the largest element in column `step`.
  I64 PivotOf(const I64& step) {
    const Value own = AsValue(e_.LanesOf({step, 0}));
    const Value best =
        e_.ForValues(step, e_.Int(n_), {Double(-1), own}, [&](const I64& row, const std::vector<Value>& carried) {
          const Value size = m_.Abs(Get(row, step));
          const Value here = AsValue(e_.LanesOf({row, 0}));
          const Value is_larger = m_.Compare("ogt", "sgt", size, carried[0]);
          return std::vector<Value>{m_.Select(is_larger, size, carried[0]), m_.Select(is_larger, here, carried[1])};
        })[1];
    return e_.FirstLane(best);
  }

  void Swap(const I64& a, const I64& b) {
    ForEach(e_.Int(0), [&](const I64& column) {
      const Value first = Get(a, column), second = Get(b, column);
      Set(a, column, second);
      Set(b, column, first);
    });
    e_.Store(product_, {e_.Zero()}, m_.Negate(e_.Load(product_, {e_.Zero()})));
  }

  void Eliminate(const I64& step, const Value& diagonal) {
    ForEach(e_.Plus(step, 1), [&](const I64& row) {
      const Value factor = m_.DivideExactly(Get(row, step), diagonal);
      ForEach(step, [&](const I64& column) {
        Set(row, column, m_.Subtract(Get(row, column), m_.Multiply(factor, Get(step, column))));
      });
    });
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  Expr data_;
  int64_t n_;
  Buffer matrix_, product_;
};

}  // namespace

void EmitDeterminant(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Shape results = ShapeOf(output.result);
  if (NumElements(results) == 0) return;
  e.SetLanes(1);
  DeterminantEmitter determinants(state, call);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& number) {
      Indices place;
      for (const I64& part : Delinearise(e, number, results)) place.push_back({part, 0});
      const Value value = determinants.Of(place);
      StoreResult(state, output, place, state.math().Convert(value, TensorTypeOf(output.result).dtype()));
    });
  });
  e.Call(name, NumElements(results), /*parallel=*/false);
  e.SetLanes(e.native_lanes());
}

}  // namespace collage::native
