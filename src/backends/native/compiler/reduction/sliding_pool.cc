// sliding_pool.cc: separable windows, one dimension after the other. A walk goes along one dimension of the data and
// combines what lies across it at each position, once; a window is some positions that follow each other.
//
//     channels-last: along a row, vectors of channels          planes: down the rows, vectors along them
//       position = a column of the window's rows                 position = a row, its taps shifted vectors
//       ┌ a b c ┐  a d g | b e h | c f i                         ┌ a b c ┐  a b c
//       │ d e f │  → ring of registers →                         │ d e f │  ↓ ring of registers
//       └ g h i ┘                                                └ g h i ┘
#include "backends/native/compiler/reduction/sliding_pool.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

namespace {

class SlidingPool {
 public:
  explicit SlidingPool(PoolForm& form)
      : form_(form),
        e_(form.state.emitter),
        m_(form.state.math()),
        rank_(form.windows.size()),
        is_planar_(form.lane_axis != 1),
        walk_(is_planar_ ? rank_ - 2 : rank_ - 1) {
    if (!is_planar_ && rank_ > 1) row_ = rank_ - 2;
  }

  bool Run() {
    constexpr int64_t kMostStride = 2;  // of lanes that are loaded side by side and picked
    if (is_planar_ && form_.windows.back().stride > kMostStride) return false;
    if (!Choose()) return false;
    Emit();
    return true;
  }

 private:
  /// Rows of the result that are made together, and what their windows take of rows of the data.
  struct Rows {
    Indices place;           ///< in the result: of the dimensions that no loop of the walk is over
    I64 first;               ///< the first row of the result
    I64 data;                ///< the row of the data that offsets count from
    double share = 1;        ///< 1 / taps that count, of every row
    bool is_looped = false;  ///< the taps are not written out: tables say which those of `first` are
    std::vector<std::vector<int64_t>> offsets{{0}};  ///< of rows of the data, by row of the result

    int64_t count() const { return static_cast<int64_t>(offsets.size()); }
  };
  /// Vectors along the lanes that are walked together. `known`: where the first one lies, or one that is like it.
  struct Strip {
    I64 first;
    int64_t known = 0;
    int64_t vectors = 1;
    int64_t left = 0;  ///< behind them: so many elements of one more vector, with which the dimension ends
    int64_t count() const { return vectors + (left > 0 ? 1 : 0); }
  };
  /// Combined values at a position of the walk: by row of the result, by vector.
  using Position = std::vector<Value>;
  /// Positions by their distance from the start of a window. Those outside of the data are missing.
  using Positions = std::map<int64_t, Position>;

  const Windows& walked() const { return form_.windows[walk_]; }
  int64_t length() const { return form_.out[form_.lane_axis]; }

  /// Distances from a window's start of the positions that the window before left.
  std::vector<int64_t> HeldOffsets() const {
    std::vector<int64_t> held = walked().UsedOffsets();
    std::erase_if(held, [&](int64_t offset) { return offset + walked().stride >= walked().extent(); });
    return held;
  }

  /// Chooses how many rows are made together, two if most of what the one reads is the other's, too, and of how many
  /// vectors: runs of memory as long as registers can hold. False if they cannot hold a position of each offset.
  bool Choose() {
    constexpr int64_t kMostVectors = 4;
    constexpr int64_t kMostTaps = 16;  // of a window that registers hold while it is combined
    const int64_t registers = (e_.native_lanes() >= 16 ? 16 : 8) / (form_.kind == ElementKind::kFloat ? 1 : 2);
    const auto held = static_cast<int64_t>(HeldOffsets().size());
    if (held > registers || walked().most_taps > kMostTaps) return false;
    if (is_planar_ && form_.windows.back().most_taps > kMostTaps) return false;
    const int64_t fit = held == 0 ? kMostVectors : registers / held;
    if (row_) {
      const Windows& rows = form_.windows[*row_];
      if (rows.most_taps >= 2 * rows.stride && rows.dilation == 1 && fit >= kMostVectors) row_step_ = 2;
    }
    const int64_t most = std::clamp<int64_t>(fit / row_step_, 1, kMostVectors);
    const int64_t vectors = (length() + e_.lanes() - 1) / e_.lanes();
    const int64_t strips = (vectors + most - 1) / most;
    vectors_ = (vectors + strips - 1) / strips;
    return true;
  }

