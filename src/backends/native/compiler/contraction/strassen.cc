// strassen.cc: the matrices are cut in halves both ways; a block of rows of both halves at a time, sums of A's quarters
// are written down, multiplied with those of B's quarters, which are constants, and added up as C's quarters, a panel
// of columns at a time, while they are in the cache; the epilogue is computed as results are stored. What is between
// the steps belongs to the thread that works on the block:
//
//     A [rows, K] -> sums [7][rows / 2][K / 2] x weights [panel][7][K / 2][width] -> products [7][rows / 2][width] ->
//     C [rows, N]
//
// The rows of a block are its upper half and, behind them, its lower one. Where the last block has fewer, zeros stand
// for those that it lacks, and nothing is stored of them.
#include "backends/native/compiler/contraction/strassen.h"

#include <array>

#include "backends/native/compiler/contraction/register_tile.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

constexpr int64_t kProducts = 7;

/// Places of the sums, products and weights of Winograd's arrangement, in the order of his products P1 … P7.
enum Product : int64_t { kP1, kP2, kP3, kP4, kP5, kP6, kP7 };

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// How the rows are cut.
struct Plan {
  int64_t blocks = 1;
  int64_t half = 1;   ///< rows of a block's halves
  int64_t parts = 1;  ///< of the columns' halves, which are work for different threads
};

/// Seven weights of each half of the columns' panels, from `packed`: [panels, K, width].
Tensor CombineWeights(const Tensor& packed) {
  const int64_t panels = packed.shape()[0] / 2;
  const int64_t depth = packed.shape()[1] / 2;
  const int64_t width = packed.shape()[2];
  const int64_t quarter = depth * width;
  const Tensor combined = Tensor::Zeros({panels, kProducts, depth, width}, kFloat32);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const float* left = packed.data<float>() + panel * 2 * quarter;
    const float* right = packed.data<float>() + (panels + panel) * 2 * quarter;
    float* to = combined.data<float>() + panel * kProducts * quarter;
    for (int64_t i = 0; i < quarter; ++i) {
      const double b11 = left[i];
      const double b21 = left[quarter + i];
      const double b12 = right[i];
      const double b22 = right[quarter + i];
      const std::array<double, kProducts> all{b11,      b21, b22, b22 - (b12 - b11) - b21, b12 - b11, b22 - (b12 - b11),
                                              b22 - b12};
      for (int64_t p = 0; p < kProducts; ++p) to[p * quarter + i] = static_cast<float>(all[static_cast<size_t>(p)]);
    }
  }
  return combined;
}

class StrassenEmitter {
 public:
  StrassenEmitter(PartitionState& state, const Contraction& form, const StageOutput& output, const Plan& plan,
                  int slots)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        form_(form),
        output_(output),
        plan_(plan),
        slots_(slots),
        depth_(form.inner[0] / 2),
        width_(PanelWidth(state, kFloat32)),
        vectors_(width_ / e_.lanes()),
        panels_(form.channels / width_ / 2),
        rows_(TileRows(state, kFloat32, plan.half)) {}

  void Run(const Tensor& packed) {
    weights_ = state_.AddConstant(CombineWeights(packed));
    const int64_t lanes = e_.lanes();
    sums_ = AddRows(SpreadRow(DivideUp(depth_, lanes) * lanes));
    products_ = AddRows(width_);
    NoteSpace();
    const std::vector<int64_t> units{plan_.blocks, plan_.parts};
    EmitShares(state_, slots_, NumElements(units), [&](const I64& slot, const I64& unit, const I64&) {
      slot_ = slot;
      const I64s parts = Delinearise(e_, unit, units);
      upper_ = e_.MulInt(parts[0], 2 * plan_.half);
      AddLeft();
      const I64 next = e_.Plus(parts[1], 1);
      e_.For(FirstPanel(parts[1]), FirstPanel(next), 1, [&](const I64& panel) {
        Multiply(panel);
        AddProducts(panel);
      });
    });
  }

 private:
  void NoteSpace() {
    ProductSpace space = SpaceOf(state_, form_, rows_, /*tiles=*/1);
    space.chosen.algorithm = Schedule::kStrassen;
    space.depth = depth_;
    space.has_block = false;
    state_.space.Note(space);
  }

  /// [slot][product][row][element]
  Buffer AddRows(int64_t row) { return state_.AddWorkspace({slots_, kProducts, plan_.half, row}, Layout::kPlain); }

  I64 FirstPanel(const I64& part) {
    if (plan_.parts == 1) return e_.MulInt(part, panels_);
    return e_.IntOp("divui", e_.MulInt(part, panels_), e_.Int(plan_.parts));
  }

  bool HasAllRows() const { return plan_.blocks * 2 * plan_.half == form_.rows; }

