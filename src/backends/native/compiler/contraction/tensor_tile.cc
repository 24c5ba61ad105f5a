// tensor_tile.cc: each thread loads its words of both factors; calls of functions that all threads of a warp make
// together multiply them, and turn blocks of sums into rows.
#include "backends/native/compiler/contraction/tensor_tile.h"

#include <algorithm>

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/tensor_functions.h"

namespace collage::native {
namespace {

constexpr int64_t kRows = 16;  ///< of a block
constexpr int64_t kColumns = 8;
constexpr int64_t kWords = 16;  ///< of a row, for two instructions
constexpr int64_t kOwn = 4;     ///< of these, a thread's
constexpr int64_t kSums = 4;    ///< of a block, a thread's
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
  if (form.b_constant < 0 || form.inner.back() % kOwn != 0 || !state.quads.insert(form.b_constant).second) return;
  Tensor& packed = state.constants[static_cast<size_t>(form.b_constant)];
  const Tensor quads = Tensor::Empty(packed.shape(), packed.dtype());
  const int64_t width = packed.shape().back();
  const auto* from = reinterpret_cast<const uint32_t*>(packed.raw());
  auto* to = reinterpret_cast<uint32_t*>(quads.raw());
  for (int64_t row = 0; row < packed.num_elements() / width; row += kOwn, from += kOwn * width) {
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t i = 0; i < kOwn; ++i) *to++ = from[i * width + column];
    }
  }
  packed = quads;
}

TensorTile::TensorTile(PartitionState& state, const Contraction& form)
    : e_(state.emitter),
      form_(form),
      type_(fmt::format("vector<{}x{}>", e_.lanes(), form.dtype.is_floating() ? "f32" : "i32")),
      words_(fmt::format("vector<{}xi32>", e_.lanes())),
      multiply_(MultiplyName(form.factors)),
      turn_(form.dtype.is_floating() ? kTurnFloats : kTurnIntegers),
      has_quads_(state.quads.contains(form.b_constant)) {
  const std::string sums = Times(type_, kSums);
  e_.Declare(multiply_, fmt::format("({}, {}) -> ({})", sums, Times(words_, kOwn + kOwn / 2), sums));
  const std::string rows = Times(type_, kRows);
  e_.Declare(turn_, fmt::format("({}) -> ({})", rows, rows));
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
  const Vectors sums = Accumulate({}, Vectors(static_cast<size_t>(blocks_ * columns_ * kSums), Zeros()));
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
    const int64_t row = is_even ? lane / kOwn : std::min(first + lane / kOwn, rows - 1);
    return form_.RowOffset(row) + lane % kOwn * kOwn * form_.depth_stride;
  };
  return {Numbers(place), is_even ? form_.RowOffset(first) : 0, form_.depth_stride, form_.a_is_aligned};
}

TensorTile::Words TensorTile::WordsOfColumn(int64_t column, int64_t width) {
  const bool is_whole = form_.b_is_padded || column + kColumns <= width;
  const int64_t step = has_quads_ ? kOwn : 1;
  const auto place = [&](int64_t lane) {
    const int64_t at = is_whole ? lane / kOwn : std::min(column + lane / kOwn, width - 1);
    return at * step + lane % kOwn * kOwn * form_.b_row_stride;
  };
  return {Numbers(place), is_whole ? column * step : 0, has_quads_ ? 1 : form_.b_row_stride, has_quads_};
}

Vectors TensorTile::Load(const Ptr& base, const Words& words, int64_t left) {
  const std::string pointers = fmt::format("vector<{}x!llvm.ptr>", e_.lanes());
  const std::string none = e_.Def(fmt::format("arith.constant dense<0> : {}", words_));
  const std::string first =
      e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, vector<{}xi64>) -> {}, i32",
                         e_.ElementAt(base, words.behind, "i32"), words.places, e_.lanes(), pointers));
  Vectors loaded;
  for (int64_t i = 0; i < kOwn; ++i) {
    const Mask mask = e_.MaskOf([&](int64_t lane) { return lane % kOwn * kOwn + i < left; });
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
  Vectors next = sums;
  for (int64_t block = 0; block < blocks_; ++block) {
    const Vectors& upper = rows[static_cast<size_t>(2 * block)];
    const Vectors& lower = rows[static_cast<size_t>(2 * block + 1)];
    for (size_t k = 0; k < kOwn; k += 2) {
      for (int64_t c = 0; c < columns_; ++c) {
        const Vectors& column = columns[static_cast<size_t>(c)];
        const auto own = next.begin() + (block * columns_ + c) * kSums;
        Vectors arguments(own, own + kSums);
        arguments.insert(arguments.end(), {upper[k], lower[k], upper[k + 1], lower[k + 1], column[k], column[k + 1]});
        std::ranges::copy(e_.CallDeclared(multiply_, arguments, kSums), own);
      }
    }
  }
  return next;
}

Vectors TensorTile::AsRows(const Vectors& block) { return e_.CallDeclared(turn_, block, kRows); }

}  // namespace collage::native
