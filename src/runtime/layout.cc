// layout.cc: changing the memory order of a value is a batch of 2-d transposes, done in cache-sized blocks; what its
// elements are kept as is changed on the way.
#include "collage/runtime/layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "runtime/narrow_runs.h"
#include "runtime/transpose.h"

namespace collage {
namespace {

constexpr int64_t kBlock = 16;                  // rows and columns transposed at a time: one cache line of float32
constexpr int64_t kParallelBytes = 256 * 1024;  // smaller tensors are not worth a second thread

/// Definition of a layout.
struct Row {
  Layout layout;
  const char* name;
  char letter;
  bool is_channels_last;
  DataType kept;  ///< the type that float32 elements are kept in
};
constexpr std::array kRows{
    Row{Layout::kPlain, "plain", 'p', false, kFloat32},
    Row{Layout::kChannelsLast, "channels_last", 'c', true, kFloat32},
    Row{Layout::kPlainBFloat16, "plain_bf16", 'P', false, kBFloat16},
    Row{Layout::kChannelsLastBFloat16, "channels_last_bf16", 'C', true, kBFloat16},
    Row{Layout::kPlainFloat16, "plain_fp16", 'q', false, kFloat16},
    Row{Layout::kChannelsLastFloat16, "channels_last_fp16", 'd', true, kFloat16},
};
constexpr auto kLayouts = [] {
  std::array<Layout, kRows.size()> layouts{};
  for (size_t i = 0; i < kRows.size(); ++i) layouts[i] = kRows[i].layout;
  return layouts;
}();

// A layout's number is that of its row, and this times its memory's.
constexpr size_t kMostRows = 8;
static_assert(kRows.size() <= kMostRows);

const Row& RowOf(Layout layout) {
  COLLAGE_CHECK(IsLayout(static_cast<int64_t>(layout))) << "there is no layout " << static_cast<int>(layout);
  return kRows[static_cast<size_t>(layout) % kMostRows];
}

/// Names of all layouts, by number; empty where there is none.
const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(AllMemories().size() * kMostRows);
    for (const Memory memory : AllMemories()) {
      for (const Row& row : kRows) {
        std::string& name = all[static_cast<size_t>(In(memory, row.layout))];
        name = row.name;
        if (memory != Memory::kHost) name.append("@").append(ToString(memory));
      }
    }
    return all;
  }();
  return names;
}

/// Converts elements, `count` at a time. Null: they stay the same.
using ChangeFn = void (*)(const void* source, void* target, int64_t count);

template <auto convert, typename From, typename To>
void Change(const void* source, void* target, int64_t count) {
  convert(static_cast<const From*>(source), static_cast<To*>(target), count);
}

template <auto widen, auto round>
void ChangeNarrow(const void* source, void* target, int64_t count) {
  constexpr int64_t kFew = 256;
  std::array<float, kFew> wide;
  for (int64_t i = 0; i < count; i += kFew) {
    const int64_t few = std::min(kFew, count - i);
    widen(static_cast<const uint16_t*>(source) + i, wide.data(), few);
    round(wide.data(), static_cast<uint16_t*>(target) + i, few);
  }
}

ChangeFn ChangeBetween(DataType from, DataType to) {
  if (from == to) return nullptr;
  if (from == kFloat32) {
    return to == kBFloat16 ? &Change<RoundToBFloat16, float, uint16_t> : &Change<RoundToFloat16, float, uint16_t>;
  }
  if (to == kFloat32) {
    return from == kBFloat16 ? &Change<WidenFromBFloat16, uint16_t, float> : &Change<WidenFromFloat16, uint16_t, float>;
  }
  return to == kBFloat16 ? &ChangeNarrow<WidenFromFloat16, RoundToBFloat16>
                         : &ChangeNarrow<WidenFromBFloat16, RoundToFloat16>;
}

struct Transpose {
  const char* source;
  char* target;
  int64_t batch;
  int64_t rows;                 // source is [batch][rows][columns]
  int64_t columns;              // target is [batch][columns][rows]
  size_t element_bytes;         // of the target
  ChangeFn change;              // null where elements are kept as they are
  size_t source_element_bytes;  // another where they are not
};

