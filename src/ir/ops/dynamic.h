// dynamic.h: operators that take as arguments what others take as attributes, such as a shape that is computed.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// dyn.NAME(data…, values…, data…) is NAME(data…) with its attributes read from the values.
struct DynamicOp {
  std::string name;
  std::string static_name;
  size_t first_value = 0;          ///< the first argument that is a value; all others both operators have
  std::vector<std::string> attrs;  ///< one for each value
};

/// Returns the arguments of a call that the static operator also has.
template <typename T>
std::vector<T> DataOf(const DynamicOp& op, std::span<const T> args) {
  std::vector<T> data(args.begin(), args.begin() + static_cast<int64_t>(op.first_value));
  const std::span<const T> behind = args.subspan(op.first_value + op.attrs.size());
  data.insert(data.end(), behind.begin(), behind.end());
  return data;
}
/// The others.
template <typename T>
std::span<const T> ValuesOf(const DynamicOp& op, std::span<const T> args) {
  return args.subspan(op.first_value, op.attrs.size());
}

/// All of them, by name.
std::span<const DynamicOp> AllDynamicOps();
/// Null when `name` is none of them.
const DynamicOp* FindDynamicOp(std::string_view name);

/// Whether the values of all arguments of `op` say how large its result is.
bool IsSizedByValues(const OpDef& op);

/// Whether the result of `op` follows from the shape of its argument, whatever the elements.
bool ReadsShapeAlone(const OpDef& op);

/// Whether the shape of what `call`, typed, gives follows from the elements of its arguments, whose shapes are static:
/// a range, for example.
bool MakesSizesOfValues(const CallNode& call);

/// The attributes of the static operator: `attrs` and what `values`, integers in order of DynamicOp::attrs, say.
Attrs StaticAttrs(const DynamicOp& op, Attrs attrs, std::span<const Tensor> values);

}  // namespace collage
