// man_pages.cc: manual pages (man(7)) from the table of commands and options that --help is printed from.
#include "man_pages.h"

#include <fmt/format.h>

#include <cctype>
#include <map>

#include "command_line.h"
#include "support/file.h"

namespace collage::cli {
namespace {

/// As roff prints it: no escapes, no requests, and dashes that are not made typographic.
std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() || out.back() == '\n') {
      if (c == '.' || c == '\'') out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string OptionText(const CLI::Option& option) {
  std::string names = option.get_name(/*positional=*/option.get_positional(), /*all_options=*/true);
  if (option.get_items_expected_max() > 0 && !option.get_positional()) names += " " + option.get_type_name();
  return fmt::format(".TP\n.B {}\n{}\n", Roff(names), Roff(option.get_description()));
}

/// The options in their groups, as --help has them.
std::string OptionsText(const CLI::App& command) {
  std::vector<std::string> order;
  std::map<std::string, std::string> by_group;
  for (const CLI::Option* option : command.get_options()) {
    const std::string group = option->get_positional() ? "Arguments" : option->get_group();
    if (group.empty()) continue;
    if (by_group.emplace(group, "").second) order.push_back(group);
    by_group[group] += OptionText(*option);
  }
  std::string text;
  for (const std::string& group : order) {
    std::string title = group;
    for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    text += fmt::format(".SH {}\n{}", Roff(title), by_group[group]);
  }
  return text;
}

std::string PageOf(const CLI::App& command, const std::string& name) {
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"Collage {}\" \"Collage\"\n", Roff(title), COLLAGE_VERSION);
  std::string description = command.get_description();
  const std::string first = description.substr(0, description.find('\n'));
  text += fmt::format(".SH NAME\n{} \\- {}\n", Roff(name), Roff(first));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n[options]{}\n", Roff(FullName(command)),
                      CommandsOf(command).empty() ? "" : " command");
  if (first.size() < description.size()) text += fmt::format(".SH DESCRIPTION\n{}\n", Roff(description));
  if (!CommandsOf(command).empty()) {
    text += ".SH COMMANDS\n";
    for (const CLI::App* inner : CommandsOf(command)) {
      text += fmt::format(".TP\n.B {}\n{}\n", Roff(inner->get_name()), Roff(inner->get_description()));
    }
  }
  text += OptionsText(command);
  if (!command.get_footer().empty()) text += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", Roff(command.get_footer()));
  return text;
}

void Write(const CLI::App& command, const std::string& name, const std::filesystem::path& folder) {
  WriteWhole(folder / (name + ".1"), PageOf(command, name));
  for (const CLI::App* inner : CommandsOf(command)) Write(*inner, name + "-" + inner->get_name(), folder);
}

}  // namespace

void WriteManPages(const CLI::App& app, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(ErrorCategory::kResource, "cannot create: " + failed.message(), folder.string());
  Write(app, app.get_name(), folder);
}

}  // namespace collage::cli
