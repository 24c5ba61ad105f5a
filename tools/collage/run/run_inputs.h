// run_inputs.h: the inputs of runs that are repeated, for `collage profile` and `collage benchmark`.
#pragma once

#include <string>
#include <vector>

#include "collage/profile.h"
#include "compile_options.h"

namespace collage::cli {

/// The sizes of --shape and --dim. Throws kInput for a dimension with a range: a run has one size.
RunInputs SizesFrom(const SettingTexts& settings);

/// Adds the arrays of an .npz, if `npz` is not empty, and of `single`, NAME=FILE each, for the executable in `file`.
/// Throws kInput for arrays that no input is called by.
void AddArrays(const std::string& file, const std::string& npz, const std::vector<std::string>& single,
               RunInputs& inputs);

}  // namespace collage::cli