  /// `body` for each row of the upper half, the one below it, and whether that exists.
  void ForRows(const std::function<void(const I64& number, const I64& upper, const I64& lower, bool has_lower)>& body) {
    e_.For(e_.Int(0), e_.Int(plan_.half), 1, [&](const I64& number) {
      const I64 upper = e_.AddInt(upper_, number);
      const I64 lower = e_.Plus(upper, plan_.half);
      if (HasAllRows()) return body(number, upper, lower, true);
      e_.If(e_.IntCompare("slt", lower, e_.Int(form_.rows)), [&] { body(number, upper, lower, true); });
      e_.If(e_.IntCompare("sge", lower, e_.Int(form_.rows)), [&] { body(number, upper, lower, false); });
    });
  }

  Value Read(const Ptr& address) { return {e_.VectorAt(address, /*masked=*/true).name()}; }
  void Write(const Buffer& buffer, const I64s& at, const Vector& value) {
    e_.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", value,
                        e_.Address(buffer, Bases(at)), e_.FloatVector()));
  }

  void AddLeft() {
    ForRows([&](const I64& number, const I64& upper, const I64& lower, bool has_lower) {
      e_.ForLanes(depth_, [&](const I64& k) {
        const auto at = [&](const I64& row, int64_t first) {
          return Read(form_.a_address(Outer(), row, {e_.Plus(k, first)}));
        };
        const Value zero = m_.Number(0, ElementKind::kFloat);
        const Value a11 = at(upper, 0);
        const Value a12 = at(upper, depth_);
        const Value a21 = has_lower ? at(lower, 0) : zero;
        const Value a22 = has_lower ? at(lower, depth_) : zero;
        const Value s1 = m_.Add(a21, a22);
        const Value s2 = m_.Subtract(s1, a11);
        const Value s3 = m_.Subtract(a11, a21);
        const Value s4 = m_.Subtract(a12, s2);
        int64_t product = 0;
        for (const Value& sum : {a11, a12, s4, a22, s1, s2, s3}) {
          Write(sums_, {slot_, e_.Int(product++), number, k}, Vector{sum.name});
        }
      });
    });
  }

  I64s Outer() { return I64s(form_.outer.size(), e_.Int(0)); }

  void Multiply(const I64& panel) {
    Contraction form;
    form.outer = {kProducts};
    form.rows = plan_.half;
    form.channels = width_;
    form.inner = {depth_};
    form.row_stride = sums_.strides[2];
    form.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
      return e_.Address(sums_, Bases({slot_, outer[0], row, k[0]}));
    };
    form.b_address = [&](const I64s& outer, const I64& of, const I64s& k) {
      return e_.Address(weights_, Bases({of, outer[0], k[0], e_.Int(0)}));
    };
    const int64_t whole = plan_.half / rows_;
    const int64_t left = plan_.half % rows_;
    RegisterTile tiles(state_, form);
    e_.For(e_.Int(0), e_.Int(kProducts), 1, [&](const I64& product) {
      const auto multiply = [&](const I64& tile, int64_t rows) {
        FetchNext(tiles, form.b_address({product}, panel, {e_.Int(0)}), tile, left == 0 ? whole : whole + 1);
        const I64 row = e_.MulInt(tile, rows_);
        const Vectors sums = tiles.Emit({product}, row, rows, panel, 0, static_cast<int>(vectors_), width_);
        for (int64_t t = 0; t < rows; ++t) {
          for (int64_t v = 0; v < vectors_; ++v) {
            Write(products_, {slot_, product, e_.Plus(row, t), e_.Int(v * e_.lanes())},
                  sums[static_cast<size_t>(t * vectors_ + v)]);
          }
        }
      };
      if (whole > 0) {
        e_.For(e_.Int(0), e_.Int(whole), 1, [&](const I64& tile) { multiply(tile, rows_); });
      }
      if (left > 0) multiply(e_.Int(whole), left);
    });
  }

  /// Each of `all` tiles fetches its part of the next product's weights, which lie behind these.
  void FetchNext(RegisterTile& tiles, const Ptr& weights, const I64& tile, int64_t all) {
    const auto position = width_ * static_cast<int64_t>(sizeof(float));
    const int64_t step = DivideUp(position, all);
    const I64 offset = e_.Plus(e_.MulInt(tile, step * depth_), position * depth_);
    tiles.FetchAhead(e_.ElementAt(weights, offset, "i8"), step, /*nearest=*/2);
  }

  void AddProducts(const I64& panel) {
    const I64 left = e_.MulInt(panel, width_);
    ForRows([&](const I64& number, const I64& upper, const I64& lower, bool has_lower) {
      for (int64_t v = 0; v < vectors_; ++v) {
        const auto product = [&](int64_t which) {
          return Read(e_.Address(products_, Bases({slot_, e_.Int(which), number, e_.Int(v * e_.lanes())})));
        };
        const auto store = [&](const I64& row, int64_t first, const Value& value) {
          const I64 channel = e_.Plus(left, first + v * e_.lanes());
          const Indices at = form_.result(Outer(), row, {channel, 1, {}, e_.lanes()});
          StoreResult(state_, output_, at, form_.start ? m_.Add(value, StartOf(panel, first, v)) : value);
        };
        const int64_t right = panels_ * width_;
        const Value p1 = product(kP1);
        store(upper, 0, m_.Add(p1, product(kP2)));
        const Value u2 = m_.Add(p1, product(kP6));
        const Value p5 = product(kP5);
        store(upper, right, m_.Add(m_.Add(u2, p5), product(kP3)));
        if (!has_lower) continue;
        const Value u3 = m_.Add(u2, product(kP7));
        store(lower, 0, m_.Subtract(u3, product(kP4)));
        store(lower, right, m_.Add(u3, p5));
      }
    });
  }

  /// Returns the start of the sums of vector `v` of a panel, for the columns from `first` on.
  Value StartOf(const I64& panel, int64_t first, int64_t v) {
    return {form_.start(Outer(), e_.Plus(panel, first / width_), v * e_.lanes()).name(), ElementKind::kFloat};
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const Contraction& form_;
  const StageOutput& output_;
  const Plan plan_;
  int64_t slots_;  ///< threads that have room of their own
  int64_t depth_;  ///< of the halves
  int64_t width_, vectors_;
  int64_t panels_;  ///< of the columns' halves
  int64_t rows_;    ///< of a register tile
  Buffer weights_, sums_, products_;
  I64 slot_, upper_;  ///< the thread, and its block's first row, in the function being written
};

