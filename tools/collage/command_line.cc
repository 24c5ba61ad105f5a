// command_line.cc: CLI11's complaints in Collage's words.
#include "command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "collage/frontend/unsupported_nodes.h"
#include "support/edit_distance.h"

namespace collage::cli {
namespace {

/// The command that the line names last: `db export` within `collage db export`.
const CLI::App& Innermost(const CLI::App& app) {
  const CLI::App* inner = &app;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  return *inner;
}

std::string HelpHint(const CLI::App& command) {
  return fmt::format("`{} --help` lists what there is", FullName(command));
}

/// Targets are texts with spaces and dashes, which a shell takes apart.
bool IsPartOfATarget(const CLI::App& command, const std::string& word) {
  const std::vector<std::string> options = OptionsOf(command);
  return word.size() > 2 && word[0] == '-' && word[1] != '-' && std::ranges::find(options, "--target") != options.end();
}

Error UnexpectedWords(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = Innermost(app);
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  if (option == words.end()) {
    if (&command == &app || !command.get_subcommands({}).empty()) return UnknownCommand(command, words.front());
    return {ErrorCategory::kInput, fmt::format("unexpected argument '{}'", words.front()), FullName(command),
            fmt::format("`{} --help` says what it takes", FullName(command))};
  }
  const std::string name = option->substr(0, option->find('='));
  const std::string message = fmt::format("`{}` has no such option", FullName(command));
  if (IsPartOfATarget(command, *option)) {
    return {ErrorCategory::kInput, message, name, fmt::format("put a target in quotes: --target \"llvm {}\"", *option)};
  }
  const std::string near = DidYouMean(name, OptionsOf(command));
  return {ErrorCategory::kInput, message, name, near.empty() ? HelpHint(command) : near};
}

std::string WithLowerFirst(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

}  // namespace

std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : FullName(*parent) + " " + command.get_name();
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<std::string> OptionsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Error UnknownCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
  std::string near = DidYouMean(name, names);
  const auto begins = std::ranges::find_if(
      names, [&](const std::string& one) { return name.size() > 2 && one.starts_with(name); });  // "bench"
  if (near.empty() && begins != names.end()) near = fmt::format("did you mean '{}'?", *begins);
  return {ErrorCategory::kInput, fmt::format("there is no command '{}'", name), FullName(app),
          near.empty() ? fmt::format("`{} --help` lists the commands", FullName(app)) : near};
}

Error UsageErrorOf(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return UnexpectedWords(app, app.remaining(/*recurse=*/true));
  const CLI::App& command = Innermost(app);
  std::string message = error.what(), where = FullName(command);
  constexpr std::string_view kRequired = " is required";
  if (message.ends_with(kRequired)) {
    message = fmt::format("{} is missing", message.substr(0, message.size() - kRequired.size()));
  } else if (const size_t colon = message.find(": "); message.starts_with('-') && colon != std::string::npos) {
    where = message.substr(0, colon);
    message = message.substr(colon + 2);
  }
  return {ErrorCategory::kInput, WithLowerFirst(message), where,
          fmt::format("`{} --help` has examples", FullName(command))};
}

int PrintError(const Error& error, bool as_json) {
  // A place comes first, as editors and other tools expect it.
  std::fprintf(stderr, "%s%s\n", error.where().empty() ? "collage: " : "", error.Format().c_str());
  const int code = ExitCode(error.category());
  if (!as_json) return code;
  nlohmann::ordered_json object{{"schema", 1},
                                {"error",
                                 {{"category", ToString(error.category())},
                                  {"exit_code", code},
                                  {"message", error.message()},
                                  {"where", error.where()},
                                  {"hint", error.hint()}}}};
  if (const auto* refused = dynamic_cast<const UnsupportedNodesError*>(&error)) {
    for (const UnsupportedNode& node : refused->nodes()) {
      object["error"]["nodes"].push_back({{"name", node.name}, {"op", node.op}, {"reason", node.reason}});
    }
  }
  const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fprintf(stdout, "%s\n", text.c_str());
  return code;
}

}  // namespace collage::cli
