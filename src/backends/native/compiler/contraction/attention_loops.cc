// attention_loops.cc: a register tile's rows of scores are computed along all keys into a block that stays in the
// first-level cache (12 rows of 512 keys: 24 KiB), become weights there, and are multiplied with the values.
//
// Dao et al., "FlashAttention" (2022), walk blocks of keys as well and rescale what they have whenever a larger score
// comes. That is for caches that cannot hold whole rows of scores; here it would only add to the work: a unit reads
// all keys and values once for a dozen rows of queries, and the second-level cache delivers them faster than they are
// multiplied.
//
//                 keys                          values
//     rows of q × ████ … → scores [rows, keys] ⇒ weights × ████ → rows of the result, divided by the sums
//                              of this thread
#include "backends/native/compiler/contraction/attention_loops.h"

#include "backends/native/compiler/contraction/matrix_product.h"
#include "backends/native/compiler/emit/buffer_views.h"
#include "backends/native/compiler/reduction/reduction_loops.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {
namespace {

class AttentionEmitter {
 public:
  AttentionEmitter(PartitionState& state, const Attention& attention, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        attention_(attention),
        output_(output),
        matrices_(ShapeOf(attention.weights())),
        keys_(matrices_[2]),
        rows_(TileRows(state, kFloat32, matrices_[1])),
        weighs_more_(!IsReshape(attention)) {}

  void Run() {
    PrepareProducts();
    NoteSpace();
    const int64_t tiles = matrices_[1] / rows_;
    slots_ = state_.IsParallel(Flops()) ? std::min<int64_t>(state_.num_threads, matrices_[0] * tiles) : 1;
    scores_ = state_.AddWorkspace({slots_, rows_, RowStride()}, Layout::kPlain);
    factors_ = state_.AddWorkspace({slots_, rows_, e_.lanes()}, Layout::kPlain);
    EmitTiles(rows_, tiles, 0);
    if (matrices_[1] % rows_ != 0) EmitTiles(matrices_[1] % rows_, 1, tiles * rows_);
  }

 private:
  /// Whether nothing but its shape changes between the softmax and the last product.
  static bool IsReshape(const Attention& attention) {
    Expr expr = attention.weights();
    while (expr != attention.softmax) {
      const CallNode* call = As<CallNode>(expr);
      if (!call->op()->is_reshape) return false;
      expr = call->args()[0];
    }
    return true;
  }

  /// Elements from one row of a block of scores to the next: an odd number of vectors, so that equal places of rows
  /// fall into different sets of the cache.
  int64_t RowStride() const { return ((keys_ + e_.lanes() - 1) / e_.lanes() | 1) * e_.lanes(); }

  double Flops() const {
    const int64_t depth = to_scores_.inner[0] + to_result_.channels;
    return 2.0 * static_cast<double>(NumElements(matrices_)) * static_cast<double>(depth);
  }

  /// Each element is read once for a panel of keys, wherever it lies.
  Buffer Queries(const Expr& expr) {
    const std::optional<Buffer> view = ViewOf(state_.expressions, expr);
    if (view && view->dtype == kFloat32) return *view;
    return MaterialiseAs(state_, expr, Layout::kPlain, kFloat32);
  }

  void PrepareProducts() {
    const CallNode& scores = attention_.of_scores();
    queries_ = AsMatrices(Queries(scores.args()[0]), false, matrices_[0]);
    to_scores_.outer = {matrices_[0]};
    to_scores_.channels = keys_;
    to_scores_.inner = {queries_.shape[2]};
    to_scores_.row_stride = queries_.strides[1];
    to_scores_.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
      return e_.Address(queries_, Bases({outer[0], row, k[0]}));
    };
    SetRightMatrices(state_, to_scores_, scores.args()[1], scores.attrs().Bool("transpose_b"));
    const CallNode& result = attention_.of_result();
    to_result_.outer = {matrices_[0]};
    to_result_.channels = ShapeOf(attention_.result)[2];
    to_result_.inner = {keys_};
    to_result_.row_stride = RowStride();
    to_result_.a_address = [&](const I64s&, const I64& row, const I64s& k) {
      return e_.Address(scores_, Bases({slot_, row, k[0]}));
    };
    SetRightMatrices(state_, to_result_, result.args()[1], result.attrs().Bool("transpose_b"));
  }

  /// Both products have the same tiles.
  void NoteSpace() {
    for (Contraction* form : {&to_scores_, &to_result_}) {
      form->rows = matrices_[1];
      ProductSpace space = SpaceOf(state_, *form, rows_, /*tiles=*/1);
      space.has_block = false;
      state_.space.Note(space);
    }
  }

  /// A stage over `tiles` tiles of `rows` rows, from row `first` on, of each matrix: shared out evenly to the slots.
  void EmitTiles(int64_t rows, int64_t tiles, int64_t first) {
    EmitShares(state_, slots_, matrices_[0] * tiles, [&](const I64& slot, const I64& unit, const I64&) {
      slot_ = slot;
      const I64s parts = Delinearise(e_, unit, {matrices_[0], tiles});
      const I64 row = e_.Plus(e_.MulInt(parts[1], rows), first);
      ComputeScores(parts[0], row, rows);
      TakeSoftmax(parts[0], row, rows);
      ComputeResult(parts[0], row, rows);
    });
  }

  /// `body` for all panels of `channels`: the first `vectors` vectors of `panel`, of whose channels `width` exist.
  void ForPanels(int64_t channels, const std::function<void(const I64& panel, int vectors, int64_t width)>& body) {
    const int64_t width = PanelWidth(state_, kFloat32);
    const int64_t panels = channels / width;
    if (panels > 0) {
      e_.For(e_.Int(0), e_.Int(panels), 1,
             [&](const I64& panel) { body(panel, static_cast<int>(width / e_.lanes()), width); });
    }
    const int64_t rest = channels - panels * width;
    if (rest > 0) body(e_.Int(panels), static_cast<int>((rest + e_.lanes() - 1) / e_.lanes()), rest);
  }

