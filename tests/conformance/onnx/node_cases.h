// node_cases.h: ONNX's own test cases as write_cases.py stores them, and the tables of those that are refused.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/tensor.h"
#include "collage/support/string_numbers.h"
#include "runtime/compare.h"

namespace collage {

/// A line of a table: OPERATOR  PATTERN  REASON.
struct Refusal {
  std::string op;
  std::string pattern;  ///< a pattern of names of cases, as in a shell
  std::string reason;
  int uses = 0;
};

struct NodeCase {
  StringNumbers strings;  ///< their numbers are in the tensors of strings
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  Tolerance tolerance;
  bool is_random = false;  ///< only types and shapes of the outputs are wanted
  /// The length of each of the model's inputs that is a sequence.
  std::vector<std::optional<int64_t>> lengths;
};

/// How many inputs had to be given as constants for the import to succeed.
enum class Binding { kNone, kIntegers, kAll };

std::vector<Refusal> ReadTable(const std::filesystem::path& path);
/// The first line whose pattern `name` fits; null where none does.
Refusal* FindRefusal(std::vector<Refusal>& table, const std::string& name);
/// Whether `name` fits the shell's `pattern`.
bool Fits(const std::string& pattern, const std::string& name);

/// Prints the lines that fit no case, and returns how many there are.
int ReportUnused(const std::vector<Refusal>& table);

/// Calls `run` if there are at least `least` arguments, and prints `usage` otherwise, or the error that it throws.
/// Returns the exit code.
int RunConformance(int argc, char** argv, int least, const char* usage, int (*run)(int argc, char** argv));

/// The models in `folder`, by name.
std::vector<std::filesystem::path> ModelsIn(const std::filesystem::path& folder);
NodeCase ReadNodeCase(const std::filesystem::path& arrays);

/// The strings whose numbers of `from` a tensor has, by their numbers of `to`.
Tensor Renumbered(const Tensor& tensor, const StringNumbers& from, StringNumbers& to);

/// The names of the tensors of `data`, whose model has `inputs`; adds the lengths of sequences to `lengths`.
std::vector<std::string> TensorNames(const NodeCase& data, const std::vector<std::string>& inputs,
                                     std::map<std::string, int64_t>& lengths);

/// The difference between `actual` and the wanted results; "" where there is none.
std::string Difference(const std::vector<Tensor>& actual, const NodeCase& wanted);

/// Calls `run` in a process of its own, for at most a minute, and returns its answer; where there is none, `failed`
/// with what happened: a crash is one failed case.
std::string RunApart(const std::function<std::string()>& run,
                     const std::function<std::string(const std::string& what)>& failed);

}  // namespace collage
