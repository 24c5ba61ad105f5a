// annotation.h: operators that say something of a value and compute nothing.
#pragma once

#include "collage/ir/op.h"

namespace collage {

/// on_device and device_copy: they say where values are.
bool SaysWhere(const OpDef& op);
/// These, and marks of passes (annotation.*).
bool OnlyAnnotates(const OpDef& op);

}  // namespace collage