  /// The sums of one tile of `form`; `store` gets those of each vector of channels, one for each row.
  void ForSums(const Contraction& form, const I64& batch, const I64& row, int64_t rows,
               const std::function<void(const Index& channel, const std::vector<Value>& sums)>& store) {
    const int64_t full_width = PanelWidth(state_, kFloat32);
    ForPanels(form.channels, [&](const I64& panel, int vectors, int64_t width) {
      const Vectors sums = EmitRegisterTile(state_, form, {batch}, row, rows, panel, vectors, width);
      for (int v = 0; v < vectors; ++v) {
        const Index channel{e_.Plus(e_.MulInt(panel, full_width), v * e_.lanes()), 1, {}, e_.lanes()};
        std::vector<Value> own;
        for (int64_t t = 0; t < rows; ++t) {
          own.push_back({sums[static_cast<size_t>(t * vectors + v)].name(), ElementKind::kFloat});
        }
        const int64_t left = width - static_cast<int64_t>(v) * e_.lanes();
        if (left >= e_.lanes()) {
          store(channel, own);
        } else {
          e_.MaskedRest(left, [&](const I64&) { store(channel, own); });
        }
      }
    });
  }

  /// `to` at a place of the matrices where `from` is `value`.
  Value Through(const Expr& from, const Expr& to, const Indices& at, const Value& value) {
    if (from == to) return value;
    state_.expressions.SetRegister(from, value);
    const Value result = state_.expressions.At(to, ReshapedIndices(e_, ShapeOf(to), matrices_, at));
    state_.expressions.ClearRegisters();
    return result;
  }

  void ComputeScores(const I64& batch, const I64& row, int64_t rows) {
    ForSums(to_scores_, batch, row, rows, [&](const Index& channel, const std::vector<Value>& sums) {
      // All reads come before the first write: for all that LLVM knows, they could be of the same memory.
      std::vector<Value> logits;
      for (int64_t t = 0; t < rows; ++t) {
        logits.push_back(Through(attention_.scores, attention_.logits(), {{batch, 0}, {e_.Plus(row, t), 0}, channel},
                                 sums[static_cast<size_t>(t)]));
      }
      for (int64_t t = 0; t < rows; ++t) {
        e_.Store(scores_, {{slot_, 0}, {e_.Int(t), 0}, channel}, logits[static_cast<size_t>(t)]);
      }
    });
  }

  /// Scores become their exponentials, and what these are to be divided by is kept; where more is to be done to the
  /// weights, they are divided here.
  void TakeSoftmax(const I64& batch, const I64& row, int64_t rows) {
    const ReductionSpace space{{slots_, rows, keys_}, {false, false, true}, 2};
    e_.For(e_.Int(0), e_.Int(rows), 1, [&](const I64& t) {
      ReductionUnit unit(state_, space, {{slot_, 0}, {t, 0}, e_.Zero()});
      const Value largest =
          unit.Fold(MaxCombiner(), ElementKind::kFloat, [&](const Indices& at) { return e_.Load(scores_, at); });
      const Value sum = unit.Fold(SumCombiner(), ElementKind::kFloat, [&](const Indices& at) {
        const Value power = m_.ExpBelow(e_.Load(scores_, at), largest);
        e_.Store(scores_, at, power);
        return power;
      });
      const Value factor = m_.Divide(m_.Like(1, sum), sum);
      if (!weighs_more_) return e_.Store(factors_, {{slot_, 0}, {t, 0}, {e_.Int(0), 1}}, factor);
      unit.Each([&](const Indices& at) {
        const Value weight = m_.Multiply(e_.Load(scores_, at), factor);
        const Indices place{{batch, 0}, {e_.AddInt(row, t), 0}, at[2]};
        e_.Store(scores_, at, Through(attention_.softmax, attention_.weights(), place, weight));
      });
    });
  }

  void ComputeResult(const I64& batch, const I64& row, int64_t rows) {
    // The weights' rows are those of the block.
    const Index first{e_.Int(0), 1};
    ForSums(to_result_, batch, e_.Int(0), rows, [&](const Index& channel, const std::vector<Value>& sums) {
      for (int64_t t = 0; t < rows; ++t) {
        Value value = sums[static_cast<size_t>(t)];
        if (!weighs_more_) value = m_.Multiply(value, e_.Load(factors_, {{slot_, 0}, {e_.Int(t), 0}, first}));
        StoreResult(state_, output_, {{batch, 0}, {e_.Plus(row, t), 0}, channel}, value);
      }
    });
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const Attention& attention_;
  const StageOutput& output_;
  Shape matrices_;     ///< [B, M, N] of the scores
  int64_t keys_;       ///< N
  int64_t rows_;       ///< of a tile
  bool weighs_more_;   ///< whether weights are computed with before they are multiplied
  int64_t slots_ = 1;  ///< blocks of scores, one for each thread
  Buffer queries_;
  Buffer scores_;   ///< [slots, rows of a tile, keys]; weights, later
  Buffer factors_;  ///< [slots, rows of a tile, lanes]: 1 / the row's sum
  Contraction to_scores_;
  Contraction to_result_;
  I64 slot_;
};

}  // namespace

void EmitAttention(PartitionState& state, const Attention& attention, const StageOutput& output) {
  AttentionEmitter(state, attention, output).Run();
}

}  // namespace collage::native
