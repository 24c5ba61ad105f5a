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

namespace collage::cli {

/// The names that a model has.
struct RunNames {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Splits NAME=VALUE, where NAME is an input, which may have `=` itself. Throws kInput, listing the inputs, when no
/// input has the name; `hint` says what a value may be.
std::pair<std::string, std::string> SplitInput(const std::string& text, const RunNames& names, const std::string& hint);

/// Arrays of an .npz by the input that each is for; "in.X" stands for X too, as reference files hold inputs ("in.X")
/// and outputs ("out.X") together. Throws kInput, listing both sides, for arrays that are neither.
std::map<std::string, Tensor> ReadInputs(const std::string& file, const RunNames& names);

/// "'a', 'b'"; "none" of no names.
std::string QuotedNames(const std::vector<std::string>& names);

/// The arguments of --compare.
struct ComparisonArguments {
  std::string expected;  ///< an .npz; empty: nothing is compared
  std::optional<double> relative;
  std::optional<double> absolute;
};

/// A table with a row for each output: name, dtype, shape.
Fact OutputsTable(const std::vector<std::string>& names, const std::vector<Tensor>& values);

/// Compares outputs, which are in the order of `names`, and adds to each row of `outputs` how it differs. True when all
/// agree.
bool CompareOutputs(const ComparisonArguments& arguments, const std::vector<std::string>& names,
                    const std::vector<Tensor>& values, Fact& outputs);

/// Writes outputs as an .npz by their names.
void WriteOutputs(const std::string& file, const std::vector<std::string>& names, const std::vector<Tensor>& values);

}  // namespace collage::cli
