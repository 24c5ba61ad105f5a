// movement.cc: pads and concatenations, which move elements without looking at them.
#include <cstring>

#include "backends/xnnpack/operators/build.h"

namespace collage::xnnpack_toolchain {
namespace {

Part Pad(const Operation& o) {
  const std::vector<size_t> shape = Sizes(o.data[0].shape), before = Sizes(o.before), after = Sizes(o.after);
  Part part;
  const auto set_up_with = [&](auto set_up) {
    part.set_up = [=](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
      return set_up(op, shape.size(), shape.data(), before.data(), after.data(), data[0], result, pool);
    };
  };
  if (o.element == Element::kFloat32) {
    const auto value = static_cast<float>(o.alpha);
    part.op = Make(xnn_create_constant_pad_nd_x32, static_cast<const void*>(&value), 0u);
    set_up_with(xnn_setup_constant_pad_nd_x32);
  } else {
    const auto value = static_cast<uint8_t>(static_cast<int>(o.alpha));
    part.op = Make(xnn_create_constant_pad_nd_x8, static_cast<const void*>(&value), 0u);
    set_up_with(xnn_setup_constant_pad_nd_x8);
  }
  return part;
}

/// One strided copy for each operand: what lies inside of the axis is a row.
std::vector<Part> Concatenate(const Operation& o) {
  size_t rows = 1, inner = 1;
  for (size_t d = 0; d < o.result.size(); ++d) (d < Size(o.axis) ? rows : inner) *= Size(o.result[d]);
  const size_t element_bytes = o.element == Element::kFloat32 ? sizeof(float) : 1;
  const bool wide = o.element == Element::kFloat32;
  std::vector<Part> parts;
  size_t offset = 0;
  for (size_t i = 0; i < o.data.size(); ++i) {
    const size_t row = Size(NumElements(o.data[i].shape)) / rows;
    Part part;
    part.op = Make(wide ? xnn_create_copy_nc_x32 : xnn_create_copy_nc_x8, row, row, inner, 0u);
    const auto set_up = wide ? xnn_setup_copy_nc_x32 : xnn_setup_copy_nc_x8;
    part.set_up = [=](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
      return set_up(op, rows, data[i], static_cast<std::byte*>(result) + offset * element_bytes, pool);
    };
    offset += row;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::vector<Part> BuildMovement(const Operation& o) {
  if (o.kind == Kind::kConcatenate) return Concatenate(o);
  std::vector<Part> parts;
  parts.push_back(Pad(o));
  return parts;
}

}  // namespace collage::xnnpack_toolchain