  // ---- units of work ----

  void Emit() {
    std::vector<size_t> axes;  // of the tensors, that have no loop in a walk
    std::vector<int64_t> units;
    for (size_t axis = 0; axis < form_.out.size(); ++axis) {
      if (axis == form_.lane_axis || axis == walk_ + 2 || (row_ && axis == *row_ + 2)) continue;
      axes.push_back(axis);
      units.push_back(form_.out[axis]);
    }
    CountGroups();
    units.push_back(first_group_ + groups_ + last_groups_);
    const int64_t size = vectors_ * e_.lanes();
    const int64_t strips = (length() + size - 1) / size;
    units.push_back(strips);
    const std::string name = form_.state.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) {
        const I64s parts = Delinearise(e_, unit, units);
        Rows rows;
        rows.place.assign(form_.out.size(), e_.Zero());
        for (size_t i = 0; i < axes.size(); ++i) rows.place[axes[i]] = {parts[i], 0};
        ForStrips(parts.back(), strips, [&](const Strip& strip) { ForGroups(rows, parts[axes.size()], strip); });
      });
    });
    e_.Call(name, NumElements(units), form_.state.IsParallel(form_.Flops()));
  }

  /// Runs `body` for the strip of that number: one text for all strips that are alike.
  void ForStrips(const I64& number, int64_t strips, const std::function<void(const Strip&)>& body) {
    const int64_t size = vectors_ * e_.lanes();
    for (int64_t strip = 0; strip < strips;) {
      int64_t end = strip + 1;
      while (IsPlain(strip) && end < strips && IsPlain(end)) ++end;
      const int64_t whole = std::min((length() - strip * size) / e_.lanes(), vectors_);
      const Strip own{end - strip > 1 ? e_.MulInt(number, size) : e_.Int(strip * size), strip * size, whole,
                      whole < vectors_ ? length() - strip * size - whole * e_.lanes() : 0};
      Where(number, strip, end, strips, [&] { body(own); });
      strip = end;
    }
  }

  /// Whether a strip is of whole vectors, and all taps of its windows lie inside along the lanes.
  bool IsPlain(int64_t strip) const {
    const int64_t first = strip * vectors_ * e_.lanes();
    const int64_t end = first + vectors_ * e_.lanes();
    if (end > length()) return false;
    const auto is_inside = [&](int64_t at) { return form_.windows.back().IsInside(at); };
    return !is_planar_ || (is_inside(first) && is_inside(end - 1));
  }

  /// Runs `body` where `number`, less than `count`, is in [from, to).
  void Where(const I64& number, int64_t from, int64_t to, int64_t count, const std::function<void()>& body) {
    if (from == 0 && to == count) return body();
    if (to - from == 1) return e_.If(e_.IntCompare("eq", number, e_.Int(from)), body);
    const I1 is_behind = e_.IntCompare("sge", number, e_.Int(from));
    const I1 is_before = e_.IntCompare("slt", number, e_.Int(to));
    e_.If(e_.And(is_behind, is_before), body);
  }

  /// How rows of the result are made: those with taps outside one by one, the others `row_step_` at a time.
  void CountGroups() {
    if (!row_) return;
    const Windows& w = form_.windows[*row_];
    const auto [first, end] = w.Inside();
    constexpr int64_t kMostTaps = 8;
    constexpr int64_t kMostEdges = 6;  // rows that have a text of their own
    const int64_t groups = (end - first) / row_step_;
    const int64_t edges = w.size() - groups * row_step_;
    is_looped_ = w.most_taps > kMostTaps || edges > kMostEdges;
    if (is_looped_) row_step_ = 1;
    first_group_ = is_looped_ ? 0 : first;
    groups_ = is_looped_ ? w.size() : groups;
    last_groups_ = is_looped_ ? 0 : w.size() - first - groups * row_step_;
  }

  /// Runs the walk of the group of rows of that number.
  void ForGroups(Rows rows, const I64& number, const Strip& strip) {
    if (!row_) return Walk(rows, strip);
    if (is_looped_) {
      rows.first = number;
      rows.is_looped = true;
      return Walk(rows, strip);
    }
    const int64_t behind = first_group_ + groups_;
    const int64_t count = behind + last_groups_;
    for (int64_t row = 0; row < first_group_; ++row) {
      Where(number, row, row + 1, count, [&] { Walk(EdgeRow(rows, row), strip); });
    }
    if (groups_ > 0) Where(number, first_group_, behind, count, [&] { Walk(InsideRows(rows, number), strip); });
    for (int64_t i = 0; i < last_groups_; ++i) {
      const int64_t row = form_.windows[*row_].size() - last_groups_ + i;
      Where(number, behind + i, behind + i + 1, count, [&] { Walk(EdgeRow(rows, row), strip); });
    }
  }

  /// Rows whose taps all lie inside: those of group `number`.
  Rows InsideRows(Rows rows, const I64& number) {
    const Windows& w = form_.windows[*row_];
    rows.first = e_.Plus(e_.MulInt(number, row_step_), first_group_ * (1 - row_step_));
    rows.data = e_.Plus(e_.MulInt(rows.first, w.stride), -w.pad);
    rows.share = w.share.data<float>()[first_group_];
    rows.offsets.clear();
    for (int64_t r = 0; r < row_step_; ++r) {
      rows.offsets.push_back(w.OffsetsAt(first_group_));
      for (int64_t& offset : rows.offsets.back()) offset += r * w.stride;
    }
    return rows;
  }

  Rows EdgeRow(Rows rows, int64_t row) {
    const Windows& w = form_.windows[*row_];
    rows.first = e_.Int(row);
    rows.data = e_.Int(w.start.data<int64_t>()[row]);
    rows.share = w.share.data<float>()[row];
    rows.offsets = {w.OffsetsAt(row)};
    return rows;
  }

  // ---- the walk ----

  /// All windows along the walk: a loop over those whose positions all lie inside, the others one by one.
  void Walk(const Rows& rows, const Strip& strip) {
    const Windows& w = walked();
    constexpr int64_t kFew = 3;  // that need no loop
    const auto [first, end] = w.Inside();
    Positions positions;
    for (int64_t window = 0; window < w.size(); ++window) {
      if (window == first && end - first > kFew) {
        const std::vector<int64_t> held = Missing(positions, HeldOffsets(), window);
        AddPositions(rows, strip, e_.Int(w.start.data<int64_t>()[window]), held, positions);
        positions = Loop(rows, strip, positions, first, end);
        window = end;
        if (window == w.size()) return;
      }
      const std::vector<int64_t> missing = Missing(positions, walked().UsedOffsets(), window);
      AddPositions(rows, strip, e_.Int(w.start.data<int64_t>()[window]), missing, positions);
      StoreWindow(rows, strip, e_.Int(window), window, positions);
      positions = Next(positions);
    }
  }

  /// Returns the `offsets` that are no key of `positions` and lie inside the data, seen from window `window`.
  std::vector<int64_t> Missing(const Positions& positions, std::vector<int64_t> offsets, int64_t window) const {
    const int64_t start = walked().start.data<int64_t>()[window];
    std::erase_if(offsets, [&](int64_t offset) {
      return positions.contains(offset) || start + offset < 0 || start + offset >= form_.in[walk_ + 2];
    });
    return offsets;
  }

  /// The positions that the next window takes over.
  Positions Next(const Positions& positions) const {
    Positions next;
    for (int64_t offset : HeldOffsets()) {
      const auto position = positions.find(offset + walked().stride);
      if (position != positions.end()) next[offset] = position->second;
    }
    return next;
  }

  /// Windows [first, end); `start` are the positions that the first one takes over. Returns those that the last one
  /// leaves.
  Positions Loop(const Rows& rows, const Strip& strip, const Positions& start, int64_t first, int64_t end) {
    const auto pack = [](const Positions& positions) {
      std::vector<Value> values;
      for (const auto& [offset, position] : positions) values.insert(values.end(), position.begin(), position.end());
      return values;
    };
    const auto unpack = [&](const std::vector<Value>& values) {
      Positions positions = start;
      size_t i = 0;
      for (auto& [offset, position] : positions) {
        for (Value& value : position) value = values[i++];
      }
      return positions;
    };
    const auto window = [&](const I64& number, const std::vector<Value>& carried) {
      Positions positions = unpack(carried);
      const I64 place = e_.Plus(e_.MulInt(number, walked().stride), -walked().pad);
      AddPositions(rows, strip, place, Missing(positions, walked().UsedOffsets(), first), positions);
      StoreWindow(rows, strip, number, first, positions);
      return pack(Next(positions));
    };
    if (start.empty()) {
      e_.For(e_.Int(first), e_.Int(end), 1, [&](const I64& number) { window(number, {}); });
      return {};
    }
    return unpack(e_.ForValues(e_.Int(first), e_.Int(end), pack(start), window));
  }

  /// Adds the positions at `offsets` from position `start` of the data, combined over all that lies across the walk.
  void AddPositions(const Rows& rows, const Strip& strip, const I64& start, const std::vector<int64_t>& offsets,
                    Positions& positions) {
    if (offsets.empty()) return;
    std::vector<Indices> places;
    for (int64_t offset : offsets) {
      places.push_back(rows.place);
      places.back()[walk_ + 2] = {e_.Plus(start, offset), 0};
    }
    const std::vector<Value> values = Across(rows, strip, 0, places, {});
    const auto size = static_cast<int64_t>(values.size() / offsets.size());
    auto from = values.begin();
    for (int64_t offset : offsets) {
      positions[offset] = Position(from, from + size);
      from += size;
    }
  }

  /// Combines the elements at `places`, one after the other, over all dimensions from `d` on that have loops of their
  /// own, and with `sums`, unless that is empty.
  std::vector<Value> Across(const Rows& rows, const Strip& strip, size_t d, const std::vector<Indices>& places,
                            const std::vector<Value>& sums) {
    const bool is_row = row_ && d == *row_;
    if (d == walk_ || (is_row && !rows.is_looped)) {
      std::vector<Value> values;
      for (const Indices& place : places) {
        for (const Value& value : PositionAt(rows, strip, place)) {
          values.push_back(sums.empty() ? value : form_.combiner.combine(m_, sums[values.size()], value));
        }
      }
      return values;
    }
    const I64 at = is_row ? rows.first : rows.place[d + 2].base;
    std::vector<Value> start = sums;
    if (start.empty()) {
      const auto size = static_cast<size_t>(rows.count() * strip.count());
      start.assign(places.size() * size, NeutralOf(m_, form_.combiner, form_.kind));
    }
    const PoolForm::Tables& tables = form_.tables[d];
    const I64 first = e_.LoadInt(tables.start, {at});
    return e_.ForValues(e_.LoadInt(tables.low, {at}), e_.LoadInt(tables.high, {at}), start,
                        [&](const I64& tap, const std::vector<Value>& carried) {
                          std::vector<Indices> deeper = places;
                          const I64 place = e_.AddInt(first, e_.MulInt(tap, form_.windows[d].dilation));
                          for (Indices& each : deeper) each[d + 2] = {place, 0};
                          return Across(rows, strip, d + 1, deeper, carried);
                        });
  }

  void Join(std::optional<Value>& sum, const Value& value) {
    sum = sum ? form_.combiner.combine(m_, *sum, value) : value;
  }

  /// One position of the data combined over the rows of each row of windows; what all of them take is combined once.
  Position PositionAt(const Rows& rows, const Strip& strip, const Indices& place) {
    Position position(static_cast<size_t>(rows.count() * strip.count()));
    const auto takes = [](const std::vector<int64_t>& offsets, int64_t offset) {
      return std::find(offsets.begin(), offsets.end(), offset) != offsets.end();
    };
    for (int64_t k = 0; k < strip.count(); ++k) {
      std::map<int64_t, Value> loaded;
      for (const auto& offsets : rows.offsets) {
        for (int64_t offset : offsets) {
          if (!loaded.contains(offset)) loaded[offset] = LoadAt(rows, strip, k, place, offset);
        }
      }
      std::optional<Value> shared;
      std::vector<std::optional<Value>> sums(rows.offsets.size());
      for (const auto& [offset, value] : loaded) {
        if (std::ranges::all_of(rows.offsets, [&](const auto& own) { return takes(own, offset); })) Join(shared, value);
      }
      for (size_t r = 0; r < sums.size(); ++r) {
        sums[r] = shared;
        for (const auto& [offset, value] : loaded) {
          const bool is_shared = std::ranges::all_of(rows.offsets, [&](const auto& own) { return takes(own, offset); });
          if (!is_shared && takes(rows.offsets[r], offset)) Join(sums[r], value);
        }
        const Value value = sums[r] ? *sums[r] : NeutralOf(m_, form_.combiner, form_.kind);
        position[r * static_cast<size_t>(strip.count()) + static_cast<size_t>(k)] = value;
      }
    }
    return position;
  }

  // ---- vectors ----

  /// Calls `body` with the place of the `k`-th vector along the lanes, under its mask if it is not a whole one.
  void ForVector(const Strip& strip, int64_t k, const std::function<void(const Index&)>& body) {
    if (k < strip.vectors) return body({e_.Plus(strip.first, k * e_.lanes()), 1, {}, e_.lanes()});
    e_.MaskedRest(length(), [&](const I64& first) { body({first, 1, {}, e_.lanes()}); });
  }

  Value LoadAt(const Rows& rows, const Strip& strip, int64_t k, Indices place, int64_t offset) {
    if (row_ && !rows.is_looped) place[*row_ + 2] = {e_.Plus(rows.data, offset), 0};
    if (is_planar_) return Shifted(strip, k, place);
    Value value;
    ForVector(strip, k, [&](const Index& lane) {
      place[form_.lane_axis] = lane;
      value = form_.Load(place);
    });
    return value;
  }

  /// The `k`-th vector of windows along the lanes: their taps are vectors that are shifted against each other. Of
  /// windows two apart, vectors twice as long are read, and every second element picked.
  Value Shifted(const Strip& strip, int64_t k, const Indices& place) {
    const Windows& w = form_.windows.back();
    const int64_t shift = k * e_.lanes() * w.stride - w.pad;
    std::map<int64_t, std::pair<Value, Value>> halves;  // by distance from the first tap
    std::optional<Value> sum;
    for (int64_t tap = 0; tap < w.most_taps; ++tap) {
      const int64_t offset = tap * w.dilation;
      if (w.stride == 1) {
        Join(sum, Run(strip, place, shift + offset));
        continue;
      }
      const int64_t even = offset / 2 * 2;
      if (!halves.contains(even)) {
        halves[even] = {Run(strip, place, shift + even), Run(strip, place, shift + even + e_.lanes())};
      }
      Join(sum, EverySecond(halves[even].first, halves[even].second, offset - even));
    }
    return *sum;
  }

  /// A vector of elements side by side, from the strip's first window + `offset` on; neutral ones outside.
  Value Run(const Strip& strip, Indices place, int64_t offset) {
    const int64_t stride = form_.windows.back().stride;
    const int64_t known = strip.known * stride + offset;
    const int64_t size = form_.in.back();
    place.back() = {e_.Plus(e_.MulInt(strip.first, stride), offset), 1};
    if (known >= 0 && known + e_.lanes() <= size) return form_.Load(place);
    const Value neutral = NeutralOf(m_, form_.combiner, form_.kind);
    if (known + e_.lanes() <= 0 || known >= size) return neutral;
    const Mask mask = e_.MaskOf([&](int64_t lane) { return known + lane >= 0 && known + lane < size; });
    Value value;
    e_.WithMask(mask, [&] { value = form_.Load(place); });
    return m_.Select(AsValue(mask), value, neutral);
  }

  Value EverySecond(const Value& a, const Value& b, int64_t first) {
    return m_.Shuffle(a, b, [&](int64_t i) { return first + 2 * i; });
  }

  /// Combines the positions of the windows at `number` along the walk; `known`: one whose windows are alike.
  void StoreWindow(const Rows& rows, const Strip& strip, const I64& number, int64_t known, const Positions& positions) {
    Indices at = rows.place;
    at[walk_ + 2] = {number, 0};
    for (int64_t r = 0; r < rows.count(); ++r) {
      if (row_) at[*row_ + 2] = {e_.Plus(rows.first, r), 0};
      for (int64_t k = 0; k < strip.count(); ++k) {
        std::optional<Value> sum;
        for (int64_t offset : walked().OffsetsAt(known)) {
          Join(sum, positions.at(offset)[static_cast<size_t>(r * strip.count() + k)]);
        }
        if (!sum) sum = NeutralOf(m_, form_.combiner, form_.kind);
        ForVector(strip, k, [&](const Index& lane) {
          at[form_.lane_axis] = lane;
          const Value share = form_.is_max ? m_.Number(1, ElementKind::kFloat) : Share(rows, strip, k, known, at);
          StoreResult(form_.state, form_.output, at, form_.Finish(*sum, share));
        });
      }
    }
  }

  /// 1 / the taps that count, of the `k`-th vector at `at`: a number as far as it is known now.
  Value Share(const Rows& rows, const Strip& strip, int64_t k, int64_t known, const Indices& at) {
    double number = walked().share.data<float>()[known] * rows.share;
    std::optional<Value> loaded;
    const auto multiply = [&](const Value& by) { loaded = loaded ? m_.Multiply(*loaded, by) : by; };
    for (size_t d = 0; d < rank_; ++d) {
      if (d == walk_ || (row_ && d == *row_ && !rows.is_looped)) continue;
      const std::optional<double> common = d + 2 == form_.lane_axis ? CommonShare(strip, k) : std::nullopt;
      if (common) {
        number *= *common;
      } else {
        multiply(e_.Load(form_.tables[d].share, {at[d + 2]}));
      }
    }
    const Value share = m_.Number(number, ElementKind::kFloat);
    return loaded ? m_.Multiply(*loaded, share) : share;
  }

  /// The share of all windows of the `k`-th vector, if they have one in common.
  std::optional<double> CommonShare(const Strip& strip, int64_t k) const {
    const float* share = form_.windows.back().share.data<float>();
    const int64_t first = strip.known + k * e_.lanes();
    const int64_t end = std::min(first + e_.lanes(), length());
    const bool is_common = std::all_of(share + first, share + end, [&](float each) { return each == share[first]; });
    return is_common ? std::optional<double>(share[first]) : std::nullopt;
  }

  PoolForm& form_;
  Emitter& e_;
  VectorMath& m_;
  size_t rank_;
  bool is_planar_;
  size_t walk_;                ///< the spatial dimension that is walked along
  std::optional<size_t> row_;  ///< that whose rows are made together
  int64_t row_step_ = 1;       ///< so many of them
  int64_t vectors_ = 1;        ///< of a strip
  bool is_looped_ = false;     ///< whether taps along `row_` are a loop
  int64_t first_group_ = 0;    ///< groups of rows: so many of one row each, …
  int64_t groups_ = 1;         ///< … of `row_step_` rows whose taps all lie inside, …
  int64_t last_groups_ = 0;    ///< … and of one row again
};

}  // namespace

bool EmitSlidingPool(PoolForm& form) { return SlidingPool(form).Run(); }

}  // namespace collage::native