/// Target rows [first, last), that is, source columns.
template <typename T>
void TransposeRows(const T* source, T* target, int64_t rows, int64_t columns, int64_t first, int64_t last) {
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
void TransposeRows(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns, int64_t first,
                   int64_t last) {
  TransposeWords(source, target, rows, columns, first, last);
}

/// Transposes and converts elements: blocks of the source are converted first, then transposed.
template <typename To>
void ChangeAndTurnRows(const Transpose& work, int64_t batch, int64_t first, int64_t last) {
  constexpr int64_t kWide = 256;
  std::array<To, kBlock * kWide> block;
  const int64_t rows = work.rows;
  const int64_t columns = work.columns;
  To* target = reinterpret_cast<To*>(work.target) + batch * rows * columns;
  for (int64_t c0 = first; c0 < last; c0 += kWide) {
    const int64_t width = std::min(kWide, last - c0);
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      const int64_t height = std::min(kBlock, rows - r0);
      const auto at = [&](int64_t r) {
        const int64_t element = (batch * rows + r0 + r) * columns + c0;
        return work.source + element * static_cast<int64_t>(work.source_element_bytes);
      };
      if (width == columns) {
        work.change(at(0), block.data(), height * width);
      } else {
        for (int64_t r = 0; r < height; ++r) work.change(at(r), block.data() + r * width, width);
      }
      for (int64_t c = 0; c < width; ++c) {
        for (int64_t r = 0; r < height; ++r) {
          target[(c0 + c) * rows + r0 + r] = block[static_cast<size_t>(r * width + c)];
        }
      }
    }
  }
}

/// Units of work are blocks of target rows, over all batches.
template <typename Rows>
void ForBlocks(const Transpose& work, int64_t begin, int64_t end, const Rows& rows) {
  const int64_t blocks = (work.columns + kBlock - 1) / kBlock;
  for (int64_t unit = begin; unit < end;) {
    const int64_t batch = unit / blocks;
    const int64_t first = unit % blocks;
    const int64_t last = std::min(blocks, first + (end - unit));
    rows(batch, first * kBlock, std::min(last * kBlock, work.columns));
    unit += last - first;
  }
}

template <typename T>
void TransposePart(const Transpose& work, int64_t begin, int64_t end) {
  ForBlocks(work, begin, end, [&](int64_t batch, int64_t first, int64_t last) {
    const int64_t offset = batch * work.rows * work.columns;
    TransposeRows(reinterpret_cast<const T*>(work.source) + offset, reinterpret_cast<T*>(work.target) + offset,
                  work.rows, work.columns, first, last);
  });
}

template <typename To>
void ChangeAndTurnPart(const Transpose& work, int64_t begin, int64_t end) {
  ForBlocks(work, begin, end,
            [&](int64_t batch, int64_t first, int64_t last) { ChangeAndTurnRows<To>(work, batch, first, last); });
}

void RunTranspose(void* context, int64_t begin, int64_t end) {
  const auto& work = *static_cast<const Transpose*>(context);
  if (work.change != nullptr) {
    if (work.element_bytes == sizeof(float)) return ChangeAndTurnPart<uint32_t>(work, begin, end);
    return ChangeAndTurnPart<uint16_t>(work, begin, end);
  }
  switch (work.element_bytes) {
    case 1: return TransposePart<uint8_t>(work, begin, end);
    case 2: return TransposePart<uint16_t>(work, begin, end);
    case 4: return TransposePart<uint32_t>(work, begin, end);
    case 8: return TransposePart<uint64_t>(work, begin, end);
    default: COLLAGE_CHECK(false) << "elements of " << work.element_bytes << " bytes";
  }
}

/// From one memory to another.
void CopyBetween(const void* source, Memory from, void* target, Memory to, size_t bytes) {
  if (from == Memory::kHost) {
    GetDevice(to).CopyIn(target, source, bytes);
  } else if (to == Memory::kHost) {
    GetDevice(from).CopyOut(target, source, bytes);
  } else {
    GetDevice(to).CopyWithin(target, source, bytes);
  }
}

/// Elements that stay where they are, in blocks.
struct Run {
  const char* source;
  char* target;
  int64_t count;
  ChangeFn change;
  int64_t source_element_bytes;
  int64_t element_bytes;
};
constexpr int64_t kRunBlock = 4096;

void ChangeRun(void* context, int64_t begin, int64_t end) {
  const auto& run = *static_cast<const Run*>(context);
  const int64_t first = begin * kRunBlock;
  run.change(run.source + first * run.source_element_bytes, run.target + first * run.element_bytes,
             std::min(end * kRunBlock, run.count) - first);
}

}  // namespace

std::span<const Layout> AllLayouts() { return kLayouts; }

bool IsLayout(int64_t number) {
  return number >= 0 && number % static_cast<int64_t>(kMostRows) < std::ssize(kRows) &&
         number / static_cast<int64_t>(kMostRows) < std::ssize(AllMemories());
}

