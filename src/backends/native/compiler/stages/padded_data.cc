// padded_data.cc: copies the rows of images, each between its left and right padding.
#include "backends/native/compiler/stages/padded_data.h"

#include <algorithm>

#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {

Buffer ChannelsLastData(PartitionState& state, const Expr& data, DataType dtype) {
  const Buffer own = MaterialiseAs(state, data, Layout::kChannelsLast, dtype);
  if (own.shape[1] == 1 || own.strides[1] == 1) return own;
  const Buffer turned = state.AddWorkspace(own.shape, Layout::kChannelsLast, dtype);
  EmitElements(state, turned, [&](const Indices& at) { return state.emitter.Load(own, at); });
  return turned;
}

bool IsDense(const Buffer& data) {
  return data.strides == LayoutStrides(data.shape, Layout::kChannelsLast) || NumElements(data.shape) <= 1;
}

namespace {

/// Copies an image into a larger one. Units are rows: an image, a channel where these do not lie innermost, the leading
/// spatial dimensions; a row of pixels is one run of memory.
class PaddedCopy {
 public:
  PaddedCopy(PartitionState& state, const Buffer& data, const Buffer& padded, const std::vector<int64_t>& before,
             const std::vector<int64_t>& after, Layout layout)
      : state_(state), e_(state.emitter), data_(data), padded_(padded), before_(before), rank_(before.size()) {
    if (layout == Layout::kPlain) {
      axes_.push_back(1);
    } else {
      channels_ = padded.shape[1];
    }
    first_spatial_ = axes_.size();
    for (size_t d = 0; d + 1 < rank_; ++d) axes_.push_back(d + 2);
    left_ = before.back() * channels_;
    width_ = data.shape[rank_ + 1] * channels_;
    right_ = after.back() * channels_;
  }

  /// A stage that copies all rows; `fill` gives what is around them.
  void Emit(const std::function<Value()>& fill) {
    target_ = AsRows(padded_);
    const Buffer source = AsRows(data_);
    const Shape units(target_.shape.begin(), target_.shape.end() - 1);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) { EmitRow(source, Delinearise(e_, unit, units), fill); });
    });
    e_.Call(name, NumElements(units), state_.IsParallel(static_cast<double>(NumElements(padded_.shape)) * 2));
  }

 private:
  /// `buffer` as [units…, elements of a row].
  Buffer AsRows(const Buffer& buffer) const {
    Buffer rows = buffer;
    rows.shape.clear();
    rows.strides.clear();
    for (const size_t axis : axes_) {
      rows.shape.push_back(buffer.shape[axis]);
      rows.strides.push_back(buffer.strides[axis]);
    }
    rows.shape.push_back(buffer.shape[rank_ + 1] * channels_);
    rows.strides.push_back(1);
    return rows;
  }

  Indices At(const I64s& row, const I64& first, int64_t from) {
    Indices indices = Bases(row);
    indices.push_back({e_.Plus(first, from), 1});
    return indices;
  }

  void Fill(const I64s& row, int64_t from, int64_t count, const std::function<Value()>& fill) {
    e_.ForLanes(count, [&](const I64& first) { e_.Store(target_, At(row, first, from), fill()); });
  }

  void EmitRow(const Buffer& source, const I64s& row, const std::function<Value()>& fill) {
    I1 inside = e_.True();
    Indices read;
    for (size_t i = 0; i < first_spatial_; ++i) read.push_back({row[i], 0});
    for (size_t d = 0; d + 1 < rank_; ++d) {
      const I64 of_data = e_.Plus(row[first_spatial_ + d], -before_[d]);
      read.push_back({of_data, 0});
      const I1 above = e_.IntCompare("sge", of_data, e_.Int(0));
      const I1 below = e_.IntCompare("slt", of_data, e_.Int(data_.shape[d + 2]));
      inside = e_.And(inside, e_.And(above, below));
    }
    const I1 outside = e_.Not(inside);
    e_.If(inside, [&] {
      Fill(row, 0, left_, fill);
      read.push_back({});
      e_.ForLanes(width_, [&](const I64& first) {
        read.back() = {first, 1};
        e_.Store(target_, At(row, first, left_), e_.Load(source, read));
      });
      Fill(row, left_ + width_, right_, fill);
    });
    e_.If(outside, [&] { Fill(row, 0, left_ + width_ + right_, fill); });
  }

  PartitionState& state_;
  Emitter& e_;
  const Buffer& data_;
  const Buffer& padded_;
  const std::vector<int64_t>& before_;
  size_t rank_;                               ///< spatial dimensions
  std::vector<size_t> axes_{0};               ///< of units
  size_t first_spatial_ = 0;                  ///< place of the first spatial one among them
  int64_t channels_ = 1;                      ///< elements of a pixel that follow each other
  int64_t left_ = 0, width_ = 0, right_ = 0;  ///< elements of a row
  Buffer target_;                             ///< the larger image as rows
};

}  // namespace

Buffer PaddedData(PartitionState& state, const Expr& expr, const std::vector<int64_t>& before,
                  const std::vector<int64_t>& after, DataType dtype, const std::function<Value()>& fill,
                  Layout layout) {
  const auto is_none = [](const std::vector<int64_t>& pad) {
    return std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p == 0; });
  };
  const bool is_padded = !is_none(before) || !is_none(after);
  // A copy between zeros converts on the way.
  const DataType own = KeptType(state, expr);
  const bool converts = is_padded && KindOf(own) == KindOf(dtype);
  const bool is_plain = layout == Layout::kPlain;
  const DataType read = converts ? own : dtype;
  const Buffer data = is_plain ? MaterialiseAs(state, expr, layout, read) : ChannelsLastData(state, expr, read);
  if (!is_padded && (is_plain || IsDense(data))) return data;
  Shape shape = data.shape;
  for (size_t d = 0; d < before.size(); ++d) shape[d + 2] += before[d] + after[d];
  const Buffer padded = state.AddWorkspace(shape, layout, dtype);
  const auto zero = [&] { return state.math().Number(0, KindOf(dtype)); };
  PaddedCopy(state, data, padded, before, after, layout).Emit(fill ? fill : zero);
  return padded;
}

}  // namespace collage::native
