// settings.h: the settings of a compilation, one row each. The command line, its help, Python's `collage.compile`,
// docs/settings.md and JSON follow from the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collage/compile.h"

namespace collage {

/// A value for a setting, as a command line, Python or JSON gives it; monostate stands for the default.
using SettingValue =
    std::variant<std::monostate, int64_t, double, std::string, std::vector<std::string>, std::map<std::string, Shape>,
                 std::map<std::string, std::string>, std::vector<std::map<std::string, Tensor>>>;

/// The values of a setting, how they are written, and the field of CompileOptions that holds one.
struct SettingType {
  std::string values;        ///< "an integer from 1 to 1024"
  std::string placeholder;   ///< "N": the value in help texts
  std::string python;        ///< "int": the annotation in Python
  bool is_repeated = false;  ///< its flag may be given several times, and each adds to the value
  /// Reads what follows each occurrence of the flag. Throws kInput.
  std::function<SettingValue(const std::vector<std::string>& texts)> parse;
  /// Checks a value and stores it. Throws kInput.
  std::function<void(CompileOptions& options, const SettingValue& value)> set;
  std::function<SettingValue(const CompileOptions& options)> get;
  /// Stores the default.
  std::function<void(CompileOptions& options)> reset;
};

/// The sub-commands that have a setting's flag.
enum class SettingCommands { kCompile, kCompileAndTune };

/// Whether a setting is without effect on a model none of whose parts has known sizes: nothing of it is searched.
enum class SettingNeeds { kNothing, kSearch };

/// A row of the table. Texts are Markdown that also reads well as plain text.
struct Setting {
  std::string name;   ///< "tuning_budget": the keyword argument in Python, the key in JSON
  std::string flag;   ///< "--tuning-budget"
  std::string group;  ///< the heading in help texts and docs/settings.md
  SettingCommands commands = SettingCommands::kCompile;
  SettingNeeds needs = SettingNeeds::kNothing;
  SettingType type;
  std::string doc;          ///< one sentence or two; other settings are named by their flags
  std::string unset;        ///< the default in words, where its value does not say it: "no limit"
  std::string python_type;  ///< the annotation in Python, if it is not that of `type`
  std::string python_doc;   ///< values that only Python takes
  std::string page;         ///< the page in docs/, with its section, that explains the background
};

/// The table, ordered by groups.
std::span<const Setting> Settings();

/// Returns the row of a name. Throws kInput, with near misses, when there is none.
const Setting& FindSetting(std::string_view name);

/// Stores a value. Throws kInput that names `where`: the flag or the argument that gave it.
void SetSetting(CompileOptions& options, const Setting& setting, const SettingValue& value, const std::string& where);

/// Stores what follows each occurrence of the setting's flag. Throws kInput that names the flag.
void SetSettingFromText(CompileOptions& options, const Setting& setting, const std::vector<std::string>& texts);

/// Returns whether `options` hold the setting's default.
bool IsDefault(const CompileOptions& options, const Setting& setting);

/// Throws kInput, naming the flag, for a value that its row does not allow. Every compilation begins with it.
void CheckSettings(const CompileOptions& options);

/// Returns the default as the command line would write it, "30m", or `unset`.
std::string DefaultText(const Setting& setting);

/// Returns a JSON object: setting → value; null for a default that has words (`unset`) in place of a value.
std::string SettingsJson(const CompileOptions& options);

/// Returns the table as a JSON array: what generated documentation and code are made of.
std::string SettingsTableJson();

}  // namespace collage
