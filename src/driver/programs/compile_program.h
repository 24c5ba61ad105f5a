// compile_program.h: models with control flow, closures, data or shapes known at run time only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "driver/play_off/program_check.h"
#include "driver/report/toolchain_parts.h"
#include "driver/unsearched.h"
#include "program/named_sizes.h"

namespace collage {

/// Compiles a region, which is a model of its own, as `options` says.
using CompileRegion =
    std::function<CompileReport(const IRModule& region, const std::string& name, const CompileOptions& options)>;

/// How operators on dynamic shapes are compiled.
struct DynamicShapesOptions {
  const Toolchain* toolchain = nullptr;    ///< compiles them; null: they are evaluated as the reference does
  std::vector<const Toolchain*> symbolic;  ///< toolchains for symbolic sizes, each in a program that competes with it
  bool is_symbolic_alone = false;          ///< whether `toolchain` only computes what those leave
  bool refuses_evaluation = false;         ///< whether a product that is evaluated so is an error, not a warning
  std::vector<OpenInput> inputs;           ///< inputs of dynamic shapes
  std::string hint;                        ///< how to bind them
  std::vector<KnownToolchain> known;       ///< toolchains that the report accounts for
};

/// The model that a program is checked against.
struct ProgramSource {
  const IRModule& module;         ///< typed, as it was before any pass
  BindShapes bind;                ///< ProgramCheckOptions::bind
  std::vector<NamedSizes> sizes;  ///< sizes for which the program has functions of its own
};

/// Compiles a typed module that a plan cannot hold (IsProgram): equal static graphs are compiled once, each for
/// itself, and become kernels of a bytecode program, which is checked as a whole before it is written. The budget is
/// shared out among the regions by the products that they add up. A file of partitionings holds those of all distinct
/// regions, in order. When the search of a region has an executable, the program is written with it and with kernels
/// for other regions that need no search, and again with each better one.
CompileReport CompileProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                             const DynamicShapesOptions& unknown, const ProgramSource& source,
                             const CompileRegion& compile_region);

/// Compiles one region of a program alone, by its number in the program's report: `options.output` becomes a plan, and
/// `options.partitioning` is the region's. Throws kInput where there is no such region.
CompileReport CompileRegionAlone(const IRModule& module, const std::string& name, const CompileOptions& options,
                                 const DynamicShapesOptions& unknown, size_t region,
                                 const CompileRegion& compile_region);

/// Measures the costs that compiling the regions will need; writes nothing.
CompileReport TuneProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                          const DynamicShapesOptions& unknown, const CompileRegion& tune_region);

}  // namespace collage
