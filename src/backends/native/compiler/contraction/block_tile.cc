// block_tile.cc: a pipeline of copies, fragments, and the way of sums to rows.
#include "backends/native/compiler/contraction/block_tile.h"

#include <algorithm>
#include <limits>

#include "backends/native/compiler/contraction/tensor_functions.h"

namespace collage::native {
namespace {

constexpr int64_t kRows = TensorProduct::kRows;
constexpr int64_t kColumns = TensorProduct::kColumns;
constexpr int64_t kSums = TensorProduct::kSums;
constexpr int64_t kWordBytes = 4;
constexpr int64_t kQuad = 4;   ///< words of 16 bytes
constexpr int64_t kGroup = 8;  ///< words of a row that an instruction multiplies
/// Rows that are read together, and whose pieces must not share banks.
constexpr int64_t kTogether = 8;

bool IsInt32(int64_t offset) { return offset <= std::numeric_limits<int32_t>::max(); }

/// The largest offset in dimensions of such sizes and strides.
int64_t Reach(const std::vector<Contraction::Part>& parts) {
  int64_t reach = 0;
  for (const Contraction::Part& part : parts) reach += std::max<int64_t>(part.size - 1, 0) * std::abs(part.stride);
  return reach;
}

/// A word of constants as it is multiplied: TensorFloat-32 is rounded here, once.
uint32_t RoundedWord(const Contraction& form, uint32_t word) {
  constexpr uint32_t kHalf = 1 << 12, kRest = (1 << 13) - 1;
  return form.factors == DotKind::kOne ? (word + kHalf) & ~kRest : word;
}

}  // namespace

bool BlockTile::Takes(const PartitionState& state, const Contraction& form) {
  constexpr int64_t kMostRows = 256, kMostDepth = 64, kMostColumns = 512;
  return TensorProduct::Takes(state, form) && form.line == 0 && IsInt32(form.rows) &&
         IsInt32(Reach(form.row_parts) + Reach(form.depth_parts)) && IsInt32(form.inner.back() * kWordBytes) &&
         IsInt32(kMostRows * std::abs(form.row_stride) + kMostDepth * std::abs(form.depth_stride)) &&
         IsInt32(kMostDepth * form.b_row_stride + kMostColumns * form.b_panel_stride);
}

void BlockTile::UseQuads(PartitionState& state, const Contraction& form) {
  if (form.b_constant < 0 || form.inner.back() % kQuad != 0 || !state.quads.insert(form.b_constant).second) return;
  Tensor& packed = state.constants[static_cast<size_t>(form.b_constant)];
  const Tensor quads = Tensor::Empty(packed.shape(), packed.dtype());
  const int64_t width = packed.shape().back();
  const auto* from = reinterpret_cast<const uint32_t*>(packed.raw());
  auto* to = reinterpret_cast<uint32_t*>(quads.raw());
  for (int64_t row = 0; row < packed.num_elements() / width; row += kQuad, from += kQuad * width) {
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t i = 0; i < kQuad; ++i) *to++ = RoundedWord(form, from[i * width + column]);
    }
  }
  packed = quads;
}

BlockTile::BlockTile(PartitionState& state, const Contraction& form, const BlockPlan& plan)
    : e_(state.emitter),
      form_(form),
      plan_(plan),
      product_(state.emitter, form),
      panel_(PanelWidth(state, form.dtype)),
      a_(DataFactor()),
      b_(ConstantFactor(state.quads.contains(form.b_constant))),
      has_rounded_columns_(state.quads.contains(form.b_constant)) {
  const std::string& words = product_.words();
  const std::string copy = fmt::format("({}, i64, vector<{}x!llvm.ptr>, {}) -> ()", words, e_.lanes(), words);
  e_.Declare(kWarpOfBlock, "(i64, i64) -> i64");
  e_.Declare(kSynchroniseBlock, "() -> ()");
  e_.Declare(kCopyQuad, copy);
  e_.Declare(kCopyWord, copy);
  e_.Declare(kEndCopies, "() -> ()");
  e_.Declare(kAwaitCopies, "(i64) -> ()");
  e_.Declare(kLoadMatrices, fmt::format("({0}, i64) -> ({0}, {0}, {0}, {0})", words));
  if (!plan_.has_groups) return;
  e_.Declare(kFenceCopies, "() -> ()");
  multiply_group_ = product_.DeclareGroup(plan_.columns, plan_.depth / kGroup * kSums);
}

