// pool.cc: the largest or mean element of windows. What windows cover is known when the kernel is compiled, so it is
// looked up: per dimension and output position, where the window starts, which of its taps lie inside the data, how
// many count. Channels-last data are walked in tiles of windows that overlap: each vector of the data is read once for
// all of them, combined over rows first and then over columns.
#include <algorithm>
#include <cmath>
#include <set>

#include "backends/native/compiler/product_form.h"
#include "backends/native/compiler/reduction_loops.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// Windows along one dimension; tables by output position.
struct Windows {
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;
  int64_t most_taps = 1;
  Tensor start, low, high;  ///< int64: position of tap 0, taps [low, high) lie inside
  Tensor share;             ///< float32: 1 / how many taps count

  int64_t size() const { return start.shape()[0]; }
  /// From the first tap to behind the last one.
  int64_t extent() const { return (most_taps - 1) * dilation + 1; }
  bool IsInside(int64_t out) const { return low.data<int64_t>()[out] == 0 && high.data<int64_t>()[out] == most_taps; }
  /// The outputs [first, second) between the first and the last one whose taps all lie inside.
  std::pair<int64_t, int64_t> Inside() const {
    int64_t first = 0;
    while (first < size() && !IsInside(first)) ++first;
    int64_t end = size();
    while (end > first && !IsInside(end - 1)) --end;
    return {first, end};
  }
};

std::vector<int64_t> PerDimension(const CallNode& call, const char* name, size_t count) {
  std::vector<int64_t> values = call.attrs().Ints(name);
  while (values.size() < count) values.push_back(values[0]);
  return values;
}

Windows MakeWindows(int64_t out, const std::function<std::array<int64_t, 4>(int64_t)>& window) {
  Windows w;
  w.start = Tensor::Empty({out}, kInt64);
  w.low = Tensor::Empty({out}, kInt64);
  w.high = Tensor::Empty({out}, kInt64);
  w.share = Tensor::Empty({out}, kFloat32);
  for (int64_t o = 0; o < out; ++o) {
    const auto [start, low, high, count] = window(o);
    w.start.data<int64_t>()[o] = start;
    w.low.data<int64_t>()[o] = low;
    w.high.data<int64_t>()[o] = std::max(low, high);
    w.share.data<float>()[o] = 1.0F / static_cast<float>(std::max<int64_t>(count, 1));
  }
  return w;
}

std::vector<Windows> FixedWindows(const CallNode& call, const Shape& in, const Shape& out) {
  const size_t rank = in.size() - 2;
  const auto size = PerDimension(call, "pool_size", rank);
  const auto stride = PerDimension(call, "strides", rank);
  const auto dilation = PerDimension(call, "dilation", rank);
  std::vector<int64_t> pad = call.attrs().Ints("padding");
  if (pad.size() == 1) pad.assign(2 * rank, pad[0]);
  if (pad.size() == rank) pad.insert(pad.end(), pad.begin(), pad.end());
  const bool counts_padding =
      call.op()->FindAttr("count_include_pad") != nullptr && call.attrs().Bool("count_include_pad");
  std::vector<Windows> all;
  for (size_t d = 0; d < rank; ++d) {
    all.push_back(MakeWindows(out[d + 2], [&](int64_t o) -> std::array<int64_t, 4> {
      const int64_t start = o * stride[d] - pad[d];
      // Taps t with start + t * dilation in [from, to).
      const auto before = [&](int64_t bound) {
        return std::clamp<int64_t>((bound - start + dilation[d] - 1) / dilation[d], 0, size[d]);
      };
      const int64_t low = start >= 0 ? 0 : before(0);
      const int64_t high = before(in[d + 2]);
      return {start, low, high, counts_padding ? before(in[d + 2] + pad[d + rank]) : high - low};
    }));
    all.back().stride = stride[d];
    all.back().dilation = dilation[d];
    all.back().pad = pad[d];
    all.back().most_taps = size[d];
  }
  return all;
}

/// Windows that share the data out evenly.
std::vector<Windows> AdaptiveWindows(const Shape& in, const Shape& out) {
  std::vector<Windows> all;
  for (size_t d = 2; d < in.size(); ++d) {
    all.push_back(MakeWindows(out[d], [&](int64_t o) -> std::array<int64_t, 4> {
      const int64_t start = o * in[d] / out[d];
      const int64_t size = ((o + 1) * in[d] + out[d] - 1) / out[d] - start;
      return {start, 0, size, size};
    }));
  }
  return all;
}

