// block_product.cc: neighbouring blocks take tiles of the same columns, some rows of tiles at a time, so that the cache
// of the GPU still has what they read.
#include "backends/native/compiler/contraction/block_product.h"

#include <algorithm>

#include "backends/native/compiler/stages/epilogue.h"

namespace collage::native {
namespace {

int64_t Parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

class BlockProduct {
 public:
  BlockProduct(PartitionState& state, const Contraction& form, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        form_(form),
        output_(output),
        plan_(PlanOf(state, form)),
        tile_(state, form, plan_),
        panel_(PanelWidth(state, form.dtype)),
        type_(fmt::format("vector<{}x{}>", e_.lanes(), form.dtype.is_floating() ? "f32" : "i32")) {}

  void Run() {
    state_.space.Note(SpaceOf(state_, form_, plan_));
    if (plan_.parts > 1) {
      Shape shape{plan_.parts};
      shape.insert(shape.end(), form_.outer.begin(), form_.outer.end());
      shape.insert(shape.end(), {form_.rows, Across() * plan_.columns});
      sums_ = state_.AddWorkspace(shape, Layout::kPlain, form_.dtype);
    }
    EmitTiles();
    if (plan_.parts > 1) EmitSums();
  }

 private:
  int64_t Down() const { return Parts(form_.rows, plan_.rows); }
  int64_t Across() const { return Parts(form_.channels, plan_.columns); }

  /// The first panel of the tiles in column `across`.
  I64 PanelOf(const I64& across) { return e_.MulInt(across, plan_.columns / panel_); }

  void EmitStage(const std::vector<int64_t>& sizes, const std::function<void()>& begin,
                 const std::function<void(const I64s& parts)>& body) {
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& from, const I64& to) {
      begin();
      e_.For(from, to, 1, [&](const I64& unit) { body(Delinearise(e_, unit, sizes)); });
    });
    const double flops = 2.0 * static_cast<double>(form_.rows * form_.channels) *
                         static_cast<double>(NumElements(form_.inner) * NumElements(form_.outer));
    e_.Call(name, NumElements(sizes), state_.IsParallel(flops));
  }

  void EmitTiles() {
    constexpr int64_t kRowsOfTiles = 8;
    std::vector<int64_t> rows = form_.outer;
    rows.push_back(Down());
    const int64_t all = NumElements(rows);
    const int64_t block = std::min(state_.schedule().block == 0 ? kRowsOfTiles : state_.schedule().block, all);
    const std::vector<int64_t> sizes{plan_.parts, Parts(all, block), Across(), block};
    EmitStage(
        sizes, [&] { tile_.Begin(); },
        [&](const I64s& at) {
          const I64 flat = e_.AddInt(e_.MulInt(at[1], block), at[3]);
          const auto emit = [&] { EmitTile(at[0], Delinearise(e_, flat, rows), at[2]); };
          if (all % block == 0) return emit();
          e_.If(e_.IntCompare("slt", flat, e_.Int(all)), emit);
        });
  }

  /// `rows`: the outer dimensions, and the tile's number among those of a column.
  void EmitTile(const I64& part, const I64s& rows, const I64& across) {
    BlockTile::Place place;
    place.outer = {rows.begin(), rows.end() - 1};
    place.row = e_.MulInt(rows.back(), plan_.rows);
    place.panel = PanelOf(across);
    place.rows_left = e_.IntOp("subi", e_.Int(form_.rows), place.row);
    place.columns_left = e_.IntOp("subi", e_.Int(tile_.ColumnsRead()), e_.MulInt(across, plan_.columns));
    const int64_t steps = NumSteps(form_, plan_.depth), per_part = Parts(steps, plan_.parts);
    const I64 from = plan_.parts == 1 ? e_.Int(0) : e_.MulInt(part, per_part);
    const I64 to = plan_.parts == 1 ? e_.Int(steps) : e_.IntOp("minsi", e_.Plus(from, per_part), e_.Int(steps));
    tile_.Multiply(place, from, to);
    if (plan_.parts > 1) return KeepSums(part, place, across);
    ForColumns(across, [&](int64_t width) {
      const Starts starts = StartsOf(place.outer, place.panel, width);
      tile_.ForRows(place.rows_left, [&](const I64& row) {
        StoreRow(place.outer, e_.AddInt(place.row, row), place.panel, width, starts,
                 [&](int64_t first) { return tile_.Sums(row, first); });
      });
    });
  }

