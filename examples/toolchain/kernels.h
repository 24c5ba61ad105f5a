// kernels.h: the blob that the compiler writes into an executable for the kernels.
#pragma once

#include <cstdint>

namespace scan {

enum class Operation : int64_t { kSum };

/// Describes `count` independent rows of `length` elements each.
struct Blob {
  Operation operation;
  int64_t count;
  int64_t length;
};

}  // namespace scan
