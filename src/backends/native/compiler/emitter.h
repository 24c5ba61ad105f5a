// emitter.h: writes the MLIR text of one partition: buffers, loops, and values at an index.
//
// Everything is computed in vectors of `lanes()` elements along one dimension. A value's place is an Index per logical
// dimension: a base that is the same for all lanes, and how much it grows from lane to lane. So a broadcast operand is one
// scalar load, a contiguous one a vector load, a transposed one a gather, and no operator needs to know which.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"

namespace collage::native {

/// One coordinate: `base` (an i64 value) + lane * `step`.
struct Index {
  std::string base;
  int64_t step = 0;
};
using Indices = std::vector<Index>;

enum class ElementKind : uint8_t { kFloat, kInt, kBool };

/// A vector of lanes(): float32, int64 or i1.
struct Value {
  std::string name;
  ElementKind kind = ElementKind::kFloat;
};

/// A tensor in memory: which buffer, and its strides in elements by logical dimension.
struct Buffer {
  int number = -1;          ///< position in the array that the kernel gets
  int64_t offset_bytes = 0; ///< in that buffer (workspace holds several tensors)
  DataType dtype;
  Shape shape;
  std::vector<int64_t> strides;
};

/// Strides by logical dimension of a tensor that lies in memory in `layout`.
std::vector<int64_t> LayoutStrides(const Shape& shape, Layout layout);

/// Text of one partition's module under construction.
class Emitter {
 public:
  explicit Emitter(int lanes) : native_lanes_(lanes), lanes_(lanes) {}

  // ---- text ----
  int lanes() const { return lanes_; }
  /// Vectors of one element: what falls back to scalar code is written the same way.
  void SetLanes(int lanes) { lanes_ = lanes; }
  int native_lanes() const { return native_lanes_; }

  std::string Fresh() { return fmt::format("%v{}", next_++); }
  /// "%vN = TEXT"; returns the name.
  std::string Def(const std::string& text) {
    std::string name = Fresh();
    Line(name + " = " + text);
    return name;
  }
  void Line(const std::string& text) { body_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n"; }
  void Open(const std::string& text) {
    Line(text);
    indent_ += 2;
  }
  void Close(const std::string& text = "}") {
    indent_ -= 2;
    Line(text);
  }

  std::string Int(int64_t value) { return Def(fmt::format("arith.constant {} : i64", value)); }
  std::string Float(double value);
  std::string AddInt(const std::string& a, const std::string& b) { return Def(fmt::format("arith.addi {}, {} : i64", a, b)); }
  std::string MulInt(const std::string& a, int64_t factor);
  /// base + constant.
  std::string Plus(const std::string& a, int64_t addend);

  std::string FloatVector() const { return fmt::format("vector<{}xf32>", lanes_); }
  std::string TypeOf(ElementKind kind) const;
  std::string Splat(double value);
  std::string Broadcast(const std::string& scalar) {
    return Def(fmt::format("vector.broadcast {} : f32 to {}", scalar, FloatVector()));
  }

  /// `for i in [from, to) step step`: the body gets the induction variable.
  void For(const std::string& from, const std::string& to, int64_t step, const std::function<void(const std::string&)>& body);
  /// A loop that carries vectors: `body` gets the induction variable and the values, and returns the next ones.
  std::vector<std::string> ForCarrying(
      const std::string& from, const std::string& to, const std::vector<std::string>& start, const std::string& type,
      const std::function<std::vector<std::string>(const std::string&, const std::vector<std::string>&)>& body);

  /// Runs `body` for whole vectors of [0, count) and once, masked, for the rest. `body` gets the first position.
  void ForLanes(int64_t count, const std::function<void(const std::string& first)>& body);
  /// The masked turn of ForLanes alone: what is left of `count` behind the whole vectors.
  void MaskedRest(int64_t count, const std::function<void(const std::string& first)>& body);
  /// The mask of the lanes that exist; empty when all do.
  const std::string& mask() const { return mask_; }

  // ---- memory ----
  Value Load(const Buffer& buffer, const Indices& indices);
  void Store(const Buffer& buffer, const Indices& indices, const Value& value);
  /// One element, as a scalar float32.
  std::string LoadScalar(const Buffer& buffer, const std::vector<std::string>& bases);
  /// The address of the element at the bases of `indices`.
  std::string Address(const Buffer& buffer, const Indices& indices);
  std::string VectorAt(const std::string& address, bool masked);

  // ---- functions ----
  /// Writes a function `NAME(ctx, begin, end)` whose body `write` makes, given the bounds.
  void Function(const std::string& name, const std::function<void(const std::string& begin, const std::string& end)>& write);
  /// Adds to the entry point: run `name` over [0, count), on all threads when `parallel`.
  void Call(const std::string& name, int64_t count, bool parallel);
  std::string Module() const;

 private:
  std::string Pointer(const Buffer& buffer);

  int native_lanes_;
  int lanes_;
  int next_ = 0;
  int indent_ = 2;
  std::string body_;
  std::string mask_;
  std::map<std::pair<int, int64_t>, std::string> pointers_;  ///< of the function being written
  std::string functions_;
  std::string calls_;
  int num_calls_ = 0;
};

}  // namespace collage::native
