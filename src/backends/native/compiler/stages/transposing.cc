// transposing.cc: squares of elements, read as columns, turned by interleaving, and stored as rows.
#include "backends/native/compiler/stages/transposing.h"

#include <algorithm>

#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

LaneReads ReadsAlong(Emitter& e, const Buffer& buffer, const ElementFn& value, int axis) {
  LaneReads reads;
  e.DryRun([&] {
    e.SetCapture([&](int, const Value& read) {
      reads.has_integers |= read.kind == ElementKind::kInt || read.kind == ElementKind::kBool;
    });
    e.SetLoadHook([&](int, int64_t stride) -> std::optional<Value> {
      reads.strides.push_back(stride);
      return std::nullopt;
    });
    Indices at;
    for (size_t i = 0; i < buffer.shape.size(); ++i) at.push_back({I64{e.Fresh()}, 0});
    at[static_cast<size_t>(axis)].step = 1;
    at[static_cast<size_t>(axis)].multiple = e.lanes();
    value(at);
    e.SetLoadHook({});
    e.SetCapture({});
  });
  return reads;
}

namespace {

class TransposingLoop {
 public:
  TransposingLoop(PartitionState& state, const Buffer& buffer, const ElementFn& value, const std::vector<int>& order,
                  const ElementGuard& guard)
      : state_(state),
        e_(state.emitter),
        buffer_(buffer),
        value_(value),
        order_(order),
        guard_(guard),
        rows_at_(order.size() - 1) {
    for (size_t i = 0; i < rows_at_; ++i) outer_.push_back(buffer.shape[static_cast<size_t>(order[i])]);
    length_ = buffer.shape[static_cast<size_t>(order.back())];
  }

  /// Whether it was emitted.
  bool Run() {
    if (order_.size() < 2 || e_.lanes() < 8) return false;
    const LaneReads along_result = ReadsAlong(e_, buffer_, value_, order_.back());
    constexpr size_t kMostReads = 6;
    if (along_result.strides.size() > kMostReads) return false;
    // LLVM 22 narrows shuffles of integers that become integers of 8 or 16 bits, and gets them wrong with AVX-512 where
    // floats lie between.
    const bool is_narrow = KindOf(buffer_.dtype) == ElementKind::kInt && buffer_.dtype.bits <= 16;
    if (along_result.has_integers && is_narrow) return false;
    std::vector<bool> is_far;
    for (const int64_t stride : along_result.strides) is_far.push_back(stride != 0 && stride != 1);
    if (std::ranges::find(is_far, true) == is_far.end()) return false;
    for (size_t i = rows_at_; i-- > 0;) {
      const int axis = order_[i];
      if (buffer_.shape[static_cast<size_t>(axis)] < e_.lanes() / 2) continue;
      const std::vector<int64_t> along = ReadsAlong(e_, buffer_, value_, axis).strides;
      bool fits = along.size() == is_far.size();
      for (size_t k = 0; fits && k < along.size(); ++k) fits = !is_far[k] || along[k] == 1;
      if (!fits) continue;
      EmitSquares(i, is_far);
      return true;
    }
    return false;
  }

 private:
  /// Squares of the dimension at place `second` of the memory order and the innermost one.
  void EmitSquares(size_t second, const std::vector<bool>& turned) {
    const int64_t lanes = e_.lanes();
    const auto second_axis = static_cast<size_t>(order_[second]);
    const auto lane_axis = static_cast<size_t>(order_.back());
    std::vector<int64_t> units;
    for (size_t i = 0; i < rows_at_; ++i) {
      if (i != second) units.push_back(outer_[i]);
    }
    const int64_t tall = outer_[second];
    const int64_t strips = (tall + lanes - 1) / lanes;
    const int64_t others = NumElements(units);
    for (const bool is_rest : {false, true}) {
      const int64_t height = is_rest ? tall % lanes : lanes;
      const int64_t count = is_rest ? 1 : tall / lanes;
      if (height == 0 || count == 0) continue;
      std::vector<int64_t> sizes = units;
      sizes.push_back(count);
      const std::string name = state_.NextStageName();
      e_.Function(name, [&](const I64& begin, const I64& end) {
        e_.For(begin, end, 1, [&](const I64& unit) {
          const I64s parts = Delinearise(e_, unit, sizes);
          Indices at(buffer_.shape.size(), e_.Zero());
          size_t next = 0;
          for (size_t i = 0; i < rows_at_; ++i) {
            if (i != second) at[static_cast<size_t>(order_[i])] = {parts[next++], 0};
          }
          const I64 top = e_.Plus(e_.MulInt(parts.back(), lanes), is_rest ? (strips - 1) * lanes : 0);
          const auto fill = [&] { EmitStrip(at, second_axis, lane_axis, top, height, turned); };
          if (!guard_) return fill();
          Indices first = at;
          first[second_axis] = {top, 0};
          e_.If(guard_(first), fill);
        });
      });
      e_.Call(name, others * count, state_.IsParallel(static_cast<double>(others * count * height * length_) * 4));
    }
  }

