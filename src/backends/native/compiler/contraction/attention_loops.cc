// attention_loops.cc: a register tile's rows of scores are computed along all keys into a block that stays in the
// first-level cache (12 rows of 512 keys: 24 KiB), become weights there, and are multiplied with the values.
//
// Dao et al., "FlashAttention" (2022), walk blocks of keys as well and rescale what they have whenever a larger score
// comes. That is for caches that cannot hold whole rows of scores; here it would only add to the work: a unit reads
// all keys and values once for a dozen rows of queries, and the second-level cache delivers them faster than they are
// multiplied.
//
// Keys that are masked for all rows of a tile, as those behind the last token are in a buffer that has room for more,
// are left out: each tile ends with the last panel of keys in which a logit is more than minus infinity.
//
//                 keys                          values
//     rows of q × ████ … → scores [rows, keys] ⇒ weights × ████ → rows of the result, divided by the sums
//                              of this thread
#include "backends/native/compiler/contraction/attention_loops.h"

#include <limits>

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
        width_(PanelWidth(state, kFloat32)),
        weighs_more_(!IsReshape(attention)),
        is_bounded_(!weighs_more_ && !state.options.is_for_gpu() && keys_ > width_ && keys_ % width_ == 0 &&
                    MasksKeys(attention)) {}

  void Run() {
    const int64_t tiles = matrices_[1] / rows_;
    if (is_bounded_) EmitBounds(tiles, matrices_[1] % rows_);
    PrepareProducts();
    NoteSpace();
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
    std::function<I1(const I64&, const I64&)> is_read;
    if (is_bounded_) {
      is_read = [&](const I64& matrix, const I64& panel) {
        return e_.IntCompare("slt", panel, e_.LoadInt(most_panels_, {matrix}));
      };
    }
    SetRightMatrices(state_, to_scores_, scores.args()[1], scores.attrs().Bool("transpose_b"), is_read);
    const CallNode& result = attention_.of_result();
    to_result_.outer = {matrices_[0]};
    to_result_.channels = ShapeOf(attention_.result)[2];
    to_result_.inner = {keys_};
    to_result_.row_stride = RowStride();
    to_result_.a_address = [&](const I64s&, const I64& row, const I64s& k) {
      return e_.Address(scores_, Bases({slot_, row, KeyAt(k)}));
    };
    SetRightMatrices(state_, to_result_, result.args()[1], result.attrs().Bool("transpose_b"));
    to_result_.b_address = [this, address = to_result_.b_address](const I64s& outer, const I64& panel, const I64s& k) {
      return address(outer, panel, {KeyAt(k)});
    };
  }

  /// A key by its place in `to_result_.inner`: its number, or its panel and its place in that.
  I64 KeyAt(const I64s& k) { return k.size() == 1 ? k[0] : e_.AddInt(e_.MulInt(k[0], width_), k[1]); }

  /// A stage that finds for each tile how many panels of keys it reads, and for each matrix the most of them.
  void EmitBounds(int64_t tiles, int64_t rest) {
    panels_ = state_.AddWorkspace({matrices_[0], tiles + 1}, Layout::kPlain, kInt64);
    most_panels_ = state_.AddWorkspace({matrices_[0]}, Layout::kPlain, kInt64);
    const auto store = [&](const Buffer& to, const I64s& at, const I64& value) {
      e_.Line(fmt::format("llvm.store {}, {} : i64, !llvm.ptr", value, e_.Address(to, Bases(at))));
    };
    const auto note = [&](const I64& matrix, const I64& tile, int64_t rows, const I64& most) {
      const I64 panels = PanelsOf(matrix, e_.MulInt(tile, rows_), rows);
      store(panels_, {matrix, tile}, panels);
      return e_.IntOp("maxsi", most, panels);
    };
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& matrix) {
        const I64s none{e_.Int(0)};
        I64 most = e_.ForCarrying(e_.Int(0), e_.Int(tiles), none, [&](const I64& tile, const I64s& so_far) {
          return I64s{note(matrix, tile, rows_, so_far[0])};
        })[0];
        if (rest > 0) most = note(matrix, e_.Int(tiles), rest, most);
        store(most_panels_, {matrix}, most);
      });
    });
    e_.Call(name, matrices_[0], state_.IsParallel(static_cast<double>(NumElements(matrices_))));
  }

  /// The panels up to the last with a key that one of `rows` rows from `row` sees; all where there is none.
  I64 PanelsOf(const I64& matrix, const I64& row, int64_t rows) {
    const I64 all = e_.Int(keys_ / width_);
    const I64 seen = e_.CountDown(all, [&](const I64& panel) {
      const Vectors nothing{e_.Splat(0)};
      const Vector seen_lanes =
          e_.ForCarrying(e_.Int(0), e_.Int(rows), nothing, e_.FloatVector(), [&](const I64& t, const Vectors& so_far) {
            Value any{so_far[0].name(), ElementKind::kFloat};
            for (int64_t at = 0; at < width_; at += e_.lanes()) {
              const Index key{e_.Plus(e_.MulInt(panel, width_), at), 1, {}, e_.lanes()};
              const Value score{e_.Splat(0).name(), ElementKind::kFloat};
              const Value logit =
                  Through(attention_.scores, attention_.logits(), {{matrix, 0}, {e_.AddInt(row, t), 0}, key}, score);
              const Value masked = m_.Like(-std::numeric_limits<double>::infinity(), logit);
              any = m_.Select(m_.Compare("une", "ne", logit, masked), m_.Like(1, any), any);
            }
            return Vectors{Vector{any.name}};
          })[0];
      const std::string most =
          e_.Def(fmt::format("vector.reduction <maximumf>, {} : {} into f32", seen_lanes, e_.FloatVector()));
      return I1{e_.Def(fmt::format("arith.cmpf oeq, {}, {} : f32", most, e_.Float(0)))};
    });
    return e_.SelectInt(e_.IntCompare("eq", seen, e_.Int(0)), all, seen);
  }

  /// Both products have the same tiles.
  void NoteSpace() {
    for (Contraction* form : {&to_scores_, &to_result_}) {
      form->rows = matrices_[1];
      if (form->channels >= width_) form->panel_vectors = width_ / e_.lanes();
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
      if (is_bounded_) {
        const I64 panels = e_.LoadInt(panels_, {parts[0], e_.Plus(parts[1], first / rows_)});
        seen_panels_ = e_.SizeOf(panels);
        seen_keys_ = e_.SizeOf(e_.MulInt(panels, width_));
        to_result_.inner = {seen_panels_, width_};
      }
      ComputeScores(parts[0], row, rows);
      TakeSoftmax(parts[0], row, rows);
      ComputeResult(parts[0], row, rows);
    });
  }

  /// `body` for all panels of `channels`: the first `vectors` vectors of `panel`, of whose channels `width` exist;
  /// keys come as far as they are seen.
  void ForPanels(int64_t channels, bool are_keys,
                 const std::function<void(const I64& panel, int vectors, int64_t width)>& body) {
    const int64_t panels = channels / width_;
    if (panels > 0) {
      e_.For(e_.Int(0), e_.Int(are_keys && is_bounded_ ? seen_panels_ : panels), 1,
             [&](const I64& panel) { body(panel, static_cast<int>(width_ / e_.lanes()), width_); });
    }
    const int64_t rest = channels - panels * width_;
    if (rest > 0) body(e_.Int(panels), static_cast<int>((rest + e_.lanes() - 1) / e_.lanes()), rest);
  }

  /// The sums of one tile of `form`; `store` gets those of each vector of channels, one for each row.
  void ForSums(const Contraction& form, const I64& batch, const I64& row, int64_t rows,
               const std::function<void(const Index& channel, const std::vector<Value>& sums)>& store) {
    ForPanels(form.channels, &form == &to_scores_, [&](const I64& panel, int vectors, int64_t width) {
      const Vectors sums = EmitRegisterTile(state_, form, {batch}, row, rows, panel, vectors, width);
      for (int v = 0; v < vectors; ++v) {
        const Index channel{e_.Plus(e_.MulInt(panel, width_), v * e_.lanes()), 1, {}, e_.lanes()};
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
    const ReductionSpace space{{slots_, rows, is_bounded_ ? seen_keys_ : keys_}, {false, false, true}, 2};
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
  int64_t width_;      ///< keys, or channels of the result, in a panel
  bool weighs_more_;   ///< whether weights are computed with before they are multiplied
  bool is_bounded_;    ///< whether tiles end with the last key that is seen
  int64_t slots_ = 1;  ///< blocks of scores, one for each thread
  Buffer queries_;
  Buffer scores_;                            ///< [slots, rows of a tile, keys]; weights, later
  Buffer factors_;                           ///< [slots, rows of a tile, lanes]: 1 / the row's sum
  Buffer panels_;                            ///< int64 [matrices, tiles]: how many panels of keys are read
  Buffer most_panels_;                       ///< int64 [matrices]
  int64_t seen_panels_ = 0, seen_keys_ = 0;  ///< sizes, for the tile that is being written
  Contraction to_scores_;
  Contraction to_result_;
  I64 slot_;
};

}  // namespace

void EmitAttention(PartitionState& state, const Attention& attention, const StageOutput& output) {
  AttentionEmitter(state, attention, output).Run();
}

}  // namespace collage::native
