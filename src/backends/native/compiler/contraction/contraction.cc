// contraction.cc: `rows` consecutive rows of the result (pixels of an image row, or rows of a matrix) times a panel of
// channels stay in registers while the inner dimensions are walked.
#include "backends/native/compiler/contraction/contraction.h"

#include <algorithm>

#include "backends/native/compiler/contraction/block_product.h"
#include "backends/native/compiler/contraction/library_tiles.h"
#include "backends/native/compiler/contraction/register_tile.h"
#include "backends/native/compiler/contraction/tensor_product.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "support/machine.h"

namespace collage::native {
namespace {

/// A register tile: how many rows at most, how many vectors of channels.
struct Tile {
  int64_t rows;
  int vectors;
};

/// Accumulators must leave room for the panel's vectors: 12 x 2 of 32 registers, 6 x 2 of 16; half as many of 64 bits.
/// Tensor cores read each word of a tile once for many products: 64 x 2, whose sums are half of a thread's registers.
/// A schedule may say otherwise, of one of the two or of both.
Tile TileFor(const PartitionState& state, DataType dtype, DotKind factors = DotKind::kOne) {
  const Schedule& schedule = state.schedule();
  const bool is_tensor = TensorProduct::Multiplies(state, dtype, factors);
  const int64_t sums = is_tensor ? 128 : (state.emitter.native_lanes() >= 16 ? 24 : 12) / (dtype.bits == 64 ? 2 : 1);
  const int64_t vectors = schedule.width == 0 ? 2 : schedule.width;
  return {schedule.rows == 0 ? std::max<int64_t>(sums / vectors, 1) : schedule.rows, static_cast<int>(vectors)};
}

/// Fewer chains of dependent additions than this leave the multipliers idle.
constexpr int64_t kChains = 8;

/// Rows per tile: those that divide `length` if there are such of a good size, else even parts.
int64_t RowsPerTile(int64_t length, int64_t most) {
  for (int64_t rows = most; rows * 2 > most; --rows) {
    if (length % rows == 0) return rows;
  }
  const int64_t tiles = (length + most - 1) / most;
  return (length + tiles - 1) / tiles;
}

class ContractionEmitter {
 public:
  ContractionEmitter(PartitionState& state, const Contraction& form, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        form_(form),
        output_(output),
        tile_(TileFor(state, form.dtype, form.factors)),
        library_(LibraryTiles::For(state, form, output, tile_.vectors)),
        sums_(state, form_) {
    if (form_.channels >= tile_.vectors * e_.lanes()) form_.panel_vectors = tile_.vectors;
  }

  void Run() {
    const int64_t width = static_cast<int64_t>(tile_.vectors) * e_.lanes();
    if (NumElements(form_.outer) * form_.rows == 0) return;
    const int64_t rows = Rows();
    ProductSpace space = SpaceOf(state_, form_, rows, (form_.rows + rows - 1) / rows * NumElements(form_.outer));
    space.is_library = library_.has_value();
    state_.space.Note(space);
    const int64_t panels = form_.channels / width;
    if (panels > 0) EmitPanels(panels, 0, tile_.vectors, width);
    const int64_t rest = form_.channels - panels * width;
    if (rest > 0) EmitPanels(1, panels, static_cast<int>((rest + e_.lanes() - 1) / e_.lanes()), rest);
  }

 private:
  int64_t Rows() const { return library_ ? library_->rows() : TileRows(state_, form_.dtype, form_.rows); }

  /// A stage over `count` panels from `first`, each of `width` channels in `vectors` vectors. What rows are left behind
  /// the whole tiles are a tile of the same panel: weights are read once for all rows.
  void EmitPanels(int64_t count, int64_t first, int vectors, int64_t width) {
    const int64_t rows = Rows();
    const int64_t whole = form_.rows / rows;
    const int64_t left = form_.rows % rows;
    const double flops = 2.0 * static_cast<double>(width * count * form_.rows) *
                         static_cast<double>(NumElements(form_.inner)) * static_cast<double>(NumElements(form_.outer));
    const int64_t tiles = left == 0 ? whole : whole + 1;
    EmitStage(count, tiles, flops, [&](const I64s& outer, const I64& tile, const I64& at) {
      const I64 panel = e_.Plus(at, first);
      FetchAhead(count, outer, tile, tiles, panel);
      const auto emit = [&](int64_t height) { EmitTile(outer, e_.MulInt(tile, rows), height, panel, vectors, width); };
      if (left == 0) {
        emit(rows);
      } else {
        e_.If(e_.IntCompare("slt", tile, e_.Int(whole)), [&] { emit(rows); });
        e_.If(e_.IntCompare("eq", tile, e_.Int(whole)), [&] { emit(left); });
      }
      sums_.FetchAhead({}, 0, 0);
    });
  }

  /// Weights that come from far away are fetched before they are needed: those of the next panel where this one has
  /// several tiles, the first of which would wait for them, or what is further on in this one where a single tile uses
  /// each weight once.
  void FetchAhead(int64_t panels, const I64s& outer, const I64& tile, int64_t tiles, const I64& panel) {
    constexpr int64_t kMostTiles = 64;  // the others hide what the first one waits for
    static const int64_t near = CacheSize(2, int64_t{1} << 20);
    const int64_t groups = form_.outer[0];
    const int64_t all = NumElements(form_.outer) / groups * tiles;  // of a panel
    const int64_t bytes = groups * form_.channels * NumElements(form_.inner) * ElementBytes();
    if (panels * groups <= 1 || !form_.b_is_padded || all > kMostTiles || bytes <= near / 4) return;
    if (all == 1) FetchFurther(outer, panel);
    if (all > 1 && form_.rows > 1) FetchNextPanel(outer, tile, tiles, all, panel);
  }

  void FetchFurther(const I64s& outer, const I64& panel) {
    constexpr int64_t kBytesAhead = 4096;  // memory answers meanwhile, and the first cache keeps them
    const Ptr begin = form_.b_address(outer, panel, I64s(form_.inner.size(), e_.Int(0)));
    sums_.FetchAhead(e_.ElementAt(begin, kBytesAhead, "i8"), PositionBytes(), /*nearest=*/1);
  }

  /// Each of all tiles of a panel fetches its part of what comes after it: that of the next group, or the next one of
  /// the first. Nothing is read there, so there may be none.
  void FetchNextPanel(const I64s& outer, const I64& tile, int64_t tiles, int64_t all, const I64& panel) {
    const int64_t groups = form_.outer[0];
    const I64 after = e_.Plus(outer[0], 1);
    I64s next = outer;
    next[0] = groups == 1 ? outer[0] : e_.IntOp("remui", after, e_.Int(groups));
    const I64 next_panel = e_.AddInt(panel, e_.IntOp("divui", after, e_.Int(groups)));
    I64 number = e_.Int(0);  // of the tile among those of the panel
    for (size_t d = 1; d < outer.size(); ++d) number = e_.AddInt(e_.MulInt(number, form_.outer[d]), outer[d]);
    number = e_.AddInt(e_.MulInt(number, tiles), tile);
    const int64_t step = (PositionBytes() + all - 1) / all;
    const Ptr begin = form_.b_address(next, next_panel, I64s(form_.inner.size(), e_.Int(0)));
    sums_.FetchAhead(e_.ElementAt(begin, e_.MulInt(number, step * NumElements(form_.inner)), "i8"), step,
                     /*nearest=*/2);
  }

  /// Bytes of a panel at one position of the inner dimensions.
  int64_t PositionBytes() const { return static_cast<int64_t>(tile_.vectors) * e_.native_lanes() * ElementBytes(); }
  int64_t ElementBytes() const { return static_cast<int64_t>(form_.dtype.size_bytes()); }

  using TileFn = std::function<void(const I64s& outer, const I64& tile, const I64& panel)>;

  /// `write` for all panels and all tiles, `tiles` for each position of the outer dimensions.
  void EmitStage(int64_t panels, int64_t tiles, double flops, const TileFn& write) {
    std::vector<int64_t> rows = form_.outer;
    rows.push_back(tiles);
    const int64_t all = NumElements(rows);
    // Panels outermost, unless the schedule says otherwise: their weights stay in the cache while all rows pass.
    const int64_t block = state_.schedule().block == 0 ? all : std::min(state_.schedule().block, all);
    if (block == all) {
      std::vector<int64_t> sizes{panels};
      sizes.insert(sizes.end(), rows.begin(), rows.end());
      return EmitUnits(sizes, flops, [&](const I64s& parts) {
        write({parts.begin() + 1, parts.end() - 1}, parts.back(), parts[0]);
      });
    }
    // A block of tiles and then the next one: their data stay in the cache while all panels pass.
    EmitUnits({(all + block - 1) / block, panels, block}, flops, [&](const I64s& parts) {
      const I64 flat = e_.AddInt(e_.MulInt(parts[0], block), parts[2]);
      const auto write_tile = [&] {
        const I64s place = Delinearise(e_, flat, rows);
        write({place.begin(), place.end() - 1}, place.back(), parts[1]);
      };
      if (all % block == 0) return write_tile();
      e_.If(e_.IntCompare("slt", flat, e_.Int(all)), write_tile);
    });
  }

  void EmitUnits(const std::vector<int64_t>& sizes, double flops, const std::function<void(const I64s&)>& write) {
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      if (library_) library_->Begin();
      e_.For(begin, end, 1, [&](const I64& unit) { write(Delinearise(e_, unit, sizes)); });
    });
    e_.Call(name, NumElements(sizes), state_.IsParallel(flops));
  }

