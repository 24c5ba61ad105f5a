// setting_types.h: the types that settings have: each is made of the field of CompileOptions that holds the value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "collage/settings.h"

namespace collage {

/// An integer from `low` to `high`.
SettingType Integer(int CompileOptions::*field, int64_t low, int64_t high);
SettingType Integer(uint64_t CompileOptions::*field);
/// A count that may be left out.
SettingType Count(std::optional<int64_t> CompileOptions::*field);
/// A number from 0 to 1 that may be left out.
SettingType Fraction(std::optional<double> CompileOptions::*field);
/// Seconds, written as "90s"; infinity is the value of none.
SettingType Duration(double CompileOptions::*field);
/// A size of memory, written as "12GiB".
SettingType Bytes(int64_t CompileOptions::*field);
/// One of `choices`, or any text without them; empty where it may be left out.
SettingType Word(std::string CompileOptions::*field, std::vector<std::string> choices);
SettingType Text(std::string CompileOptions::*field, std::string placeholder, std::string values);
/// A file or folder; one that is read must exist.
SettingType Path(std::filesystem::path CompileOptions::*field, std::string placeholder, bool must_exist);
/// Files that exist, one for each time that the flag is given.
SettingType Paths(std::vector<std::filesystem::path> CompileOptions::*field, std::string placeholder);
/// Names, separated by commas.
SettingType Names(std::vector<std::string> CompileOptions::*field);
/// Texts, one for each time that the flag is given.
SettingType Texts(std::vector<std::string> CompileOptions::*field, std::string placeholder, std::string values);
/// Shapes by name, "x=1x3x640x640".
SettingType Shapes(std::map<std::string, Shape> CompileOptions::*field);
/// Sizes by the names of dimensions, "sequence=16,128".
SettingType Sizes(std::map<std::string, Shape> CompileOptions::*field);
/// A size or a range of sizes by the name of a dimension, "batch=1", "sequence=1..512"; two numbers are a range.
SettingType Dimensions(std::map<std::string, Shape> CompileOptions::*field);
/// Numbers of elements by the name of a sequence, "x=2".
SettingType Lengths(std::map<std::string, Shape> CompileOptions::*field);
/// Values of inputs by name, "sr=16000", "sizes=1,2" or "table=FILE.npy".
SettingType Constants(std::map<std::string, std::string> CompileOptions::*field);
/// JSON by the name of a toolchain, "NAME={…}" or "NAME=FILE.json".
SettingType Rules(std::map<std::string, std::string> CompileOptions::*field);
/// Tensors by name, from .npz files.
SettingType Inputs(std::vector<std::map<std::string, Tensor>> CompileOptions::*field);
/// The level of CompileOptions::pass_context.
SettingType PassLevel(int64_t low, int64_t high);
/// Passes in a list of CompileOptions::pass_context, separated by commas; each must exist.
SettingType PassNames(std::vector<std::string> PassContext::*field);
/// Options of passes, KEY=VALUE; each is checked as PassContext does.
SettingType PassOptions();
/// "30s", "200trials" or both, separated by a comma.
SettingType TuningBudget(double CompileOptions::*seconds, int64_t CompileOptions::*trials);

}  // namespace collage
