// spec.h: a sub-graph in the terms of oneDNN's graph API, as text: what the description hands to the module that holds
// the library, and the blob of a kernel.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collage/runtime/data_type.h"
#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"

namespace collage::onednn_graph {

/// A logical tensor. Several may be the same input or constant under different shapes: views.
struct GraphTensor {
  Shape shape;
  DataType dtype;
  int input = -1;                  ///< the partition's, flattened; -1: none
  int constant = -1;               ///< its number; -1: none
  Layout layout = Layout::kPlain;  ///< at the boundary
};

/// The kind of an operation of ours: its result lies where its operand does, in the same order. The library does not
/// look through it.
inline constexpr const char* kView = "View";

/// An operation. Tensors are named by their numbers.
struct GraphOp {
  std::string kind;                                 ///< "MatMul", as the library calls it
  nlohmann::json attrs = nlohmann::json::object();  ///< by the library's names: numbers, bools, texts, lists of numbers
  std::vector<int> inputs;
  std::vector<int> outputs;
};

struct GraphSpec {
  std::vector<GraphTensor> tensors;
  std::vector<GraphOp> ops;
  std::vector<int> outputs;  ///< the partition's, flattened
};

std::string ToJson(const GraphSpec& spec);
/// Throws kCorrupt.
GraphSpec FromJson(std::string_view text);

}  // namespace collage::onednn_graph
