// run_values.cc: names looked up, arrays read and compared.
#include "run_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "collage/support/error.h"
#include "runtime/compare.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage::cli {
namespace {

constexpr std::string_view kInputPrefix = "in.";
constexpr std::string_view kOutputPrefix = "out.";

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// `name`, or what is behind `prefix` in it, whichever of them is in `names`; empty when neither is.
std::string NameIn(const std::vector<std::string>& names, const std::string& name, std::string_view prefix) {
  if (Has(names, name)) return name;
  if (!name.starts_with(prefix)) return "";
  std::string rest = name.substr(prefix.size());
  return Has(names, rest) ? rest : "";
}

std::string InputsHint(const RunNames& names) { return "its inputs are " + QuotedNames(names.inputs); }

/// None for strings; 1e-4 + 1e-3 relative, of 16-bit floats what their precision gives, or as it is asked for.
Tolerance ChooseTolerance(const ComparisonArguments& arguments, const StoredArray& array) {
  if (array.is_text) return {0, 0};
  const Tensor& expected = array.tensor;
  const bool is_half = expected.dtype().is_floating() && expected.dtype().bits == 16;
  Tolerance tolerance = is_half ? ToleranceFor(expected) : Tolerance{1e-3, 1e-4};
  if (arguments.relative) tolerance.relative = *arguments.relative;
  if (arguments.absolute) tolerance.absolute = *arguments.absolute;
  return tolerance;
}

StoredArray FindExpected(const StoredArrays& arrays, const std::string& name, const std::string& file) {
  for (const std::string& key : {name, std::string(kOutputPrefix) + name}) {
    if (const auto it = arrays.find(key); it != arrays.end()) return it->second;
  }
  std::vector<std::string> known;
  for (const auto& [key, _] : arrays) known.push_back(key);
  throw Error(ErrorCategory::kInput, fmt::format("no array for output '{}'", name), file,
              "its arrays are " + QuotedNames(known));
}

/// Places of the largest elements of a vector of scores, the largest first: "3 (0.91), 7 (0.05)".
std::string LargestText(const Tensor& tensor) {
  constexpr int64_t kShown = 5;
  const Shape& shape = tensor.shape();
  const auto is_one = [](int64_t size) { return size == 1; };
  const bool is_vector =
      !shape.empty() && shape.back() == tensor.num_elements() && std::all_of(shape.begin(), shape.end() - 1, is_one);
  if (!is_vector || !tensor.dtype().is_floating() || tensor.num_elements() <= kShown) return "";
  std::vector<int64_t> order(static_cast<size_t>(tensor.num_elements()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + kShown, order.end(),
                    [&](int64_t a, int64_t b) { return tensor.At(a) > tensor.At(b); });
  std::string text;
  for (int64_t i = 0; i < kShown; ++i) {
    const int64_t at = order[static_cast<size_t>(i)];
    text += fmt::format("{}{} ({:.4g})", i == 0 ? "" : ", ", at, tensor.At(at));
  }
  return text;
}

/// The range and mean of the elements.
std::vector<Fact> FactsOfValues(const Tensor& tensor) {
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  int64_t not_finite = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.At(i);
    not_finite += std::isfinite(value) ? 0 : 1;
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const int64_t finite = tensor.num_elements() - not_finite;
  const auto if_any = [&](double value) { return finite > 0 ? std::optional(value) : std::nullopt; };
  return {Fact::Number("minimum", "minimum", if_any(least)), Fact::Number("maximum", "maximum", if_any(most)),
          Fact::Number("mean", "mean", if_any(sum / static_cast<double>(std::max<int64_t>(finite, 1)))),
          Fact::Count("not_finite", "not finite", not_finite),
          Fact::Text("largest", "largest at", not_finite > 0 ? "" : LargestText(tensor))};
}

}  // namespace

std::string QuotedNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text.empty() ? "none" : text;
}

std::pair<std::string, std::string> SplitInput(const std::string& text, const RunNames& names,
                                               const std::string& hint) {
  const size_t first = text.find('=');
  if (first == std::string::npos || first == 0) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed input '{}'", text), "--input", hint);
  }
  for (size_t equals = first; equals != std::string::npos; equals = text.find('=', equals + 1)) {
    if (Has(names.inputs, text.substr(0, equals))) return {text.substr(0, equals), text.substr(equals + 1)};
  }
  const std::string name = text.substr(0, first);
  const std::vector<std::string> near = NearMisses(name, names.inputs);
  throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), "--input",
              InputsHint(names) + (near.empty() ? "" : fmt::format("; did you mean '{}'?", near[0])));
}

