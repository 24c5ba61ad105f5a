// tensor_tile.cc: each thread loads its words of both factors; calls of functions that all threads of a warp make
// together multiply them, and turn blocks of sums into rows.
#include "backends/native/compiler/contraction/tensor_tile.h"

#include <algorithm>

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/tensor_functions.h"

namespace collage::native {
namespace {

constexpr int64_t kRows = 16;  ///< in a block
constexpr int64_t kColumns = 8;
constexpr int64_t kWords = 16;     ///< in a row, for two instructions
constexpr int64_t kPerThread = 4;  ///< the words of one thread
constexpr int64_t kSums = 4;       ///< the sums of one thread in a block
/// Rows, of which there are fewer, would leave most of a block empty.
constexpr int64_t kFewRows = 4;

/// A list of arguments or results: `count` times `type`.
std::string Times(const std::string& type, int64_t count) {
  std::string list;
  for (int64_t i = 0; i < count; ++i) list += (list.empty() ? "" : ", ") + type;
  return list;
}

const char* MultiplyName(DotKind factors) {
  switch (factors) {
    case DotKind::kBFloat16: return kMultiplyBFloat16;
    case DotKind::kFloat16: return kMultiplyFloat16;
    case DotKind::kBytes: return kMultiplyBytes;
    default: return kMultiplyTf32;
  }
}

/// Whether all words lie in 16 bytes of a thread.
bool IsCopied(const Contraction& form, bool has_quads) { return form.a_is_aligned && has_quads; }

}  // namespace

bool TensorTile::Multiplies(const PartitionState& state, DataType dtype, DotKind factors) {
  if (!state.target.has_tensor_cores || state.emitter.native_lanes() != kWarpLanes) return false;
  if (factors == DotKind::kOne) return dtype == kFloat32 && state.options.in_tf32;
  return IsPair(factors) || factors == DotKind::kBytes;
}

bool TensorTile::Takes(const PartitionState& state, const Contraction& form) {
  if (state.quads.contains(form.b_constant)) return true;
  const auto is_symbolic = [](int64_t size) { return IsSymbolic(size); };
  return Multiplies(state, form.dtype, form.factors) && state.emitter.lanes() == kWarpLanes && !form.inner.empty() &&
         form.depth_stride != 0 && form.b_row_stride != 0 && form.rows >= kFewRows && !IsSymbolic(form.rows) &&
         !IsSymbolic(form.row_stride) && !IsSymbolic(form.depth_stride) && !IsSymbolic(form.b_row_stride) &&
         std::ranges::none_of(form.inner, is_symbolic);
}

void TensorTile::UseQuads(PartitionState& state, const Contraction& form) {
  if (form.b_constant < 0 || form.inner.back() % kPerThread != 0 || !state.quads.insert(form.b_constant).second) return;
  Tensor& packed = state.constants[static_cast<size_t>(form.b_constant)];
  const Tensor quads = Tensor::Empty(packed.shape(), packed.dtype());
  const int64_t width = packed.shape().back();
  const auto* from = reinterpret_cast<const uint32_t*>(packed.raw());
  auto* to = reinterpret_cast<uint32_t*>(quads.raw());
  for (int64_t row = 0; row < packed.num_elements() / width; row += kPerThread, from += kPerThread * width) {
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t i = 0; i < kPerThread; ++i) *to++ = from[i * width + column];
    }
  }
  packed = quads;
}

int64_t TensorTile::MostRows(const PartitionState& state, const Contraction& form) {
  return IsCopied(form, state.quads.contains(form.b_constant)) ? 64 : 32;
}

TensorTile::TensorTile(PartitionState& state, const Contraction& form)
    : e_(state.emitter),
      form_(form),
      shared_bytes_(state.target.warp_shared_bytes),
      type_(fmt::format("vector<{}x{}>", e_.lanes(), form.dtype.is_floating() ? "f32" : "i32")),
      words_(fmt::format("vector<{}xi32>", e_.lanes())),
      multiply_(MultiplyName(form.factors)),
      write_(form.dtype.is_floating() ? kWriteFloats : kWriteIntegers),
      read_(form.dtype.is_floating() ? kReadFloats : kReadIntegers),
      has_quads_(state.quads.contains(form.b_constant)) {
  const std::string sums = Times(type_, kSums);
  e_.Declare(multiply_, fmt::format("({}, {}) -> ({})", sums, Times(words_, kPerThread + kPerThread / 2), sums));
  const std::string rows = Times(type_, kRows);
  e_.Declare(write_, fmt::format("({}) -> ()", rows));
  e_.Declare(read_, fmt::format("() -> ({})", rows));
  e_.Declare(kSynchronise, "() -> ()");
}

