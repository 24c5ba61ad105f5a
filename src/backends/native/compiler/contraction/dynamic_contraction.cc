// dynamic_contraction.cc: products of matrices some of whose sizes a run knows. The right matrix lies in panels, a
// constant one since it was compiled; register tiles of all rows there are take one panel after the other.
#include <algorithm>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/contraction/matrix_product.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

class DynamicProduct {
 public:
  DynamicProduct(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state), e_(state.emitter), call_(call), output_(output), out_(ShapeOf(output.result)) {
    const bool is_dense = call.op()->name == "nn.dense";
    turns_left_ = !is_dense && call.attrs().Bool("transpose_a");
    turns_right_ = is_dense || call.attrs().Bool("transpose_b");
    form_.dtype = TensorTypeOf(call.args()[0]).dtype();
    width_ = PanelWidth(state, form_.dtype);
    rows_ = MostTileRows(state, form_.dtype);
  }

  void Run() {
    if (out_.size() > 3 || out_.size() < 2) throw Error(ErrorCategory::kUnsupported, "products of such rank");
    SetLeft();
    // Rows that are an unknown distance apart take a register each to be found: few of them, and wider panels.
    if (IsSymbolic(form_.row_stride)) {
      rows_ = std::max<int64_t>(rows_ / 2, 1);
      width_ *= 2;
    }
    const int64_t panels = SetRight();
    form_.result = [this](const I64s& outer, const I64& row, const Index& channel) {
      if (out_.size() == 2) return Indices{{row, 0}, channel};
      if (!is_tall_) return Indices{{outer[0], 0}, {row, 0}, channel};
      const I64 size = e_.Int(out_[1]);
      return Indices{{e_.IntOp("divui", row, size), 0}, {e_.IntOp("remui", row, size), 0}, channel};
    };
    EmitTiles(panels);
  }

 private:
  void SetLeft() {
    const Buffer* place = state_.expressions.FindBuffer(call_.args()[0]);
    if (place == nullptr) throw Error(ErrorCategory::kUnsupported, "a product of what is not in memory");
    int64_t batch = out_.size() == 3 ? out_[0] : 1;
    Buffer a = AsMatrices(*place, turns_left_, batch);
    const Shape right = ShapeOf(call_.args()[1]);
    const bool shares_right = right.size() == 2 || right[0] == 1;
    form_.rows = a.shape[1];
    form_.channels = out_.back();
    form_.inner = {a.shape[2]};
    // A batch that shares the right matrix is one tall matrix.
    is_tall_ = out_.size() == 3 && shares_right && !turns_left_ && ShapeOf(call_.args()[0])[0] == out_[0];
    if (is_tall_) {
      form_.rows = e_.Times(batch, form_.rows);
      batch = 1;
    }
    form_.outer = {batch};
    form_.row_stride = a.strides[1];
    form_.a_address = [this, a](const I64s& outer, const I64& row, const I64s& k) {
      return e_.Address(a, Bases({outer[0], row, k[0]}));
    };
  }

  /// Gives the number of panels.
  int64_t SetRight() {
    const Expr& right = call_.args()[1];
    const Shape shape = ShapeOf(right);
    const bool has_batch = shape.size() == 3;
    const int64_t groups = has_batch ? shape[0] : 1;
    const int64_t panels = e_.CeilDivided(form_.channels, width_);
    const bool is_one = groups == 1;
    const auto at = [this, has_batch, is_one](const Index& group, const Index& channel, const Index& k) {
      Indices place = turns_right_ ? Indices{channel, k} : Indices{k, channel};
      if (has_batch) place.insert(place.begin(), is_one ? e_.Zero() : group);
      return place;
    };
    Buffer b;
    if (ConstantValue(right).has_value()) {
      PackedWeights packing;
      packing.inner = {form_.inner[0]};
      packing.groups = groups;
      packing.channels = form_.channels;
      packing.offset = [turns = turns_right_](const Shape& of, int64_t group, int64_t channel,
                                              const std::vector<int64_t>& k) {
        const int64_t first = of[of.size() - 2], second = of.back();
        return group * first * second + (turns ? channel * second + k[0] : k[0] * second + channel);
      };
      b = PackWeights(state_, right, packing, form_.dtype);
    } else {
      b = {WorkspaceRef(), 0, form_.dtype, {groups, panels, form_.inner[0], width_}};
      b.strides = e_.Strides(b.shape);
      const int64_t bytes = e_.Times(e_.Product(b.shape), static_cast<int64_t>(form_.dtype.size_bytes()));
      e_.CallScratch(bytes);
      EmitPacking(b, [&](const Indices& place, const Index& channel) {
        return state_.expressions.At(right, at(place[0], channel, place[2]));
      });
    }
    if (is_one) b.strides[0] = 0;
    form_.b_address = [this, b](const I64s& outer, const I64& panel, const I64s& k) {
      return e_.Address(b, Bases({outer[0], panel, k[0], e_.Int(0)}));
    };
    return panels;
  }

