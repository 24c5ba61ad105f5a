// annotations.h: how a partitioned function says what is to become of its partitions.
#pragma once

#include <string>

#include "collage/ir/expr.h"
#include "collage/target/toolchain.h"

namespace collage {

// Function attributes by which a partitioned module says how a partition is to be compiled (beside the RFC's Primitive,
// Compiler, Composite and global_symbol).
inline constexpr const char* kAttrPrimitive = "Primitive";
inline constexpr const char* kAttrCompiler = "Compiler";           ///< absent: the native toolchain
inline constexpr const char* kAttrInputLayouts = "input_layouts";  ///< list of strings; absent: all plain
inline constexpr const char* kAttrOutputLayouts = "output_layouts";
inline constexpr const char* kAttrEstimate = "estimated_seconds";
inline constexpr const char* kAttrRows = "rows";          ///< 1: each row of a batch is computed of that row alone
inline constexpr const char* kAttrSchedule = "schedule";  ///< PartitionRequest::schedule; absent: empty

/// The attribute Compiler of what `toolchain` is to compile; empty for the native one under its default options, whose
/// partitions have none.
std::string CompilerOf(const Toolchain& toolchain);

/// The layouts that `partition` was annotated with; all plain where it was not.
BoundaryLayouts LayoutsOf(const Function& partition);
/// "pc:c": the layouts of inputs and of outputs, one letter each (LetterOf), and with it the memory where that is not
/// the host's: "p@ext_dev c:c".
std::string LayoutsText(const BoundaryLayouts& layouts);
/// `partition` annotated with `layouts`.
Function WithLayouts(const Function& partition, const BoundaryLayouts& layouts);

}  // namespace collage