Vectors TensorTile::Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t first, int vectors,
                         int64_t width) {
  const int64_t lanes = e_.lanes();
  outer_ = outer;
  row_ = row;
  panel_ = panel;
  blocks_ = (rows + kRows - 1) / kRows;
  columns_ = vectors * lanes / kColumns;
  row_words_.clear();
  column_words_.clear();
  for (int64_t block = 0; block < blocks_; ++block) {
    for (int64_t half = 0; half < 2; ++half) row_words_.push_back(WordsOfRow(block, half, rows));
  }
  for (int64_t c = 0; c < columns_; ++c) column_words_.push_back(WordsOfColumn(first + c * kColumns, first + width));
  ahead_ = StepsAhead();
  const Vectors zeros(static_cast<size_t>(blocks_ * columns_ * kSums), Zeros());
  const Vectors sums = ahead_ == 0 ? Accumulate({}, zeros) : AccumulateAhead(zeros);
  Vectors result(static_cast<size_t>(rows * vectors));
  const int64_t per_vector = lanes / kColumns;
  for (int v = 0; v < vectors; ++v) {
    const Vector start = form_.start ? form_.start(outer, panel, first + v * lanes) : Vector();
    for (int64_t block = 0; block < blocks_; ++block) {
      const auto begin = sums.begin() + (block * columns_ + v * per_vector) * kSums;
      const Vectors turned = AsRows({begin, begin + per_vector * kSums});
      for (int64_t t = block * kRows; t < std::min((block + 1) * kRows, rows); ++t) {
        Vector& sum = result[static_cast<size_t>(t * vectors + v)];
        sum = turned[static_cast<size_t>(t % kRows)];
        if (start.is_none()) continue;
        sum = Vector{e_.Def(
            fmt::format("arith.{} {}, {} : {}", form_.dtype.is_floating() ? "addf" : "addi", sum, start, type_))};
      }
    }
  }
  return result;
}

Vector TensorTile::Zeros() {
  return Vector{e_.Def(fmt::format("arith.constant dense<{}> : {}", form_.dtype.is_floating() ? "0.0" : "0", type_))};
}

std::string TensorTile::Numbers(const std::function<int64_t(int64_t lane)>& number) {
  std::string list;
  for (int64_t lane = 0; lane < e_.lanes(); ++lane) list += fmt::format("{}{}", lane == 0 ? "" : ", ", number(lane));
  return e_.Def(fmt::format("arith.constant dense<[{}]> : vector<{}xi64>", list, e_.lanes()));
}

// Rows and columns that there are not are others: nobody looks at their sums.
TensorTile::Words TensorTile::WordsOfRow(int64_t block, int64_t half, int64_t rows) {
  const int64_t first = block * kRows + half * kRows / 2;
  const bool is_even = form_.line == 0 && first + kRows / 2 <= rows;
  const auto place = [&](int64_t lane) {
    const int64_t row = is_even ? lane / kPerThread : std::min(first + lane / kPerThread, rows - 1);
    return form_.RowOffset(row) + lane % kPerThread * kPerThread * form_.depth_stride;
  };
  return {Numbers(place), is_even ? form_.RowOffset(first) : 0, form_.depth_stride, form_.a_is_aligned};
}

TensorTile::Words TensorTile::WordsOfColumn(int64_t column, int64_t width) {
  const bool is_whole = form_.b_is_padded || column + kColumns <= width;
  const int64_t step = has_quads_ ? kPerThread : 1;
  const auto place = [&](int64_t lane) {
    const int64_t at = is_whole ? lane / kPerThread : std::min(column + lane / kPerThread, width - 1);
    return at * step + lane % kPerThread * kPerThread * form_.b_row_stride;
  };
  return {Numbers(place), is_whole ? column * step : 0, has_quads_ ? 1 : form_.b_row_stride, has_quads_};
}

std::string TensorTile::Addresses(const Ptr& base, const Words& words) {
  return e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, vector<{}xi64>) -> vector<{}x!llvm.ptr>, i32",
                            e_.ElementAt(base, words.behind, "i32"), words.places, e_.lanes(), e_.lanes()));
}

