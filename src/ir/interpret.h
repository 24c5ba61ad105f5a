// interpret.h: runs whole modules: global functions, closures, recursion, data types, references. For tests and for
// evaluating what passes found to be constant; `evaluate` is leaner where a function is dataflow only.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collage/ir/module.h"
#include "collage/runtime/tensor.h"

namespace collage {

struct Closure;

/// What an expression evaluates to.
struct Value {
  enum class Kind : uint8_t { kTensor, kTuple, kData, kClosure, kReference };
  Kind kind = Kind::kTuple;
  Tensor tensor;
  std::vector<Value> fields;               ///< kTuple, kData
  Constructor constructor;                 ///< kData; of kClosure when it is a constructor that was not called yet
  std::shared_ptr<const Closure> closure;  ///< kClosure
  std::shared_ptr<Value> reference;        ///< kReference
};

/// Calls global function `name` of a typed module with its flattened inputs; returns the flattened tensors of its
/// result. Values live until the end, and calls within calls use the machine's stack. Throws kInput when inputs do not
/// fit or no clause of a match fits, kUnsupported when the result holds something other than tensors and tuples.
std::vector<Tensor> Interpret(const IRModule& module, std::string_view name, std::span<const Tensor> inputs);

}  // namespace collage
