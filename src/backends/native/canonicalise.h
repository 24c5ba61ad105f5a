// canonicalise.h: rewrites a partition into the calls that loops are made of.
#pragma once

#include <functional>

#include "collage/ir/expr.h"

namespace collage::native {

/// `function`, typed, without what is computed faster otherwise: what Composite functions hold stands in place of their
/// calls, calls of the quantised dialect become what they stand for, products of one value by constant weights become
/// one product, and the largest of numbers that are quantised as before are the largest of integers. Itself where
/// nothing of that is in it. Calls for which `is_kept` holds, of Composite functions, stay as they are.
Function Canonicalise(
    const Function& function, const std::function<bool(const Expr& call)>& is_kept = [](const Expr&) { return false; });

}  // namespace collage::native