class Pool {
 public:
  Pool(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        call_(call),
        output_(output),
        in_(ShapeOf(call.args()[0])),
        out_(ShapeOf(output.result)),
        is_adaptive_(call.op()->name.find("adaptive") != std::string::npos),
        is_max_(call.op()->name.find("max") != std::string::npos),
        combiner_(is_max_ ? MaxCombiner() : SumCombiner()) {}

  void Run() {
    const std::vector<int> order = MemoryOrder(output_.buffer);
    lane_axis_ = static_cast<size_t>(order.back());
    const bool channels_last = output_.buffer.strides[1] == 1 && out_[1] > 1;
    if (channels_last) lane_axis_ = 1;
    const DataType dtype = TensorTypeOf(call_.args()[0]).dtype();
    kind_ = dtype.is_floating() || is_max_ ? KindOf(dtype) : ElementKind::kDouble;
    if (!IsRepeated(call_.args()[0])) {
      data_ = Materialise(state_, call_.args()[0], channels_last ? Layout::kChannelsLast : Layout::kPlain);
    }
    windows_ = is_adaptive_ ? AdaptiveWindows(in_, out_) : FixedWindows(call_, in_, out_);
    if (NumElements(out_) == 0) return;
    const bool is_scalar = lane_axis_ != 1 && (is_adaptive_ || lane_axis_ < 2);
    if (is_scalar) e_.SetLanes(1);
    for (const Windows& w : windows_) {
      tables_.push_back({state_.AddConstant(w.start), state_.AddConstant(w.low), state_.AddConstant(w.high),
                         state_.AddConstant(w.share)});
    }
    if (lane_axis_ == 1 && !is_adaptive_ && windows_.back().extent() <= Columns()) {
      EmitTiles();
    } else {
      EmitEach();
    }
    e_.SetLanes(e_.native_lanes());
  }

 private:
  struct Tables {
    Buffer start, low, high, share;
  };

  double Flops() const {
    double flops = 2 * static_cast<double>(NumElements(out_));
    for (const Windows& w : windows_) flops *= static_cast<double>(w.most_taps);
    return flops;
  }

  /// Whether `data` repeats elements that lie in memory, whole vectors of channels: they are read from there.
  bool IsRepeated(const Expr& data) const {
    const CallNode* call = As<CallNode>(data);
    if (lane_axis_ != 1 || call == nullptr || call->op() == nullptr || !call->op()->name.starts_with("image.resize"))
      return false;
    if (state_.expressions.FindBuffer(data) != nullptr) return false;
    if (state_.expressions.FindBuffer(call->args()[0]) == nullptr) return false;
    const std::vector<ResizeTaps>& taps = state_.expressions.TapsOf(*call);
    return std::all_of(taps.begin(), taps.end(), [](const ResizeTaps& each) { return each.count == 1; });
  }

  Value LoadData(const Indices& from) {
    const Value value = data_.number < 0 ? state_.expressions.At(call_.args()[0], from) : e_.Load(data_, from);
    return value.kind == kind_ ? value : m_.Convert(value, kFloat64);
  }

  Value Finish(Value sum, const Value& share) {
    if (!is_max_) sum = m_.Multiply(sum, kind_ == ElementKind::kDouble ? m_.Convert(share, kFloat64) : share);
    return m_.Convert(sum, TensorTypeOf(call_.args()[0]).dtype());
  }

  // ---- window by window ----

  void EmitEach() {
    ReductionSpace space{out_, std::vector<bool>(out_.size(), false), lane_axis_};
    ForEachUnit(state_, space, Flops(), [&](ReductionUnit& unit) {
      const Indices& at = unit.place();
      const Value sum = Dimension(0, at, at, NeutralOf(m_, combiner_, kind_));
      Value share = m_.Number(1, ElementKind::kFloat);
      for (size_t d = 0; !is_max_ && d < windows_.size(); ++d) {
        share = m_.Multiply(share, e_.Load(tables_[d].share, {at[d + 2]}));
      }
      StoreResult(state_, output_, at, Finish(sum, share));
    });
  }

  /// Combines over dimension `d` and those behind it.
  Value Dimension(size_t d, const Indices& at, const Indices& from, const Value& sum) {
    if (d == windows_.size()) return combiner_.combine(m_, sum, LoadData(from));
    const size_t axis = d + 2;
    if (axis == lane_axis_ && !at[axis].is_scalar() && e_.lanes() > 1) return AlongLanes(d, at, from, sum);
    const std::string start = e_.LoadInt(tables_[d].start, {at[axis].base});
    const std::string low = e_.LoadInt(tables_[d].low, {at[axis].base});
    const std::string high = e_.LoadInt(tables_[d].high, {at[axis].base});
    return e_.ForValues(low, high, {sum}, [&](const std::string& tap, const std::vector<Value>& carried) {
      Indices next = from;
      next[axis] = {e_.AddInt(start, e_.MulInt(tap, windows_[d].dilation)), 0};
      return std::vector<Value>{Dimension(d + 1, at, next, carried[0])};
    })[0];
  }

  /// The dimension of the lanes, tap by tap; lanes whose tap lies outside take nothing.
  Value AlongLanes(size_t d, const Indices& at, const Indices& from, Value sum) {
    const size_t axis = d + 2;
    const Windows& w = windows_[d];
    for (int64_t tap = 0; tap < w.most_taps; ++tap) {
      Indices next = from;
      next[axis] = e_.Shifted(e_.Scaled(at[axis], w.stride), tap * w.dilation - w.pad);
      const bool may_precede = tap * w.dilation < w.pad;
      const bool may_exceed = (out_[axis] - 1) * w.stride + tap * w.dilation - w.pad >= in_[axis];
      if (!may_precede && !may_exceed) {
        sum = Dimension(d + 1, at, next, sum);
        continue;
      }
      const Value above{e_.IndexCompare("sge", next[axis], 0), ElementKind::kBool};
      const Value inside = m_.And(above, {e_.IndexCompare("slt", next[axis], in_[axis]), ElementKind::kBool});
      Value with;
      e_.WithMask(inside.name, [&] { with = Dimension(d + 1, at, next, sum); });
      sum = m_.Select(inside, with, sum);
    }
    return sum;
  }

  // ---- tiles of windows ----

  /// Output rows and columns that are made together. `column` is the first one's, `place` an example of it: all columns
  /// of a loop over tiles have their taps at the same offsets.
  struct Tile {
    Names outer;  ///< the image, then all dimensions but the last
    int64_t rows = 1;
    bool rows_inside = false;  ///< all taps of all rows lie inside
    std::string column;
    int64_t place = 0;
    int64_t count = 1;
  };

  /// How many columns of the data have a register of their own.
  int64_t Columns() const { return e_.native_lanes() >= 16 ? 16 : 8; }
  /// Rows that are made together: two, if most of what the one reads is the other's, too.
  int64_t RowsOfTile() const {
    if (windows_.size() < 2) return 1;
    const Windows& rows = windows_[windows_.size() - 2];
    const Windows& columns = windows_.back();
    const bool fits = columns.extent() + columns.stride <= Columns() / 2;
    return rows.most_taps >= 2 * rows.stride && rows.dilation == 1 && fits ? 2 : 1;
  }

  void EmitTiles() {
    const size_t rank = windows_.size();
    const int64_t step = RowsOfTile();
    std::vector<int64_t> units{out_[0]};
    for (size_t d = 0; d + 2 < rank; ++d) units.push_back(out_[d + 2]);
    constexpr int64_t kMostRows = 8;  // taps of rows that are written out
    const bool writes_rows = rank > 1 && windows_[rank - 2].most_taps <= kMostRows;
    const int64_t height = rank > 1 ? out_[rank] : 1;
    const auto [first, end] = writes_rows ? windows_[rank - 2].Inside() : std::pair<int64_t, int64_t>{0, 0};
    const int64_t blocks = (end - first) / step;
    const int64_t edges = height - blocks * step;
    units.push_back(blocks + edges);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const std::string& begin, const std::string& stop) {
      e_.For(begin, stop, 1, [&](const std::string& unit) {
        Tile tile;
        tile.outer = Delinearise(e_, unit, units);
        const std::string number = tile.outer.back();
        tile.outer.pop_back();
        if (rank == 1) return ForColumns(tile);
        if (blocks > 0) {
          e_.If(e_.IntCompare("slt", number, e_.Int(blocks)), [&] {
            Tile block = tile;
            block.outer.push_back(e_.Plus(e_.MulInt(number, step), first));
            block.rows = step;
            block.rows_inside = true;
            ForColumns(block);
          });
        }
        if (edges > 0) {
          e_.If(e_.IntCompare("sge", number, e_.Int(blocks)), [&] {
            const std::string edge = e_.Plus(number, -blocks);
            const std::string is_before = e_.IntCompare("slt", edge, e_.Int(first));
            tile.outer.push_back(
                e_.Def(fmt::format("arith.select {}, {}, {} : i64", is_before, edge, e_.Plus(edge, blocks * step))));
            ForColumns(tile);
          });
        }
      });
    });
    e_.Call(name, NumElements(units), state_.IsParallel(Flops()));
  }

  /// Tiles along the last dimension: a loop over those whose taps all lie inside, each other one by itself.
  void ForColumns(const Tile& row) {
    const Windows& w = windows_.back();
    const int64_t width = out_.back();
    const int64_t most = std::max<int64_t>((Columns() / row.rows - w.extent()) / w.stride + 1, 1);
    const int64_t tiles = (width + most - 1) / most;
    const int64_t size = (width + tiles - 1) / tiles;
    const auto is_inside = [&](int64_t from) {
      return from + size <= width && w.IsInside(from) && w.IsInside(from + size - 1);
    };
    for (int64_t from = 0; from < width;) {
      int64_t end = from;
      while (is_inside(end)) end += size;
      Tile tile = row;
      tile.place = from;
      tile.count = std::min(size, width - from);
      if (end > from) {
        e_.For(e_.Int(from), e_.Int(end), size, [&](const std::string& column) {
          tile.column = column;
          EmitTile(tile);
        });
        from = end;
        continue;
      }
      tile.column = e_.Int(from);
      EmitTile(tile);
      from += tile.count;
    }
  }

  void EmitTile(const Tile& tile) {
    const Windows& w = windows_.back();
    // Columns of the data from that of the first tap on, and which of them each window takes.
    const auto offsets_of = [&](int64_t t) {
      std::vector<int64_t> offsets;
      for (int64_t tap = w.low.data<int64_t>()[tile.place + t]; tap < w.high.data<int64_t>()[tile.place + t]; ++tap) {
        offsets.push_back(t * w.stride + tap * w.dilation);
      }
      return offsets;
    };
    std::set<int64_t> used;
    for (int64_t t = 0; t < tile.count; ++t) {
      for (int64_t offset : offsets_of(t)) used.insert(offset);
    }
    const std::vector<int64_t> columns(used.begin(), used.end());
    e_.ForLanes(out_[1], [&](const std::string& channel) {
      Indices from(out_.size(), e_.Zero());
      from[0] = {tile.outer[0], 0};
      from[1] = {channel, 1, "", e_.lanes()};
      const std::vector<Value> sums = columns.empty() ? std::vector<Value>() : OverRows(tile, columns, 0, from, {});
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t t = 0; t < tile.count; ++t) {
          std::optional<Value> sum;
          for (int64_t offset : offsets_of(t)) {
            const auto at = static_cast<size_t>(std::distance(used.begin(), used.find(offset)));
            const Value& column = sums[at * static_cast<size_t>(tile.rows) + static_cast<size_t>(r)];
            sum = sum ? combiner_.combine(m_, *sum, column) : column;
          }
          StoreTileResult(tile, channel, r, t, sum ? *sum : NeutralOf(m_, combiner_, kind_));
        }
      }
    });
  }

  void StoreTileResult(const Tile& tile, const std::string& channel, int64_t r, int64_t t, const Value& sum) {
    const size_t rank = windows_.size();
    Indices at{{tile.outer[0], 0}, {channel, 1, "", e_.lanes()}};
    for (size_t d = 0; d + 1 < rank; ++d)
      at.push_back({d + 2 == rank ? e_.Plus(tile.outer[d + 1], r) : tile.outer[d + 1], 0});
    at.push_back({e_.Plus(tile.column, t), 0});
    double known = windows_.back().share.data<float>()[tile.place + t];
    const bool knows_rows = rank > 1 && tile.rows_inside;
    if (knows_rows) known /= static_cast<double>(windows_[rank - 2].most_taps);
    Value share = m_.Number(known, ElementKind::kFloat);
    for (size_t d = 0; !is_max_ && d + (knows_rows ? 2 : 1) < rank; ++d) {
      share = m_.Multiply(share, e_.Load(tables_[d].share, {at[d + 2]}));
    }
    StoreResult(state_, output_, at, Finish(sum, share));
  }

  /// The data's `columns`, combined over all dimensions but the last, from dimension `d` on: a value per column and row
  /// of the tile. `sums`: what they are combined with; nothing if empty.
  std::vector<Value> OverRows(const Tile& tile, const std::vector<int64_t>& columns, size_t d, const Indices& from,
                              const std::vector<Value>& sums) {
    const auto combined = [&](const Value& value, size_t i) {
      return sums.empty() ? value : combiner_.combine(m_, sums[i], value);
    };
    std::vector<Value> next;
    if (d + 1 == windows_.size()) {
      for (int64_t column : columns) next.push_back(combined(LoadColumn(tile, from, column), next.size()));
      return next;
    }
    const Windows& w = windows_[d];
    const std::string& row = tile.outer[d + 1];
    if (d + 2 == windows_.size() && tile.rows_inside) {
      for (int64_t column : columns) {
        for (const Value& value : Rows(tile, w, column, from)) next.push_back(combined(value, next.size()));
      }
      return next;
    }
    std::vector<Value> start = sums;
    if (start.empty()) start.assign(columns.size() * static_cast<size_t>(tile.rows), NeutralOf(m_, combiner_, kind_));
    const std::string first = e_.LoadInt(tables_[d].start, {row});
    return e_.ForValues(e_.LoadInt(tables_[d].low, {row}), e_.LoadInt(tables_[d].high, {row}), start,
                        [&](const std::string& tap, const std::vector<Value>& carried) {
                          Indices deeper = from;
                          deeper[d + 2] = {e_.AddInt(first, e_.MulInt(tap, w.dilation)), 0};
                          return OverRows(tile, columns, d + 1, deeper, carried);
                        });
  }

  /// One column combined over the rows of each of the tile's windows; what all of them take is combined once.
  std::vector<Value> Rows(const Tile& tile, const Windows& w, int64_t column, const Indices& from) {
    const std::string first = e_.Plus(e_.MulInt(tile.outer.back(), w.stride), -w.pad);
    const int64_t shared_from = (tile.rows - 1) * w.stride;
    const int64_t shared_to = tile.rows > 1 ? w.extent() : shared_from;
    const auto load = [&](int64_t offset) {
      Indices at = from;
      at[windows_.size()] = {e_.Plus(first, offset), 0};
      return LoadColumn(tile, at, column);
    };
    std::optional<Value> shared;
    const auto join = [&](std::optional<Value>& sum, const Value& value) {
      sum = sum ? combiner_.combine(m_, *sum, value) : value;
    };
    for (int64_t offset = shared_from; offset < shared_to; ++offset) join(shared, load(offset));
    std::vector<Value> results;
    for (int64_t r = 0; r < tile.rows; ++r) {
      std::optional<Value> sum = shared;
      for (int64_t tap = 0; tap < w.most_taps; ++tap) {
        const int64_t offset = r * w.stride + tap * w.dilation;
        if (offset < shared_from || offset >= shared_to) join(sum, load(offset));
      }
      results.push_back(*sum);
    }
    return results;
  }

  /// The data at `from`, `offset` columns behind the tile's first tap.
  Value LoadColumn(const Tile& tile, Indices from, int64_t offset) {
    const Windows& w = windows_.back();
    from.back() = {e_.Plus(e_.MulInt(tile.column, w.stride), offset - w.pad), 0};
    return LoadData(from);
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const StageOutput& output_;
  Shape in_, out_;
  bool is_adaptive_;
  bool is_max_;
  const Combiner& combiner_;
  size_t lane_axis_ = 1;
  ElementKind kind_ = ElementKind::kFloat;
  Buffer data_;
  std::vector<Windows> windows_;
  std::vector<Tables> tables_;
};

}  // namespace

void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Pool(state, call, output).Run();
}

}  // namespace collage::native