  /// Fills panels with `value(place, channel)`; what is behind the last channel is multiplied and thrown away.
  void EmitPacking(const Buffer& b, const std::function<Value(const Indices& place, const Index& channel)>& value) {
    const std::vector<int64_t> units{b.shape[0], b.shape[1]};
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) {
        const I64s parts = Delinearise(e_, unit, units);
        const I64 first = e_.MulInt(parts[1], width_);
        const I64 there = e_.IntOp("minsi", e_.IntOp("subi", e_.Int(form_.channels), first), e_.Int(width_));
        e_.For(e_.Int(0), e_.Int(b.shape[2]), 1, [&](const I64& k) {
          e_.ForLanesBetween(e_.Int(0), there, [&](const I64& lane) {
            const Indices place{{parts[0]}, {parts[1]}, {k}, {lane, 1, {}, e_.lanes()}};
            const Value element = value(place, {e_.AddInt(first, lane), 1, {}, e_.lanes()});
            e_.Store(b, place, element);
          });
        });
      });
    });
    e_.Call(name, e_.Product(units), state_.IsParallel(1e6));
  }

  bool is_padded() const { return IsSymbolic(form_.channels) || form_.channels % width_ != 0; }

  /// Blocks of rows, whose data stay in the cache while all panels pass.
  void EmitTiles(int64_t panels) {
    const int64_t tile = rows_;
    constexpr int64_t kTiles = 8;
    const std::vector<int64_t> units{form_.outer[0], e_.CeilDivided(form_.rows, tile * kTiles), panels};
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) {
        const I64s parts = Delinearise(e_, unit, units);
        const I64s outer{parts[0]};
        const I64 first = e_.MulInt(parts[1], tile * kTiles);
        const I64 last = e_.IntOp("minsi", e_.Plus(first, tile * kTiles), e_.Int(form_.rows));
        ForTiles(e_, first, last, tile, [&](const I64& row, int64_t rows) { EmitTile(outer, row, rows, parts[2]); });
      });
    });
    e_.Call(name, e_.Product(units), state_.IsParallel(1e6));
  }

  void EmitTile(const I64s& outer, const I64& row, int64_t rows, const I64& panel) {
    const auto vectors = static_cast<int>(width_ / e_.lanes());
    const Vectors sums = EmitRegisterTile(state_, form_, outer, row, rows, panel, vectors, width_);
    for (int v = 0; v < vectors; ++v) {
      const I64 channel = e_.Plus(e_.MulInt(panel, width_), v * e_.lanes());
      const auto store = [&] {
        for (int64_t t = 0; t < rows; ++t) {
          const Indices at = form_.result(outer, e_.Plus(row, t), {channel, 1, {}, e_.lanes()});
          StoreResult(state_, output_, at, {sums[static_cast<size_t>(t * vectors + v)].name(), KindOf(form_.dtype)});
        }
      };
      if (!is_padded()) {
        store();
      } else {
        e_.MaskedBefore(channel, e_.Int(form_.channels), store);
      }
    }
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  const StageOutput& output_;
  Shape out_;
  bool turns_left_ = false;
  bool turns_right_ = false;
  bool is_tall_ = false;
  int64_t width_ = 0;  ///< of a panel
  int64_t rows_ = 0;   ///< of a register tile
  Contraction form_;
};

}  // namespace

void EmitDynamicProduct(PartitionState& state, const CallNode& call, const StageOutput& output) {
  DynamicProduct(state, call, output).Run();
}

}  // namespace collage::native
