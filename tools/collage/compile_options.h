// compile_options.h: flags of settings (collage/settings.h): declared from their rows, read by their types.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collage/settings.h"

namespace collage::cli {

/// The texts of settings: by name, the text after each occurrence of the flag.
using SettingTexts = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Declares the flags of all settings that `compile`, or `tune`, has; `texts` must outlive `command`.
void AddSettings(CLI::App& command, SettingCommands of, SettingTexts& texts);

/// Declares the flag of one setting, for a command that shares it; `use` is a first sentence of its help, which says
/// what for.
void AddSetting(CLI::App& command, std::string_view name, SettingTexts& texts, const std::string& use = "");

/// Returns the options with the settings that were written. Throws kInput, naming flag and value.
CompileOptions OptionsFrom(const SettingTexts& texts);

}  // namespace collage::cli
