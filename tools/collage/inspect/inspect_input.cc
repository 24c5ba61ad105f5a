// inspect_input.cc: reading programs for inspection.
#include "inspect_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <climits>
#include <filesystem>

#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "driver/builtins.h"
#include "ir/text/expression_text.h"
#include "support/edit_distance.h"
#include "support/file.h"
#include "support/json_reader.h"

namespace collage::cli {
namespace {

/// [[8, 1, 5, 5], {"shape": [], "dtype": "float32"}, …].
std::vector<Constant> ReadConstants(const std::string& file) {
  std::vector<Constant> constants;
  for (const JsonReader& item : JsonReader::Parse(ReadFile(file), file).Items()) {
    DataType dtype = kFloat32;
    if (item.IsObject()) item.AllowOnly({"shape", "dtype"});
    if (item.IsObject() && item.Has("dtype")) {
      const JsonReader name = item.At("dtype");
      if (!DataType::IsName(name.String())) name.Fail(fmt::format("there is no dtype '{}'", name.String()));
      dtype = DataType::FromString(name.String());
    }
    Shape shape;
    double num_elements = 1;
    for (const JsonReader& dim : (item.IsObject() ? item.At("shape") : item).Items()) {
      shape.push_back(dim.Int(0, INT_MAX));
      num_elements *= static_cast<double>(shape.back());
    }
    if (num_elements > 1e10) item.Fail("too large a constant");
    const Tensor tensor = Tensor::Empty(shape, dtype);
    // Contents are free: something that is not all alike, so that nothing follows from them.
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(i % 7 + 1));
    constants.push_back(MakeConstant(tensor));
  }
  return constants;
}

InspectedFile WrapExpression(const Expr& expr) {
  InspectedFile file;
  file.is_expression = true;
  file.expr = expr;
  const std::vector<Var> free_vars = FreeVars(expr);
  Function function = AsShared<FunctionNode>(expr);
  if (function == nullptr || !free_vars.empty()) function = MakeFunction(free_vars, expr);
  file.module = InferTypes(IRModule::FromFunction(function));
  return file;
}

}  // namespace

void AddInspectFlags(CLI::App& command, InspectArguments& arguments) {
  command.add_option("file", arguments.file, "Relay text, or an ONNX model (.onnx)")->required();
  command.add_option("--function", arguments.function, "Global function to inspect")->capture_default_str();
  command.add_option("--constants", arguments.constants,
                     "JSON file: shapes of meta[relay.Constant][i] where the text has no metadata");
  AddSetting(command, "shapes", arguments.settings, "For ONNX models.");
  AddSetting(command, "dims", arguments.settings, "For ONNX models.");
  AddSetting(command, "constants", arguments.settings, "For ONNX models.");
  AddSetting(command, "lengths", arguments.settings, "For ONNX models.");
  command.add_flag("--json", arguments.json, "Print as JSON");
}

InspectedFile ReadInspected(const InspectArguments& arguments) { return ReadInspected(arguments.file, arguments); }

InspectedFile ReadInspected(const std::string& file, const InspectArguments& arguments) {
  if (std::filesystem::path(file).extension() == ".onnx") {
    return {InferTypes(ImportOnnx(file, ImportOptionsOf(OptionsFrom(arguments.settings)))), false, nullptr};
  }
  if (!arguments.settings.empty()) {
    throw Error(ErrorCategory::kInput,
                "--shape, --dim, --constant and --length are for ONNX models: Relay text states its shapes", file);
  }
  ParseOptions options;
  if (!arguments.constants.empty()) options.constants = ReadConstants(arguments.constants);
  const std::string text = ReadFile(file);
  if (IsExpressionText(text)) return WrapExpression(ParseExpr(text, file, options));
  return {ParseModule(text, file, options), false, nullptr};
}

Function InspectedFunction(const InspectedFile& file, const InspectArguments& arguments) {
  if (file.module.Has(arguments.function)) return file.module.Lookup(arguments.function);
  std::vector<std::string> names;
  for (const auto& [name, function] : file.module.functions()) names.push_back(name);
  const std::vector<std::string> near = NearMisses(arguments.function, names);
  std::string hint = names.empty() ? "it defines no function" : fmt::format("there are @{}", fmt::join(names, ", @"));
  if (!near.empty()) hint = "did you mean '@" + near[0] + "'?";
  throw Error(ErrorCategory::kInput, fmt::format("there is no function '@{}'", arguments.function),
              arguments.file + ":1:1", hint);
}

void WithPlace(const std::string& file, const std::function<void()>& command) {
  // Rules may name toolchains.
  AddBuiltins();
  try {
    command();
  } catch (const Error& error) {
    const std::string& where = error.where();
    const size_t colon = where.rfind(':');
    const bool has_column = colon != std::string::npos && colon + 1 < where.size() &&
                            where.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    // A file that cannot be written is no matter of the input.
    const bool is_elsewhere =
        error.category() == ErrorCategory::kInternal || error.category() == ErrorCategory::kResource;
    if (has_column || is_elsewhere) throw;
    throw Error(error.category(), error.message(), (where.empty() ? file : where) + ":1:1", error.hint());
  }
}

}  // namespace collage::cli
