// depthwise_chain_loops.cc: a few rows of the result at a time, so that what is between the convolutions stays in the
// first two caches:
//
//     data ─ expansion ─▶ ring of rows ─ depthwise ─▶ block of pixels ─ projection ─▶ rows of the result
//            1x1, panel   of a panel     taps within  [pixel][C]        1x1
//            by panel     of channels    the image
//
// Rows that the depthwise convolution reads again for the next ones stay in the ring: row y of the expanded image is
// row y modulo its height. So each is computed once, but for those that neighbouring threads both need. Without an
// expansion the depthwise convolution reads the data where they are; without a projection it writes the result.
#include "backends/native/compiler/convolution/depthwise_chain_loops.h"

#include <algorithm>

#include "backends/native/compiler/contraction/bias.h"
#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/contraction/register_tile.h"
#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/padded_data.h"

namespace collage::native {
namespace {

const CallNode& CallOf(const Expr& expr) { return *As<CallNode>(expr); }

class DepthwiseChainEmitter {
 public:
  DepthwiseChainEmitter(PartitionState& state, const DepthwiseChain& chain, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        chain_(chain),
        output_(output),
        conv_(CallOf(chain.depthwise), chain.depthwise),
        channels_(conv_.data[1]),
        width_(PanelWidth(state, kFloat32)),
        panels_((channels_ + width_ - 1) / width_),
        rows_(RowsOfBlock()) {}

  void Run() {
    const int64_t units = conv_.result[0] * (conv_.result[2] / rows_);
    slots_ = state_.IsParallel(Flops()) ? std::min<int64_t>(state_.num_threads, units) : 1;
    if (chain_.expansion != nullptr) {
      PrepareExpansion();
      taps_ = RowsOfRing(state_, CallOf(chain_.depthwise), conv_, ring_);
    } else {
      taps_ = RowsOfMemory(state_, CallOf(chain_.depthwise), conv_);
    }
    if (chain_.projection == nullptr) {
      output_ = taps_->BeginWithBias(output_);
    } else {
      filtered_ = taps_->BeginWithBias({chain_.depthwise, chain_.filtered, {}});
      PrepareProjection();
    }
    NoteSpace();
    EmitShares(state_, slots_, units, [&](const I64& slot, const I64& unit, const I64& first) {
      slot_ = slot;
      const I64s parts = Delinearise(e_, unit, {conv_.result[0], conv_.result[2] / rows_});
      image_ = parts[0];
      row_ = e_.MulInt(parts[1], rows_);
      if (chain_.expansion != nullptr) FindNewRows(e_.IntCompare("eq", unit, first), parts[1]);
      Filter();
      if (chain_.projection != nullptr) Project();
    });
  }

 private:
  /// Rows of the result, evenly cut: as a schedule says, the most that are no more; else the fewest that are pixels
  /// enough for register tiles, or, where those would be many, the most that are not.
  int64_t RowsOfBlock() const {
    if (const int64_t told = state_.schedule().block; told > 0) {
      const std::vector<int64_t> possible = PossibleRows();
      return *(std::upper_bound(possible.begin(), possible.end(), told) - 1);
    }
    constexpr int64_t kEnough = 48;
    constexpr int64_t kMany = 192;
    const int64_t height = conv_.result[2];
    const int64_t width = conv_.result[3];
    int64_t best = 1;
    for (int64_t rows = 1; rows <= height && rows * width <= kMany && best * width < kEnough; ++rows) {
      if (height % rows == 0) best = rows;
    }
    return best;
  }

  /// Returns the sizes of blocks of rows that cut the result evenly.
  std::vector<int64_t> PossibleRows() const {
    std::vector<int64_t> possible;
    for (int64_t rows = 1; rows <= conv_.result[2]; ++rows) {
      if (conv_.result[2] % rows == 0) possible.push_back(rows);
    }
    return possible;
  }

  void NoteSpace() {
    const auto note = [&](Contraction& form, int64_t rows) {
      form.rows = rows;
      ProductSpace space = SpaceOf(state_, form, TileRows(state_, kFloat32, rows), /*tiles=*/1);
      space.chosen.block = rows_;
      space.blocks = PossibleRows();
      state_.space.Note(space);
    };
    if (chain_.expansion != nullptr) note(to_ring_.form, conv_.data[3]);
    if (chain_.projection != nullptr) note(to_result_.form, rows_ * conv_.result[3]);
  }

  double Flops() const {
    double flops = conv_.flops();
    for (const Expr& product : {chain_.expansion, chain_.projection}) {
      if (product != nullptr) flops += ConvolutionGeometry(CallOf(product), product).flops();
    }
    return flops;
  }

  /// Rows of the data that a block reads.
  int64_t RowsRead() const { return (rows_ - 1) * conv_.stride[0] + (conv_.weight[2] - 1) * conv_.dilation[0] + 1; }

  /// A 1x1 convolution: what its sums are, and what is made of them.
  struct Product {
    DotKind factors = DotKind::kOne;
    Contraction form;
    Buffer weights;  ///< [1, panels, inputs, width]
    std::optional<Bias> bias;
    StageOutput output;
  };

  void Prepare(Product& product, const StageOutput& output) {
    const Expr& weight = CallOf(output.result).args()[1];
    const Shape shape = ShapeOf(weight);
    PackedWeights packing;
    packing.channels = shape[0];
    packing.inner = {shape[1]};
    packing.at = [&](const Index&, const Index& channel, const Indices& inner) {
      return Indices{channel, inner[0], e_.Zero(), e_.Zero()};
    };
    packing.offset = [](const Shape& of, int64_t, int64_t channel, const std::vector<int64_t>& inner) {
      return channel * of[1] + inner[0];
    };
    product.factors = PairsOf(state_, CallOf(output.result));
    const bool in_pairs = IsPair(product.factors);
    state_.num_narrow += in_pairs ? 1 : 0;
    product.weights =
        in_pairs ? PackPairs(state_, weight, packing, product.factors) : PackWeights(state_, weight, packing, kFloat32);
    product.bias = BiasOf(state_, output, /*axis=*/1, width_);
    product.output = product.bias ? product.bias->output : output;
    Contraction& form = product.form;
    form.outer = {1};
    form.channels = shape[0];
    if (form.channels >= width_) form.panel_vectors = width_ / e_.lanes();
    form.inner = {in_pairs ? shape[1] / 2 : shape[1]};
    form.factors = product.factors;
    form.b_address = [&](const I64s&, const I64& panel, const I64s& k) {
      return e_.Address(product.weights, Bases({e_.Int(0), panel, k[0], e_.Int(0)}));
    };
    if (!product.bias) return;
    form.start = [&](const I64s&, const I64& panel, int64_t first) {
      return product.bias->At(e_, e_.Plus(e_.MulInt(panel, width_), first));
    };
  }

  void PrepareExpansion() {
    // [slot, panel][row][column][channel of the panel]
    ring_ = state_.AddWorkspace({slots_ * panels_, width_, RowsRead(), conv_.data[3]}, Layout::kChannelsLast);
    Prepare(to_ring_, {chain_.expansion, chain_.expanded, {}});
    const Expr& data = CallOf(chain_.expansion).args()[0];
    data_ = IsPair(to_ring_.factors) ? AsPairs(PaddedData(state_, data, {0, 0}, {0, 0}, HalfOf(to_ring_.factors)), 1)
                                     : ChannelsLastData(state_, data, kFloat32);
    to_ring_.form.row_stride = data_.strides[3];
    to_ring_.form.a_address = [&](const I64s&, const I64& column, const I64s& k) {
      return e_.Address(data_, Bases({image_, k[0], new_row_, column}));
    };
  }

  /// Elements from one pixel of a block to the next: an odd number of vectors, so that equal channels of neighbouring
  /// pixels fall into different sets of the cache.
  int64_t PixelStride() const { return ((channels_ + e_.lanes() - 1) / e_.lanes() | 1) * e_.lanes(); }

  void PrepareProjection() {
    Prepare(to_result_, output_);
    output_ = to_result_.output;
    block_ = state_.AddWorkspace({slots_, rows_ * conv_.result[3], PixelStride()}, Layout::kPlain,
                                 IsPair(to_result_.factors) ? HalfOf(to_result_.factors) : kFloat32);
    const Buffer read = IsPair(to_result_.factors) ? AsPairs(block_, 2) : block_;
    to_result_.form.row_stride = read.strides[1];
    to_result_.form.a_address = [this, read](const I64s&, const I64& pixel, const I64s& k) {
      return e_.Address(read, Bases({slot_, pixel, k[0]}));
    };
    std::vector<int> axes{0, 2, 3};
    if (!CanMerge(state_, output_, axes, ShapeOf(chain_.projection)[1])) return;
    // Coordinates of dimensions of size 1 are not looked at.
    while (axes.size() > 1 && conv_.result[static_cast<size_t>(axes.back())] == 1) axes.pop_back();
    pixel_axis_ = static_cast<size_t>(axes.back());
  }

  /// Returns `value`, the result of a stage at a place, after the operators behind it.
  Value Through(const StageOutput& stage, const Indices& at, const Value& value) {
    state_.expressions.SetRegister(stage.result, value);
    const Value result = state_.expressions.At(stage.epilogue, at);
    state_.expressions.ClearRegisters();
    return result;
  }

  /// `body` for all panels of `channels`: how many of its channels exist is `width`.
  void ForPanels(int64_t channels, int64_t size, const std::function<void(const I64& panel, int64_t width)>& body) {
    const int64_t whole = channels / size;
    if (whole > 0) e_.For(e_.Int(0), e_.Int(whole), 1, [&](const I64& panel) { body(panel, size); });
    if (channels % size != 0) body(e_.Int(whole), channels % size);
  }

  /// `body` for all register tiles of `count` rows.
  void ForTiles(int64_t count, const std::function<void(const I64& first, int64_t rows)>& body) {
    const int64_t rows = TileRows(state_, kFloat32, count);
    const int64_t whole = count / rows * rows;
    e_.For(e_.Int(0), e_.Int(whole), rows, [&](const I64& first) { body(first, rows); });
    if (whole < count) body(e_.Int(whole), count - whole);
  }

  /// Gets the sums of a vector of channels, one for each row.
  using SumsFn = std::function<void(const Index& channel, const Vectors& sums)>;

  /// The sums of one register tile. The last vector, where it is half empty, is one of half as many lanes where the
  /// processor computes whole ones in two steps.
  void ForSums(const Contraction& form, const I64& row, int64_t rows, const I64& panel, int64_t width,
               const SumsFn& store) {
    const int lanes = e_.lanes();
    const int64_t rest = width % lanes;
    constexpr int kWide = 16;
    const bool is_halved =
        !state_.target.has_whole_units && lanes == kWide && rest != 0 && rest <= lanes / 2 && !IsPair(form.factors);
    if (!is_halved) return ForVectors(form, row, rows, panel, 0, width, store);
    if (width > rest) ForVectors(form, row, rows, panel, 0, width - rest, store);
    e_.SetLanes(lanes / 2);
    ForVectors(form, row, rows, panel, width - rest, rest, store);
    e_.SetLanes(lanes);
  }

  void ForVectors(const Contraction& form, const I64& row, int64_t rows, const I64& panel, int64_t first, int64_t width,
                  const SumsFn& store) {
    const auto vectors = static_cast<int>((width + e_.lanes() - 1) / e_.lanes());
    const Vectors sums = RegisterTile(state_, form).Emit({e_.Int(0)}, row, rows, panel, first, vectors, width);
    for (int v = 0; v < vectors; ++v) {
      const int64_t from = static_cast<int64_t>(v) * e_.lanes();
      const Index channel{e_.Plus(e_.MulInt(panel, width_), first + from), 1, {}, e_.lanes()};
      Vectors own;
      for (int64_t t = 0; t < rows; ++t) own.push_back(sums[static_cast<size_t>(t * vectors + v)]);
      if (width - from >= e_.lanes()) {
        store(channel, own);
      } else {
        e_.MaskedRest(width - from, [&](const I64&) { store(channel, own); });
      }
    }
  }

  /// Rows of the data that this block reads and the one before, if it was this thread's, did not: [from_, to_).
  void FindNewRows(const I1& is_first, const I64& block) {
    const I64 begin = e_.Plus(e_.MulInt(row_, conv_.stride[0]), -conv_.pad_before[0]);
    const I64 end = e_.Plus(begin, RowsRead());
    const I64 least = e_.IntOp("maxsi", begin, e_.Int(0));
    const I64 known = e_.IntOp("maxsi", least, e_.Plus(end, -rows_ * conv_.stride[0]));
    const I1 is_new = e_.Or(is_first, e_.IntCompare("eq", block, e_.Int(0)));
    from_ = e_.SelectInt(is_new, least, known);
    to_ = e_.IntOp("minsi", end, e_.Int(conv_.data[2]));
  }

  /// The depthwise convolution, panel by panel, behind the expansion of each.
  void Filter() {
    const int64_t size = chain_.expansion != nullptr ? width_ : std::min(taps_->ChannelsOfBlock(), channels_);
    ForPanels(channels_, size, [&](const I64& panel, int64_t width) {
      if (chain_.expansion != nullptr) Expand(panel, width);
      const I64 first = e_.MulInt(panel, size);
      e_.For(e_.Int(0), e_.Int(rows_), 1, [&](const I64& r) {
        GroupRows::Block block{width, first, first};
        I64 image = image_;
        if (chain_.expansion != nullptr) {
          block.of_data = e_.Int(0);
          image = e_.AddInt(e_.MulInt(slot_, panels_), panel);
        }
        const I64 pixel = e_.MulInt(r, conv_.result[3]);
        taps_->EmitRow({image_, e_.AddInt(row_, r)}, block, image, [&](const Indices& at, const Value& sum) {
          if (chain_.projection == nullptr) return StoreResult(state_, output_, at, sum);
          const Value value = Through(filtered_, at, sum);
          e_.Store(block_, {{slot_, 0}, {e_.AddInt(pixel, at[3].base), 0}, at[1]}, value);
        });
      });
    });
  }

  void Expand(const I64& panel, int64_t width) {
    e_.For(from_, to_, 1, [&](const I64& row) {
      new_row_ = row;
      const I64 image = e_.AddInt(e_.MulInt(slot_, panels_), panel);
      const I64 of_ring = e_.IntOp("remui", row, e_.Int(RowsRead()));
      ForTiles(conv_.data[3], [&](const I64& first, int64_t rows) {
        ForSums(to_ring_.form, first, rows, panel, width, [&](const Index& channel, const Vectors& sums) {
          const Index within{e_.IntOp("subi", channel.base, e_.MulInt(panel, width_)), 1, {}, e_.lanes()};
          for (int64_t t = 0; t < rows; ++t) {
            const Indices at{{image_, 0}, channel, {row, 0}, {e_.Plus(first, t), 0}};
            e_.Store(ring_, {{image, 0}, within, {of_ring, 0}, at[3]},
                     Through(to_ring_.output, at, {sums[static_cast<size_t>(t)].name()}));
          }
        });
      });
    });
  }

  void Project() {
    const I64 first_pixel = e_.MulInt(e_.AddInt(e_.MulInt(image_, conv_.result[2]), row_), conv_.result[3]);
    ForPanels(to_result_.form.channels, width_, [&](const I64& panel, int64_t width) {
      ForTiles(rows_ * conv_.result[3], [&](const I64& first, int64_t rows) {
        ForSums(to_result_.form, first, rows, panel, width, [&](const Index& channel, const Vectors& sums) {
          for (int64_t t = 0; t < rows; ++t) {
            const I64 pixel = e_.Plus(first, t);
            Indices at{{image_, 0}, channel, {row_, 0}, {pixel, 0}};
            if (pixel_axis_) {
              for (const size_t axis : {0, 2, 3}) at[axis] = e_.Zero();
              at[*pixel_axis_] = {e_.AddInt(first_pixel, pixel), 0};
            } else if (rows_ > 1) {
              const I64 columns = e_.Int(conv_.result[3]);
              at[2] = {e_.AddInt(row_, e_.IntOp("divui", pixel, columns)), 0};
              at[3] = {e_.IntOp("remui", pixel, columns), 0};
            }
            StoreResult(state_, output_, at, {sums[static_cast<size_t>(t)].name()});
          }
        });
      });
    });
  }

  PartitionState& state_;
  Emitter& e_;
  const DepthwiseChain& chain_;
  StageOutput output_;
  StageOutput filtered_;      ///< what is made of the depthwise convolution's results, in registers
  ConvolutionGeometry conv_;  ///< the depthwise one
  int64_t channels_;          ///< of it
  int64_t width_;             ///< of a panel of weights
  int64_t panels_;            ///< of the channels
  int64_t rows_;              ///< of the result that are a block
  int64_t slots_ = 1;         ///< one for each thread
  std::unique_ptr<GroupRows> taps_;
  Buffer data_;   ///< of the expansion
  Buffer ring_;   ///< what the depthwise convolution reads, where it is expanded
  Buffer block_;  ///< [slot, pixel, channel]: what it gives, where it is projected
  Product to_ring_, to_result_;
  std::optional<size_t> pixel_axis_;  ///< along which a pixel's number may stand for all its coordinates
  // The block that is written:
  I64 slot_, image_, row_;
  I64 from_, to_, new_row_;  ///< of the expanded rows
};

}  // namespace

bool ReadsRing(PartitionState& state, const DepthwiseChain& chain) {
  const CallNode& call = CallOf(chain.depthwise);
  return !NeedsStoredZeros(state, call, ConvolutionGeometry(call, chain.depthwise));
}

void EmitDepthwiseChain(PartitionState& state, const DepthwiseChain& chain, const StageOutput& output) {
  DepthwiseChainEmitter(state, chain, output).Run();
}

}  // namespace collage::native