std::string_view ToString(Layout layout) {
  COLLAGE_CHECK(IsLayout(static_cast<int64_t>(layout))) << "there is no layout " << static_cast<int>(layout);
  return Names()[static_cast<size_t>(layout)];
}

std::optional<Layout> LayoutNamed(std::string_view name) {
  const auto found = std::ranges::find(Names(), name);
  return name.empty() || found == Names().end() ? std::nullopt
                                                : std::optional(static_cast<Layout>(found - Names().begin()));
}

Memory MemoryOf(Layout layout) { return static_cast<Memory>(static_cast<size_t>(layout) / kMostRows); }

Layout In(Memory memory, Layout layout) {
  return static_cast<Layout>(static_cast<size_t>(memory) * kMostRows + static_cast<size_t>(layout) % kMostRows);
}

std::vector<Layout> StepsBetween(Layout from, Layout to) {
  std::vector<Layout> steps;
  const auto go = [&](Layout next) {
    if (next != (steps.empty() ? from : steps.back())) steps.push_back(next);
  };
  const bool is_same_order = In(Memory::kHost, from) == In(Memory::kHost, to);
  if (!is_same_order || DeviceTypeOf(MemoryOf(from)) != DeviceTypeOf(MemoryOf(to))) {
    go(In(Memory::kHost, from));
    go(In(Memory::kHost, to));
  }
  go(to);
  return steps;
}

char LetterOf(Layout layout) { return RowOf(layout).letter; }

bool IsChannelsLast(Layout layout) { return RowOf(layout).is_channels_last; }

std::optional<DataType> NarrowType(Layout layout) {
  const DataType kept = RowOf(layout).kept;
  return kept == kFloat32 ? std::nullopt : std::optional(kept);
}

Layout Keeping(Layout layout, DataType dtype) {
  const auto row = std::ranges::find_if(
      kRows, [&](const Row& one) { return one.is_channels_last == IsChannelsLast(layout) && one.kept == dtype; });
  COLLAGE_CHECK(row != kRows.end()) << "float32 is not kept as " << dtype.ToString();
  return In(MemoryOf(layout), row->layout);
}

DataType StoredType(Layout layout, DataType dtype) {
  const std::optional<DataType> narrow = NarrowType(layout);
  if (!narrow) return dtype;
  COLLAGE_CHECK(dtype == kFloat32) << "values of " << dtype.ToString() << " are not kept as " << narrow->ToString();
  return *narrow;
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
  const bool is_narrow = NarrowType(from) || NarrowType(to);
  COLLAGE_CHECK(!is_narrow || element_bytes == sizeof(float)) << "only float32 is kept as a narrower type";
  const ChangeFn change = ChangeBetween(RowOf(from).kept, RowOf(to).kept);
  const size_t source_bytes = is_narrow ? RowOf(from).kept.size_bytes() : element_bytes;
  const size_t target_bytes = is_narrow ? RowOf(to).kept.size_bytes() : element_bytes;
  const int64_t count = NumElements(shape);
  const int64_t bytes = count * static_cast<int64_t>(std::max(source_bytes, target_bytes));
  const Memory memory_from = MemoryOf(from), memory_to = MemoryOf(to);
  if (memory_from != Memory::kHost || memory_to != Memory::kHost) {
    COLLAGE_CHECK(StepsBetween(from, to).size() <= 1) << "a copy from " << ToString(from) << " to " << ToString(to);
    return CopyBetween(source, memory_from, target, memory_to, static_cast<size_t>(bytes));
  }
  const bool turns = IsChannelsLast(from) != IsChannelsLast(to);
  const int64_t channels = turns ? shape[1] : 1;
  int64_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  const auto* begin = static_cast<const char*>(source);
  auto* result = static_cast<char*>(target);
  if (channels == 1 || pixels == 1) {
    if (change == nullptr) {
      std::memcpy(target, source, static_cast<size_t>(bytes));
      return;
    }
    Run run{begin, result, count, change, static_cast<int64_t>(source_bytes), static_cast<int64_t>(target_bytes)};
    const int64_t units = (count + kRunBlock - 1) / kRunBlock;
    if (bytes < kParallelBytes) return ChangeRun(&run, 0, units);
    return ParallelFor(units, &ChangeRun, &run);
  }
  Transpose work{begin, result, shape[0], channels, pixels, target_bytes, change, source_bytes};
  if (!IsChannelsLast(to)) std::swap(work.rows, work.columns);
  const int64_t units = work.batch * ((work.columns + kBlock - 1) / kBlock);
  if (bytes < kParallelBytes) return RunTranspose(&work, 0, units);
  ParallelFor(units, &RunTranspose, &work);
}

}  // namespace collage