int64_t BlockTile::ColumnsRead() const {
  return form_.b_is_padded ? (form_.channels + panel_ - 1) / panel_ * panel_ : form_.channels;
}

// ---- how threads share copies ----

BlockTile::Factor BlockTile::DataFactor() const {
  Factor factor;
  factor.rows = plan_.rows;
  factor.words = form_.a_is_aligned && form_.depth_stride == 1 ? kQuad : 1;
  factor.per_row = plan_.depth / factor.words;
  // Neighbouring threads read neighbouring words, if those of a row do not follow each other.
  factor.is_across = form_.depth_stride != 1;
  factor.row_stride = form_.row_stride;
  factor.piece_stride = form_.depth_stride * factor.words;
  factor.has_all_rows = form_.rows % plan_.rows == 0;
  return factor;
}

BlockTile::Factor BlockTile::ConstantFactor(bool has_quads) const {
  Factor factor;
  factor.is_data = false;
  factor.rows = plan_.columns;
  factor.words = has_quads ? kQuad : 1;
  factor.per_row = plan_.depth / factor.words;
  factor.is_across = true;
  factor.row_stride = has_quads ? kQuad : 1;
  factor.piece_stride = form_.b_row_stride * factor.words;
  factor.begin = plan_.rows * plan_.depth * kWordBytes;
  factor.has_all_rows = ColumnsRead() % plan_.columns == 0;
  return factor;
}

std::vector<BlockTile::Step> BlockTile::StepsOf(const Factor& factor) const {
  std::vector<Step> steps;
  for (int64_t first = 0; first < factor.rows * factor.per_row; first += Threads()) {
    if (factor.is_across) {
      steps.push_back({first % factor.rows, first / factor.rows});
    } else {
      steps.push_back({first / factor.per_row, 0});
    }
  }
  return steps;
}

// ---- vectors of i32 ----

Vector BlockTile::Number(int64_t value) {
  return Vector{e_.Def(fmt::format("arith.constant dense<{}> : {}", value, product_.words()))};
}

Vector BlockTile::Number(const I64& value) {
  const std::string narrow = e_.Def(fmt::format("arith.trunci {} : i64 to i32", value));
  return Vector{e_.Def(fmt::format("vector.broadcast {} : i32 to {}", narrow, product_.words()))};
}

Vector BlockTile::Op(std::string_view op, const Vector& a, const Vector& b) {
  // Offsets within a tile are below 2^31: constants may be taken out of addresses.
  const char* flags = op == "addi" || op == "muli" ? " overflow<nsw>" : "";
  return Vector{e_.Def(fmt::format("arith.{} {}, {}{} : {}", op, a, b, flags, product_.words()))};
}

Vector BlockTile::Offsets(Vector index, const std::vector<Contraction::Part>& parts) {
  Vector offset = Number(0);
  for (size_t i = parts.size(); i-- > 0;) {
    const bool is_first = i == 0;
    const Vector own = is_first ? index : Op("remui", index, parts[i].size);
    if (!is_first) index = Op("divui", index, parts[i].size);
    offset = Op("addi", offset, Op("muli", own, parts[i].stride));
  }
  return offset;
}

Vector BlockTile::PlaceOf(const Vector& row, const Vector& word) {
  // Eight rows have their n-th pieces in eight places: 4 pieces to a row leave two rows for each order.
  const int64_t pieces = plan_.depth / kQuad;
  const Vector order = Op("andi", pieces < kTogether ? Op("shrui", row, 1) : row, pieces - 1);
  const Vector piece = Op("xori", Op("shrui", word, 2), order);
  const Vector within = Op("muli", Op("andi", word, kQuad - 1), kWordBytes);
  const Vector in_row = Op("addi", Op("muli", piece, kQuad * kWordBytes), within);
  return Op("addi", Op("muli", row, plan_.depth * kWordBytes), in_row);
}

// ---- copies ----

