// library_tiles.cc: which tiles a library gets, and the calls.
#include "backends/native/compiler/contraction/library_tiles.h"

#include <algorithm>
#include <sstream>

#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// Rows of a tile at most: with a panel of two vectors it is 8 KiB, which stay in the nearest cache beside the rows of
/// A that are walked through; and at least, where threads would have nothing to do otherwise.
constexpr int64_t kMostRows = 64;
constexpr int64_t kLeastRows = 16;

int64_t Parts(int64_t count, int64_t most) { return (count + most - 1) / most; }

std::string ElementOf(const Contraction& form) { return fmt::format("f{}", form.dtype.bits); }

/// A number of `arguments` (collage/target/micro_kernels.h); what is no name is one.
int64_t NumberOf(const TileProduct& tile, const std::string& what) {
  const std::pair<const char*, int64_t> named[] = {{"m", tile.m},
                                                   {"n", tile.n},
                                                   {"k", tile.k},
                                                   {"lda", tile.lda},
                                                   {"ldb", tile.ldb},
                                                   {"ldc", tile.ldc},
                                                   {"beta", tile.adds ? 1 : 0}};
  for (const auto& [name, value] : named) {
    if (what == name) return value;
  }
  int64_t number = 0;
  if (std::istringstream text(what); !(text >> number) || !text.eof()) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("a micro-kernel has no argument '{}'", what));
  }
  return number;
}

}  // namespace

LibraryTiles::LibraryTiles(PartitionState& state, const Contraction& form, const StageOutput& output, int vectors)
    : state_(&state), form_(&form), output_(&output), panel_width_(int64_t{vectors} * state.emitter.lanes()) {
  const int64_t depth = form.inner.back();
  transposes_a_ = form.depth_stride != 1 && depth > 1;
  const Buffer& result = output.buffer;
  is_direct_ = output.epilogue == output.result && result.dtype == form.dtype && form.result_row_stride != 0 &&
               !result.is_split();
  if (state.schedule().rows != 0) {
    rows_ = std::min(state.schedule().rows, form.rows);
    return;
  }
  int64_t most = kMostRows;
  const int64_t panels = Parts(form.channels, panel_width_) * NumElements(form.outer);
  while (state.num_threads > 1 && most > kLeastRows && panels * Parts(form.rows, most) < 2 * state.num_threads) {
    most /= 2;
  }
  rows_ = Parts(form.rows, Parts(form.rows, most));
}

std::optional<LibraryTiles> LibraryTiles::For(PartitionState& state, const Contraction& form, const StageOutput& output,
                                              int vectors) {
  if (!state.options.calls_for_tiles() || form.depth_stride == 0 || form.factors != DotKind::kOne) return std::nullopt;
  if (form.rows == 0 || NumElements(form.inner) == 0 || NumElements(form.outer) == 0) return std::nullopt;
  LibraryTiles tiles(state, form, output, vectors);
  // Rows of A must not overlap, or be one and the same.
  const int64_t across = tiles.transposes_a_ ? form.rows : form.inner.back();
  const int64_t step = tiles.transposes_a_ ? form.depth_stride : form.row_stride;
  const bool is_one = tiles.transposes_a_ ? form.inner.back() == 1 : form.rows == 1;
  if (!is_one && step < across) return std::nullopt;
  if (tiles.transposes_a_ && form.rows > 1 && form.row_stride != 1) return std::nullopt;
  for (const CalledLibrary& library : state.options.libraries) {
    for (const MicroKernel& kernel : library.kernels) {
      if (kernel.contraction != "product" || (tiles.transposes_a_ && !kernel.takes_transposed)) continue;
      if (std::find(kernel.dtypes.begin(), kernel.dtypes.end(), form.dtype) == kernel.dtypes.end()) continue;
      if (!tiles.HasAll(library)) continue;
      tiles.library_ = &library;
      tiles.kernel_ = &kernel;
      return tiles;
    }
  }
  return std::nullopt;
}

bool LibraryTiles::HasAll(const CalledLibrary& library) const {
  const auto rest_of = [](int64_t whole, int64_t part) { return whole % part == 0 ? part : whole % part; };
  const int64_t width = std::min(panel_width_, form_->channels);
  for (const int64_t rows : {rows_, rest_of(form_->rows, rows_)}) {
    for (const int64_t columns : {width, rest_of(form_->channels, width)}) {
      for (const bool adds : {false, true}) {
        if (adds && NumElements(form_->inner) == form_->inner.back()) continue;
        if (FindMicroKernel(library.name, TileOf(rows, columns, adds).ToString()) == nullptr) return false;
      }
    }
  }
  return true;
}

