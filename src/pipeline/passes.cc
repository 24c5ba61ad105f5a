// passes.cc: how passes are found, run, and strung together.
#include "collage/transform/passes.h"

#include <fmt/format.h>

#include <set>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "support/edit_distance.h"

namespace collage {

const Pass& GetPass(std::string_view name) {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) {
    if (pass.name == name) return pass;
    names.push_back(pass.name);
  }
  throw Error(ErrorCategory::kInput, fmt::format("unknown pass '{}'", name), "", DidYouMean(name, names));
}

void CheckPassNames(const PassContext& context) {
  for (const auto* list : {&context.required_pass, &context.disabled_pass}) {
    for (const std::string& name : *list) GetPass(name);
  }
}

IRModule RunPass(const Pass& pass, IRModule module, const PassContext& context) {
  for (const auto& instrument : context.instruments) {
    if (!instrument->ShouldRun(pass, module)) return module;
  }
  for (const auto& instrument : context.instruments) instrument->Before(pass, module);
  module = InferTypes(pass.run(std::move(module), context));
  for (const auto& instrument : context.instruments) instrument->After(pass, module);
  return module;
}

IRModule RunPasses(const std::vector<std::string>& names, IRModule module, const PassContext& context) {
  for (const std::string& name : names) module = RunPass(GetPass(name), std::move(module), context);
  return module;
}

Sequential::Sequential(const std::vector<std::string>& names) {
  for (const std::string& name : names) passes_.push_back(GetPass(name));
}

IRModule Sequential::Run(IRModule module, const PassContext& context) const {
  CheckPassNames(context);
  module = InferTypes(std::move(module));
  std::set<std::string, std::less<>> done{"InferType"};  // since the module last changed
  const auto run = [&](const Pass& pass) {
    const auto before = module.functions();
    module = RunPass(pass, std::move(module), context);
    if (module.functions() != before) done = {"InferType"};
    done.insert(pass.name);
  };
  for (const Pass& pass : passes_) {
    if (!context.IsEnabled(pass)) continue;
    for (const std::string& name : pass.required) {
      if (!done.contains(name)) run(GetPass(name));
    }
    run(pass);
  }
  return module;
}

Pass Sequential::AsPass(std::string name, int opt_level, std::string summary) const {
  return {
      std::move(name), opt_level, {}, std::move(summary), [self = *this](IRModule module, const PassContext& context) {
        return self.Run(std::move(module), context);
      }};
}

}  // namespace collage
