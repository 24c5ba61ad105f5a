// register_tile.cc: one multiplication and addition for each row and vector, at each position of the inner dimensions.
#include "backends/native/compiler/contraction/register_tile.h"

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/contraction/tensor_tile.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

Vectors RegisterTile::Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t first,
                           int vectors, int64_t width) {
  if (TensorProduct::Takes(state_, form_)) {
    return TensorTile(state_, form_).Emit(outer, row, rows, panel, first, vectors, width);
  }
  first_ = first;
  type_ = type();
  const int64_t count = rows * vectors;
  // Few rows: several positions of the innermost dimension are summed apart.
  const int64_t depth = form_.inner.empty() ? 1 : form_.inner.back();
  const int64_t of_whole = rows * std::max<int64_t>(vectors, form_.panel_vectors);
  const int64_t chains = IsSymbolic(depth) ? 1 : ChainsOf(of_whole, depth);
  turns_ = IsSymbolic(depth) ? 1 : unroll_;
  while (!IsSymbolic(depth) && depth % (chains * turns_) != 0) --turns_;
  Vectors sums = Starts(outer, rows, panel, vectors);
  sums.resize(static_cast<size_t>(count * chains), Zeros());
  sums = Accumulate(outer, row, rows, panel, vectors, width, chains, {}, sums);
  for (int64_t i = count; i < count * chains; ++i) {
    Vector& sum = sums[static_cast<size_t>(i % count)];
    sum = Vector{e_.Def(fmt::format("arith.{} {}, {} : {}", form_.dtype.is_floating() ? "addf" : "addi", sum,
                                    sums[static_cast<size_t>(i)], type_))};
  }
  sums.resize(static_cast<size_t>(count));
  return sums;
}

Vector RegisterTile::Zeros() {
  return Vector{e_.Def(fmt::format("arith.constant dense<{}> : {}", form_.dtype.is_floating() ? "0.0" : "0", type_))};
}

Vectors RegisterTile::Starts(const I64s& outer, int64_t rows, const I64& panel, int vectors) {
  if (!form_.start) return Vectors(static_cast<size_t>(rows * vectors), Zeros());
  Vectors row;
  for (int v = 0; v < vectors; ++v) row.push_back(form_.start(outer, panel, first_ + v * e_.lanes()));
  Vectors all;
  for (int64_t t = 0; t < rows; ++t) all.insert(all.end(), row.begin(), row.end());
  return all;
}

Vector RegisterTile::Combine(const Vector& a, const Vector& b, const Vector& sum) {
  if (IsPair(form_.factors)) return AddPairProducts(e_, form_.factors, !is_gpu_, a, b, sum);
  if (form_.factors == DotKind::kBytes && is_gpu_) return AddByteProducts(e_, a, b, sum);
  if (form_.factors != DotKind::kOne) return AddIntegerProducts(e_, form_.factors, has_vnni_, a, b, sum);
  if (form_.dtype.is_floating()) return Vector{e_.Def(fmt::format("math.fma {}, {}, {} : {}", a, b, sum, type_))};
  const Vector product{e_.Def(fmt::format("arith.muli {}, {} : {}", a, b, type_))};
  return Vector{e_.Def(fmt::format("arith.addi {}, {} : {}", product, sum, type_))};
}

Vectors RegisterTile::Accumulate(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int vectors,
                                 int64_t width, int64_t chains, const I64s& inner, const Vectors& sums) {
  if (inner.size() < form_.inner.size()) {
    const bool is_last = inner.size() + 1 == form_.inner.size();
    const int64_t size = form_.inner[inner.size()];
    const auto go_deeper = [&](const I64& k, const Vectors& carried) {
      I64s deeper = inner;
      deeper.push_back(k);
      return Accumulate(outer, row, rows, panel, vectors, width, chains, deeper, carried);
    };
    if (size == 1) return go_deeper(e_.Int(0), sums);
    const int64_t step = chains * turns_;
    return e_.ForCarrying(
        e_.Int(0), e_.Int(is_last ? size / step : size), sums, type_,
        [&](const I64& k, const Vectors& carried) { return go_deeper(is_last ? e_.MulInt(k, step) : k, carried); });
  }
  Vectors carried = sums;
  for (int64_t turn = 0; turn < turns_; ++turn) {
    Vectors next;
    for (int64_t chain = 0; chain < chains; ++chain) {
      I64s at = inner;
      if (!at.empty()) at.back() = e_.Plus(at.back(), turn * chains + chain);
      Step(outer, row, rows, panel, vectors, width, at, carried, static_cast<size_t>(chain * rows * vectors), next);
    }
    carried = std::move(next);
  }
  return carried;
}

Ptr RegisterTile::Offset(const Ptr& base, int64_t elements) { return e_.ElementAt(base, elements, element_); }

void RegisterTile::Fetch(const I64s& inner) {
  constexpr int64_t kLineBytes = 64;
  if (ahead_.is_none()) return;
  I64 flat = e_.Int(0);
  for (size_t d = 0; d < inner.size(); ++d) flat = e_.AddInt(e_.MulInt(flat, form_.inner[d]), inner[d]);
  const Ptr address = e_.ElementAt(ahead_, e_.MulInt(flat, ahead_step_), "i8");
  for (int64_t byte = 0; byte < ahead_step_; byte += kLineBytes) {
    e_.Prefetch(byte == 0 ? address : e_.ElementAt(address, byte, "i8"), {.nearest = ahead_nearest_});
  }
}

void RegisterTile::Step(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int vectors, int64_t width,
                        const I64s& inner, const Vectors& sums, size_t first, Vectors& next) {
  const Ptr b_base = form_.b_address(outer, panel, inner);
  const size_t bytes = form_.dtype.size_bytes();
  Fetch(inner);
  Vectors b;
  for (int v = 0; v < vectors; ++v) {
    const Ptr address = Offset(b_base, first_ + v * e_.lanes());
    const int64_t left = width - static_cast<int64_t>(v) * e_.lanes();
    if (form_.b_is_padded || left >= e_.lanes()) {
      b.emplace_back(
          e_.Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", address, bytes, type_)));
    } else {
      e_.MaskedRest(left, [&](const I64&) {
        b.emplace_back(e_.Def(fmt::format(
            "llvm.intr.masked.load {}, {}, {} {{alignment = {} : i32}} : (!llvm.ptr, vector<{}xi1>, {}) -> {}", address,
            e_.mask(), Zeros(), bytes, e_.lanes(), type_, type_)));
      });
    }
  }
  const Ptr a_base = form_.a_address(outer, row, inner);
  for (int64_t t = 0; t < rows; ++t) {
    const Ptr at = IsSymbolic(form_.row_stride) ? e_.ElementAt(a_base, e_.MulInt(e_.Int(t), form_.row_stride), element_)
                                                : Offset(a_base, form_.RowOffset(t));
    const std::string one =
        e_.Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", at, bytes, element_));
    Vector a{e_.Def(fmt::format("vector.broadcast {} : {} to {}", one, element_, type_))};
    if (form_.flips_signs) a = FlipSigns(e_, a);
    for (int v = 0; v < vectors; ++v) {
      const size_t i = first + static_cast<size_t>(t * vectors + v);
      next.push_back(Combine(a, b[static_cast<size_t>(v)], sums[i]));
    }
  }
}

}  // namespace collage::native