TileProduct LibraryTiles::TileOf(int64_t rows, int64_t width, bool adds) const {
  TileProduct tile;
  tile.dtype = form_->dtype;
  tile.m = rows;
  tile.n = width;
  tile.k = form_->inner.back();
  // A single row lies at any distance from the next.
  tile.lda = transposes_a_ ? std::max(form_->depth_stride, rows) : std::max(form_->row_stride, tile.k);
  tile.ldb = std::max(form_->b_row_stride, width);
  tile.ldc = is_direct_ ? std::max(form_->result_row_stride, width) : panel_width_;
  tile.adds = adds;
  tile.transposes_a = transposes_a_;
  return tile;
}

void LibraryTiles::Begin() {
  if (is_direct_) return;
  Emitter& e = state_->emitter;
  tile_ = Ptr{e.Def(fmt::format("llvm.alloca {} x {} {{alignment = 64 : i64}} : (i64) -> !llvm.ptr",
                                e.Int(rows_ * panel_width_), ElementOf(*form_)))};
}

void LibraryTiles::Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t width) {
  Emitter& e = state_->emitter;
  const I64 channel = e.MulInt(panel, panel_width_);
  if (is_direct_) {
    const Ptr place = e.Address(output_->buffer, form_->result(outer, row, {channel, 0}));
    return Multiply(outer, row, rows, panel, width, place);
  }
  Multiply(outer, row, rows, panel, width, tile_);
  StoreTile(outer, row, rows, channel, width);
}

/// One call for each position of the outer summed dimensions (taps of a convolution): the first one sets the tile.
void LibraryTiles::Multiply(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t width,
                            const Ptr& result) {
  Emitter& e = state_->emitter;
  const std::vector<int64_t> taps(form_->inner.begin(), form_->inner.end() - 1);
  const auto call = [&](I64s at, bool adds) {
    at.push_back(e.Int(0));
    Call(TileOf(rows, width, adds), form_->a_address(outer, row, at), form_->b_address(outer, panel, at), result);
  };
  call(I64s(taps.size(), e.Int(0)), /*adds=*/false);
  const int64_t count = NumElements(taps);
  if (count == 1) return;
  e.For(e.Int(1), e.Int(count), 1, [&](const I64& tap) { call(Delinearise(e, tap, taps), /*adds=*/true); });
}

void LibraryTiles::Call(const TileProduct& tile, const Ptr& a, const Ptr& b, const Ptr& c) {
  Emitter& e = state_->emitter;
  const Ptr function = e.LoadAddress({LibraryCall::Kind::kRequest, library_->name, tile.ToString(), kernel_->hint});
  std::string values, types;
  const auto pass = [&](const std::string& value, const std::string& type) {
    values += (values.empty() ? "" : ", ") + value;
    types += (types.empty() ? "" : ", ") + type;
  };
  std::istringstream words(kernel_->arguments);
  for (std::string word; words >> word;) {
    if (word == "a" || word == "b" || word == "c") {
      pass((word == "a" ? a : word == "b" ? b : c).name(), "!llvm.ptr");
      continue;
    }
    const size_t colon = std::min(word.find(':'), word.size());
    const int64_t number = NumberOf(tile, word.substr(std::min(colon + 1, word.size())));
    const bool is_element = word.starts_with("element:");
    const std::string type = is_element ? ElementOf(*form_) : word.substr(0, colon);
    pass(e.Def(fmt::format("arith.constant {}{} : {}", number, is_element ? ".0" : "", type)), type);
  }
  e.Line(fmt::format("llvm.call {}({}) : !llvm.ptr, ({}) -> ()", function, values, types));
}

/// Applies the operators that follow to one row after the other. Lanes beyond `width` hold anything, and are not
/// stored.
void LibraryTiles::StoreTile(const I64s& outer, const I64& row, int64_t rows, const I64& channel, int64_t width) {
  Emitter& e = state_->emitter;
  const ElementKind kind = KindOf(form_->dtype);
  e.For(e.Int(0), e.Int(rows), 1, [&](const I64& t) {
    const I64 at_row = e.AddInt(row, t);
    const I64 row_begin = e.MulInt(t, panel_width_);
    const auto store = [&](int64_t first) {
      const Ptr address = e.ElementAt(tile_, e.Plus(row_begin, first), ElementOf(*form_));
      const std::string sums = e.Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", address,
                                                 form_->dtype.size_bytes(), e.TypeOf(kind)));
      const Index at{e.Plus(channel, first), 1, {}, e.lanes()};
      StoreResult(*state_, *output_, form_->result(outer, at_row, at), {sums, kind});
    };
    for (int64_t first = 0; first < width; first += e.lanes()) {
      if (width - first >= e.lanes()) {
        store(first);
      } else {
        e.MaskedRest(width - first, [&](const I64&) { store(first); });
      }
    }
  });
}

}  // namespace collage::native
