// model_forms.h: the forms that toolchains want a model in, other than the one that suits them all.
#pragma once

#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// A model after some of the passes that prepare models for partitioning.
struct ModelForm {
  IRModule module;                       ///< typed
  std::vector<const Toolchain*> owners;  ///< toolchains whose preamble wants this form; none: the one for all

  bool IsOwnedBy(const Toolchain& toolchain) const;
};

/// Returns the forms of `given` in which passes are undone for some of `toolchains` (UndoneFor), each once, without
/// those that are what `prepared` is anyway. All passes run under `context`.
std::vector<ModelForm> OtherForms(const IRModule& given, const IRModule& prepared,
                                  const std::vector<const Toolchain*>& toolchains, const PassContext& context);

}  // namespace collage