  /// All squares of `height` rows of the result from `top`.
  void EmitStrip(const Indices& at, size_t second_axis, size_t lane_axis, const I64& top, int64_t height,
                 const std::vector<bool>& turned) {
    const int64_t lanes = e_.lanes();
    const int64_t whole = length_ / lanes * lanes;
    if (whole > 0) {
      e_.For(e_.Int(0), e_.Int(whole), lanes,
             [&](const I64& left) { EmitSquare(at, second_axis, lane_axis, top, left, height, lanes, turned); });
    }
    if (whole < length_) EmitSquare(at, second_axis, lane_axis, top, e_.Int(whole), height, length_ - whole, turned);
  }

  /// One square: `height` rows of the result from `top`, `width` lanes from `left`.
  void EmitSquare(Indices at, size_t second_axis, size_t lane_axis, const I64& top, const I64& left, int64_t height,
                  int64_t width, const std::vector<bool>& turned) {
    const int64_t lanes = e_.lanes();
    // The values read, one column of the square (a run along the second axis) at a time.
    std::vector<std::vector<Value>> columns(turned.size());
    const auto read_columns = [&] {
      for (int64_t c = 0; c < width; ++c)
        CaptureColumn(at, second_axis, lane_axis, top, e_.Plus(left, c), columns, turned);
    };
    if (height == lanes)
      read_columns();
    else
      e_.MaskedRest(height, [&](const I64&) { read_columns(); });
    std::vector<std::vector<Value>> rows;
    for (const std::vector<Value>& column : columns) rows.push_back(Turned(column));
    const auto write_rows = [&] {
      for (int64_t r = 0; r < height; ++r) {
        e_.SetLoadHook([&](int number, int64_t) -> std::optional<Value> {
          const std::vector<Value>& row = rows[static_cast<size_t>(number)];
          if (row.empty()) return std::nullopt;
          return row[static_cast<size_t>(r)];
        });
        at[second_axis] = {e_.Plus(top, r), 0};
        at[lane_axis] = {left, 1, {}, lanes};
        const Value value = value_(at);
        e_.SetLoadHook({});
        e_.Store(buffer_, at, value);
      }
    };
    if (width == lanes)
      write_rows();
    else
      e_.MaskedRest(width, [&](const I64&) { write_rows(); });
  }

  /// Evaluates with lanes along the second axis to obtain the values of the turned reads.
  void CaptureColumn(Indices at, size_t second_axis, size_t lane_axis, const I64& top, const I64& left,
                     std::vector<std::vector<Value>>& columns, const std::vector<bool>& turned) {
    e_.SetCapture([&](int number, const Value& value) {
      if (turned[static_cast<size_t>(number)]) columns[static_cast<size_t>(number)].push_back(value);
    });
    at[second_axis] = {top, 1, {}, e_.lanes()};
    at[lane_axis] = {left, 0};
    value_(at);
    e_.SetCapture({});
  }

  /// Columns of a square as its rows, by log2(lanes) rounds of interleaving; missing columns count as the first.
  std::vector<Value> Turned(const std::vector<Value>& columns) {
    if (columns.empty()) return {};
    const auto lanes = static_cast<size_t>(e_.lanes());
    const std::string type = e_.TypeOf(columns[0].kind);
    Vectors current;
    for (size_t i = 0; i < lanes; ++i) current.emplace_back(columns[i < columns.size() ? i : 0].name);
    // Round: rows i and i + lanes / 2 interleave to rows 2 i and 2 i + 1; after log2(lanes) rounds it is the transpose.
    std::string low;
    std::string high;
    for (size_t i = 0; i < lanes; ++i) {
      const char* comma = i + 1 < lanes ? ", " : "";
      low += fmt::format("{}{}", i / 2 + (i % 2) * lanes, comma);
      high += fmt::format("{}{}", lanes / 2 + i / 2 + (i % 2) * lanes, comma);
    }
    for (size_t round = 1; round < lanes; round *= 2) {
      Vectors next;
      for (size_t i = 0; i < lanes / 2; ++i) {
        const Vector& a = current[i];
        const Vector& b = current[i + lanes / 2];
        next.emplace_back(e_.Def(fmt::format("vector.shuffle {}, {} [{}] : {}, {}", a, b, low, type, type)));
        next.emplace_back(e_.Def(fmt::format("vector.shuffle {}, {} [{}] : {}, {}", a, b, high, type, type)));
      }
      current = std::move(next);
    }
    std::vector<Value> rows;
    for (const Vector& row : current) rows.push_back({row.name(), columns[0].kind});
    return rows;
  }

  PartitionState& state_;
  Emitter& e_;
  const Buffer& buffer_;
  const ElementFn& value_;
  const std::vector<int>& order_;
  const ElementGuard& guard_;
  size_t rows_at_;              ///< place of the innermost axis in `order_`
  std::vector<int64_t> outer_;  ///< sizes of all others
  int64_t length_;              ///< of the innermost axis
};

}  // namespace

bool EmitTransposing(PartitionState& state, const Buffer& buffer, const ElementFn& value, const std::vector<int>& order,
                     const ElementGuard& guard) {
  return TransposingLoop(state, buffer, value, order, guard).Run();
}

}  // namespace collage::native
