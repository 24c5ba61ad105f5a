// layout.cc: changing the memory order of a value is a batch of 2-d transposes, done in cache-sized blocks.
#include "collage/runtime/layout.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "runtime/transpose.h"

namespace collage {
namespace {

constexpr int64_t kBlock = 16;                  // rows and columns transposed at a time: one cache line of float32
constexpr int64_t kParallelBytes = 256 * 1024;  // smaller tensors are not worth a second thread

struct Transpose {
  const char* source;
  char* target;
  int64_t batch;
  int64_t rows;     // source is [batch][rows][columns]
  int64_t columns;  // target is [batch][columns][rows]
  size_t element_bytes;
};

/// Target rows [first, last), that is, source columns.
template <typename T>
void TransposeRows(const T* source, T* target, int64_t rows, int64_t columns, int64_t first, int64_t last) {
  if constexpr (sizeof(T) == 4) return TransposeWords(source, target, rows, columns, first, last);
  for (int64_t c0 = first; c0 < last; c0 += kBlock) {
    const int64_t c1 = std::min(c0 + kBlock, last);
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      const int64_t r1 = std::min(r0 + kBlock, rows);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) target[c * rows + r] = source[r * columns + c];
      }
    }
  }
}

template <typename T>
void TransposePart(const Transpose& work, int64_t begin, int64_t end) {
  // Units of work are blocks of target rows, over all batches.
  const int64_t blocks = (work.columns + kBlock - 1) / kBlock;
  for (int64_t unit = begin; unit < end;) {
    const int64_t batch = unit / blocks;
    const int64_t first = unit % blocks;
    const int64_t last = std::min(blocks, first + (end - unit));
    const int64_t offset = batch * work.rows * work.columns;
    TransposeRows(reinterpret_cast<const T*>(work.source) + offset, reinterpret_cast<T*>(work.target) + offset,
                  work.rows, work.columns, first * kBlock, std::min(last * kBlock, work.columns));
    unit += last - first;
  }
}

void RunTranspose(void* context, int64_t begin, int64_t end) {
  const auto& work = *static_cast<const Transpose*>(context);
  switch (work.element_bytes) {
    case 1: return TransposePart<uint8_t>(work, begin, end);
    case 2: return TransposePart<uint16_t>(work, begin, end);
    case 4: return TransposePart<uint32_t>(work, begin, end);
    case 8: return TransposePart<uint64_t>(work, begin, end);
    default: COLLAGE_CHECK(false) << "elements of " << work.element_bytes << " bytes";
  }
}

}  // namespace

std::string_view ToString(Layout layout) { return layout == Layout::kPlain ? "plain" : "channels_last"; }

std::vector<int> PhysicalAxes(Layout layout, int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  if (layout == Layout::kChannelsLast) {
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
  const int64_t bytes = NumElements(shape) * static_cast<int64_t>(element_bytes);
  const int64_t channels = from == to ? 1 : shape[1];
  int64_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  if (from == to || channels == 1 || pixels == 1) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
    return;
  }
  Transpose work{
      static_cast<const char*>(source), static_cast<char*>(target), shape[0], channels, pixels, element_bytes};
  if (to == Layout::kPlain) std::swap(work.rows, work.columns);
  const int64_t units = work.batch * ((work.columns + kBlock - 1) / kBlock);
  if (bytes < kParallelBytes) return RunTranspose(&work, 0, units);
  ParallelFor(units, &RunTranspose, &work);
}

}  // namespace collage
