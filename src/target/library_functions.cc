// library_functions.cc: signatures of C functions, and their calls through a kernel's table of addresses.
#include "collage/target/library_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <set>
#include <string_view>
#include <vector>

#include "collage/support/error.h"
#include "collage/target/child_process.h"
#include "runtime/native_loader.h"
#include "support/dynamic_library.h"
#include "target/call_table.h"
#include "target/function_signature.h"

namespace collage {
namespace {

[[noreturn]] void Fail(const LibraryFunction& function, const std::string& problem, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput,
              fmt::format("function '{}' of '{}' {}", function.symbol, function.library, problem), "", hint);
}

/// Types that a C compiler passes as they are. Narrower integers would have to be extended as the platform says.
constexpr std::array<std::string_view, 5> kTypes{"!llvm.ptr", "i32", "i64", "f32", "f64"};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string FunctionSignature::ToString() const {
  return fmt::format("({}) -> {}", fmt::join(arguments, ", "), result.empty() ? "()" : result);
}

FunctionSignature SignatureOf(const LibraryFunction& function) {
  const auto refuse = [&] {
    Fail(function, fmt::format("has the signature '{}', which is none", function.signature),
         fmt::format("wanted: '(TYPE, …) -> TYPE' or '(TYPE, …) -> ()'; there are: {}", fmt::join(kTypes, ", ")));
  };
  const auto type_of = [&](std::string_view text) {
    const std::string_view type = Trimmed(text);
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) refuse();
    return std::string(type);
  };
  const std::string_view text = Trimmed(function.signature);
  const size_t end = text.find(')');
  if (text.empty() || text.front() != '(' || end == text.npos) refuse();
  std::string_view behind = Trimmed(text.substr(end + 1));
  if (!behind.starts_with("->")) refuse();
  behind = Trimmed(behind.substr(2));
  FunctionSignature signature;
  if (behind != "()") signature.result = type_of(behind);
  std::string_view inside = Trimmed(text.substr(1, end - 1));
  while (!inside.empty()) {
    const size_t comma = std::min(inside.find(','), inside.size());
    signature.arguments.push_back(type_of(inside.substr(0, comma)));
    if (comma + 1 == inside.size()) refuse();
    inside.remove_prefix(std::min(comma + 1, inside.size()));
  }
  return signature;
}

namespace {

void CheckNames(const LibraryFunction& function) {
  const auto is_in_symbol = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const std::string& symbol = function.symbol;
  if (symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0])) != 0 ||
      !std::all_of(symbol.begin(), symbol.end(), is_in_symbol)) {
    Fail(function, "has no name that C could give it");
  }
  if (symbol.starts_with("collage_")) Fail(function, "has a name of Collage's own functions");
  if (function.library.empty() || function.library.find_first_of("/|\n") != std::string::npos) {
    Fail(function, "is in no file that could be found", "a library is named by its file, without a folder");
  }
  if (function.hint.find('\n') != std::string::npos) Fail(function, "has a hint of several lines");
}

/// A function that calls what stands in `slot` of the table.
std::string Definition(const LibraryFunction& function, size_t slot) {
  const FunctionSignature signature = SignatureOf(function);
  std::vector<std::string> parameters, names;
  for (const std::string& type : signature.arguments) {
    names.push_back(fmt::format("%a{}", names.size()));
    parameters.push_back(fmt::format("{}: {}", names.back(), type));
  }
  const bool returns = !signature.result.empty();
  return fmt::format(
      "func.func private @{}({}){} attributes {{llvm.linkage = #llvm.linkage<internal>}} {{\n"
      "  %table = llvm.mlir.addressof @{} : !llvm.ptr\n"
      "  %slot = llvm.getelementptr %table[{}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
      "  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr\n"
      "  {}llvm.call %function({}) : !llvm.ptr, {}\n"
      "  return{}\n}}\n",
      function.symbol, fmt::join(parameters, ", "), returns ? " -> " + signature.result : "", kObjectAddresses, slot,
      returns ? "%result = " : "", fmt::join(names, ", "), signature.ToString(),
      returns ? " %result : " + signature.result : "");
}

}  // namespace

LibraryCall SymbolCall(const LibraryFunction& function) {
  CheckNames(function);
  return {LibraryCall::Kind::kSymbol, function.library, function.symbol, function.hint};
}

std::string DeclareFunctions(std::span<const LibraryFunction> functions) {
  CallTable table;
  std::string definitions;
  std::set<std::string> symbols;
  for (const LibraryFunction& function : functions) {
    const size_t slot = table.Add(SymbolCall(function));
    if (!symbols.insert(function.symbol).second) Fail(function, "is declared twice");
    definitions += Definition(function, slot);
  }
  return table.ToMlir() + definitions;
}

std::optional<std::string> WhyFunctionsMissing(std::span<const LibraryFunction> functions) {
  constexpr std::chrono::seconds kLimit{20};
  const Result<std::string> answer = AnswerInChild(
      [&]() -> std::string {
        try {
          for (const LibraryFunction& function : functions) FindLibrarySymbol(function.library, function.symbol);
        } catch (const Error& error) {
          return error.message();
        }
        return "";
      },
      kLimit);
  if (!answer.ok()) return "a library that it calls cannot be opened: " + answer.reason().text;
  if (answer->empty()) return std::nullopt;
  return *answer;
}

}  // namespace collage
