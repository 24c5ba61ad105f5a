// run_values.h: the values of a run by name: inputs that are given, outputs that are written and compared. Executables,
// programs and Relay text share them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/runtime/tensor.h"
#include "command.h"
#include "runtime/npy.h"

namespace collage::cli {

/// The names that a model has.
struct RunNames {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Splits NAME=VALUE, where NAME is an input, which may have `=` itself. Throws kInput, listing the inputs, when no
/// input has the name; `hint` says what a value may be.
std::pair<std::string, std::string> SplitInput(const std::string& text, const RunNames& names, const std::string& hint);

/// Arrays of an .npz, with strings by their numbers, by the input that each is for; "in.X" stands for X too, as
/// reference files hold inputs ("in.X") and outputs ("out.X") together. Throws kInput, listing both sides, for arrays
/// that are neither.
StoredArrays ReadInputs(const std::string& file, const RunNames& names, StringNumbers& strings);

/// "'a', 'b'"; "none" of no names.
std::string QuotedNames(const std::vector<std::string>& names);

/// The arguments of --compare.
struct ComparisonArguments {
  std::string expected;  ///< an .npz; empty: nothing is compared
  std::optional<double> relative;
  std::optional<double> absolute;
};

/// Throws kInput unless an array that is given for input `name` is one of strings as the input is.
void CheckIsText(const std::string& name, const StoredArray& given, bool is_text);

/// The results of a run.
struct Outputs {
  std::vector<std::string> names;
  std::vector<StoredArray> values;
};

/// A table with a row for each output: name, dtype, shape.
Fact OutputsTable(const Outputs& outputs);

/// Compares outputs, with strings by their numbers, and adds to each row of `table` how it differs. True when all
/// agree.
bool CompareOutputs(const ComparisonArguments& arguments, const Outputs& outputs, StringNumbers& strings, Fact& table);

/// Throws kInput where `file` cannot hold all outputs, as an .npy holds one only; kResource where it cannot be written.
/// An empty `file` is none.
void CheckOutputsFile(const std::string& file, const RunNames& names);

/// Writes outputs as an .npz by their names, or a single one as an .npy.
void WriteOutputs(const std::string& file, const Outputs& outputs, const StringNumbers& strings);

}  // namespace collage::cli
