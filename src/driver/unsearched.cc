// unsearched.cc: settings that need a search, and a walk over what is in no kernel.
#include "driver/unsearched.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/settings.h"
#include "collage/support/error.h"
#include "ir/ops/dynamic.h"
#include "ir/ops/random/random.h"
#include "ir/tensor_types.h"
#include "program/named_sizes.h"
#include "program/regions.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

// Lists in messages are cut behind so many.
constexpr size_t kMostListed = 3;

bool IsNative(const std::string& name) {
  const Toolchain* toolchain = ToolchainRegistry::Global().Find(RegisteredName(name));
  return toolchain != nullptr && toolchain->is_native();
}

/// Whether all of some names are of other toolchains.
bool LeavesOutNative(const std::vector<std::string>& names) {
  return !names.empty() && std::none_of(names.begin(), names.end(), IsNative);
}

bool TargetsLeaveOutNative(const std::vector<std::string>& targets) {
  std::vector<std::string> names;
  for (const std::string& target : targets) {
    names.push_back(ToolchainConfiguration::Of(Target::Parse(target), ToolchainRegistry::Global()).registered().name());
  }
  return LeavesOutNative(names);
}

/// Whether an option that names toolchains is followed by programs for any size.
bool IsFollowedAtAnySize(const CompileOptions& options, const Setting& setting,
                         const std::vector<std::string>& at_any_size) {
  const auto competes = [&](const std::string& name) {
    return std::ranges::any_of(at_any_size, [&](const std::string& one) {
      return one == name || RegisteredName(one) == RegisteredName(name);
    });
  };
  if (setting.name == "toolchains") return std::ranges::any_of(options.toolchains, competes);
  if (setting.name == "partition_for") return competes(options.partition_for);
  if (setting.name == "target") {
    return std::ranges::any_of(options.targets, [&](const std::string& text) {
      return competes(ToolchainConfiguration::Of(Target::Parse(text), ToolchainRegistry::Global()).ToString());
    });
  }
  return false;
}

/// Whether an option asks for something that only a search, or another toolchain than the native one, could give.
bool NeedsSearch(const CompileOptions& options, const Setting& setting) {
  if (setting.name == "toolchains") return LeavesOutNative(options.toolchains);
  if (setting.name == "target") return TargetsLeaveOutNative(options.targets);
  if (setting.name == "partition_for") return !options.partition_for.empty() && !IsNative(options.partition_for);
  if (setting.name == "precision") return options.precision == "any";
  if (setting.name == "search" && options.search_with) return true;
  if (setting.name == "estimator" && options.estimate) return true;
  return setting.needs == SettingNeeds::kSearch && !IsDefault(options, setting);
}

/// "'x' [batch, 3], 'y' [batch]".
std::string InputsText(const std::vector<OpenInput>& inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size() && i < kMostListed; ++i) {
    text += fmt::format("{}'{}' [{}]", i == 0 ? "" : ", ", inputs[i].name, fmt::join(inputs[i].dims, ", "));
  }
  if (inputs.size() > kMostListed) text += fmt::format(" and {} more", inputs.size() - kMostListed);
  return text;
}

/// Whether a call gives no more than a few numbers, or its argument in another shape.
bool IsCheap(const CallNode& call) {
  const OpDef& op = *call.op();
  if (op.is_reshape || DrawsNumbers(op)) return true;
  const DynamicOp* dynamic = FindDynamicOp(op.name);
  if (dynamic != nullptr && GetOp(dynamic->static_name)->def().is_reshape) return true;
  const Type& type = call.checked_type();
  if (!HasTensorsOnly(type)) return true;
  const std::vector<Type> results = FlattenTensorTypes(type);
  return std::all_of(results.begin(), results.end(), [](const Type& one) {
    const TensorTypeNode* tensor = AsTensorType(one);
    return tensor->is_static() && NumElements(tensor->static_shape()) <= kFewElements;
  });
}

void Add(const CallNode& call, const std::string& reason, std::vector<EvaluatedOperator>& all) {
  const auto known = std::ranges::find(all, call.op()->name, &EvaluatedOperator::op);
  if (known != all.end()) {
    ++known->count;
  } else {
    all.push_back({call.op()->name, 1, call.span().source, reason, static_cast<bool>(call.op()->multiply_adds)});
  }
}

