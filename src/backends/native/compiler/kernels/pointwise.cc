// pointwise.cc: loops over a result's elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/native/compiler/emit/stages.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage::native {

Buffer PartitionState::AddConstant(const Tensor& value) {
  constants.push_back(value);
  return {kFirstConstant + static_cast<int>(constants.size()) - 1,
          0,
          value.dtype(),
          value.shape(),
          LayoutStrides(value.shape(), Layout::kPlain),
          /*is_constant=*/true};
}

Buffer PartitionState::AddWorkspace(const Shape& shape, Layout layout, DataType dtype) {
  constexpr int64_t kAlignment = 64;
  const Buffer buffer{kWorkspace, workspace_bytes, dtype, shape, LayoutStrides(shape, layout)};
  const int64_t bytes = NumElements(shape) * static_cast<int64_t>(dtype.size_bytes());
  workspace_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return buffer;
}

std::vector<std::string> Delinearise(Emitter& e, const std::string& flat, const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts(sizes.size());
  std::string rest = flat;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      parts[i] = e.Int(0);
      continue;
    }
    const bool is_last =
        std::all_of(sizes.begin(), sizes.begin() + static_cast<int64_t>(i), [](int64_t s) { return s == 1; });
    if (is_last) {
      parts[i] = rest;
      continue;
    }
    const std::string size = e.Int(sizes[i]);
    parts[i] = e.IntOp("remui", rest, size);
    rest = e.IntOp("divui", rest, size);
  }
  return parts;
}

std::vector<int> MemoryOrder(const Buffer& buffer) {
  std::vector<int> axes(buffer.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto stride = [&](int axis) {
    const auto i = static_cast<size_t>(axis);
    return buffer.shape[i] == 1 ? std::numeric_limits<int64_t>::max() : buffer.strides[i];
  };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return stride(a) > stride(b); });
  return axes;
}

namespace {

constexpr int64_t kChunk = 4096;  // elements of a long row that are one unit of work

using ElementFn = std::function<Value(const Indices&)>;

/// Walks a buffer in memory order, in vectors along its innermost dimensions.
class ElementLoop {
 public:
  /// The `merged` innermost dimensions, contiguous in memory, are walked as one.
  ElementLoop(PartitionState& state, const Buffer& buffer, const ElementFn& value, size_t merged)
      : state_(state), e_(state.emitter), buffer_(buffer), value_(value), order_(MemoryOrder(buffer)) {
    rows_at_ = order_.size() - std::min(merged, order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      const int64_t size = buffer.shape[static_cast<size_t>(order_[i])];
      if (i < rows_at_)
        outer_.push_back(size);
      else
        length_ *= size;
    }
  }

  void Run() {
    const int64_t rows = NumElements(outer_);
    if (rows * length_ == 0) return;
    const bool is_scalar =
        order_.empty() || rows * length_ == 1 || buffer_.strides[static_cast<size_t>(order_.back())] != 1;
    if (is_scalar) e_.SetLanes(1);
    if (is_scalar || !RunTransposing()) {
      const int64_t chunks = length_ > kChunk ? length_ / kChunk : 0;
      if (chunks > 0) Emit(rows, chunks, kChunk, 0);
      if (chunks * kChunk < length_) Emit(rows, 1, length_ - chunks * kChunk, chunks * kChunk);
    }
    e_.SetLanes(e_.native_lanes());
  }

