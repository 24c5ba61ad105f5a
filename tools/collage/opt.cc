// opt.cc: `collage opt`: passes on a module's text: those that are named, or those of one toolchain.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <utility>

#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/partition_for.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "command.h"
#include "compile_options.h"
#include "driver/builtins.h"
#include "partition/byoc/toolchains.h"
#include "report/text_table.h"
#include "support/file.h"

namespace collage::cli {
namespace {

constexpr int kLevelOfNamedPasses = 4;

struct OptArguments {
  std::string file;
  std::string passes;
  std::string optimize_for;
  std::string partition_for;
  std::vector<std::string> config;
  SettingTexts settings;
  std::string disabled;
  std::string print_after;
  std::optional<int> opt_level;
  bool list = false;
  bool timing = false;
  bool types = false;
  bool no_metadata = false;
};

/// Relay text, or an ONNX model by its suffix.
IRModule ReadModule(const std::string& file, const SettingTexts& settings) {
  if (std::filesystem::path(file).extension() == ".onnx") {
    return InferTypes(ImportOnnx(file, ImportOptionsOf(OptionsFrom(settings))));
  }
  if (!settings.empty()) {
    throw Error(ErrorCategory::kInput,
                "--shape, --dim, --constant and --length are for ONNX models: Relay text states its shapes", file);
  }
  return ParseModule(ReadFile(file), file);
}

void List() {
  TextTable passes({"pass", "level", "needs", "what it does"});
  for (const Pass& pass : AllPasses()) {
    std::string required;
    for (const std::string& name : pass.required) required += (required.empty() ? "" : ", ") + name;
    passes.Add({pass.name, std::to_string(pass.opt_level), required, pass.summary});
  }
  TextTable keys({"option", "default", "what it does"});
  for (const ConfigKey& key : AllConfigKeys()) {
    const AttrValue& value = key.default_value;
    keys.Add({key.name,
              value.as_bool() != nullptr  ? (*value.as_bool() ? "true" : "false")
              : value.as_int() != nullptr ? std::to_string(*value.as_int())
                                          : "'" + *value.as_string() + "'",
              key.doc});
  }
  fmt::print("{}\n{}", passes.ToText(), keys.ToText());
}

PassContext ContextOf(const OptArguments& arguments) {
  const bool is_for_one = !arguments.optimize_for.empty() || !arguments.partition_for.empty();
  PassContext context(arguments.opt_level.value_or(is_for_one ? kPreparationLevel : kLevelOfNamedPasses));
  context.disabled_pass = SplitCommas(arguments.disabled);
  for (const std::string& option : arguments.config) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed option '{}'", option), "--config", "write KEY=VALUE");
    }
    context.SetConfigText(option.substr(0, equals), option.substr(equals + 1));
  }
  CheckPassNames(context);
  return context;
}

/// Returns the work that the arguments ask for, as a function of the module. Warns of passes that are named and do not
/// run.
std::function<IRModule(IRModule module, const PassContext& context)> WorkOf(const OptArguments& arguments,
                                                                            const PassContext& context) {
  for (const auto& [name, run] :
       {std::pair(&arguments.optimize_for, &OptimizeFor), std::pair(&arguments.partition_for, &PartitionFor)}) {
    if (name->empty()) continue;
    return [run, &toolchain = ToolchainRegistry::Global().Get(*name)](IRModule module, const PassContext& context) {
      return run(toolchain, std::move(module), context);
    };
  }
  Sequential passes(SplitCommas(arguments.passes));
  for (const Pass& pass : passes.passes()) {
    if (!context.IsEnabled(pass))
      fmt::print(stderr, "collage: pass '{}' is not run: it is of level {} or barred\n", pass.name, pass.opt_level);
  }
  return [passes = std::move(passes)](IRModule module, const PassContext& context) {
    return passes.Run(std::move(module), context);
  };
}

void RunOpt(const OptArguments& arguments) {
  AddBuiltins();
  if (arguments.list) return List();
  if (arguments.file.empty()) throw Error(ErrorCategory::kInput, "no file to read", "", "or use --list");
  PassContext context = ContextOf(arguments);
  const auto work = WorkOf(arguments, context);
  const auto timing = std::make_shared<TimingInstrument>();
  if (arguments.timing) context.instruments.push_back(timing);
  if (!arguments.print_after.empty()) {
    std::vector<std::string> names = SplitCommas(arguments.print_after);
    if (names == std::vector<std::string>{"all"}) names.clear();
    for (const std::string& name : names) GetPass(name);
    context.instruments.push_back(
        std::make_shared<PrintIrInstrument>(std::cerr, PrintIrInstrument::When::kAfter, std::move(names)));
  }
  const IRModule module = work(ReadModule(arguments.file, arguments.settings), context);
  fmt::print("{}", PrintModule(module, {.types = arguments.types, .metadata = !arguments.no_metadata}));
  if (arguments.timing) fmt::print(stderr, "{}", timing->ToText());
}

}  // namespace

void AddOptCommand(CLI::App& app) {
  auto arguments = std::make_shared<OptArguments>();
  CLI::App* command = app.add_subcommand("opt", "Run passes on Relay text or an ONNX model, and print Relay text");
  command->add_option("file", arguments->file, "Relay text, or an ONNX model (.onnx)");
  CLI::Option* passes =
      command->add_option("--passes", arguments->passes, "Passes to run, in order, separated by commas");
  CLI::Option* optimize = command
                              ->add_option("--optimize-for", arguments->optimize_for,
                                           "Run the passes that prepare a model for this toolchain: those of every "
                                           "compilation, then its preamble")
                              ->type_name("TOOLCHAIN")
                              ->excludes(passes);
  command
      ->add_option("--partition-for", arguments->partition_for,
                   "Prepare for this toolchain, and make partitions of what it takes, without search")
      ->type_name("TOOLCHAIN")
      ->excludes(passes)
      ->excludes(optimize);
  command->add_option("--config", arguments->config, "Set an option of a pass, KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--opt-level", arguments->opt_level,
                      "Skip passes of higher levels (default: 4 with --passes, 3 for a toolchain)");
  command->add_option("--disable-pass,--disable", arguments->disabled, "Passes to skip, separated by commas");
  command->add_option("--print-after", arguments->print_after,
                      "Print the module after these passes, or after 'all', to standard error");
  AddSetting(*command, "shapes", arguments->settings, "For ONNX models.");
  AddSetting(*command, "dims", arguments->settings, "For ONNX models.");
  AddSetting(*command, "constants", arguments->settings, "For ONNX models.");
  AddSetting(*command, "lengths", arguments->settings, "For ONNX models.");
  command->add_flag("--types", arguments->types, "Print the type of each bound value");
  command->add_flag("--no-metadata", arguments->no_metadata, "Leave out the values of constants");
  command->add_flag("--timing", arguments->timing, "Print the time of each pass to standard error");
  command->add_flag("--list", arguments->list, "List passes and their options");
  command->footer(
      "Examples:\n"
      "  collage opt model.onnx --no-metadata                                 the model as Relay text\n"
      "  collage opt model.onnx --passes FoldConstant,FuseOps --no-metadata\n"
      "  collage opt --list");
  command->callback([arguments] { RunOpt(*arguments); });
}

}  // namespace collage::cli
