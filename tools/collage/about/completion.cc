// completion.cc: `collage completion`: scripts by which shells complete commands and options.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "command.h"
#include "command_line.h"

namespace collage::cli {
namespace {

using Visit = std::function<void(const CLI::App& command)>;

/// Visits a command and those below it, outer ones first.
void ForEach(const CLI::App& command, const Visit& visit) {
  visit(command);
  for (const CLI::App* inner : CommandsOf(command)) ForEach(*inner, visit);
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// The first sentence of a description, on one line.
std::string Summary(const std::string& description) {
  std::string text = Replaced(description, "\n", " ");
  const size_t end = std::min(text.find(". "), text.find(" (default"));
  if (end != std::string::npos) text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// In single quotes of a POSIX shell.
std::string Quoted(const std::string& text) { return "'" + Replaced(text, "'", "'\\''") + "'"; }

std::vector<std::string> NamesOf(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

/// "collage compile|collage run": patterns of all commands below the first.
std::string Patterns(const CLI::App& app) {
  std::vector<std::string> patterns;
  ForEach(app, [&](const CLI::App& command) {
    if (&command != &app) patterns.push_back(fmt::format("\"{}\"", FullName(command)));
  });
  return fmt::format("{}", fmt::join(patterns, "|"));
}

std::string Bash(const CLI::App& app) {
  std::string cases;
  ForEach(app, [&](const CLI::App& command) {
    cases += fmt::format("    \"{}\") commands=\"{}\" options=\"{}\" ;;\n", FullName(command),
                         fmt::join(NamesOf(CommandsOf(command)), " "), fmt::join(OptionsOf(command), " "));
  });
  return fmt::format(R"(# Completes `collage` in bash. Written by `collage completion bash`.
_collage() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command=collage commands= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {}) command="$command ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command" in
{}  esac
  COMPREPLY=()
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [[ -n $commands ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _collage collage
)",
                     Patterns(app), cases);
}

/// 'NAME:SUMMARY' for zsh's _describe.
std::string Described(const std::string& name, const std::string& description) {
  return Quoted(Replaced(name, ":", "\\:") + ":" + Replaced(Summary(description), ":", "\\:"));
}

std::string Zsh(const CLI::App& app) {
  std::string cases;
  ForEach(app, [&](const CLI::App& command) {
    std::vector<std::string> commands, options;
    for (const CLI::App* inner : CommandsOf(command)) {
      commands.push_back(Described(inner->get_name(), inner->get_description()));
    }
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        options.push_back(Described("--" + name, option->get_description()));
      }
    }
    cases += fmt::format("    (\"{}\")\n      commands=({})\n      options=({}) ;;\n", FullName(command),
                         fmt::join(commands, " "), fmt::join(options, " "));
  });
  return fmt::format(R"(#compdef collage
# Completes `collage` in zsh. Written by `collage completion zsh`.
_collage() {{
  local command=collage word
  local -a commands options
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
      ({}) command="$command $word" ;;
    esac
  done
  case $command in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}}
_collage "$@"
)",
                     Patterns(app), cases);
}

/// When fish completes what belongs to `command`.
std::string FishCondition(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr) return "__fish_use_subcommand";
  const std::string own = "__fish_seen_subcommand_from " + command.get_name();
  return parent->get_parent() == nullptr ? own : FishCondition(*parent) + "; and " + own;
}

std::string Fish(const CLI::App& app) {
  std::string text = "# Completes `collage` in fish. Written by `collage completion fish`.\n";
  ForEach(app, [&](const CLI::App& command) {
    const std::string condition = Quoted(FishCondition(command));
    for (const CLI::App* inner : CommandsOf(command)) {
      text += fmt::format("complete -c collage -n {} -f -a {} -d {}\n", condition, inner->get_name(),
                          Quoted(Summary(inner->get_description())));
    }
    for (const CLI::Option* option : command.get_options()) {
      std::string names;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      if (names.empty()) continue;
      text +=
          fmt::format("complete -c collage -n {}{}{} -d {}\n", condition, names,
                      option->get_items_expected_max() > 0 ? " -r" : "", Quoted(Summary(option->get_description())));
    }
  });
  return text;
}

}  // namespace

void AddCompletionCommand(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script by which a shell completes this command");
  const std::vector<std::pair<std::string, std::string (*)(const CLI::App&)>> shells{
      {"bash", Bash}, {"zsh", Zsh}, {"fish", Fish}};
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  collage completion bash > collage.bash       then, in ~/.bashrc: source …/collage.bash\n"
      "  collage completion zsh > _collage            into a folder of $fpath\n"
      "  collage completion fish > collage.fish       into ~/.config/fish/completions");
  command->callback([&app, shell, shells] {
    for (const auto& [name, script] : shells) {
      if (name == *shell) fmt::print("{}", script(app));
    }
  });
}

}  // namespace collage::cli
