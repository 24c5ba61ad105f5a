// buffer.h: tensors in the memory that a kernel gets: which of its buffers, and where their elements lie in it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "collage/ir/type.h"
#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"

namespace collage::native {

/// The role of a buffer. The kernel's array has its buffers in this order.
enum class BufferRole : uint8_t { kInput, kConstant, kOutput, kWorkspace, kNone };

/// One buffer of those that the kernel gets, before it is known how many of each role there are.
struct BufferRef {
  BufferRole role = BufferRole::kNone;
  int index = 0;  ///< among those of its role

  auto operator<=>(const BufferRef&) const = default;
};

inline BufferRef InputRef(int index) { return {BufferRole::kInput, index}; }
inline BufferRef OutputRef(int index) { return {BufferRole::kOutput, index}; }
/// The one buffer in which all intermediate results lie.
inline BufferRef WorkspaceRef() { return {BufferRole::kWorkspace, 0}; }

/// How many buffers of each role a finished kernel has.
struct BufferCounts {
  int inputs = 0;
  int constants = 0;
  int outputs = 0;

  /// The position of `buffer` in the kernel's array.
  int PositionOf(BufferRef buffer) const;
};

/// The place of one piece of a tensor whose pieces are in several buffers, side by side along one of its dimensions.
struct BufferPiece {
  BufferRef ref;
  int64_t begin = 0;             ///< its first index along that dimension
  Shape shape;                   ///< the piece's own
  std::vector<int64_t> strides;  ///< in elements, in `ref`
};

/// A tensor in memory: which buffer, and its strides in elements by logical dimension.
struct Buffer {
  BufferRef ref;
  int64_t offset_bytes = 0;  ///< in that buffer (workspace holds several tensors)
  DataType dtype;
  Shape shape;
  std::vector<int64_t> strides;
  bool is_constant = false;  ///< nothing is ever written there: no element need be read twice
  /// If there are any, the tensor is only written, in vectors that stay within one piece, and `ref` is none; the
  /// strides are those that it would have in one buffer.
  std::vector<BufferPiece> pieces = {};
  int split_axis = 0;  ///< the dimension along which pieces lie

  /// Whether it is a place in memory at all.
  bool exists() const { return ref.role != BufferRole::kNone || is_split(); }
  bool is_split() const { return !pieces.empty(); }
  bool is_contiguous() const;
};

/// Strides by logical dimension of a tensor that lies in memory in `layout`.
std::vector<int64_t> LayoutStrides(const Shape& shape, Layout layout);

/// Text of a module in which positions of buffers are filled in at the end, when they are known.
class ModuleText {
 public:
  ModuleText& operator+=(const std::string& text) {
    rest_ += text;
    return *this;
  }
  /// Adds the position of `buffer` in the kernel's array.
  ModuleText& operator+=(BufferRef buffer);
  /// The text of a kernel with `counts` buffers.
  std::string Resolved(const BufferCounts& counts) const;

 private:
  struct Piece {
    std::string text;
    BufferRef behind;  ///< the buffer whose position follows the text
  };
  std::vector<Piece> pieces_;
  std::string rest_;
};

}  // namespace collage::native
