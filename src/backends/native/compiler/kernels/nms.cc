// nms.cc: vision.all_class_non_max_suppression: for each batch and class the best box that is left is kept, and
// what overlaps it is left out, until none is left or enough are kept. One thread: where a row is stored depends on how
// many there were before.
#include "backends/native/compiler/kernels/nms.h"

#include <cmath>

#include "backends/native/compiler/stages/elements.h"

namespace collage::native {
namespace {

class Suppressor {
 public:
  Suppressor(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        call_(call),
        rows_(outputs[0]),
        count_(outputs[1]),
        scores_shape_(ShapeOf(call.args()[1])),
        boxes_(ShapeOf(call.args()[0])[1]) {}

  void Run() {
    EmitElements(state_, rows_, [&](const Indices&) { return m_.Integer(0); });
    scores_ = state_.AddWorkspace({boxes_}, Layout::kPlain, kFloat64);
    corners_ = state_.AddWorkspace({4, boxes_}, Layout::kPlain, kFloat64);
    progress_ = state_.AddWorkspace({2}, Layout::kPlain, kInt64);
    e_.SetLanes(1);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64&) {
        SetProgress(kRows, e_.Int(0));
        e_.For(e_.Int(0), e_.Int(scores_shape_[0]), 1, [&](const I64& batch) {
          ReadBoxes(batch);
          e_.For(e_.Int(0), e_.Int(scores_shape_[1]), 1, [&](const I64& kind) { KeepBest(batch, kind); });
        });
        e_.Store(count_, {e_.Zero()}, InLanes(Progress(kRows)));
      });
    });
    e_.Call(name, 1, /*parallel=*/false);
    e_.SetLanes(e_.native_lanes());
  }

 private:
  /// Places in `progress_`: rows stored so far; whether boxes may be left.
  static constexpr int64_t kRows = 0;
  static constexpr int64_t kIsOpen = 1;

  I64 Progress(int64_t place) { return e_.LoadInt(progress_, {e_.Int(place)}); }
  void SetProgress(int64_t place, const I64& value) { e_.Store(progress_, {{e_.Int(place), 0}}, InLanes(value)); }
  Value InLanes(const I64& scalar) { return AsValue(e_.LanesOf({scalar, 0})); }
  I64 Scalar(const Value& value) { return e_.FirstLane(value); }

  Value Double(double value) { return m_.Number(value, ElementKind::kDouble); }
  /// A score that no other is below: of boxes that are out.
  Value Out() { return Double(-INFINITY); }

  /// The number that argument `i` is, whatever its rank.
  Value Argument(size_t i, DataType dtype) {
    const Indices first(ShapeOf(call_.args()[i]).size(), e_.Zero());
    return m_.Convert(state_.expressions.At(call_.args()[i], first), dtype);
  }

  /// Corners of all boxes of `batch`, the low ones first.
  void ReadBoxes(const I64& batch) {
    e_.For(e_.Int(0), e_.Int(boxes_), 1, [&](const I64& box) {
      std::vector<Value> given;
      for (int64_t k = 0; k < 4; ++k) {
        const Indices at{{batch, 0}, {box, 0}, {e_.Int(k), 0}};
        given.push_back(m_.Convert(state_.expressions.At(call_.args()[0], at), kFloat64));
      }
      for (int64_t k = 0; k < 4; ++k) {
        const Value& a = given[static_cast<size_t>(k % 2)];
        const Value& b = given[static_cast<size_t>(k % 2 + 2)];
        e_.Store(corners_, {{e_.Int(k), 0}, {box, 0}}, k < 2 ? m_.Smaller(a, b) : m_.Larger(a, b));
      }
    });
  }

  void KeepBest(const I64& batch, const I64& kind) {
    const Value least = Argument(4, kFloat64);
    e_.For(e_.Int(0), e_.Int(boxes_), 1, [&](const I64& box) {
      const Indices at{{batch, 0}, {kind, 0}, {box, 0}};
      const Value score = m_.Convert(state_.expressions.At(call_.args()[1], at), kFloat64);
      e_.Store(scores_, {{box, 0}}, m_.Select(m_.Compare("ogt", "sgt", score, least), score, Out()));
    });
    SetProgress(kIsOpen, e_.Int(1));
    const I64 most = e_.IntOp("minsi", Scalar(Argument(2, kInt64)), e_.Int(boxes_));
    e_.For(e_.Int(0), most, 1, [&](const I64&) {
      e_.If(e_.IntCompare("ne", Progress(kIsOpen), e_.Int(0)), [&] {
        const I64 best = Best();
        const I1 is_found = e_.IntCompare("sge", best, e_.Int(0));
        SetProgress(kIsOpen, e_.ToInt(is_found));
        e_.If(is_found, [&] {
          const I64 row = Progress(kRows);
          int64_t column = 0;
          for (const I64& number : {batch, kind, best}) {
            e_.Store(rows_, {{row, 0}, {e_.Int(column++), 0}}, InLanes(number));
          }
          SetProgress(kRows, e_.Plus(row, 1));
          e_.Store(scores_, {{best, 0}}, Out());
          LeaveOut(best);
        });
      });
    });
  }

  /// The first box of the largest score; -1 when all are out.
  I64 Best() {
    return Scalar(e_.ForValues(
        e_.Int(0), e_.Int(boxes_), {Out(), m_.Integer(-1)}, [&](const I64& box, const std::vector<Value>& best) {
          const Value score = e_.Load(scores_, {{box, 0}});
          const Value is_better = m_.Compare("ogt", "sgt", score, best[0]);
          return std::vector<Value>{m_.Select(is_better, score, best[0]), m_.Select(is_better, InLanes(box), best[1])};
        })[1]);
  }

  /// Leaves out the boxes that overlap box `kept`, a vector of them at a time.
  void LeaveOut(const I64& kept) {
    e_.SetLanes(e_.native_lanes());
    const Value limit = Argument(3, kFloat64);
    const auto area = [&](const std::vector<Value>& box) {
      return m_.Multiply(m_.Subtract(box[2], box[0]), m_.Subtract(box[3], box[1]));
    };
    const std::vector<Value> own = Corners({kept, 0});
    const Value own_area = area(own);
    e_.ForLanes(boxes_, [&](const I64& first) {
      const Index boxes{first, 1, {}, e_.lanes()};
      const std::vector<Value> other = Corners(boxes);
      const auto side = [&](size_t d) {
        return m_.Subtract(m_.Smaller(own[d + 2], other[d + 2]), m_.Larger(own[d], other[d]));
      };
      const Value height = side(0), width = side(1);
      const Value shared = m_.Multiply(height, width);
      const Value is_apart =
          m_.Or(m_.Compare("ole", "sle", height, Double(0)), m_.Compare("ole", "sle", width, Double(0)));
      const Value ratio = m_.DivideExactly(shared, m_.Subtract(m_.Add(own_area, area(other)), shared));
      const Value overlap = m_.Select(is_apart, Double(0), ratio);
      const Value score = e_.Load(scores_, {boxes});
      e_.Store(scores_, {boxes}, m_.Select(m_.Compare("ogt", "sgt", overlap, limit), Out(), score));
    });
    e_.SetLanes(1);
  }

  std::vector<Value> Corners(const Index& box) {
    std::vector<Value> corners;
    for (int64_t k = 0; k < 4; ++k) corners.push_back(e_.Load(corners_, {{e_.Int(k), 0}, box}));
    return corners;
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  Buffer rows_, count_;
  Shape scores_shape_;  ///< batches, classes, boxes
  int64_t boxes_;
  Buffer scores_;    ///< of one batch and class, by box
  Buffer corners_;   ///< of one batch: four rows of numbers, by box
  Buffer progress_;  ///< what is carried from box to box
};

}  // namespace

void EmitNonMaxSuppression(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs) {
  Suppressor(state, call, outputs).Run();
}

}  // namespace collage::native