Vectors TensorTile::Load(const Ptr& base, const Words& words, int64_t left) {
  const std::string pointers = fmt::format("vector<{}x!llvm.ptr>", e_.lanes());
  const std::string none = e_.Def(fmt::format("arith.constant dense<0> : {}", words_));
  const std::string first = Addresses(base, words);
  Vectors loaded;
  for (int64_t i = 0; i < kPerThread; ++i) {
    const Mask mask = e_.MaskOf([&](int64_t lane) { return lane % kPerThread * kPerThread + i < left; });
    const std::string at =
        e_.Def(fmt::format("llvm.getelementptr {}[{}] : ({}) -> {}, i32", first, i * words.stride, pointers, pointers));
    loaded.emplace_back(e_.Def(
        fmt::format("llvm.intr.masked.gather {}, {}, {} {{alignment = {} : i32}} : ({}, vector<{}xi1>, {}) -> {}", at,
                    mask, none, words.is_aligned && i == 0 ? 16 : 4, pointers, e_.lanes(), words_, words_)));
  }
  return loaded;
}

Vectors TensorTile::Prepared(Vectors words, bool is_data) {
  if (is_data && form_.flips_signs) {
    for (Vector& word : words) word = FlipSigns(e_, word);
  }
  if (form_.factors != DotKind::kOne) return words;
  // The instruction leaves out the last 13 bits: half of the last one that stays rounds.
  constexpr int kHalf = 1 << 12;
  const std::string half = e_.Def(fmt::format("arith.constant dense<{}> : {}", kHalf, words_));
  for (Vector& word : words) word = Vector{e_.Def(fmt::format("arith.addi {}, {} : {}", word, half, words_))};
  return words;
}

Vectors TensorTile::Accumulate(const I64s& inner, const Vectors& sums) {
  const int64_t size = form_.inner[inner.size()];
  const bool is_last = inner.size() + 1 == form_.inner.size();
  const auto at = [&](const I64& k) {
    I64s deeper = inner;
    deeper.push_back(k);
    return deeper;
  };
  if (!is_last) {
    if (size == 1) return Accumulate(at(e_.Int(0)), sums);
    return e_.ForCarrying(e_.Int(0), e_.Int(size), sums, type_,
                          [&](const I64& k, const Vectors& carried) { return Accumulate(at(k), carried); });
  }
  const int64_t whole = size / kWords;
  const int64_t left = size % kWords;
  Vectors result = sums;
  if (whole > 0) {
    result = e_.ForCarrying(e_.Int(0), e_.Int(whole), result, type_, [&](const I64& k, const Vectors& carried) {
      return Step(at(e_.MulInt(k, kWords)), kWords, carried);
    });
  }
  return left == 0 ? result : Step(at(e_.Int(whole * kWords)), left, result);
}

Vectors TensorTile::Step(const I64s& inner, int64_t left, const Vectors& sums) {
  const Ptr b = form_.b_address(outer_, panel_, inner);
  const Ptr a = form_.a_address(outer_, row_, inner);
  std::vector<Vectors> columns, rows;
  for (const Words& words : column_words_) columns.push_back(Prepared(Load(b, words, left), /*is_data=*/false));
  for (const Words& words : row_words_) rows.push_back(Prepared(Load(a, words, left), /*is_data=*/true));
  return Multiplied(rows, columns, sums);
}

Vectors TensorTile::Multiplied(const std::vector<Vectors>& rows, const std::vector<Vectors>& columns, Vectors sums) {
  for (int64_t block = 0; block < blocks_; ++block) {
    const Vectors& upper = rows[static_cast<size_t>(2 * block)];
    const Vectors& lower = rows[static_cast<size_t>(2 * block + 1)];
    for (size_t k = 0; k < kPerThread; k += 2) {
      for (int64_t c = 0; c < columns_; ++c) {
        const Vectors& column = columns[static_cast<size_t>(c)];
        const auto own = sums.begin() + (block * columns_ + c) * kSums;
        Vectors arguments(own, own + kSums);
        arguments.insert(arguments.end(), {upper[k], lower[k], upper[k + 1], lower[k + 1], column[k], column[k + 1]});
        std::ranges::copy(e_.CallDeclared(multiply_, arguments, kSums), own);
      }
    }
  }
  return sums;
}

// ---- copies ahead ----

int64_t TensorTile::NumSteps() const {
  const int64_t last = (form_.inner.back() + kWords - 1) / kWords;
  return NumElements(form_.inner) / form_.inner.back() * last;
}

int64_t TensorTile::StepsAhead() const {
  constexpr int64_t kMost = 4;
  if (!IsCopied(form_, has_quads_) || NumSteps() < kMost) return 0;
  const int64_t bytes = (2 * blocks_ + columns_) * kPlaceBytes;
  return std::clamp<int64_t>((shared_bytes_ - kTileBytes) / bytes, 2, kMost);
}

