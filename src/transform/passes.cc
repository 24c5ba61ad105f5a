// passes.cc: the list of passes and how one is run.
#include "transform/passes.h"

#include <array>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "support/edit_distance.h"

namespace collage {

std::span<const Pass> AllPasses() {
  static const std::array<Pass, 5> passes{{
      {"SimplifyInference", "batch_norm becomes multiply and add, dropout vanishes", SimplifyInference},
      {"FoldConstant", "calls of constants become constants", FoldConstant},
      {"FoldScaleAxis", "per-channel factors behind convolutions and dense layers go into their weights", FoldScaleAxis},
      {"SimplifyExpr", "identities vanish, padding goes into convolutions", SimplifyExpr},
      {"EliminateCommonSubexpr", "equal calls of equal arguments are made once", EliminateCommonSubexpr},
  }};
  return passes;
}

const Pass& GetPass(std::string_view name) {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) {
    if (pass.name == name) return pass;
    names.push_back(pass.name);
  }
  std::string hint;
  for (const std::string& near : NearMisses(name, names)) hint += (hint.empty() ? "did you mean '" : "', '") + near;
  throw Error(ErrorCategory::kInput, "unknown pass '" + std::string(name) + "'", "", hint.empty() ? "" : hint + "'?");
}

IRModule RunPass(const Pass& pass, IRModule module) {
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) result.Set(name, pass.run(function));
  return InferTypes(std::move(result));
}

IRModule RunPasses(const std::vector<std::string>& names, IRModule module) {
  for (const std::string& name : names) module = RunPass(GetPass(name), std::move(module));
  return module;
}

IRModule PrepareForPartitioning(IRModule module) {
  return RunPasses({"SimplifyInference", "FoldConstant", "SimplifyExpr", "FoldScaleAxis", "FoldConstant", "SimplifyExpr",
                    "EliminateCommonSubexpr"},
                   InferTypes(std::move(module)));
}

}  // namespace collage
