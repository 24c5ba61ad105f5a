// text.h: Relay's text format, version 0.0.5: printing and parsing of modules and expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

struct PrintOptions {
  /// Begin a module with `#[version = "0.0.5"]`.
  bool header = true;
  /// Write each bound value's type behind it, `/* ty=… */`, where it is known.
  bool types = false;
  /// Write where each bound value comes from behind it, `/* span=file:line:column */` or the name of a model's node.
  bool spans = false;
  /// End a module with the values of its constants, so that parsing restores them bit for bit. Without it the text
  /// shows their types only, and reading it back needs them from elsewhere (ParseOptions::constants).
  bool metadata = true;
};

/// The text of all types and functions, by name. Shared nodes are bound once (`%0 = …;`), variables get names that are
/// unique within their function, attributes are written where they differ from the operator's default. Throws
/// kUnsupported when functions, branches and clauses nest too deep to be read back.
std::string PrintModule(const IRModule& module, const PrintOptions& options = {});

/// The text of one expression; a function that is not global is `fn (…) { … }`, free variables are declared by
/// `free_var %x: T;`. Header and metadata are left out.
std::string PrintExpr(const Expr& expr, const PrintOptions& options = {});

struct ParseOptions {
  /// Infer and check the types of what was read; errors then point into the text.
  bool infer_types = true;
  /// Constants that `meta[relay.Constant][i]` refers to, behind the entries of the text's own metadata section.
  std::vector<Constant> constants;
  /// Likewise for `meta[VirtualDevice][i]`.
  std::vector<VirtualDevice> virtual_devices;
};

/// Reads a module. Functions and types may be used before their definition. Throws kInput with every error found (up to
/// twenty), each with file, line, column, the line itself and a caret; `file_name` is used for messages and spans only.
IRModule ParseModule(std::string_view text, const std::string& file_name = "text", const ParseOptions& options = {});

/// Reads one expression: statements and a result, as in a function's body.
Expr ParseExpr(std::string_view text, const std::string& file_name = "text", const ParseOptions& options = {});

}  // namespace collage
