// layout.cc: changing the memory order of a value is a batch of 2-d transposes, done in cache-sized blocks; what its
// elements are kept as is changed on the way.
#include "collage/runtime/layout.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "runtime/bfloat16_runs.h"
#include "runtime/transpose.h"
#include "support/numbers.h"

namespace collage {
namespace {

constexpr int64_t kBlock = 16;                  // rows and columns transposed at a time: one cache line of float32
constexpr int64_t kParallelBytes = 256 * 1024;  // smaller tensors are not worth a second thread

/// What becomes of elements on the way.
enum class Change : uint8_t { kNone, kRound, kWiden };

struct Transpose {
  const char* source;
  char* target;
  int64_t batch;
  int64_t rows;     // source is [batch][rows][columns]
  int64_t columns;  // target is [batch][columns][rows]
  size_t element_bytes;
  Change change = Change::kNone;
};

uint16_t Changed(float value) { return FloatToBFloat16(value); }
float Changed(uint16_t value) { return BFloat16ToFloat(value); }
/// Target rows [first, last), that is, source columns.
template <typename From, typename To>
void TransposeRows(const From* source, To* target, int64_t rows, int64_t columns, int64_t first, int64_t last) {
  for (int64_t c0 = first; c0 < last; c0 += kBlock) {
    const int64_t c1 = std::min(c0 + kBlock, last);
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      const int64_t r1 = std::min(r0 + kBlock, rows);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) {
          const From& element = source[r * columns + c];
          if constexpr (std::is_same_v<From, To>) {
            target[c * rows + r] = element;
          } else {
            target[c * rows + r] = Changed(element);
          }
        }
      }
    }
  }
}
void TransposeRows(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns, int64_t first,
                   int64_t last) {
  TransposeWords(source, target, rows, columns, first, last);
}

template <typename From, typename To>
void TransposePart(const Transpose& work, int64_t begin, int64_t end) {
  // Units of work are blocks of target rows, over all batches.
  const int64_t blocks = (work.columns + kBlock - 1) / kBlock;
  for (int64_t unit = begin; unit < end;) {
    const int64_t batch = unit / blocks;
    const int64_t first = unit % blocks;
    const int64_t last = std::min(blocks, first + (end - unit));
    const int64_t offset = batch * work.rows * work.columns;
    TransposeRows(reinterpret_cast<const From*>(work.source) + offset, reinterpret_cast<To*>(work.target) + offset,
                  work.rows, work.columns, first * kBlock, std::min(last * kBlock, work.columns));
    unit += last - first;
  }
}

void RunTranspose(void* context, int64_t begin, int64_t end) {
  const auto& work = *static_cast<const Transpose*>(context);
  if (work.change == Change::kRound) return TransposePart<float, uint16_t>(work, begin, end);
  if (work.change == Change::kWiden) return TransposePart<uint16_t, float>(work, begin, end);
  switch (work.element_bytes) {
    case 1: return TransposePart<uint8_t, uint8_t>(work, begin, end);
    case 2: return TransposePart<uint16_t, uint16_t>(work, begin, end);
    case 4: return TransposePart<uint32_t, uint32_t>(work, begin, end);
    case 8: return TransposePart<uint64_t, uint64_t>(work, begin, end);
    default: COLLAGE_CHECK(false) << "elements of " << work.element_bytes << " bytes";
  }
}

/// Elements that stay where they are, in blocks.
struct Run {
  const void* source;
  void* target;
  int64_t count;
  Change change;
};
constexpr int64_t kRunBlock = 4096;

void ChangeRun(void* context, int64_t begin, int64_t end) {
  const auto& run = *static_cast<const Run*>(context);
  const int64_t first = begin * kRunBlock;
  const int64_t count = std::min(end * kRunBlock, run.count) - first;
  if (run.change == Change::kRound) {
    RoundToBFloat16(static_cast<const float*>(run.source) + first, static_cast<uint16_t*>(run.target) + first, count);
  } else {
    WidenFromBFloat16(static_cast<const uint16_t*>(run.source) + first, static_cast<float*>(run.target) + first, count);
  }
}

