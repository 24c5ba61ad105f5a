// parse.cc: `collage parse`: a program's text with its types; whether printing keeps it, whether it equals another.
#include <fmt/format.h>

#include <optional>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "inspect_input.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments input;
  bool no_metadata = false;
  bool check_roundtrip = false;
  std::string equals;
};

/// Why two modules are not equal; empty when they are.
std::string Difference(const IRModule& a, const IRModule& b) {
  for (const IRModule* one : {&a, &b}) {
    for (const auto& [name, function] : one->functions()) {
      if (!(one == &a ? b : a).Has(name)) return fmt::format("'@{}' is in one of them only", name);
    }
  }
  for (const auto& [name, function] : a.functions()) {
    if (!StructuralEqual(function, b.Lookup(name))) return fmt::format("'@{}' differs", name);
  }
  std::string types[2];
  for (int i = 0; i < 2; ++i) {
    IRModule only_types;
    for (const auto& [name, type] : (i == 0 ? a : b).types()) only_types.AddType(type);
    types[i] = PrintModule(only_types);
  }
  return types[0] == types[1] ? "" : "type definitions differ";
}

std::string TextOf(const InspectedFile& file, const Arguments& arguments) {
  const PrintOptions options{.types = true, .metadata = !arguments.no_metadata};
  return file.is_expression ? PrintExpr(file.expr, options) : PrintModule(file.module, options);
}

/// Free variables of what was read: of the expression, or of the function.
std::vector<std::string> FreeNames(const InspectedFile& file, const Function& function) {
  std::vector<std::string> names;
  for (const Var& var : FreeVars(file.is_expression ? file.expr : Expr(function))) names.push_back(var->name());
  return names;
}

/// The text of what was read, which is all that text shows, its type and its size.
Fact FactsOf(const InspectedFile& file, const Arguments& arguments, const std::string& difference) {
  std::vector<std::string> free_names;
  std::optional<std::string> type;
  int64_t size = 0;
  const bool is_there = file.module.Has(arguments.input.function) || arguments.input.function != "main";
  if (arguments.input.json && is_there) {
    const Function function = InspectedFunction(file, arguments.input);
    type = ToString(function->body()->checked_type());
    free_names = FreeNames(file, function);
    size = static_cast<int64_t>(InspectDataflow(function).size());
  }
  std::vector<Fact> facts{
      Fact::Text("module", "module", TextOf(file, arguments)), Fact::Text("result_type", "type", type).Detail(),
      Fact::Texts("free_vars", "free variables", free_names).Detail(), Fact::Count("size", "nodes", size).Detail()};
  if (!arguments.equals.empty()) facts.push_back(Fact::Flag("equal", "equal", difference.empty()).Detail());
  return Fact::Report(1, std::move(facts)).Says("{module}");
}

void Run(const Arguments& arguments) {
  const InspectedFile file = ReadInspected(arguments.input);
  if (arguments.check_roundtrip) {
    const IRModule again = ParseModule(PrintModule(file.module, {.types = true}), arguments.input.file + " (printed)");
    const std::string difference = Difference(file.module, again);
    if (!difference.empty()) {
      throw Error(ErrorCategory::kInternal, "printing and parsing changes the module: " + difference,
                  arguments.input.file);
    }
  }
  std::string difference;
  if (!arguments.equals.empty()) {
    difference = Difference(file.module, ReadInspected(arguments.equals, arguments.input).module);
  }
  PrintReport(FactsOf(file, arguments, difference), arguments.input.json);
  if (!difference.empty()) {
    fmt::print(stderr, "collage: '{}' and '{}' are not equal: {}\n", arguments.input.file, arguments.equals,
               difference);
    throw CLI::RuntimeError(1);
  }
}

}  // namespace

void AddParseCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("parse", "Check Relay text or an ONNX model, and print it with its types");
  AddInspectFlags(*command, arguments->input);
  command->add_flag("--no-metadata", arguments->no_metadata, "Leave out the values of constants");
  command->add_flag("--check-roundtrip", arguments->check_roundtrip,
                    "Fail unless the printed text reads back as the same module");
  command->add_option("--equals", arguments->equals,
                      "Exit with 1 unless structurally equal to this file, sharing included");
  command->footer(
      "Examples:\n"
      "  collage parse model.onnx --no-metadata\n"
      "  collage parse model.onnx --check-roundtrip --no-metadata");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { Run(*arguments); }); });
}

}  // namespace collage::cli
