// support.h: which calls may go to OpenVINO.
#pragma once

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// Whether `call`, of an operator and typed, has a translation; the reason when not.
Result<void> Supports(const CallNode& call);

}  // namespace collage::openvino
