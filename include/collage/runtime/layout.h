// layout.h: how the elements of a logical tensor lie in memory when it crosses a partition boundary.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// Layout of a value [N, C, spatial…] at a boundary: its memory order, the type of its stored elements, and the memory
/// that holds it. Relay's types always speak of the logical, plain shape, and of float32 where that is kept as a
/// narrower type. These are the layouts of the host's memory, which one table defines (layout.cc); `In` makes those of
/// others. Numbers are in executables: new ones come last.
enum class Layout : uint8_t {
  kPlain,                 ///< row-major in the logical order: NCW, NCHW, NCDHW and every value that has no channels
  kChannelsLast,          ///< axis 1 innermost: NWC, NHWC, NDHWC; only for ranks 3 to 5
  kPlainBFloat16,         ///< as kPlain, float32 rounded to bfloat16
  kChannelsLastBFloat16,  ///< as kChannelsLast, float32 rounded to bfloat16
  kPlainFloat16,          ///< as kPlain, float32 rounded to float16
  kChannelsLastFloat16,   ///< as kChannelsLast, float32 rounded to float16
};

/// The layouts of the host's memory, by number.
std::span<const Layout> AllLayouts();
/// Whether `number` is that of a layout in any memory.
bool IsLayout(int64_t number);
/// "plain", "channels_last", "plain_bf16", "channels_last_bf16", "plain_fp16" or "channels_last_fp16"; of another
/// memory than the host's with that: "plain@ext_dev".
std::string_view ToString(Layout layout);
/// The layout of that name; nothing where there is none.
std::optional<Layout> LayoutNamed(std::string_view name);
/// One letter, for keys; the same for all memories.
char LetterOf(Layout layout);

/// The memory of a layout.
Memory MemoryOf(Layout layout);
/// Returns the layout of the same memory order and stored type in `memory`.
Layout In(Memory memory, Layout layout);
/// How a value gets from one layout to another: the layouts that it goes through, `to` being the last; none where both
/// are the same. Each step is a copy from one memory to another that changes nothing else, or within the host's memory:
/// only there are orders and types changed.
std::vector<Layout> StepsBetween(Layout from, Layout to);

/// Whether axis 1 lies innermost.
bool IsChannelsLast(Layout layout);
/// The type below float32 that float32 elements are kept as; nothing where they are kept as they are.
std::optional<DataType> NarrowType(Layout layout);
/// Returns the layout of the same memory order with float32 elements stored as `dtype`: float32, bfloat16 or float16.
Layout Keeping(Layout layout, DataType dtype);

/// Returns the type in which elements of `dtype` are stored.
DataType StoredType(Layout layout, DataType dtype);

/// Logical axis held by each physical axis: {0, 1, 2, 3} or {0, 2, 3, 1}.
std::vector<int> PhysicalAxes(Layout layout, int rank);

/// The dimensions in memory order: (1, 64, 56, 56) channels-last is (1, 56, 56, 64).
Shape PhysicalShape(std::span<const int64_t> shape, Layout layout);

/// Copies `source` to `target`, both of logical `shape`, changing the memory order and the type of stored elements:
/// float32 is rounded to the nearest element of a narrower type, ties to even. Values beyond 65519 become infinite in
/// float16; a compilation checks whether a model comes near that (docs/costs.md). `element_bytes` belong to the logical
/// type: four if one of the layouts stores a narrower one. The buffers must not overlap. Runs on the process's thread
/// pool when the tensor is large. Both are in the host's memory, or it is one of the copies of `StepsBetween`.
void ConvertLayout(const void* source, Layout from, void* target, Layout to, std::span<const int64_t> shape,
                   size_t element_bytes);

}  // namespace collage
