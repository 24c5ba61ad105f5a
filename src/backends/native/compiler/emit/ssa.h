// ssa.h: values of the kernel that is being written, by type. A value is known by its name alone.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <string>
#include <utility>
#include <vector>

namespace collage::native {

/// The name of a value of one type of MLIR. Values of different types do not convert into each other, and text is made
/// a value only where it is written: `I64{e.Def("arith.addi …")}`.
template <typename Type>
class Ssa {
 public:
  Ssa() = default;
  explicit Ssa(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  /// Whether it is no value, but says that there is none.
  bool is_none() const { return name_.empty(); }

  auto operator<=>(const Ssa&) const = default;

 private:
  std::string name_;
};

using I64 = Ssa<struct I64Type>;        ///< a size, a coordinate, an offset
using I1 = Ssa<struct I1Type>;          ///< a condition
using F32 = Ssa<struct F32Type>;        ///< one element, float32
using Ptr = Ssa<struct PtrType>;        ///< an address
using Mask = Ssa<struct MaskType>;      ///< vector<lanes x i1>: which lanes there are
using Lanes = Ssa<struct LanesType>;    ///< vector<lanes x i64>: a coordinate for each lane
using Vector = Ssa<struct VectorType>;  ///< a vector whose elements are of a type that its user knows

using I64s = std::vector<I64>;
using Vectors = std::vector<Vector>;

}  // namespace collage::native

template <typename Type>
struct fmt::formatter<collage::native::Ssa<Type>> : fmt::formatter<std::string> {
  template <typename Context>
  auto format(const collage::native::Ssa<Type>& value, Context& context) const {
    return fmt::formatter<std::string>::format(value.name(), context);
  }
};