/// Calls of operators in functions that are no kernels.
void ForEachEvaluated(const IRModule& module, const std::function<void(const CallNode& call)>& visit) {
  for (const auto& [_, function] : module.functions()) {
    const std::function<void(const Expr&)> walk = [&](const Expr& root) {
      PostOrderInScope(root, [&](const Expr& expr) {
        const FunctionNode* inner = As<FunctionNode>(expr);
        if (inner != nullptr && inner->attrs().IntOr(kAttrPrimitive, 0) == 0) walk(inner->body());
        const CallNode* call = As<CallNode>(expr);
        if (call != nullptr && call->op() != nullptr) visit(*call);
      });
    };
    if (function->attrs().IntOr(kAttrPrimitive, 0) == 0) walk(function->body());
  }
}

}  // namespace

std::vector<OpenInput> FindOpenInputs(const IRModule& module) {
  const std::vector<Var>& params = module.main()->params();
  std::vector<OpenInput> inputs;
  for (size_t i = 0; i < params.size(); ++i) {
    const TensorTypeNode* type = AsTensorType(params[i]->checked_type());
    if (type == nullptr || type->is_static()) continue;
    inputs.push_back({params[i]->name(), {}});
    for (size_t d = 0; d < type->shape().size(); ++d) {
      const std::string given = GivenDimensionName(module.main(), i, d);
      inputs.back().dims.push_back(given.empty() ? type->shape()[d].ToString() : given);
    }
  }
  return inputs;
}

std::vector<std::string> FlagsOfASearch(const CompileOptions& options, const std::vector<std::string>& at_any_size) {
  std::vector<std::string> flags;
  for (const Setting& setting : Settings()) {
    if (NeedsSearch(options, setting) && !IsFollowedAtAnySize(options, setting, at_any_size))
      flags.push_back(setting.flag);
  }
  return flags;
}

void RefuseFlagsOfASearch(const CompileOptions& options, const std::vector<OpenInput>& inputs, const std::string& where,
                          const std::string& hint, const std::vector<std::string>& at_any_size) {
  const std::vector<std::string> flags = FlagsOfASearch(options, at_any_size);
  if (flags.empty()) return;
  throw Error(ErrorCategory::kUnsupported,
              fmt::format("{} cannot be followed: no part of the model has known sizes, input{} {} leave{} them open, "
                          "and there is no search of kernels for any size",
                          fmt::join(flags, ", "), inputs.size() == 1 ? "" : "s", InputsText(inputs),
                          inputs.size() == 1 ? "s" : ""),
              where, hint);
}

std::string WhyNothingRuns(const CompileReport& report, const std::string& toolchain) {
  for (const Contender& one : report.contenders) {
    if (RegisteredName(one.name) == toolchain && !one.failure.empty()) return one.failure;
  }
  for (const auto& [kind, failure] : report.failures) {
    const bool is_its = kind.starts_with(toolchain) && kind.substr(toolchain.size()).find_first_of(": ") == 0;
    if (is_its) return fmt::format("{} ({} times), first: {}", kind, failure.first, failure.second);
  }
  for (const CompileReport& region : report.regions) {
    std::string reason = WhyNothingRuns(region, toolchain);
    if (!reason.empty()) return reason;
  }
  return "";
}

void CheckRequired(const CompileOptions& options, const CompileReport& report, const std::string& where) {
  const auto runs = [](const CompileReport& of, const std::string& name) {
    return std::ranges::any_of(of.contenders, [&](const Contender& one) {
      return one.failure.empty() && std::ranges::any_of(one.partitions, [&](const auto& partition) {
               return RegisteredName(partition.first) == name;
             });
    });
  };
  for (const std::string& name : options.require) {
    const bool is_met = runs(report, name) || std::ranges::any_of(report.regions, [&](const CompileReport& region) {
                          return runs(region, name);
                        });
    const bool is_fall_back = report.contenders.empty() && IsNative(name);  // of a program
    if (is_met || is_fall_back) continue;
    std::string reason = WhyNothingRuns(report, name);
    if (reason.empty() && report.contenders.empty() && report.regions.empty()) {
      reason = "no part of the model has known sizes";
    }
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("toolchain '{}' is required, and none of its kernels runs a part of the model: {}", name,
                            reason.empty() ? "it takes none of its operators" : reason),
                where, "`collage targets --support` says which operators it takes, and why not");
  }
}