void BlockTile::Begin() {
  warp_ = I64{e_.CallDeclared(kWarpOfBlock,
                              {Vector{e_.Int(plan_.warps()).name()}, Vector{e_.Int(plan_.SharedBytes()).name()}}, 1)[0]
                  .name()};
  const Vector lane = product_.Numbers([](int64_t number) { return number; });
  thread_ = Op("addi", Number(e_.MulInt(warp_, kWarpLanes)), lane);
  for (Factor* factor : {&a_, &b_}) {
    if (factor->is_across) {
      factor->row = Op("remui", thread_, factor->rows);
      factor->piece = Op("divui", thread_, factor->rows);
    } else {
      factor->row = Op("divui", thread_, factor->per_row);
      factor->piece = Op("remui", thread_, factor->per_row);
    }
  }
}

void BlockTile::BeginFactor(Factor& factor, const Place& place) {
  factor.offsets.clear();
  const bool is_even = factor.is_data ? form_.row_parts.empty() : plan_.columns == panel_;
  const auto pieces_of = [&](int64_t behind) {
    if (factor.is_data && !form_.depth_parts.empty()) return Number(0);  // each step says where they are
    return Op("muli", Op("addi", factor.piece, behind), factor.piece_stride);
  };
  for (const Step& step : StepsOf(factor)) {
    const Vector row = Op("addi", factor.row, step.rows);
    Vector offset;
    if (is_even) {
      offset = Op("muli", row, factor.row_stride);
    } else if (factor.is_data) {
      offset = Offsets(Op("addi", Number(place.row), row), form_.row_parts);
    } else {
      offset = Op("addi", Op("muli", Op("divui", row, panel_), form_.b_panel_stride),
                  Op("muli", Op("remui", row, panel_), factor.row_stride));
    }
    factor.offsets.push_back(Op("addi", offset, pieces_of(step.pieces)));
  }
}

Vector BlockTile::BytesOf(const Factor& factor, const Vector& piece, const I64& words_left) {
  const int64_t whole = factor.words * kWordBytes;
  if (form_.inner.back() % plan_.depth == 0) return Number(whole);
  const Vector left = Op("subi", Number(e_.MulInt(words_left, kWordBytes)), Op("muli", piece, whole));
  return Op("minsi", Op("maxsi", left, 0), whole);
}

void BlockTile::CopyFactor(Factor& factor, const Place& place, const I64s& inner, const Vector& stage) {
  const I64 words_left = e_.IntOp("subi", e_.Int(form_.inner.back()), inner.back());
  const I64 left = factor.is_data ? place.rows_left : place.columns_left;
  const bool has_parts = factor.is_data && !form_.depth_parts.empty();
  const I64s start = has_parts ? I64s(inner.size(), e_.Int(0)) : inner;
  const Ptr base = !factor.is_data
                       ? form_.b_address(place.outer, place.panel, start)
                       : form_.a_address(place.outer, form_.row_parts.empty() ? place.row : e_.Int(0), start);
  const std::vector<Step> steps = StepsOf(factor);
  const std::string pointers = fmt::format("vector<{}x!llvm.ptr>", e_.lanes());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Vector piece = Op("addi", factor.piece, steps[i].pieces);
    const Vector row = Op("addi", factor.row, steps[i].rows);
    const Vector word = Op("muli", piece, factor.words);
    Vector bytes = BytesOf(factor, piece, words_left);
    if (!factor.has_all_rows) {
      const std::string has = e_.Def(fmt::format("arith.cmpi slt, {}, {} : {}", row, Number(left), product_.words()));
      bytes = Vector{e_.Def(fmt::format("arith.select {}, {}, {} : vector<{}xi1>, {}", has, bytes, Number(0),
                                        e_.lanes(), product_.words()))};
    }
    Vector offset = factor.offsets[i];
    if (has_parts) offset = Op("addi", offset, Offsets(Op("addi", Number(inner.back()), word), form_.depth_parts));
    const Vector from{e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, {}) -> {}, i32", base, offset,
                                         product_.words(), pointers))};
    const Vector to = Op("addi", stage, PlaceOf(row, word));
    e_.CallDeclared(factor.words == kQuad ? kCopyQuad : kCopyWord,
                    {to, Vector{e_.Int(factor.begin).name()}, from, bytes}, 0);
  }
}

