// pass.cc: passes on functions as passes on modules.
#include "collage/transform/pass.h"

namespace collage {

ModulePass OnEachFunction(FunctionPass pass) {
  return [pass = std::move(pass)](IRModule module, const PassContext& context) {
    IRModule result = module;
    for (const auto& [name, function] : module.functions()) {
      if (function->attrs().Has("Compiler") || function->attrs().IntOr("SkipOptimization", 0) != 0) continue;
      result.Set(name, pass(function, module, context));
    }
    return result;
  };
}

}  // namespace collage