  /// The last vector, where no more than half of 16 lanes of it exist, is computed behind the others as one of 8, in
  /// half the time where the processor computes 16 in two steps. Halves of 8 would save nothing.
  void EmitTile(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int vectors, int64_t width) {
    if (library_) return library_->Emit(outer, row, rows, panel, width);
    constexpr int kWide = 16;
    const int lanes = e_.lanes();
    const int64_t rest = width % lanes;
    const bool is_halved =
        !state_.target.has_whole_units && lanes == kWide && rest != 0 && rest <= lanes / 2 && !IsPair(form_.factors);
    if (!is_halved) return EmitVectors(outer, row, rows, panel, 0, vectors, width);
    if (vectors > 1) EmitVectors(outer, row, rows, panel, 0, vectors - 1, width - rest);
    e_.SetLanes(lanes / 2);
    EmitVectors(outer, row, rows, panel, width - rest, 1, rest);
    e_.SetLanes(lanes);
  }

  void EmitVectors(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t first, int vectors,
                   int64_t width) {
    const Vectors sums = sums_.Emit(outer, row, rows, panel, first, vectors, width);
    const int64_t full_width = static_cast<int64_t>(tile_.vectors) * e_.native_lanes();
    for (int v = 0; v < vectors; ++v) {
      const I64 channel = e_.Plus(e_.MulInt(panel, full_width), first + v * e_.lanes());
      const Vector scale = form_.scale ? form_.scale(outer, panel, first + v * e_.lanes()) : Vector();
      const auto store_rows = [&] {
        for (int64_t t = 0; t < rows; ++t) {
          const Indices at = form_.result(outer, e_.Plus(row, t), {channel, 1, {}, e_.lanes()});
          StoreResult(state_, output_, at, SumAsValue(e_, form_, sums[static_cast<size_t>(t * vectors + v)], scale));
        }
      };
      const int64_t left = width - static_cast<int64_t>(v) * e_.lanes();
      if (left >= e_.lanes())
        store_rows();
      else
        e_.MaskedRest(left, [&](const I64&) { store_rows(); });
    }
  }