void BlockTile::Copy(const Place& place, const I64& step, const I64& stage) {
  std::vector<int64_t> sizes = form_.inner;
  sizes.back() = (sizes.back() + plan_.depth - 1) / plan_.depth;
  for (int64_t& size : sizes) size = std::max<int64_t>(size, 1);
  I64s inner = Delinearise(e_, step, sizes);
  inner.back() = e_.MulInt(inner.back(), plan_.depth);
  const Vector place_of_stage = Number(e_.MulInt(stage, plan_.StageBytes()));
  for (Factor* factor : {&a_, &b_}) {
    const auto copy = [&] { CopyFactor(*factor, place, inner, place_of_stage); };
    // A small tile has no piece for some warps.
    const int64_t pieces = factor->rows * factor->per_row;
    if (pieces >= Threads()) {
      copy();
    } else {
      e_.If(e_.IntCompare("slt", warp_, e_.Int(pieces / kWarpLanes)), copy);
    }
  }
}

// ---- products ----

void BlockTile::Multiply(const Place& place, const I64& from, const I64& to) {
  const int64_t ahead = plan_.stages - 1;
  for (Factor* factor : {&a_, &b_}) BeginFactor(*factor, place);
  const auto copy = [&](const I64& step, const I64& stage) {
    e_.If(e_.IntCompare("slt", step, to), [&] { Copy(place, step, stage); });
    e_.CallDeclared(kEndCopies, {}, 0);
  };
  const auto stage_of = [&](const I64& number) { return e_.IntOp("remui", number, e_.Int(plan_.stages)); };
  // All threads have read what the tile before has left.
  e_.CallDeclared(kSynchroniseBlock, {}, 0);
  for (int64_t i = 0; i < ahead; ++i) copy(e_.Plus(from, i), e_.Int(i));
  const int64_t count = plan_.warp_rows() / kRows * (plan_.warp_columns() / kColumns) * kSums;
  const Vectors zeros(static_cast<size_t>(count), product_.Zeros());
  const Vectors sums = e_.ForCarrying(from, to, zeros, product_.sums(), [&](const I64& step, const Vectors& carried) {
    const I64 number = e_.IntOp("subi", step, from);
    e_.CallDeclared(kAwaitCopies, {Vector{e_.Int(ahead - 1).name()}}, 0);
    if (plan_.has_groups) e_.CallDeclared(kFenceCopies, {}, 0);
    // The copies of all threads are there, and the stage that is filled next was read in the step before.
    e_.CallDeclared(kSynchroniseBlock, {}, 0);
    copy(e_.Plus(step, ahead), stage_of(e_.Plus(number, ahead)));
    return plan_.has_groups ? MultiplyGroup(stage_of(number), carried) : MultiplyStage(stage_of(number), carried);
  });
  e_.CallDeclared(kAwaitCopies, {Vector{e_.Int(0).name()}}, 0);
  e_.CallDeclared(kSynchroniseBlock, {}, 0);
  WriteSums(sums);
  e_.CallDeclared(kSynchroniseBlock, {}, 0);
}

Vectors BlockTile::LoadRows(const Vector& stage, int64_t row, int64_t word) {
  const int64_t row_bytes = plan_.depth * kWordBytes;
  const I64 down = e_.IntOp("divui", warp_, e_.Int(plan_.across));
  const Vector own = Op("addi", stage, Number(e_.MulInt(down, plan_.warp_rows() * row_bytes)));
  // Thread l knows row l % 8 of matrix l / 8: of rows g, g + 8, and both again four words on.
  const Vector rows = product_.Numbers([](int64_t l) { return l % 16; });
  const Vector words = product_.Numbers([&](int64_t l) { return word + l / 16 * kQuad; });
  const Vector place = Op("addi", own, PlaceOf(rows, words));
  return product_.Prepared(e_.CallDeclared(kLoadMatrices, {place, Vector{e_.Int(row * row_bytes).name()}}, kSums),
                           /*is_data=*/true);
}