 private:
  /// A stage over `chunks` pieces of `size` elements, from `first` on, of each row.
  void Emit(int64_t rows, int64_t chunks, int64_t size, int64_t first) {
    std::vector<int64_t> units = outer_;
    units.push_back(chunks);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const std::string& begin, const std::string& end) {
      e_.For(begin, end, 1, [&](const std::string& unit) {
        const std::vector<std::string> parts = Delinearise(e_, unit, units);
        const std::string start = e_.Plus(e_.MulInt(parts.back(), size), first);
        const int64_t multiple = std::gcd(std::gcd(size, first), static_cast<int64_t>(e_.lanes()));
        const bool is_whole = chunks == 1 && first == 0;
        const auto at = [&](const std::string& lane) {
          return Place(parts, {is_whole ? lane : e_.AddInt(start, lane), 1, "", is_whole ? e_.lanes() : multiple});
        };
        EachTogether(size, [&](const std::vector<std::string>& lanes) {
          std::vector<Value> values;
          for (const std::string& lane : lanes) values.push_back(value_(at(lane)));
          for (size_t i = 0; i < lanes.size(); ++i) e_.Store(buffer_, at(lanes[i]), values[i]);
        });
      });
    });
    e_.Call(name, rows * chunks, state_.IsParallel(static_cast<double>(rows * chunks * size) * 4));
  }

  /// Visits all vectors of [0, size), as many at a time as are computed before any of them is stored: neither LLVM nor
  /// the processor knows early that what is read next lies elsewhere. What gathers is slow for its own reasons.
  void EachTogether(int64_t size, const std::function<void(const std::vector<std::string>& lanes)>& visit) {
    constexpr int64_t kTogether = 4;
    const int64_t lanes = e_.lanes();
    const int64_t grouped = lanes > 1 && ReadsFewVectors() ? size / (kTogether * lanes) * (kTogether * lanes) : 0;
    if (grouped > 0) {
      e_.For(e_.Int(0), e_.Int(grouped), kTogether * lanes, [&](const std::string& lane) {
        std::vector<std::string> group;
        for (int64_t i = 0; i < kTogether; ++i) group.push_back(e_.Plus(lane, i * lanes));
        visit(group);
      });
    }
    const int64_t whole = size / lanes * lanes;
    if (grouped < whole) {
      e_.For(e_.Int(grouped), e_.Int(whole), lanes, [&](const std::string& lane) { visit({lane}); });
    }
    if (whole < size) e_.MaskedRest(size, [&](const std::string& lane) { visit({lane}); });
  }

  bool ReadsFewVectors() {
    constexpr size_t kMostReads = 4;
    const std::vector<int64_t> strides = LaneStrides(order_.back());
    return strides.size() <= kMostReads &&
           std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0 || stride == 1; });
  }

  Indices Place(const std::vector<std::string>& outer, const Index& lane) {
    Indices at(buffer_.shape.size(), e_.Zero());
    for (size_t i = 0; i < rows_at_; ++i) at[static_cast<size_t>(order_[i])] = {outer[i], 0};
    if (!order_.empty()) at[static_cast<size_t>(order_.back())] = lane;
    return at;
  }

  // ---- transposing ----

  /// Distance between lanes of each read when lanes run along `axis`. Notes whether integers are among them.
  std::vector<int64_t> LaneStrides(int axis) {
    std::vector<int64_t> strides;
    e_.DryRun([&] {
      e_.SetCapture([&](int, const Value& value) {
        reads_integers_ |= value.kind == ElementKind::kInt || value.kind == ElementKind::kBool;
      });
      e_.SetLoadHook([&](int, int64_t stride) -> std::optional<Value> {
        strides.push_back(stride);
        return std::nullopt;
      });
      Indices at;
      for (size_t i = 0; i < buffer_.shape.size(); ++i) at.push_back({e_.Fresh(), 0});
      at[static_cast<size_t>(axis)].step = 1;
      at[static_cast<size_t>(axis)].multiple = e_.lanes();
      value_(at);
      e_.SetLoadHook({});
      e_.SetCapture({});
    });
    return strides;
  }

  /// When some reads are far apart along the result's innermost dimension but adjacent along another one: squares of
  /// lanes x lanes elements are read along that one and turned in registers. False when there is nothing to be gained.
  bool RunTransposing() {
    if (rows_at_ + 1 != order_.size() || order_.size() < 2 || e_.lanes() < 8) return false;
    const std::vector<int64_t> along_result = LaneStrides(order_.back());
    constexpr size_t kMostReads = 6;
    if (along_result.size() > kMostReads) return false;
    // LLVM 22 narrows shuffles of integers that become integers of 8 or 16 bits, and gets them wrong with AVX-512 where
    // floats lie between.
    const bool is_narrow = KindOf(buffer_.dtype) == ElementKind::kInt && buffer_.dtype.bits <= 16;
    if (reads_integers_ && is_narrow) return false;
    const auto is_far = [&](size_t i) { return along_result[i] != 0 && along_result[i] != 1; };
    std::vector<bool> turned(along_result.size());
    size_t num_far = 0;
    for (size_t i = 0; i < turned.size(); ++i) num_far += is_far(i) ? 1 : 0;
    if (num_far == 0) return false;
    for (size_t i = rows_at_; i-- > 0;) {
      const int axis = order_[i];
      if (buffer_.shape[static_cast<size_t>(axis)] < e_.lanes() / 2) continue;
      const std::vector<int64_t> along = LaneStrides(axis);
      bool fits = along.size() == along_result.size();
      for (size_t k = 0; fits && k < along.size(); ++k) {
        turned[k] = is_far(k);
        fits = !turned[k] || along[k] == 1;
      }
      if (!fits) continue;
      EmitSquares(i, turned);
      return true;
    }
    return false;
  }

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
      e_.Function(name, [&](const std::string& begin, const std::string& end) {
        e_.For(begin, end, 1, [&](const std::string& unit) {
          const std::vector<std::string> parts = Delinearise(e_, unit, sizes);
          Indices at(buffer_.shape.size(), e_.Zero());
          size_t next = 0;
          for (size_t i = 0; i < rows_at_; ++i) {
            if (i != second) at[static_cast<size_t>(order_[i])] = {parts[next++], 0};
          }
          const std::string top = e_.Plus(e_.MulInt(parts.back(), lanes), is_rest ? (strips - 1) * lanes : 0);
          const int64_t whole = length_ / lanes * lanes;
          if (whole > 0) {
            e_.For(e_.Int(0), e_.Int(whole), lanes, [&](const std::string& left) {
              EmitSquare(at, second_axis, lane_axis, top, left, height, lanes, turned);
            });
          }
          if (whole < length_)
            EmitSquare(at, second_axis, lane_axis, top, e_.Int(whole), height, length_ - whole, turned);
        });
      });
      e_.Call(name, others * count, state_.IsParallel(static_cast<double>(others * count * height * length_) * 4));
    }
  }

  /// One square: `height` rows of the result from `top`, `width` lanes from `left`.
  void EmitSquare(Indices at, size_t second_axis, size_t lane_axis, const std::string& top, const std::string& left,
                  int64_t height, int64_t width, const std::vector<bool>& turned) {
    const int64_t lanes = e_.lanes();
    // What is read, one column of the square (a run along the second axis) at a time.
    std::vector<std::vector<Value>> columns(turned.size());
    const auto read_columns = [&] {
      for (int64_t c = 0; c < width; ++c)
        CaptureColumn(at, second_axis, lane_axis, top, e_.Plus(left, c), columns, turned);
    };
    if (height == lanes)
      read_columns();
    else
      e_.MaskedRest(height, [&](const std::string&) { read_columns(); });
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
        at[lane_axis] = {left, 1, "", lanes};
        const Value value = value_(at);
        e_.SetLoadHook({});
        e_.Store(buffer_, at, value);
      }
    };
    if (width == lanes)
      write_rows();
    else
      e_.MaskedRest(width, [&](const std::string&) { write_rows(); });
  }

  /// Evaluates with lanes along the second axis to obtain the values of the turned reads.
  void CaptureColumn(Indices at, size_t second_axis, size_t lane_axis, const std::string& top, const std::string& left,
                     std::vector<std::vector<Value>>& columns, const std::vector<bool>& turned) {
    e_.SetCapture([&](int number, const Value& value) {
      if (turned[static_cast<size_t>(number)]) columns[static_cast<size_t>(number)].push_back(value);
    });
    at[second_axis] = {top, 1, "", e_.lanes()};
    at[lane_axis] = {left, 0};
    value_(at);
    e_.SetCapture({});
  }

  /// Columns of a square as its rows, by log2(lanes) rounds of interleaving; missing columns count as the first.
  std::vector<Value> Turned(const std::vector<Value>& columns) {
    if (columns.empty()) return {};
    const auto lanes = static_cast<size_t>(e_.lanes());
    const std::string type = e_.TypeOf(columns[0].kind);
    std::vector<std::string> current;
    for (size_t i = 0; i < lanes; ++i) current.push_back(columns[i < columns.size() ? i : 0].name);
    // Round: rows i and i + lanes / 2 interleave to rows 2 i and 2 i + 1; after log2(lanes) rounds it is the transpose.
    std::string low;
    std::string high;
    for (size_t i = 0; i < lanes; ++i) {
      const char* comma = i + 1 < lanes ? ", " : "";
      low += fmt::format("{}{}", i / 2 + (i % 2) * lanes, comma);
      high += fmt::format("{}{}", lanes / 2 + i / 2 + (i % 2) * lanes, comma);
    }
    for (size_t round = 1; round < lanes; round *= 2) {
      std::vector<std::string> next;
      for (size_t i = 0; i < lanes / 2; ++i) {
        const std::string& a = current[i];
        const std::string& b = current[i + lanes / 2];
        next.push_back(e_.Def(fmt::format("vector.shuffle {}, {} [{}] : {}, {}", a, b, low, type, type)));
        next.push_back(e_.Def(fmt::format("vector.shuffle {}, {} [{}] : {}, {}", a, b, high, type, type)));
      }
      current = std::move(next);
    }
    std::vector<Value> rows;
    for (const std::string& name : current) rows.push_back({name, columns[0].kind});
    return rows;
  }

  PartitionState& state_;
  Emitter& e_;
  const Buffer& buffer_;
  const ElementFn& value_;
  std::vector<int> order_;
  size_t rows_at_ = 0;
  std::vector<int64_t> outer_;
  int64_t length_ = 1;
  bool reads_integers_ = false;
};

}  // namespace

