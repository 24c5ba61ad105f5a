// tensor_product.cc: calls of functions that all threads of a warp make together.
#include "backends/native/compiler/contraction/tensor_product.h"

#include <algorithm>

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/tensor_functions.h"

namespace collage::native {
namespace {

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

const char* GroupName(DotKind factors) {
  switch (factors) {
    case DotKind::kBFloat16: return kGroupBFloat16;
    case DotKind::kFloat16: return kGroupFloat16;
    case DotKind::kBytes: return kGroupBytes;
    default: return kGroupTf32;
  }
}

}  // namespace

bool TensorProduct::Multiplies(const PartitionState& state, DataType dtype, DotKind factors) {
  if (!state.target.has_tensor_cores || state.emitter.native_lanes() != kWarpLanes) return false;
  if (factors == DotKind::kOne) return dtype == kFloat32 && state.options.in_tf32;
  return IsPair(factors) || factors == DotKind::kBytes;
}

bool TensorProduct::Takes(const PartitionState& state, const Contraction& form) {
  const auto is_symbolic = [](int64_t size) { return IsSymbolic(size); };
  return Multiplies(state, form.dtype, form.factors) && state.emitter.lanes() == kWarpLanes && !form.inner.empty() &&
         form.depth_stride != 0 && form.b_row_stride != 0 && form.rows >= kFewRows && !IsSymbolic(form.rows) &&
         !IsSymbolic(form.row_stride) && !IsSymbolic(form.depth_stride) && !IsSymbolic(form.b_row_stride) &&
         std::ranges::none_of(form.inner, is_symbolic);
}

TensorProduct::TensorProduct(Emitter& e, const Contraction& form)
    : e_(e),
      form_(form),
      sums_(fmt::format("vector<{}x{}>", e_.lanes(), form.dtype.is_floating() ? "f32" : "i32")),
      words_(fmt::format("vector<{}xi32>", e_.lanes())),
      multiply_(MultiplyName(form.factors)),
      write_(form.dtype.is_floating() ? kWriteFloats : kWriteIntegers),
      read_(form.dtype.is_floating() ? kReadFloats : kReadIntegers) {
  const std::string sums = Times(sums_, kSums);
  e_.Declare(multiply_, fmt::format("({}, {}) -> ({})", sums, Times(words_, 6), sums));
  e_.Declare(write_, fmt::format("({}, i64, {}, {}) -> ()", words_, sums_, sums_));
  e_.Declare(read_, fmt::format("({}, i64) -> {}", words_, sums_));
  e_.Declare(kSynchronise, "() -> ()");
}

std::string TensorProduct::DeclareGroup(int64_t columns, int64_t words) {
  const std::string name = fmt::format("{}{}", GroupName(form_.factors), columns);
  const std::string sums = Times(sums_, columns / kColumns * kSums);
  e_.Declare(name, fmt::format("({}, {}, i64) -> ({})", sums, Times(words_, words), sums));
  return name;
}

Vector TensorProduct::Zeros() {
  return Vector{e_.Def(fmt::format("arith.constant dense<{}> : {}", form_.dtype.is_floating() ? "0.0" : "0", sums_))};
}

Vectors TensorProduct::Prepared(Vectors words, bool is_data) {
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

void TensorProduct::Add(const Vectors& rows, const Vectors& columns, Vectors::iterator sums) {
  Vectors arguments(sums, sums + kSums);
  arguments.insert(arguments.end(), rows.begin(), rows.end());
  arguments.insert(arguments.end(), columns.begin(), columns.end());
  std::ranges::copy(e_.CallDeclared(multiply_, arguments, kSums), sums);
}

void TensorProduct::Write(const Vector& places, int64_t behind, const Vector& first, const Vector& second) {
  e_.CallDeclared(write_, {places, Vector{e_.Int(behind).name()}, first, second}, 0);
}

Vector TensorProduct::Read(const Vector& places, int64_t behind) {
  return e_.CallDeclared(read_, {places, Vector{e_.Int(behind).name()}}, 1)[0];
}

void TensorProduct::Synchronise() { e_.CallDeclared(kSynchronise, {}, 0); }

Vector TensorProduct::Numbers(const std::function<int64_t(int64_t lane)>& number) {
  std::string list;
  for (int64_t lane = 0; lane < e_.lanes(); ++lane) list += fmt::format("{}{}", lane == 0 ? "" : ", ", number(lane));
  return Vector{e_.Def(fmt::format("arith.constant dense<[{}]> : {}", list, words_))};
}

}  // namespace collage::native