Vectors TensorTile::AccumulateAhead(const Vectors& sums) {
  e_.Declare(kCopyAhead, fmt::format("(i64, vector<{}x!llvm.ptr>, {}, i64) -> ()", e_.lanes(), words_));
  e_.Declare(kEndCopies, "() -> ()");
  e_.Declare(kAwaitCopies, "(i64) -> ()");
  e_.Declare(kCopied, fmt::format("(i64) -> ({})", Times(words_, kPerThread)));
  // All threads have read these places for the tile before.
  e_.CallDeclared(kSynchronise, {}, 0);
  for (int64_t step = 0; step + 1 < ahead_; ++step) CopyAhead(e_.Int(step));
  return e_.ForCarrying(e_.Int(0), e_.Int(NumSteps()), sums, type_, [&](const I64& step, const Vectors& carried) {
    e_.CallDeclared(kAwaitCopies, {Vector{e_.Int(ahead_ - 2).name()}}, 0);
    // The places of the next copies were read in the step before.
    e_.CallDeclared(kSynchronise, {}, 0);
    CopyAhead(e_.Plus(step, ahead_ - 1));
    return CopiedStep(step, carried);
  });
}

void TensorTile::CopyAhead(const I64& step) {
  const int64_t places = static_cast<int64_t>(row_words_.size() + column_words_.size());
  const int64_t size = form_.inner.back();
  e_.If(e_.IntCompare("slt", step, e_.Int(NumSteps())), [&] {
    std::vector<int64_t> sizes = form_.inner;
    sizes.back() = (size + kWords - 1) / kWords;
    I64s inner = Delinearise(e_, step, sizes);
    inner.back() = e_.MulInt(inner.back(), kWords);
    // Bytes of the thread's four words that there are.
    std::string bytes = e_.Def(fmt::format("arith.constant dense<16> : {}", words_));
    if (size % kWords != 0) {
      const std::string left = e_.Def(
          fmt::format("arith.trunci {} : i64 to i32", e_.IntOp("subi", e_.Int(4 * size), e_.MulInt(inner.back(), 4))));
      const std::string all = e_.Def(fmt::format("vector.broadcast {} : i32 to {}", left, words_));
      std::string before;
      for (int64_t lane = 0; lane < e_.lanes(); ++lane) {
        before += fmt::format("{}{}", lane == 0 ? "" : ", ", lane % kPerThread * kPerThread * 4);
      }
      const std::string first = e_.Def(fmt::format("arith.constant dense<[{}]> : {}", before, words_));
      const std::string none = e_.Def(fmt::format("arith.constant dense<0> : {}", words_));
      const std::string own = e_.Def(fmt::format("arith.subi {}, {} : {}", all, first, words_));
      const std::string some = e_.Def(fmt::format("arith.maxsi {}, {} : {}", own, none, words_));
      bytes = e_.Def(fmt::format("arith.minsi {}, {} : {}", some, bytes, words_));
    }
    const Ptr a = form_.a_address(outer_, row_, inner);
    const Ptr b = form_.b_address(outer_, panel_, inner);
    const I64 first = e_.MulInt(e_.IntOp("remui", step, e_.Int(ahead_)), places);
    const Vector all{e_.Int(ahead_ * places).name()};
    const auto copy = [&](const Ptr& base, const Words& words, int64_t number) {
      e_.CallDeclared(kCopyAhead,
                      {Vector{e_.Plus(first, number).name()}, Vector{Addresses(base, words)}, Vector{bytes}, all}, 0);
    };
    int64_t number = 0;
    for (const Words& words : row_words_) copy(a, words, number++);
    for (const Words& words : column_words_) copy(b, words, number++);
  });
  e_.CallDeclared(kEndCopies, {}, 0);
}

Vectors TensorTile::CopiedStep(const I64& step, const Vectors& sums) {
  const int64_t places = static_cast<int64_t>(row_words_.size() + column_words_.size());
  const I64 first = e_.MulInt(e_.IntOp("remui", step, e_.Int(ahead_)), places);
  int64_t number = 0;
  const auto words = [&](bool is_data) {
    return Prepared(e_.CallDeclared(kCopied, {Vector{e_.Plus(first, number++).name()}}, kPerThread), is_data);
  };
  std::vector<Vectors> rows, columns;
  for (size_t i = 0; i < row_words_.size(); ++i) rows.push_back(words(/*is_data=*/true));
  for (size_t i = 0; i < column_words_.size(); ++i) columns.push_back(words(/*is_data=*/false));
  return Multiplied(rows, columns, sums);
}

Vectors TensorTile::AsRows(const Vectors& block) {
  e_.CallDeclared(write_, block, 0);
  e_.CallDeclared(kSynchronise, {}, 0);
  const Vectors rows = e_.CallDeclared(read_, {}, kRows);
  // The next tile is written when all have read this one.
  e_.CallDeclared(kSynchronise, {}, 0);
  return rows;
}

}  // namespace collage::native