// Each value that takes part has all of the axes as the result has, in memory order without gaps, or none.
bool CanMerge(PartitionState& state, const StageOutput& output, const std::vector<int>& axes, int64_t stride) {
  const Buffer& buffer = output.buffer;
  std::vector<int64_t> wanted(buffer.shape.size(), 0);
  for (size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (buffer.shape[axis] != 1 && buffer.strides[axis] != stride) return false;
    wanted[axis] = stride;
    stride = state.emitter.Times(stride, buffer.shape[axis]);
  }
  std::vector<Expr> work{output.epilogue};
  while (!work.empty()) {
    const Expr current = work.back();
    work.pop_back();
    const Shape shape = ShapeOf(current);
    const bool is_register = current == output.result;
    if (is_register || std::ranges::all_of(shape, [](int64_t size) { return size == 1; })) continue;
    if (shape.size() > buffer.shape.size()) return false;
    const size_t missing = buffer.shape.size() - shape.size();
    bool has_all = true;
    bool has_none = true;
    for (int axis : axes) {
      const auto a = static_cast<size_t>(axis);
      if (buffer.shape[a] == 1) continue;
      const bool has = a >= missing && shape[a - missing] == buffer.shape[a];
      has_all = has_all && has;
      has_none = has_none && !has;
    }
    if (has_none) continue;
    if (!has_all) return false;
    const Buffer* own = state.expressions.FindBuffer(current);
    if (own != nullptr || current->kind() == ExprKind::kConstant) {
      const std::vector<int64_t> strides = own != nullptr ? own->strides : LayoutStrides(shape, Layout::kPlain);
      for (int axis : axes) {
        const auto a = static_cast<size_t>(axis);
        if (buffer.shape[a] != 1 && strides[a - missing] != wanted[a]) return false;
      }
      continue;
    }
    const CallNode* call = As<CallNode>(current);
    if (call == nullptr || call->op() == nullptr || call->op()->pattern > OpPatternKind::kBroadcast) return false;
    const std::string& name = call->op()->name;
    const bool is_scaled = name == "qnn.quantize" || name == "qnn.dequantize";
    if (is_scaled && NumElements(ShapeOf(call->args()[1])) == 1 && NumElements(ShapeOf(call->args()[2])) == 1) {
      work.push_back(call->args()[0]);
      continue;
    }
    if (name.starts_with("qnn.") || call->op()->is_reshape || name == "tile" || name == "repeat") return false;
    if (name == "nn.bias_add" || name == "nn.prelu") {
      // Their vectors are along an axis that its own position does not tell.
      const auto axis = static_cast<int>(AxisAttr(*call, "axis", shape.size()) + missing);
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return false;
      work.push_back(call->args()[0]);
    } else {
      work.insert(work.end(), call->args().begin(), call->args().end());
    }
  }
  return true;
}