/// Whether sums and stores beside the products take less than what the eighth product would.
bool IsFaster(const Contraction& form, int lanes, int units) {
  constexpr double kLeastGain = 0.05;
  const auto rows = static_cast<double>(form.rows);
  const auto depth = static_cast<double>(form.inner[0]);
  const auto channels = static_cast<double>(form.channels);
  const double direct = rows * depth * channels / lanes / units;
  // Vectors that are read, added and written for two rows of a vector of A, and of C, and are not by the direct way.
  constexpr double kLeftCycles = 12;
  constexpr double kResultCycles = 18;
  const double added = (rows * depth / 4 * kLeftCycles + rows * channels / 4 * kResultCycles) / lanes;
  return direct / 8 - added > kLeastGain * direct;
}

Plan PlanOf(const Contraction& form, int slots) {
  constexpr int64_t kMostRows = 256;  // their sums stay in the last cache, what products take of them in the second
  Plan plan;
  plan.blocks = DivideUp(form.rows, kMostRows);
  if (plan.blocks > 1) plan.blocks = DivideUp(plan.blocks, slots) * slots;
  plan.half = DivideUp(form.rows, 2 * plan.blocks);
  plan.parts = plan.blocks % slots == 0 ? 1 : slots;
  return plan;
}

}  // namespace

bool EmitStrassen(PartitionState& state, const Contraction& form, const Expr& right, const PackedWeights& packing,
                  const StageOutput& output) {
  const int64_t width = PanelWidth(state, kFloat32);
  const int64_t algorithm = state.schedule().algorithm;
  if (state.options.is_exact || form.dtype != kFloat32 || form.factors != DotKind::kOne ||
      state.options.calls_for_tiles() || NumElements(form.outer) != 1 || form.inner.size() != 1 ||
      form.inner[0] % 2 != 0 || form.inner[0] == 0 || form.channels == 0 || form.channels % (2 * width) != 0 ||
      form.rows < 2 || form.line != 0 || form.depth_stride != 1 || !ConstantValue(right)) {
    return false;
  }
  const double flops = 2.0 * static_cast<double>(form.rows * form.channels * form.inner[0]);
  const int slots = state.IsParallel(flops) ? state.num_threads : 1;
  const Plan plan = PlanOf(form, slots);
  // The last block has its upper half.
  if ((2 * plan.blocks - 1) * plan.half > form.rows) return false;
  const bool is_faster = IsFaster(form, state.emitter.lanes(), MultipliersOf(state));
  if (is_faster && state.space.algorithms.empty()) state.space.algorithms = {Schedule::kDirect, Schedule::kStrassen};
  if (algorithm != Schedule::kStrassen && (algorithm != 0 || !is_faster)) return false;
  const std::optional<Tensor> packed = PackedConstant(right, packing, kFloat32, width);
  const Shape& shape = packed->shape();
  StrassenEmitter(state, form, output, plan, slots).Run(packed->Reshaped({shape[1], shape[2], shape[3]}));
  return true;
}

}  // namespace collage::native
