// loop_nest.cc: positions of flattened loops, the order of dimensions in memory, even shares.
#include "backends/native/compiler/stages/loop_nest.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace collage::native {

I64s Delinearise(Emitter& e, const I64& flat, const std::vector<int64_t>& sizes) {
  I64s parts(sizes.size());
  I64 rest = flat;
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
    const I64 size = e.Int(sizes[i]);
    parts[i] = e.IntOp("remui", rest, size);
    rest = e.IntOp("divui", rest, size);
  }
  return parts;
}

void ForTiles(Emitter& e, const I64& from, const I64& to, int64_t most,
              const std::function<void(const I64& first, int64_t count)>& body) {
  const I64 left = e.IntOp("remui", e.IntOp("subi", to, from), e.Int(most));
  I64 first = e.IntOp("subi", to, left);
  e.For(from, first, most, [&](const I64& at) { body(at, most); });
  int64_t count = 1;
  while (count * 2 < most) count *= 2;
  for (; count > 0; count /= 2) {
    const I64 bit = e.IntOp("andi", left, e.Int(count));
    e.If(e.IntCompare("ne", bit, e.Int(0)), [&] { body(first, count); });
    first = e.AddInt(first, bit);
  }
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

void EmitShares(PartitionState& state, int64_t slots, int64_t units,
                const std::function<void(const I64& slot, const I64& unit, const I64& first)>& body) {
  Emitter& e = state.emitter;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& slot) {
      const auto share = [&](const I64& of) { return e.IntOp("divui", e.MulInt(of, units), e.Int(slots)); };
      const I64 first = share(slot);
      e.For(first, share(e.Plus(slot, 1)), 1, [&](const I64& unit) { body(slot, unit, first); });
    });
  });
  e.Call(name, slots, slots > 1);
}

Indices Bases(const I64s& bases) {
  Indices indices;
  for (const I64& base : bases) indices.push_back({base, 0});
  return indices;
}

}  // namespace collage::native