namespace {

/// Walks the elements of `shape`, the innermost `merged` dimensions as one, in chunks that are units of work.
void ForUnknownElements(PartitionState& state, const Shape& shape, size_t merged,
                        const std::function<void(const Indices& at)>& body) {
  Emitter& e = state.emitter;
  const size_t rows_at = shape.size() - merged;
  const int64_t length = e.Product({shape.begin() + static_cast<int64_t>(rows_at), shape.end()});
  std::vector<int64_t> units(shape.begin(), shape.begin() + static_cast<int64_t>(rows_at));
  units.push_back(e.CeilDivided(length, kChunk));
  const int64_t count = e.Product(units);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& unit) {
      const std::vector<std::string> parts = Delinearise(e, unit, units);
      const std::string first = e.MulInt(parts.back(), kChunk);
      const std::string last = e.IntOp("minsi", e.Plus(first, kChunk), e.Int(length));
      e.ForLanesBetween(first, last, [&](const std::string& lane) {
        Indices at(shape.size(), e.Zero());
        for (size_t i = 0; i < rows_at; ++i) at[i] = {parts[i], 0};
        at.back() = {lane, 1, "", e.lanes()};
        body(at);
      });
    });
  });
  e.Call(name, count, state.IsParallel(NumberOf(shape) * 4));
}

}  // namespace