  PartitionState& state_;
  Emitter& e_;
  Contraction form_;
  const StageOutput& output_;
  Tile tile_;
  std::optional<LibraryTiles> library_;  ///< what computes tiles in place of `sums_`
  RegisterTile sums_;
};

}  // namespace

int MultipliersOf(const PartitionState& state) {
  return state.target.has_whole_units || state.emitter.lanes() <= 8 ? 2 : 1;
}

int64_t SpreadRow(int64_t floats) {
  constexpr int64_t kFew = 512;
  constexpr int64_t kLine = 16;
  return floats % kFew == 0 ? floats + kLine : floats;
}

int64_t PanelWidth(const PartitionState& state, DataType dtype) {
  return static_cast<int64_t>(TileFor(state, dtype).vectors) * state.emitter.native_lanes();
}

int64_t MostTileRows(const PartitionState& state, DataType dtype, DotKind factors) {
  return TileFor(state, dtype, factors).rows;
}

int64_t TileRows(const PartitionState& state, DataType dtype, int64_t rows) {
  const int64_t most = TileFor(state, dtype).rows;
  return state.schedule().rows == 0 ? RowsPerTile(rows, most) : std::min(most, rows);
}

int64_t ChainsOf(int64_t count, int64_t depth) {
  int64_t chains = 1;
  while (chains * count < kChains && depth % (chains * 2) == 0) chains *= 2;
  return chains;
}

