// named_sizes.h: sizes of dynamic dimensions that are named before a program is compiled, for which it gets functions
// of its own: they have no dynamic shapes, so that all toolchains can take part in them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/named_dimensions.h"

namespace collage {

/// A size for each dynamic dimension of a function's parameters.
struct NamedSizes {
  std::string text;           ///< "batch=1 sequence=16"
  std::vector<Shape> shapes;  ///< by parameter
};

/// Returns the names and ranges that the attributes of `function` state.
NamedDimensions DimensionsOf(const Function& function);
/// Returns the name that the model gives a dimension of a parameter of `function`; empty where it gives none.
std::string GivenDimensionName(const Function& function, size_t param, size_t axis);

/// Returns all combinations of `sizes`, which are by the names of dimensions. Dimensions that are known to be equal
/// need one name only. Throws kInput for parameters that are no tensors, a name that no dynamic dimension has, a
/// dynamic dimension without sizes, a size below 1, and more than 64 combinations.
std::vector<NamedSizes> CombineSizes(const Function& function, const std::map<std::string, Shape>& sizes);

/// Returns a few combinations spread over the ranges that the dynamic dimensions of `function` have: the largest sizes,
/// a quarter and a sixteenth of them. None if a dimension has no largest size.
std::vector<NamedSizes> SpreadSizes(const Function& function);

/// Returns `module` with static `shapes` of @main's parameters, typed, and with operators of static shapes wherever
/// sizes follow from them. Throws kInput where they contradict the module.
IRModule BindParameters(const IRModule& module, const std::vector<Shape>& shapes);

/// Attribute of the functions that WithSpecialised adds: NamedSizes::text.
inline constexpr const char* kAttrSizes = "sizes";

/// Returns `program` with the functions of `bound`, which has sizes `text`, under new names. Its @main computes the
/// program's for the shapes of its parameters (vm::kAttrSpecialises), which must be static.
IRModule WithSpecialised(IRModule program, const IRModule& bound, const std::string& text);

}  // namespace collage
