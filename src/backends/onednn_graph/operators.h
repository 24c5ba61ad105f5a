// operators.h: what Relay's operators are in oneDNN's graph: the table, one row each.
#pragma once

#include <span>
#include <string_view>

#include "backends/onednn_graph/builder.h"

namespace collage::onednn_graph {

/// Adds what a call computes to the graph, as an operation of `kind`, or throws a Refusal.
using TranslateFn = void(Builder& graph, const Call& call, const char* kind);

/// By name. Operators that only reshape need no row.
struct OperatorRow {
  std::string_view name;
  TranslateFn* translate;
  const char* kind;  ///< in the library's words
};
std::span<const OperatorRow> Operators();

/// Throws a Refusal for what has no row, too.
void Translate(Builder& graph, const Call& call);

}  // namespace collage::onednn_graph
