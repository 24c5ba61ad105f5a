// padded_data.cc: the data of a convolution as its loops read it: channels innermost, and what is around it, too.
#include "backends/native/compiler/emit/padded_data.h"

#include <algorithm>

#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/emit/elements.h"
#include "backends/native/compiler/emit/loop_nest.h"
#include "backends/native/compiler/emit/materialise.h"

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

Buffer PaddedData(PartitionState& state, const Expr& expr, const std::vector<int64_t>& before,
                  const std::vector<int64_t>& after, DataType dtype, const std::function<Value()>& fill,
                  Layout layout) {
  Emitter& e = state.emitter;
  const auto is_none = [](const std::vector<int64_t>& pad) {
    return std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p == 0; });
  };
  const bool is_padded = !is_none(before) || !is_none(after);
  // What is copied between zeros is converted on the way.
  const DataType own = KeptType(state, expr);
  const bool converts = is_padded && KindOf(own) == KindOf(dtype);
  const bool is_plain = layout == Layout::kPlain;
  const DataType read = converts ? own : dtype;
  const Buffer data = is_plain ? MaterialiseAs(state, expr, layout, read) : ChannelsLastData(state, expr, read);
  if (!is_padded && (is_plain || IsDense(data))) return data;
  const size_t rank = before.size();
  Shape shape = data.shape;
  for (size_t d = 0; d < rank; ++d) shape[d + 2] += before[d] + after[d];
  const Buffer padded = state.AddWorkspace(shape, layout, dtype);
  // Units are rows: an image, a channel where these do not lie innermost, the leading spatial dimensions; a row of
  // pixels is one run of memory.
  const int64_t channels = is_plain ? 1 : shape[1];
  std::vector<size_t> axes{0};
  if (is_plain) axes.push_back(1);
  const size_t first_spatial = axes.size();
  for (size_t d = 0; d + 1 < rank; ++d) axes.push_back(d + 2);
  const auto as_rows = [&](const Buffer& buffer) {
    Buffer rows = buffer;
    rows.shape.clear();
    rows.strides.clear();
    for (const size_t axis : axes) {
      rows.shape.push_back(buffer.shape[axis]);
      rows.strides.push_back(buffer.strides[axis]);
    }
    rows.shape.push_back(buffer.shape[rank + 1] * channels);
    rows.strides.push_back(1);
    return rows;
  };
  const Buffer target = as_rows(padded);
  const Buffer source = as_rows(data);
  const Shape units(target.shape.begin(), target.shape.end() - 1);
  const int64_t left = before[rank - 1] * channels;
  const int64_t width = data.shape[rank + 1] * channels;
  const int64_t right = after[rank - 1] * channels;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& unit) {
      const I64s parts = Delinearise(e, unit, units);
      const auto at = [&](const I64& first, int64_t from) {
        Indices indices = Bases(parts);
        indices.push_back({e.Plus(first, from), 1});
        return indices;
      };
      const auto fill_run = [&](int64_t from, int64_t count) {
        e.ForLanes(count, [&](const I64& first) {
          e.Store(target, at(first, from), fill ? fill() : state.math().Number(0, KindOf(dtype)));
        });
      };
      I1 inside = e.True();
      Indices read;
      for (size_t i = 0; i < first_spatial; ++i) read.push_back({parts[i], 0});
      for (size_t d = 0; d + 1 < rank; ++d) {
        const I64 row = e.Plus(parts[first_spatial + d], -before[d]);
        read.push_back({row, 0});
        const I1 above = e.IntCompare("sge", row, e.Int(0));
        const I1 below = e.IntCompare("slt", row, e.Int(data.shape[d + 2]));
        inside = e.And(inside, e.And(above, below));
      }
      const I1 outside = e.Not(inside);
      e.If(inside, [&] {
        fill_run(0, left);
        read.push_back({});
        e.ForLanes(width, [&](const I64& first) {
          read.back() = {first, 1};
          e.Store(target, at(first, left), e.Load(source, read));
        });
        fill_run(left + width, right);
      });
      e.If(outside, [&] { fill_run(0, left + width + right); });
    });
  });
  e.Call(name, NumElements(units), state.IsParallel(static_cast<double>(NumElements(shape)) * 2));
  return padded;
}

}  // namespace collage::native
