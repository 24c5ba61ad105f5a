// inspect_input.h: what the inspection commands read: a module or an expression as Relay text, or an ONNX model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/inspect.h"
#include "command.h"
#include "compile_options.h"

namespace collage::cli {

/// Flags that all inspection commands have.
struct InspectArguments {
  std::string file;
  std::string function = "main";
  std::string constants;  ///< a file: shapes of meta[relay.Constant][i]
  SettingTexts settings;  ///< shapes of an ONNX model's inputs
  bool json = false;
};
void AddInspectFlags(CLI::App& command, InspectArguments& arguments);

/// The content of a file. An expression is wrapped: its free variables become the parameters of @main.
struct InspectedFile {
  IRModule module;
  bool is_expression = false;
  Expr expr;  ///< null for a module
};
/// Throws kInput, naming file, line and column.
InspectedFile ReadInspected(const InspectArguments& arguments);
InspectedFile ReadInspected(const std::string& file, const InspectArguments& arguments);
/// The function to look at; throws kInput with near misses when there is none of that name.
Function InspectedFunction(const InspectedFile& file, const InspectArguments& arguments);

/// Runs a command; errors that name no line are about the whole file: "file:1:1: error: …".
void WithPlace(const std::string& file, const std::function<void()>& command);

}  // namespace collage::cli
