// tensor_tile.cc: each thread loads its words of both factors as they are needed.
#include "backends/native/compiler/contraction/tensor_tile.h"

#include <algorithm>

#include "backends/native/compiler/contraction/tensor_functions.h"

namespace collage::native {
namespace {

constexpr int64_t kRows = TensorProduct::kRows;
constexpr int64_t kColumns = TensorProduct::kColumns;
constexpr int64_t kSums = TensorProduct::kSums;
constexpr int64_t kWords = 16;     ///< in a row, for two instructions
constexpr int64_t kPerThread = 4;  ///< the words of one thread

}  // namespace

TensorTile::TensorTile(PartitionState& state, const Contraction& form)
    : e_(state.emitter), form_(form), product_(state.emitter, form) {}

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
  const Vectors sums = Accumulate({}, Vectors(static_cast<size_t>(blocks_ * columns_ * kSums), product_.Zeros()));
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
        sum = Vector{e_.Def(fmt::format("arith.{} {}, {} : {}", form_.dtype.is_floating() ? "addf" : "addi", sum, start,
                                        product_.sums()))};
      }
    }
  }
  return result;
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
  const auto place = [&](int64_t lane) {
    const int64_t at = is_whole ? lane / kPerThread : std::min(column + lane / kPerThread, width - 1);
    return at + lane % kPerThread * kPerThread * form_.b_row_stride;
  };
  return {Numbers(place), is_whole ? column : 0, form_.b_row_stride, /*is_aligned=*/false};
}

Vectors TensorTile::Load(const Ptr& base, const Words& words, int64_t left) {
  const std::string pointers = fmt::format("vector<{}x!llvm.ptr>", e_.lanes());
  const std::string none = e_.Def(fmt::format("arith.constant dense<0> : {}", product_.words()));
  const std::string first =
      e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, vector<{}xi64>) -> {}, i32",
                         e_.ElementAt(base, words.behind, "i32"), words.places, e_.lanes(), pointers));
  Vectors loaded;
  for (int64_t i = 0; i < kPerThread; ++i) {
    const Mask mask = e_.MaskOf([&](int64_t lane) { return lane % kPerThread * kPerThread + i < left; });
    const std::string at =
        e_.Def(fmt::format("llvm.getelementptr {}[{}] : ({}) -> {}, i32", first, i * words.stride, pointers, pointers));
    loaded.emplace_back(e_.Def(fmt::format(
        "llvm.intr.masked.gather {}, {}, {} {{alignment = {} : i32}} : ({}, vector<{}xi1>, {}) -> {}", at, mask, none,
        words.is_aligned && i == 0 ? 16 : 4, pointers, e_.lanes(), product_.words(), product_.words())));
  }
  return loaded;
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
    return e_.ForCarrying(e_.Int(0), e_.Int(size), sums, product_.sums(),
                          [&](const I64& k, const Vectors& carried) { return Accumulate(at(k), carried); });
  }
  const int64_t whole = size / kWords;
  const int64_t left = size % kWords;
  Vectors result = sums;
  if (whole > 0) {
    result = e_.ForCarrying(
        e_.Int(0), e_.Int(whole), result, product_.sums(),
        [&](const I64& k, const Vectors& carried) { return Step(at(e_.MulInt(k, kWords)), kWords, carried); });
  }
  return left == 0 ? result : Step(at(e_.Int(whole * kWords)), left, result);
}

Vectors TensorTile::Step(const I64s& inner, int64_t left, const Vectors& sums) {
  const Ptr b = form_.b_address(outer_, panel_, inner);
  const Ptr a = form_.a_address(outer_, row_, inner);
  std::vector<Vectors> columns, rows;
  for (const Words& words : column_words_)
    columns.push_back(product_.Prepared(Load(b, words, left), /*is_data=*/false));
  for (const Words& words : row_words_) rows.push_back(product_.Prepared(Load(a, words, left), /*is_data=*/true));
  Vectors next = sums;
  for (int64_t block = 0; block < blocks_; ++block) {
    const Vectors& upper = rows[static_cast<size_t>(2 * block)];
    const Vectors& lower = rows[static_cast<size_t>(2 * block + 1)];
    for (size_t k = 0; k < kPerThread; k += 2) {
      const Vectors words{upper[k], lower[k], upper[k + 1], lower[k + 1]};
      for (int64_t c = 0; c < columns_; ++c) {
        const Vectors& column = columns[static_cast<size_t>(c)];
        product_.Add(words, {column[k], column[k + 1]}, next.begin() + (block * columns_ + c) * kSums);
      }
    }
  }
  return next;
}

Vectors TensorTile::AsRows(const Vectors& block) {
  constexpr int64_t kPitch = 4 * (32 + kSumsPitch), kPair = 8;
  const Vector own = product_.Numbers([](int64_t lane) { return lane / 4 * kPitch + lane % 4 * kPair; });
  for (int64_t c = 0; c < e_.lanes() / kColumns; ++c) {
    for (int64_t half = 0; half < 2; ++half) {
      const auto sums = block.begin() + c * kSums + half * 2;
      product_.Write(own, half * kRows / 2 * kPitch + c * 4 * kColumns, sums[0], sums[1]);
    }
  }
  product_.Synchronise();
  const Vector columns = product_.Numbers([](int64_t lane) { return lane * 4; });
  Vectors rows;
  for (int64_t row = 0; row < kRows; ++row) rows.push_back(product_.Read(columns, row * kPitch));
  // The next tile is written when all have read this one.
  product_.Synchronise();
  return rows;
}

}  // namespace collage::native
