// toolchain_parts.cc: plans by the contenders of their play-offs, kernels for any size by what toolchains say of calls.
#include "driver/report/toolchain_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/visitor.h"
#include "driver/unsearched.h"
#include "program/regions.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

/// The partitions that `toolchain`, as it is registered, has in `contender`.
int64_t PartitionsIn(const Contender& contender, const std::string& toolchain) {
  int64_t count = 0;
  for (const auto& [name, partitions] : contender.partitions) {
    if (RegisteredName(name) == toolchain) count += partitions;
  }
  return count;
}

int64_t PartitionsInPlans(const CompileReport& report, const std::string& toolchain) {
  int64_t count = 0;
  for (const CompileReport& region : report.regions) {
    const auto winner = std::ranges::find(region.contenders, region.winner, &Contender::name);
    if (winner != region.contenders.end()) count += PartitionsIn(*winner, toolchain);
  }
  return count;
}

/// Why no winner has a partition of `toolchain`, which takes part.
std::string WhyInNoPlan(const CompileReport& report, const std::string& toolchain) {
  if (report.regions.empty()) return "no part of the model has known sizes: name some with --tune-at";
  for (const CompileReport& region : report.regions) {
    const bool lost = std::ranges::any_of(region.contenders, [&](const Contender& one) {
      return one.failure.empty() && PartitionsIn(one, toolchain) > 0;
    });
    if (lost) return "other partitionings were faster";
  }
  const std::string failure = WhyNothingRuns(report, toolchain);
  return failure.empty() ? "no partitioning that was tried has a partition of it" : failure;
}

/// Why `toolchain` compiles none of the calls in dynamic fusions of `module`.
std::string WhyNotAtAnySize(const Toolchain& toolchain, const IRModule& module, const AnySizeKernels& any_size) {
  for (const auto& [name, reason] : any_size.reasons) {
    if (RegisteredName(name) == toolchain.name()) return reason;
  }
  if (toolchain.is_native() && any_size.native != nullptr && !any_size.kernels.empty()) {
    return fmt::format("'{}' computes all of it", any_size.kernels.begin()->first);
  }
  bool has_calls = false;
  std::string reason;
  for (const auto& [_, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const FunctionNode* inner = As<FunctionNode>(expr);
      if (inner == nullptr || !IsDynamicFusion(*inner) || !reason.empty()) return;
      PostOrder(inner->body(), [&](const Expr& within) {
        const CallNode* call = As<CallNode>(within);
        if (call == nullptr || call->op() == nullptr || !reason.empty()) return;
        has_calls = true;
        const Result<void> supported = toolchain.SupportsDynamicShapes(*call);
        if (!supported.ok()) reason = supported.reason().text;
      });
    });
  }
  if (!has_calls) return "no operator on dynamic shapes has a kernel";
  if (!reason.empty() || any_size.native == nullptr) return reason;
  return fmt::format("they are those of '{}'", any_size.native->name());
}

}  // namespace

std::vector<ToolchainPart> FindToolchainParts(const std::vector<KnownToolchain>& known, const CompileReport& report,
                                              const IRModule& module, const AnySizeKernels& any_size) {
  std::vector<ToolchainPart> parts;
  for (const KnownToolchain& one : known) {
    ToolchainPart& part = parts.emplace_back();
    part.toolchain = one.toolchain->name();
    part.plan_partitions = PartitionsInPlans(report, part.toolchain);
    for (const auto& [name, kernels] : any_size.kernels) {
      if (RegisteredName(name) == part.toolchain) part.any_size_kernels += kernels;
    }
    if (part.plan_partitions == 0) {
      part.not_in_plans = one.left_out.empty() ? WhyInNoPlan(report, part.toolchain) : one.left_out;
    }
    if (part.any_size_kernels == 0) {
      part.not_at_any_size = one.left_out.empty() ? WhyNotAtAnySize(*one.toolchain, module, any_size) : one.left_out;
    }
  }
  return parts;
}

}  // namespace collage