std::vector<EvaluatedOperator> FindEvaluated(const IRModule& module, const Toolchain* toolchain) {
  std::vector<EvaluatedOperator> all;
  ForEachEvaluated(module, [&](const CallNode& call) {
    if (IsCheap(call)) return;
    const bool is_static =
        HasStaticTensorsOnly(call.checked_type()) &&
        std::ranges::all_of(call.args(), [](const Expr& arg) { return HasStaticTensorsOnly(arg->checked_type()); });
    if (is_static) return;  // a region left it alone: its work is not worth a kernel
    std::string reason = "there is no native toolchain";
    if (toolchain != nullptr) {
      const Result<void> supported = toolchain->SupportsDynamicShapes(call);
      reason = supported.ok() ? "it is in no group that one kernel can compute" : supported.reason().text;
    }
    Add(call, reason, all);
  });
  return all;
}

void AddEvaluated(const Function& function, const std::string& reason, std::vector<EvaluatedOperator>& all) {
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr && !IsCheap(*call)) Add(*call, reason, all);
  });
}

std::string EvaluatedText(const std::vector<EvaluatedOperator>& evaluated) {
  int64_t count = 0;
  std::string list;
  for (size_t i = 0; i < evaluated.size(); ++i) {
    const EvaluatedOperator& one = evaluated[i];
    count += one.count;
    if (i >= kMostListed) continue;
    list += fmt::format("{}'{}'{} ({})", i == 0 ? "" : ", ", one.op,
                        one.count == 1 ? "" : fmt::format(" x {}", one.count), one.reason);
  }
  if (evaluated.size() > kMostListed) list += fmt::format(" and {} other kinds", evaluated.size() - kMostListed);
  return fmt::format("{} operator{} run{} by reference evaluation, slowly: {}", count, count == 1 ? "" : "s",
                     count == 1 ? "s" : "", list);
}

std::string NothingSearchedText(const std::vector<OpenInput>& inputs, const std::vector<EvaluatedOperator>& evaluated,
                                const std::string& hint, const std::vector<std::string>& at_any_size) {
  const std::string who = at_any_size.empty() ? "only Collage's own any-size kernels take part"
                                              : fmt::format("only any-size kernels of Collage and of {} take part",
                                                            fmt::join(at_any_size, ", "));
  return fmt::format(
      "nothing was searched: the sizes of input{} {} are open, so {}{}\n"
      "  for a search of all toolchains, {}",
      inputs.size() == 1 ? "" : "s", InputsText(inputs), who,
      evaluated.empty() ? "" : fmt::format(" ({})", EvaluatedText(evaluated)), hint);
}

std::string NamingHint(const std::vector<OpenInput>& inputs) {
  std::vector<std::string> names;
  for (const OpenInput& input : inputs) {
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const std::string& dim = input.dims[i];
      if (dim.find_first_not_of("0123456789") == std::string::npos) continue;
      const std::string name = dim == "?" ? fmt::format("{}[{}]", input.name, i) : dim;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::string text = "name some of them:";
  for (const std::string& name : names) text += fmt::format(" --tune-at {}=<sizes>", name);
  return text;
}

std::string BindingHint(const std::vector<OpenInput>& inputs) {
  std::string text = "bind the sizes:";
  for (const OpenInput& input : inputs) {
    text += fmt::format(" --shape {}=", input.name);
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const std::string& dim = input.dims[i];
      const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
      text += fmt::format("{}{}", i == 0 ? "" : "x", is_number ? dim : fmt::format("<{}>", dim == "?" ? "size" : dim));
    }
  }
  return text + ", or " + NamingHint(inputs);
}

}  // namespace collage
