// preparation.cc: the passes that run before a model is partitioned, one row each, in order. To add one, add a row.
#include <algorithm>
#include <array>
#include <utility>

#include "collage/transform/passes.h"
#include "transform/passes.h"

namespace collage {
namespace {

constexpr std::array kSteps{
    PreparationStep{.pass = "PackWeights"},
    PreparationStep{.pass = "qnn.CanonicalizeOps", .is_required = true},
    PreparationStep{.pass = "SimplifyInference", .is_required = true},
    PreparationStep{.pass = "CombineParallelConv2D"},
    PreparationStep{.pass = "CombineParallelDense"},
    PreparationStep{.pass = "CombineParallelBatchMatmul"},
    PreparationStep{.pass = "FoldConstant"},
    PreparationStep{.pass = "SimplifyExpr"},
    PreparationStep{.pass = "FoldScaleAxis"},
    PreparationStep{.pass = "SinkReshapes"},
    // Factors that went into weights, and reshapes that moved, leave more to fold and to simplify.
    PreparationStep{.pass = "FoldConstant"},
    PreparationStep{.pass = "SimplifyExpr"},
    PreparationStep{.pass = "EliminateCommonSubexpr"},
    PreparationStep{.pass = "DuplicateDequantize"},
    // Last: passes that make new nodes leave their devices out.
    PreparationStep{.pass = "PlanDevices", .is_required = true, .applies = NamesDevices},
};

/// A module as one graph.
constexpr std::array kGraphPasses{"ToGraphNormalForm", "InlineComposites"};

/// `context` as the steps see it: devices are planned for those who choose partitions, and with them copies and the
/// devices of all that the model leaves open.
PassContext ForPartitioning(const PassContext& context) {
  PassContext own = context;
  for (const auto& [option, value] : {std::pair("relay.fallback_device_type", AttrValue(0)),
                                      std::pair("relay.PlanDevices.insert_copies", AttrValue(false))}) {
    if (!context.config().contains(option)) own.SetConfig(option, value);
  }
  return own;
}

}  // namespace

std::span<const PreparationStep> PreparationSteps() { return kSteps; }

IRModule PrepareForPartitioning(IRModule module, const PassContext& context) {
  PassContext own = ForPartitioning(context);
  std::vector<Pass> passes;
  for (const PreparationStep& step : kSteps) {
    if (step.applies != nullptr && !step.applies(module, context)) continue;
    passes.push_back(GetPass(step.pass));
    if (step.is_required) own.required_pass.emplace_back(step.pass);
  }
  return Sequential(std::move(passes)).Run(std::move(module), own);
}

IRModule PrepareGraph(IRModule module, const PassContext& context) {
  PassContext own = context;
  own.required_pass.insert(own.required_pass.end(), kGraphPasses.begin(), kGraphPasses.end());
  return Sequential(std::vector<std::string>(kGraphPasses.begin(), kGraphPasses.end())).Run(std::move(module), own);
}

std::vector<std::string> RequiredInVain(const PassContext& context) {
  std::vector<std::string> in_vain;
  for (const std::string& name : context.required_pass) {
    const bool runs = std::ranges::find(kGraphPasses, name) != kGraphPasses.end() ||
                      std::ranges::find(kSteps, name, &PreparationStep::pass) != kSteps.end();
    if (!runs) in_vain.push_back(name);
  }
  return in_vain;
}

}  // namespace collage