ProductSpace SpaceOf(const PartitionState& state, const Contraction& form, int64_t rows, int64_t tiles) {
  const int64_t width = TileFor(state, form.dtype, form.factors).vectors;
  const int64_t block = state.schedule().block == 0 ? tiles : std::min(state.schedule().block, tiles);
  ProductSpace space;
  space.chosen = state.schedule().With({.algorithm = Schedule::kDirect, .rows = rows, .width = width, .block = block});
  space.flops = 2.0 * static_cast<double>(form.rows * form.channels) * static_cast<double>(NumElements(form.inner)) *
                static_cast<double>(NumElements(form.outer));
  space.rows = form.rows;
  space.channels = form.channels;
  space.depth = form.inner.empty() ? 1 : form.inner.back();
  space.chains = ChainsOf(rows * std::min(width, (form.channels + state.emitter.lanes() - 1) / state.emitter.lanes()),
                          space.depth);
  space.tiles = tiles;
  space.row_bytes = rows * NumElements(form.inner) * static_cast<int64_t>(form.dtype.size_bytes());
  space.lanes = state.emitter.native_lanes();
  space.registers = form.dtype.bits == 64 ? 2 : 1;
  space.may_pack = form.may_pack;
  return space;
}

Vectors EmitRegisterTile(PartitionState& state, const Contraction& form, const I64s& outer, const I64& row,
                         int64_t rows, const I64& panel, int vectors, int64_t width) {
  return RegisterTile(state, form).Emit(outer, row, rows, panel, /*first=*/0, vectors, width);
}

Value SumAsValue(Emitter& e, const Contraction& form, const Vector& sum, const Vector& scale) {
  const std::string type =
      fmt::format("vector<{}x{}{}>", e.lanes(), form.dtype.is_floating() ? "f" : "i", form.dtype.bits);
  if (!scale.is_none()) {
    const Vector number{e.Def(fmt::format("arith.sitofp {} : {} to {}", sum, type, e.FloatVector()))};
    return {e.Def(fmt::format("arith.mulf {}, {} : {}", number, scale, e.FloatVector())), ElementKind::kFloat};
  }
  if (form.dtype.is_floating()) return {sum.name(), KindOf(form.dtype)};
  if (form.dtype.bits == 64) return {sum.name(), ElementKind::kInt};
  return {e.Def(fmt::format("arith.extsi {} : {} to {}", sum, type, e.TypeOf(ElementKind::kInt))), ElementKind::kInt};
}

void EmitContraction(PartitionState& state, const Contraction& form, const StageOutput& output) {
  if (BlockTile::Takes(state, form)) return EmitBlockProduct(state, form, output);
  ContractionEmitter(state, form, output).Run();
}

bool HasAlignedRows(const Buffer& buffer, size_t axis) {
  constexpr int64_t kBytes = 16;
  const auto size = static_cast<int64_t>(buffer.dtype.size_bytes());
  if (buffer.offset_bytes % kBytes != 0) return false;
  for (size_t i = 0; i < buffer.strides.size(); ++i) {
    const int64_t stride = buffer.strides[i];
    if (IsSymbolic(stride) || (i == axis ? stride != 1 && buffer.shape[i] != 1 : stride * size % kBytes != 0))
      return false;
  }
  return size * 4 == kBytes;
}

int ConstantNumber(const Buffer& buffer) { return buffer.ref.role == BufferRole::kConstant ? buffer.ref.index : -1; }

DataType SumType(DataType dtype) {
  if (dtype.is_floating()) return dtype.bits == 64 ? kFloat64 : kFloat32;
  return dtype.bits == 64 ? kInt64 : kInt32;
}

std::optional<Tensor> ConstantValue(const Expr& expr) {
  if (const ConstantNode* constant = As<ConstantNode>(expr)) return constant->value();
  bool is_constant = true;
  PostOrder(expr, [&](const Expr& node) {
    if (node->kind() == ExprKind::kVar) is_constant = false;
  });
  if (!is_constant) return std::nullopt;
  return Evaluate(MakeFunction({}, expr), {}).at(0);
}

