// programs.h: programs that the interpreter and the machine for bytecode must run alike, and values to run them on.
#pragma once

#include "collage/runtime/tensor.h"

namespace collage {

inline Tensor Scalar(double value, DataType dtype) {
  Tensor tensor = Tensor::Empty({}, dtype);
  tensor.Set(0, value);
  return tensor;
}

inline constexpr const char* kList = "type List[A] { Cons(A, List[A]), Nil, }\n";

/// Gives (11, 111) when statements take effect in their order.
inline constexpr const char* kWritesInOrder = R"(def @main() {
    let %r = ref(1);
    let %add = fn (%n: int32) { ref_write(%r, ref_read(%r) + %n) };
    %add(10);
    let %before = ref_read(%r);
    %add(100);
    (%before, ref_read(%r))
  })";

}  // namespace collage