StoredArrays ReadInputs(const std::string& file, const RunNames& names, StringNumbers& strings) {
  StoredArrays inputs;
  std::vector<std::string> unknown;
  for (const auto& [key, array] : ReadNpz(file, strings)) {
    const std::string name = NameIn(names.inputs, key, kInputPrefix);
    if (name.empty()) {
      if (NameIn(names.outputs, key, kOutputPrefix).empty()) unknown.push_back(key);
    } else if (!inputs.contains(name) || key == name) {
      inputs[name] = array;
    }
  }
  if (unknown.empty()) return inputs;
  throw Error(ErrorCategory::kInput,
              fmt::format("the model has no input{} {}", unknown.size() == 1 ? "" : "s", QuotedNames(unknown)), file,
              InputsHint(names));
}

void CheckIsText(const std::string& name, const StoredArray& given, bool is_text) {
  if (!given.tensor.defined() || given.is_text == is_text) return;
  throw Error(ErrorCategory::kInput, fmt::format("input '{}' has {}, the array given for it {}", name,
                                                 is_text ? "strings" : "numbers", is_text ? "numbers" : "strings"));
}

Fact OutputsTable(const Outputs& outputs) {
  std::vector<Fact> rows;
  for (size_t i = 0; i < outputs.names.size(); ++i) {
    const auto& [tensor, is_text] = outputs.values[i];
    std::vector<Fact> facts{Fact::Text("name", "output", outputs.names[i]),
                            Fact::Text("dtype", "dtype", is_text ? "string" : tensor.dtype().ToString()),
                            Fact::Sizes("shape", "shape", tensor.shape())};
    std::string sentence = "output '{name}' {dtype} " + Literal(ToString(tensor.shape())) + "{?shape}";
    if (!is_text && tensor.num_elements() > 0) {
      for (Fact& fact : FactsOfValues(tensor)) facts.push_back(std::move(fact));
      sentence += ": {minimum} to {maximum}, mean {mean}[, {not_finite} not finite][; largest at {largest}]";
    }
    rows.push_back(Fact::Record("", "", std::move(facts)).Says(std::move(sentence)));
  }
  return Fact::Table("outputs", "", std::move(rows));
}

bool CompareOutputs(const ComparisonArguments& arguments, const Outputs& outputs, StringNumbers& strings, Fact& table) {
  const StoredArrays arrays = ReadNpz(arguments.expected, strings);
  bool all = true;
  for (size_t i = 0; i < outputs.names.size(); ++i) {
    const StoredArray expected = FindExpected(arrays, outputs.names[i], arguments.expected);
    if (expected.is_text != outputs.values[i].is_text) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("output '{}' is {}, the array expected for it {}", outputs.names[i],
                              expected.is_text ? "numbers" : "strings", expected.is_text ? "strings" : "numbers"),
                  arguments.expected);
    }
    const Tolerance tolerance = ChooseTolerance(arguments, expected);
    const Comparison comparison = Compare(outputs.values[i].tensor, expected.tensor, tolerance);
    all = all && comparison.agrees;
    Fact& row = table.parts[i];
    row.parts.push_back(Fact::Flag("agrees", "agrees", comparison.agrees));
    row.parts.push_back(
        Fact::Number("max_absolute_error", "max absolute error", comparison.max_absolute_error, Unit::kError));
    row.parts.push_back(Fact::Number("absolute_tolerance", "tolerance", tolerance.absolute));
    row.parts.push_back(Fact::Number("relative_tolerance", "relative tolerance", tolerance.relative));
    row.parts.push_back(Fact::Text("difference", "difference", comparison.difference));
    row.sentence = fmt::format(
        "output '{{name}}' {} the expected one: max absolute error {{max_absolute_error}} (tolerance "
        "{{absolute_tolerance}} + {{relative_tolerance}} relative)[: {{difference}}]"
        "{{?dtype}}{{?shape}}{{?agrees}}",
        comparison.agrees ? "agrees with" : "DIFFERS from");
  }
  return all;
}

void CheckOutputsFile(const std::string& file, const RunNames& names) {
  if (file.empty()) return;
  if (std::filesystem::path(file).extension() == ".npy" && names.outputs.size() != 1) {
    throw Error(ErrorCategory::kInput,
                fmt::format("an .npy file holds one array, the model has {} outputs", names.outputs.size()),
                "--outputs " + file, "name it .npz");
  }
  CheckCanWrite(file);
}

void WriteOutputs(const std::string& file, const Outputs& outputs, const StringNumbers& strings) {
  if (std::filesystem::path(file).extension() == ".npy") return WriteArray(file, outputs.values[0].tensor);
  StoredArrays arrays;
  for (size_t i = 0; i < outputs.names.size(); ++i) arrays[outputs.names[i]] = outputs.values[i];
  WriteNpz(file, arrays, strings);
}

}  // namespace collage::cli