  void KeepSums(const I64& part, const BlockTile::Place& place, const I64& across) {
    tile_.ForRows(place.rows_left, [&](const I64& row) {
      for (int64_t first = 0; first < plan_.columns; first += e_.lanes()) {
        const I64 column = e_.Plus(e_.MulInt(across, plan_.columns), first);
        const Ptr address = SumsAt(part, place.outer, e_.AddInt(place.row, row), column);
        e_.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", tile_.Sums(row, first),
                            address, type_));
      }
    });
  }

  Ptr SumsAt(const I64& part, const I64s& outer, const I64& row, const I64& column) {
    I64s at{part};
    at.insert(at.end(), outer.begin(), outer.end());
    at.insert(at.end(), {row, column});
    return e_.Address(sums_, Bases(at));
  }

  /// A stage that adds up the parts of each row of a tile, in their order, and computes what is behind.
  void EmitSums() {
    std::vector<int64_t> sizes{Across()};
    sizes.insert(sizes.end(), form_.outer.begin(), form_.outer.end());
    sizes.push_back(form_.rows);
    EmitStage(
        sizes, [] {},
        [&](const I64s& at) {
          const I64s outer(at.begin() + 1, at.end() - 1);
          const I64 panel = PanelOf(at[0]);
          const auto sum = [&](int64_t first) {
            const I64 column = e_.Plus(e_.MulInt(at[0], plan_.columns), first);
            Vector all;
            for (int64_t part = 0; part < plan_.parts; ++part) {
              const Vector one{e_.Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> {}",
                                                  SumsAt(e_.Int(part), outer, at.back(), column), type_))};
              all = part == 0 ? one : Added(all, one);
            }
            return all;
          };
          ForColumns(at[0], [&](int64_t width) {
            StoreRow(outer, at.back(), panel, width, StartsOf(outer, panel, width), sum);
          });
        });
  }

  Vector Added(const Vector& a, const Vector& b) {
    return Vector{
        e_.Def(fmt::format("arith.{} {}, {} : {}", form_.dtype.is_floating() ? "addf" : "addi", a, b, type_))};
  }

  /// `body` for tiles in column `across`: with all columns of a tile, and with those that the last one has.
  void ForColumns(const I64& across, const std::function<void(int64_t width)>& body) {
    const int64_t whole = form_.channels / plan_.columns, rest = form_.channels % plan_.columns;
    const auto emit = [&](const char* predicate, int64_t width) {
      if (width == 0) return;
      if (whole == 0 || rest == 0) return body(width);
      e_.If(e_.IntCompare(predicate, across, e_.Int(whole)), [&] { body(width); });
    };
    if (whole > 0) emit("slt", plan_.columns);
    emit("eq", rest);
  }

  /// For each vector, values that sums begin with and are multiplied with; none where there is nothing.
  struct Starts {
    Vectors starts, scales;
  };
  Starts StartsOf(const I64s& outer, const I64& panel, int64_t width) {
    Starts result;
    for (int64_t first = 0; first < width; first += e_.lanes()) {
      const I64 own = e_.Plus(panel, first / panel_);
      result.starts.push_back(form_.start ? form_.start(outer, own, first % panel_) : Vector());
      result.scales.push_back(form_.scale ? form_.scale(outer, own, first % panel_) : Vector());
    }
    return result;
  }

  /// Computes what is behind the sums of a row, from the first column of `panel` on, and stores it.
  void StoreRow(const I64s& outer, const I64& row, const I64& panel, int64_t width, const Starts& starts,
                const std::function<Vector(int64_t first)>& sum) {
    for (int64_t first = 0; first < width; first += e_.lanes()) {
      const auto v = static_cast<size_t>(first / e_.lanes());
      const auto store = [&] {
        const Vector start = starts.starts[v];
        const Vector own = start.is_none() ? sum(first) : Added(sum(first), start);
        const Index channel{e_.Plus(e_.MulInt(panel, panel_), first), 1, {}, e_.lanes()};
        StoreResult(state_, output_, form_.result(outer, row, channel), SumAsValue(e_, form_, own, starts.scales[v]));
      };
      if (width - first >= e_.lanes()) {
        store();
      } else {
        e_.MaskedRest(width - first, [&](const I64&) { store(); });
      }
    }
  }

  PartitionState& state_;
  Emitter& e_;
  const Contraction& form_;
  const StageOutput& output_;
  BlockPlan plan_;
  BlockTile tile_;
  int64_t panel_;     ///< columns of a panel
  std::string type_;  ///< the type of vectors of sums
  Buffer sums_;       ///< [parts, outer…, rows, columns of all tiles], where blocks share sums
};

}  // namespace

void EmitBlockProduct(PartitionState& state, const Contraction& form, const StageOutput& output) {
  if (NumElements(form.outer) * form.rows * form.channels == 0) return;
  BlockTile::UseQuads(state, form);
  BlockProduct(state, form, output).Run();
}

}  // namespace collage::native