Change ChangeBetween(Layout from, Layout to) {
  if (IsBFloat16(from) == IsBFloat16(to)) return Change::kNone;
  return IsBFloat16(to) ? Change::kRound : Change::kWiden;
}

}  // namespace

std::string_view ToString(Layout layout) {
  switch (layout) {
    case Layout::kPlain: return "plain";
    case Layout::kChannelsLast: return "channels_last";
    case Layout::kPlainBFloat16: return "plain_bf16";
    case Layout::kChannelsLastBFloat16: return "channels_last_bf16";
  }
  return "";
}

std::optional<Layout> LayoutNamed(std::string_view name) {
  for (uint8_t number = 0; number <= static_cast<uint8_t>(kLastLayout); ++number) {
    if (ToString(static_cast<Layout>(number)) == name) return static_cast<Layout>(number);
  }
  return std::nullopt;
}

bool IsChannelsLast(Layout layout) {
  return layout == Layout::kChannelsLast || layout == Layout::kChannelsLastBFloat16;
}

bool IsBFloat16(Layout layout) { return layout == Layout::kPlainBFloat16 || layout == Layout::kChannelsLastBFloat16; }

Layout InBFloat16(Layout layout) {
  return IsChannelsLast(layout) ? Layout::kChannelsLastBFloat16 : Layout::kPlainBFloat16;
}

DataType StoredType(Layout layout, DataType dtype) {
  if (!IsBFloat16(layout)) return dtype;
  COLLAGE_CHECK(dtype == kFloat32) << "values of " << dtype.ToString() << " are not kept as bfloat16";
  return kBFloat16;
}

std::vector<int> PhysicalAxes(Layout layout, int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  if (IsChannelsLast(layout)) {
    COLLAGE_CHECK(rank >= 3 && rank <= 5) << "a value of rank " << rank << " cannot be channels-last";
    axes.erase(axes.begin() + 1);
    axes.push_back(1);
  }
  return axes;
}

Shape PhysicalShape(std::span<const int64_t> shape, Layout layout) {
  Shape result;
  for (int axis : PhysicalAxes(layout, static_cast<int>(shape.size())))
    result.push_back(shape[static_cast<size_t>(axis)]);
  return result;
}

void ConvertLayout(const void* source, Layout from, void* target, Layout to, std::span<const int64_t> shape,
                   size_t element_bytes) {
  const Change change = ChangeBetween(from, to);
  if (IsBFloat16(from) || IsBFloat16(to)) {
    COLLAGE_CHECK(element_bytes == sizeof(float)) << "only float32 is kept as bfloat16";
    if (change == Change::kNone) element_bytes = sizeof(uint16_t);
  }
  const int64_t count = NumElements(shape);
  const int64_t bytes = count * static_cast<int64_t>(element_bytes);
  const bool turns = IsChannelsLast(from) != IsChannelsLast(to);
  const int64_t channels = turns ? shape[1] : 1;
  int64_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  if (channels == 1 || pixels == 1) {
    if (change == Change::kNone) {
      std::memcpy(target, source, static_cast<size_t>(bytes));
      return;
    }
    Run run{source, target, count, change};
    const int64_t units = (count + kRunBlock - 1) / kRunBlock;
    if (bytes < kParallelBytes) return ChangeRun(&run, 0, units);
    return ParallelFor(units, &ChangeRun, &run);
  }
  Transpose work{
      static_cast<const char*>(source), static_cast<char*>(target), shape[0], channels, pixels, element_bytes, change};
  if (!IsChannelsLast(to)) std::swap(work.rows, work.columns);
  const int64_t units = work.batch * ((work.columns + kBlock - 1) / kBlock);
  if (bytes < kParallelBytes) return RunTranspose(&work, 0, units);
  ParallelFor(units, &RunTranspose, &work);
}

}  // namespace collage