void EmitElements(PartitionState& state, const Buffer& buffer, const ElementFn& value) {
  if (HasUnknown(buffer.shape)) {
    return ForUnknownElements(state, buffer.shape, 1, [&](const Indices& at) {
      const Value element = value(at);
      state.emitter.Store(buffer, at, element);
    });
  }
  ElementLoop(state, buffer, value, 1).Run();
}

void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer) {
  std::vector<int> order = MemoryOrder(buffer);
  const bool is_unknown = HasUnknown(buffer.shape);
  if (is_unknown) std::iota(order.begin(), order.end(), 0);  // it is plain
  size_t merged = 1;
  for (size_t count = order.size(); count > 1; --count) {
    if (!CanMerge(state, {nullptr, expr, buffer}, {order.end() - static_cast<int64_t>(count), order.end()}, 1))
      continue;
    merged = count;
    break;
  }
  const ElementFn value = [&](const Indices& at) { return state.expressions.At(expr, at); };
  if (is_unknown) {
    return ForUnknownElements(state, buffer.shape, merged, [&](const Indices& at) {
      const Value element = value(at);
      state.emitter.Store(buffer, at, element);
    });
  }
  ElementLoop(state, buffer, value, merged).Run();
}

Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout) {
  if (const Buffer* buffer = state.expressions.FindBuffer(expr)) return *buffer;
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    const Buffer buffer = state.AddConstant(constant->value());
    state.expressions.SetBuffer(expr, buffer);
    return buffer;
  }
  const Buffer buffer = state.AddWorkspace(ShapeOf(expr), layout, TensorTypeOf(expr).dtype());
  EmitPointwise(state, expr, buffer);
  state.expressions.SetBuffer(expr, buffer);
  return buffer;
}

DataType KeptType(const PartitionState& state, const Expr& expr) {
  const Buffer* buffer = state.expressions.FindBuffer(expr);
  return buffer == nullptr ? TensorTypeOf(expr).dtype() : buffer->dtype;
}

Buffer MaterialisePlain(PartitionState& state, const Expr& expr) {
  const DataType dtype = TensorTypeOf(expr).dtype();
  const Buffer own = Materialise(state, expr, Layout::kPlain);
  if (own.is_contiguous() && own.dtype == dtype) return own;
  const Buffer plain = state.AddWorkspace(own.shape, Layout::kPlain, dtype);
  EmitElements(state, plain, [&](const Indices& at) { return state.emitter.Load(own, at); });
  return plain;
}

void StoreResult(PartitionState& state, const StageOutput& output, const Indices& indices, const Value& value) {
  state.expressions.SetRegister(output.result, value);
  state.emitter.Store(output.buffer, indices, state.expressions.At(output.epilogue, indices));
  state.expressions.ClearRegisters();
}

// Each piece is a smaller tensor with the whole one's strides, from its position on.
void EmitConcatenate(PartitionState& state, const CallNode& call, const StageOutput& output) {
  const TupleNode* tuple = As<TupleNode>(call.args()[0]);
  if (tuple == nullptr) throw Error(ErrorCategory::kUnsupported, "joins tuples that are written out only");
  const bool is_stack = call.op()->name == "stack";
  const Buffer& out = output.buffer;
  const size_t axis = AxisAttr(call, "axis", out.shape.size());
  int64_t at = 0;
  for (const Expr& field : tuple->fields()) {
    const int64_t size = is_stack ? 1 : ShapeOf(field)[axis];
    Buffer piece = out;
    piece.shape[axis] = size;
    if (HasUnknown(out.shape)) {
      ForUnknownElements(state, piece.shape, 1, [&](const Indices& own) {
        Indices whole = own;
        whole[axis] = state.emitter.Shifted(own[axis], at);
        const Value value = state.expressions.At(field, own);
        StoreResult(state, output, whole, value);
      });
      at = state.emitter.Added(at, size);
      continue;
    }
    piece.offset_bytes += at * out.strides[axis] * static_cast<int64_t>(out.dtype.size_bytes());
    const auto erase = [&](auto list) {
      if (is_stack) list.erase(list.begin() + static_cast<int64_t>(axis));
      return list;
    };
    if (output.epilogue == output.result) {
      piece.shape = erase(piece.shape);
      piece.strides = erase(piece.strides);
      EmitPointwise(state, field, piece);
    } else {
      EmitElements(state, piece, [&](const Indices& own) {
        Indices whole = own;
        whole[axis] = state.emitter.Shifted(own[axis], at);
        state.expressions.SetRegister(output.result, state.expressions.At(field, erase(own)));
        const Value value = state.expressions.At(output.epilogue, whole);
        state.expressions.ClearRegisters();
        return value;
      });
    }
    at += size;
  }
}

}  // namespace collage::native
