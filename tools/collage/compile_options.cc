// compile_options.cc: help texts and flags from rows.
#include "compile_options.h"

#include <fmt/format.h>

#include <utility>

namespace collage::cli {
namespace {

constexpr size_t kHelpWidth = 84;  // beside CLI11's column of flags

/// Breaks lines at spaces.
std::string Wrap(const std::string& text) {
  std::string wrapped;
  size_t width = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (width > 0 && width + 1 + end - begin > kHelpWidth) {
      wrapped += '\n';
      width = 0;
    } else if (width > 0) {
      wrapped += ' ';
      ++width;
    }
    wrapped += text.substr(begin, end - begin);
    width += end - begin;
    begin = end + 1;
  }
  return wrapped;
}

/// Help on one setting: what it does, whether it repeats, its default.
std::string HelpText(const Setting& setting, const std::string& use) {
  std::string text = use.empty() ? setting.doc : use + " " + setting.doc;
  if (setting.type.is_repeated) text += " May be repeated.";
  return Wrap(fmt::format("{} (default: {})", text, DefaultText(setting)));
}

void Add(CLI::App& command, const Setting& setting, SettingTexts& texts, const std::string& use) {
  CLI::Option* option = nullptr;
  if (setting.type.is_repeated) {
    const auto take = [&](const std::vector<std::string>& given) { texts[setting.name] = given; };
    option = command.add_option_function<std::vector<std::string>>(setting.flag, take, HelpText(setting, use))
                 ->allow_extra_args(false);
  } else {
    const auto take = [&](const std::string& given) { texts[setting.name] = {given}; };
    option = command.add_option_function<std::string>(setting.flag, take, HelpText(setting, use));
  }
  option->type_name(setting.type.placeholder);
}

}  // namespace

void AddSettings(CLI::App& command, SettingCommands of, SettingTexts& texts) {
  for (const Setting& setting : Settings()) {
    if (of == SettingCommands::kCompileAndTune && setting.commands != of) continue;
    Add(command, setting, texts, "");
    command.get_option(setting.flag)->group(setting.group);
  }
}

void AddSetting(CLI::App& command, std::string_view name, SettingTexts& texts, const std::string& use) {
  Add(command, FindSetting(name), texts, use);
}

CompileOptions OptionsFrom(const SettingTexts& texts) {
  CompileOptions options;
  for (const auto& [name, given] : texts) SetSettingFromText(options, FindSetting(name), given);
  return options;
}

}  // namespace collage::cli
