// find.cc: operators in forms that a contender's toolchains take, then parts.
#include "driver/any_size/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bytecode/result_shapes.h"
#include "collage/ir/visitor.h"
#include "collage/target/symbolic_sizes.h"
#include "driver/programs/distinct_regions.h"
#include "driver/unsearched.h"
#include "ir/tensor_types.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"
#include "transform/passes/dynamic/decompose.h"
#include "transform/passes/dynamic/recurrence.h"
#include "transform/passes/dynamic/widen.h"

namespace collage {
namespace {

/// `module` with operators for which `native` or `symbolic` has kernels in place of some for which neither has one.
/// Both may be null.
IRModule WithKernels(const IRModule& module, const Toolchain* native, const Toolchain* symbolic) {
  if (native == nullptr) return module;
  const auto takes = [&](const CallNode& call) {
    return native->SupportsDynamicShapes(call).ok() ||
           (symbolic != nullptr && SupportsSymbolicSizes(*symbolic, call).ok());
  };
  return WidenDynamic(DecomposeDynamic(UnrollRecurrence(module, takes), takes), takes);
}

/// `with_sizes`: whether partitions of `symbolic` compute sizes themselves.
ProgramRegions RegionsFor(const IRModule& module, const Toolchain* native, const Toolchain* symbolic,
                          bool with_sizes = false) {
  DynamicShapes dynamic;
  if (native != nullptr) {
    dynamic.takes = [&](const CallNode& call) { return native->SupportsDynamicShapes(call).ok(); };
    dynamic.takes_one_row = [&](const CallNode& call) { return native->SupportsCall(call).ok(); };
  }
  if (symbolic != nullptr) {
    dynamic.symbolic = {symbolic->name(),
                        [&](const CallNode& call) { return SupportsSymbolicSizes(*symbolic, call).ok(); }};
    if (with_sizes) {
      dynamic.symbolic.takes_static = [&](const CallNode& call) { return symbolic->SupportsCall(call).ok(); };
    }
  }
  return FindRegions(WithKernels(module, native, symbolic), kFewElements, dynamic);
}

std::set<std::string> DigestsOf(const ProgramRegions& program) {
  std::set<std::string> digests;
  for (const Function& region : program.regions) digests.insert(DigestOf(*region));
  return digests;
}

std::vector<Function> PartsOf(const IRModule& module, const std::string& toolchain) {
  std::vector<Function> parts;
  for (const auto& [_, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const Function inner = AsShared<FunctionNode>(expr);
      if (inner != nullptr && inner->attrs().StringOr(kAttrCompiler, "") == toolchain) parts.push_back(inner);
    });
  }
  return parts;
}

/// With partitions of `symbolic` that compute sizes themselves, so that these do not cut the graph, if all of their
/// shapes follow from those of what they read.
ProgramRegions WithPartsOf(const Toolchain& symbolic, const IRModule& module, const Toolchain* native) {
  ProgramRegions program = RegionsFor(module, native, &symbolic, /*with_sizes=*/true);
  const bool has_shapes = std::ranges::all_of(PartsOf(program.module, symbolic.name()),
                                              [](const Function& part) { return vm::HasResultShapes(part).ok(); });
  return has_shapes ? program : RegionsFor(module, native, &symbolic);
}

/// The first reason why `toolchain` does not take a call with dynamic shapes.
std::string WhyNoParts(const IRModule& module, const Toolchain& toolchain) {
  std::string reason;
  for (const auto& [_, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      if (call == nullptr || call->op() == nullptr || HasStaticTensorsOnly(call->checked_type()) || !reason.empty()) {
        return;
      }
      const Result<void> supported = SupportsSymbolicSizes(toolchain, *call);
      if (!supported.ok()) reason = supported.reason().text;
    });
  }
  return reason.empty() ? "no operator on dynamic shapes is more than a reshape" : reason;
}

}  // namespace

bool AnySizeContenders::Has(const std::string& name) const {
  return std::ranges::any_of(symbolic, [&](const std::string& one) { return RegisteredName(one) == name; });
}

bool AnySizeContenders::IsRight(const std::string& name) const {
  return std::ranges::any_of(contenders, [&](const AnySizeContender& one) {
    return one.symbolic != nullptr && RegisteredName(one.toolchain) == name && one.failure.empty();
  });
}

AnySizeContenders FindAnySizeContenders(const IRModule& module, const Toolchain* native,
                                        const std::vector<const Toolchain*>& symbolic, bool are_alone) {
  AnySizeContenders found{
      .program = RegionsFor(module, native, nullptr), .contenders = {}, .symbolic = {}, .reasons = {}};
  const std::set<std::string> searched = DigestsOf(found.program);
  for (const Toolchain* toolchain : symbolic) {
    const ProgramRegions program = WithPartsOf(*toolchain, module, native);
    const std::string name = toolchain->name();
    if (PartsOf(program.module, name).empty()) {
      found.reasons[name] = WhyNoParts(module, *toolchain);
    } else if (!std::ranges::includes(searched, DigestsOf(program))) {
      found.reasons[name] = "it leaves other parts of known sizes than native kernels, which were not searched";
    } else {
      found.symbolic.push_back(name);
      found.contenders.push_back({.toolchain = name,
                                  .symbolic = toolchain,
                                  .module = program.module,
                                  .evaluated = FindEvaluated(program.module, native)});
    }
  }
  if (are_alone && !found.contenders.empty()) return found;
  AnySizeContender own{.toolchain = native == nullptr ? "reference evaluation" : native->name(),
                       .module = found.program.module,
                       .evaluated = FindEvaluated(found.program.module, native)};
  found.contenders.insert(found.contenders.begin(), std::move(own));
  return found;
}

}  // namespace collage
