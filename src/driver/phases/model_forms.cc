// model_forms.cc: one form for each set of passes that are undone.
#include "driver/phases/model_forms.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "collage/ir/structural.h"
#include "collage/partition_for.h"
#include "support/sort_unique.h"

namespace collage {

bool ModelForm::IsOwnedBy(const Toolchain& toolchain) const {
  return std::ranges::find(owners, &toolchain) != owners.end();
}

std::vector<ModelForm> OtherForms(const IRModule& given, const IRModule& prepared,
                                  const std::vector<const Toolchain*>& toolchains, const PassContext& context) {
  std::map<std::vector<std::string>, std::vector<const Toolchain*>> owners_of;  // by passes undone
  for (const Toolchain* toolchain : toolchains) {
    std::vector<std::string> undone = UndoneFor(*toolchain);
    SortUnique(undone);
    if (!undone.empty()) owners_of[std::move(undone)].push_back(toolchain);
  }
  std::vector<ModelForm> forms;
  for (const auto& [undone, owners] : owners_of) {
    PassContext own = context;
    own.disabled_pass.insert(own.disabled_pass.end(), undone.begin(), undone.end());
    IRModule module = PrepareForPartitioning(given, own);
    if (!StructuralEqual(module.main(), prepared.main())) forms.push_back({std::move(module), owners});
  }
  return forms;
}

}  // namespace collage
