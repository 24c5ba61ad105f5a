// operator_table.h: how operators are computed, by name.
#pragma once

#include <string_view>
#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Writes the loops of an anchor.
using StageFn = void (*)(PartitionState& state, const CallNode& call, const StageOutput& output);
/// Writes the loops that fill all fields of an operator's result.
using FieldsFn = void (*)(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);
/// The dimension of its result along which a stage stores vectors: it must lie innermost.
enum class ResultLanes : uint8_t { kAny, kChannels, kLast };

/// The last column of a row of operator_rows.inc.
struct OperatorRow {
  InPlaceFn in_place;                       ///< its value, wherever that is read
  FieldInPlaceFn field_in_place = nullptr;  ///< a field of its value, wherever that is read
  StageFn stage = nullptr;                  ///< loops of its own
  StageFn dynamic_stage = nullptr;          ///< loops for dynamic shapes; null: `stage` writes them, too
  FieldsFn fields = nullptr;                ///< loops of its own, where its result is a tuple
  ResultLanes lanes = ResultLanes::kAny;    ///< lanes of the result of `stage`
  bool fuses_epilogue = true;               ///< whether element-wise operators may be computed in a stage's registers
};

/// The row of operator `name`; null where it has none.
const OperatorRow* FindOperator(std::string_view name);
/// The row of operator `name` where it has a stage; else null.
const OperatorRow* FindStage(std::string_view name);

}  // namespace collage::native
