// kernels.h: what the compiler hands to the kernels: the blob of an executable.
#pragma once

#include <cstdint>

namespace scan {

enum class Operation : int64_t { kSum };

/// Of `count` independent rows of `length` elements each.
struct Blob {
  Operation operation;
  int64_t count;
  int64_t length;
};

}  // namespace scan
