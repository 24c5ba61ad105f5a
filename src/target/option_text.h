// option_text.h: options as targets write them, and as people read of them.
#pragma once

#include <string>

#include "collage/ir/attrs.h"
#include "collage/ir/op.h"

namespace collage {

/// "a number": what values of that kind are.
const char* OptionKindText(AttrKind kind);
/// A value of an option, quoted where it has blanks or quotes, so that Target::Parse reads it back.
std::string OptionValueText(const AttrValue& value);
/// " -name=value" for each option, by name.
std::string OptionText(const Attrs& options);

}  // namespace collage