namespace {

/// PackedConstant's elements, of one size. `places`: where those of the first group's first channel lie.
template <typename Word>
void CopyPanels(const Word* source, const PackedWeights& packing, int64_t group_stride, int64_t channel_stride,
                std::span<const int64_t> places, int64_t width, Word* target) {
  for (int64_t g = 0; g < packing.groups; ++g) {
    for (int64_t first = 0; first < packing.channels; first += width) {
      const Word* panel = source + g * group_stride + first * channel_stride;
      const int64_t channels = std::min(width, packing.channels - first);
      for (const int64_t place : places) {
        for (int64_t c = 0; c < channels; ++c) *target++ = panel[place + c * channel_stride];
        for (int64_t c = channels; c < width; ++c) *target++ = 0;
      }
    }
  }
}

}  // namespace

std::optional<Tensor> PackedConstant(const Expr& weight, const PackedWeights& packing, DataType dtype, int64_t width) {
  const std::optional<Tensor> value = ConstantValue(weight);
  if (!value) return std::nullopt;
  const int64_t panels = (packing.channels + width - 1) / width;
  const Tensor source = value->Cast(dtype);
  const Tensor packed = Tensor::Empty({packing.groups, panels, NumElements(packing.inner), width}, dtype);
  if (packed.num_elements() == 0) return packed;
  std::vector<int64_t> place(packing.inner.size());
  const int64_t first = packing.offset(source.shape(), 0, 0, place);
  const int64_t group_stride = packing.offset(source.shape(), 1, 0, place) - first;
  const int64_t channel_stride = packing.offset(source.shape(), 0, 1, place) - first;
  std::vector<int64_t> places(static_cast<size_t>(NumElements(packing.inner)));
  for (size_t k = 0; k < places.size(); ++k) {
    auto rest = static_cast<int64_t>(k);
    for (size_t d = place.size(); d-- > 0; rest /= packing.inner[d]) place[d] = rest % packing.inner[d];
    places[k] = packing.offset(source.shape(), 0, 0, place);
  }
  const auto copy = [&]<typename Word>(Word) {
    CopyPanels(source.data<Word>(), packing, group_stride, channel_stride, places, width, packed.data<Word>());
  };
  switch (dtype.size_bytes()) {
    case 1: copy(uint8_t{}); break;
    case 2: copy(uint16_t{}); break;
    case 4: copy(uint32_t{}); break;
    case 8: copy(uint64_t{}); break;
    default: COLLAGE_CHECK(false) << "no weights are of " << dtype.ToString();
  }
  return packed;
}

void EmitPacked(PartitionState& state, const Expr& weight, const PackedWeights& packing, const Buffer& buffer) {
  Emitter& e = state.emitter;
  ElementGuard guard;
  if (packing.is_read) guard = [&](const Indices& at) { return packing.is_read(at[0].base, at[1].base); };
  const auto element = [&](const Indices& at) {
    Index channel = e.Sum(e.Scaled(at[1], buffer.shape.back()), at.back());
    // Values packed behind the last channel are multiplied and thrown away.
    if (packing.channels % buffer.shape.back() != 0) channel = e.IndexOp("minsi", channel, packing.channels - 1);
    const Indices place(at.begin() + 2, at.end() - 1);
    return state.math().Convert(state.expressions.At(weight, packing.at(at[0], channel, place)), buffer.dtype);
  };
  EmitElements(state, buffer, element, guard);
}

Buffer PackWeights(PartitionState& state, const Expr& weight, const PackedWeights& packing, DataType dtype) {
  const int64_t width = PanelWidth(state, dtype);
  if (const auto packed = PackedConstant(weight, packing, dtype, width)) return state.AddConstant(*packed);
  const int64_t panels = (packing.channels + width - 1) / width;
  const Shape shape{packing.groups, panels, NumElements(packing.inner), width};
  const Buffer buffer = state.AddWorkspace(shape, Layout::kPlain, dtype);
  Buffer spread = buffer;  // with the inner dimensions apart
  spread.shape = {packing.groups, panels};
  spread.shape.insert(spread.shape.end(), packing.inner.begin(), packing.inner.end());
  spread.shape.push_back(width);
  spread.strides = LayoutStrides(spread.shape, Layout::kPlain);
  EmitPacked(state, weight, packing, spread);
  return buffer;
}

}  // namespace collage::native
