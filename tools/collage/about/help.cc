// help.cc: `collage help`: the same as --help, for those who ask the other way round.
#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "command_line.h"
#include "man_pages.h"

namespace collage::cli {
namespace {

void Run(const CLI::App& app, const std::vector<std::string>& names) {
  const CLI::App* command = &app;
  std::string before;
  for (const std::string& name : names) {
    const std::vector<const CLI::App*> commands = CommandsOf(*command);
    const auto found = std::ranges::find(commands, name, [](const CLI::App* one) { return one->get_name(); });
    if (found == commands.end()) throw UnknownCommand(*command, name);
    before = FullName(*command);
    command = *found;
  }
  // The top command's help is that of a command that the line names, which here is `help` itself.
  fmt::print("{}", command == &app ? app.get_formatter()->make_help(&app, FullName(app), CLI::AppFormatMode::Normal)
                                   : command->help(before));
}

}  // namespace

void AddHelpCommand(CLI::App& app) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Print help on a command");
  command->add_option("command", *names, "The command, such as `compile` or `db export`");
  auto folder = std::make_shared<std::string>();
  command->add_option("--man", *folder, "Write a manual page for each command into this folder instead");
  command->footer(
      "Examples:\n"
      "  collage help\n"
      "  collage help compile\n"
      "  collage help db export\n"
      "  collage help --man man1      collage.1, collage-compile.1 and so on");
  command->callback([&app, names, folder] { folder->empty() ? Run(app, *names) : WriteManPages(app, *folder); });
}

}  // namespace collage::cli
