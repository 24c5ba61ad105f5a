// pool_windows.cc: where windows start, and which of their taps lie inside the data.
#include "backends/native/compiler/reduction/pool_windows.h"

#include <algorithm>
#include <array>
#include <functional>

#include "collage/ir/op.h"
#include "ir/ops/relations.h"

namespace collage::native {

std::pair<int64_t, int64_t> Windows::Inside() const {
  int64_t first = 0;
  while (first < size() && !IsInside(first)) ++first;
  int64_t end = size();
  while (end > first && !IsInside(end - 1)) --end;
  return {first, end};
}

std::vector<int64_t> Windows::UsedOffsets() const {
  std::vector<int64_t> used;
  for (int64_t offset = 0; offset < extent(); ++offset) {
    bool is_used = false;
    for (int64_t at = offset; at >= 0 && !is_used; at -= stride) is_used = at % dilation == 0;
    if (is_used) used.push_back(offset);
  }
  return used;
}

std::vector<int64_t> Windows::OffsetsAt(int64_t out) const {
  std::vector<int64_t> offsets;
  for (int64_t tap = low.data<int64_t>()[out]; tap < high.data<int64_t>()[out]; ++tap) {
    offsets.push_back(tap * dilation);
  }
  return offsets;
}

namespace {

/// How many of `taps` lie before `bound`: tap t at `start` + t * `dilation`.
int64_t TapsBefore(int64_t bound, int64_t start, int64_t dilation, int64_t taps) {
  return std::clamp<int64_t>((bound - start + dilation - 1) / dilation, 0, taps);
}

/// `window`: of an output position, where its tap 0 lies, which taps lie inside, and how many count.
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

}  // namespace

PoolGeometry::PoolGeometry(const CallNode& call, int rank)
    : size(PerDimension(call.attrs().Ints("pool_size"), rank)),
      stride(PerDimension(call.attrs().Ints("strides"), rank)),
      dilation(PerDimension(call.attrs().Ints("dilation"), rank)),
      counts_padding(call.op()->FindAttr("count_include_pad") != nullptr && call.attrs().Bool("count_include_pad")) {
  Padding padding = SpatialPadding(call.attrs(), rank);
  pad_before = std::move(padding.before);
  pad_after = std::move(padding.after);
}

std::vector<Windows> FixedWindows(const CallNode& call, const Shape& in, const Shape& out) {
  const size_t rank = in.size() - 2;
  const PoolGeometry of(call, static_cast<int>(rank));
  std::vector<Windows> all;
  for (size_t d = 0; d < rank; ++d) {
    all.push_back(MakeWindows(out[d + 2], [&](int64_t o) -> std::array<int64_t, 4> {
      const int64_t start = o * of.stride[d] - of.pad_before[d];
      const auto before = [&](int64_t bound) { return TapsBefore(bound, start, of.dilation[d], of.size[d]); };
      const int64_t low = start >= 0 ? 0 : before(0);
      const int64_t high = before(in[d + 2]);
      return {start, low, high, of.counts_padding ? before(in[d + 2] + of.pad_after[d]) : high - low};
    }));
    all.back().stride = of.stride[d];
    all.back().dilation = of.dilation[d];
    all.back().pad = of.pad_before[d];
    all.back().most_taps = of.size[d];
  }
  return all;
}

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

std::optional<Windows> OverRepeated(const Windows& windows, const Tensor& positions, int64_t in, bool is_max) {
  // The elements of each window, each once, and how often it takes them.
  const int64_t* position = positions.data<int64_t>();
  std::vector<std::vector<int64_t>> taken;
  int64_t times = 0;
  for (int64_t o = 0; o < windows.size(); ++o) {
    taken.emplace_back();
    std::vector<int64_t> counts;
    for (int64_t offset : windows.OffsetsAt(o)) {
      const int64_t place = position[windows.start.data<int64_t>()[o] + offset];
      if (taken.back().empty() || taken.back().back() != place) {
        taken.back().push_back(place);
        counts.push_back(0);
      }
      ++counts.back();
    }
    for (int64_t count : counts) {
      if (times == 0) times = count;
      if (!is_max && count != times) return std::nullopt;
    }
  }
  // The first two whole windows tell how all must lie.
  size_t most = 0;
  for (const auto& own : taken) most = std::max(most, own.size());
  std::vector<int64_t> whole;
  for (size_t o = 0; o < taken.size(); ++o) {
    if (taken[o].size() == most) whole.push_back(static_cast<int64_t>(o));
  }
  if (most == 0) return std::nullopt;
  const auto first_of = [&](int64_t o) { return taken[static_cast<size_t>(o)][0]; };
  Windows result;
  result.most_taps = static_cast<int64_t>(most);
  if (most > 1) result.dilation = taken[static_cast<size_t>(whole[0])][1] - first_of(whole[0]);
  if (whole.size() > 1) result.stride = (first_of(whole[1]) - first_of(whole[0])) / (whole[1] - whole[0]);
  if (result.dilation < 1 || result.stride < 1) return std::nullopt;
  result.pad = whole[0] * result.stride - first_of(whole[0]);
  const auto start = [&](int64_t o) { return o * result.stride - result.pad; };
  const auto before = [&](int64_t o, int64_t bound) {
    return TapsBefore(bound, start(o), result.dilation, result.most_taps);
  };
  Windows tables = MakeWindows(windows.size(), [&](int64_t o) -> std::array<int64_t, 4> {
    const int64_t low = start(o) >= 0 ? 0 : before(o, 0);
    return {start(o), low, before(o, in), 1};
  });
  result.start = tables.start;
  result.low = tables.low;
  result.high = tables.high;
  result.share = windows.share.Clone();
  for (int64_t o = 0; o < result.size(); ++o) {
    result.share.data<float>()[o] *= static_cast<float>(times);
    std::vector<int64_t> own = result.OffsetsAt(o);
    for (int64_t& place : own) place += start(o);
    if (own != taken[static_cast<size_t>(o)]) return std::nullopt;
  }
  return result;
}

}  // namespace collage::native
