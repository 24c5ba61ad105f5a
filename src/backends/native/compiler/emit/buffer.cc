// buffer.cc: strides, and positions of buffers in the kernel's array.
#include "backends/native/compiler/emit/buffer.h"

#include <utility>

#include "collage/support/error.h"

namespace collage::native {

int BufferCounts::PositionOf(BufferRef buffer) const {
  switch (buffer.role) {
    case BufferRole::kInput: return buffer.index;
    case BufferRole::kConstant: return inputs + buffer.index;
    case BufferRole::kOutput: return inputs + constants + buffer.index;
    case BufferRole::kWorkspace: return inputs + constants + outputs;
    case BufferRole::kNone: break;
  }
  COLLAGE_CHECK(false) << "a tensor that lies nowhere has no position";
  return 0;
}

bool Buffer::is_contiguous() const { return strides == LayoutStrides(shape, Layout::kPlain); }

std::vector<int64_t> LayoutStrides(const Shape& shape, Layout layout) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  const std::vector<int> axes = PhysicalAxes(layout, static_cast<int>(shape.size()));
  for (size_t i = axes.size(); i-- > 0;) {
    strides[static_cast<size_t>(axes[i])] = stride;
    stride *= shape[static_cast<size_t>(axes[i])];
  }
  return strides;
}

ModuleText& ModuleText::operator+=(BufferRef buffer) {
  pieces_.push_back({std::exchange(rest_, {}), buffer});
  return *this;
}

std::string ModuleText::Resolved(const BufferCounts& counts) const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.text + std::to_string(counts.PositionOf(piece.behind));
  return text + rest_;
}

}  // namespace collage::native