Vectors BlockTile::MultiplyStage(const I64& stage, const Vectors& sums) {
  Vectors next = sums;
  const int64_t row_bytes = plan_.depth * kWordBytes;
  const int64_t blocks = plan_.warp_rows() / kRows, columns = plan_.warp_columns() / kColumns;
  const Vector begin = Number(e_.MulInt(stage, plan_.StageBytes()));
  const I64 across = e_.IntOp("remui", warp_, e_.Int(plan_.across));
  const Vector of_columns = Op("addi", begin, Number(e_.MulInt(across, plan_.warp_columns() * row_bytes)));
  for (int64_t word = 0; word < plan_.depth; word += kGroup) {
    // Thread l knows row l % 8 of matrix l / 8: of columns g, four words on, and both again 8 columns on.
    const Vector pairs = product_.Numbers([](int64_t l) { return l / 16 * 8 + l % 8; });
    const Vector words = product_.Numbers([&](int64_t l) { return word + l / 8 % 2 * kQuad; });
    const Vector place = Op("addi", of_columns, PlaceOf(pairs, words));
    std::vector<Vectors> columns_of(static_cast<size_t>(columns));
    for (int64_t c = 0; c < columns; c += 2) {
      const int64_t behind = b_.begin + c * kColumns * row_bytes;
      Vectors two = e_.CallDeclared(kLoadMatrices, {place, Vector{e_.Int(behind).name()}}, kSums);
      if (!has_rounded_columns_) two = product_.Prepared(two, /*is_data=*/false);
      columns_of[static_cast<size_t>(c)] = {two[0], two[1]};
      columns_of[static_cast<size_t>(c + 1)] = {two[2], two[3]};
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const Vectors rows = LoadRows(begin, block * kRows, word);
      for (int64_t c = 0; c < columns; ++c) {
        product_.Add(rows, columns_of[static_cast<size_t>(c)], next.begin() + (block * columns + c) * kSums);
      }
    }
  }
  return next;
}

Vectors BlockTile::MultiplyGroup(const I64& stage, const Vectors& sums) {
  const I64 begin = e_.MulInt(stage, plan_.StageBytes());
  Vectors arguments = sums;
  for (int64_t word = 0; word < plan_.depth; word += kGroup) {
    const Vectors rows = LoadRows(Number(begin), /*row=*/0, word);
    arguments.insert(arguments.end(), rows.begin(), rows.end());
  }
  arguments.emplace_back(e_.Plus(begin, b_.begin).name());
  return e_.CallDeclared(multiply_group_, arguments, sums.size());
}

// ---- rows ----

void BlockTile::WriteSums(const Vectors& sums) {
  const int64_t pitch = plan_.Pitch() * kWordBytes;
  const int64_t columns = plan_.warp_columns() / kColumns;
  const I64 across = e_.Int(plan_.across);
  const Vector rows = Number(e_.MulInt(e_.IntOp("divui", warp_, across), plan_.warp_rows() * pitch));
  const Vector of_warp =
      Op("addi", rows, Number(e_.MulInt(e_.IntOp("remui", warp_, across), plan_.warp_columns() * kWordBytes)));
  const Vector own =
      Op("addi", of_warp,
         product_.Numbers([&](int64_t lane) { return lane / kQuad * pitch + lane % kQuad * 2 * kWordBytes; }));
  for (size_t i = 0; i < sums.size(); i += 2) {
    const auto number = static_cast<int64_t>(i) / kSums;  // of the block of 16 rows and 8 columns
    const int64_t row = number / columns * kRows + static_cast<int64_t>(i) % kSums / 2 * kRows / 2;
    product_.Write(own, row * pitch + number % columns * kColumns * kWordBytes, sums[i], sums[i + 1]);
  }
}

void BlockTile::ForRows(const I64& count, const std::function<void(const I64& row)>& body) {
  e_.For(warp_, e_.IntOp("minsi", count, e_.Int(plan_.rows)), plan_.warps(), body);
}

Vector BlockTile::Sums(const I64& row, int64_t column) {
  const Vector lane = product_.Numbers([](int64_t number) { return number * kWordBytes; });
  const Vector places = Op("addi", Number(e_.MulInt(row, plan_.Pitch() * kWordBytes)), lane);
  return product_.Read(places, column * kWordBytes);
}

}  // namespace collage::native
