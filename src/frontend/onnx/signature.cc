// signature.cc: reads the signatures of operators, and compares nodes with them.
#include "frontend/onnx/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "collage/support/error.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/values.h"

namespace collage {
namespace {

constexpr int kAnyRank = std::numeric_limits<int>::max();

/// Reads the text of a signature from the front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Take(std::string_view token) {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  bool AtEnd() {
    Take("");
    return text_.empty();
  }

  /// Letters, digits and underscores.
  std::string Word() {
    Take("");
    const auto end = std::ranges::find_if_not(text_, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    const std::string word(text_.begin(), end);
    text_.remove_prefix(word.size());
    return word;
  }

  int Number() {
    int number = 0;
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    Require(status == std::errc());
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return number;
  }

  void Require(bool condition) const { COLLAGE_CHECK(condition) << "signature of an operator at '" << text_ << "'"; }

 private:
  std::string_view text_;
};

OnnxElements ElementsOf(const std::string& word, const Reader& reader) {
  if (word.empty()) return OnnxElements::kAny;
  if (word == "float") return OnnxElements::kFloat;
  if (word == "int") return OnnxElements::kInt;
  if (word == "number") return OnnxElements::kNumber;
  if (word == "same") return OnnxElements::kSame;
  if (word == "sequence") return OnnxElements::kSequence;
  if (word == "value") return OnnxElements::kValue;
  reader.Require(word == "bool");
  return OnnxElements::kBool;
}

OnnxOperand ReadOperand(Reader& reader, size_t* least) {
  OnnxOperand operand;
  operand.name = reader.Word();
  reader.Require(!operand.name.empty());
  operand.is_optional = reader.Take("?");
  if (reader.Take("*")) {
    operand.is_variadic = true;
  } else if (reader.Take("+")) {
    operand.is_variadic = true;
    *least = 1;
  }
  if (reader.Take("@")) operand.since = reader.Number();
  if (!reader.Take(":")) return operand;
  operand.elements = ElementsOf(reader.Word(), reader);
  if (!reader.Take("[")) return operand;
  operand.least_rank = operand.most_rank = reader.Number();
  if (reader.Take("..")) {
    operand.most_rank = kAnyRank;
    if (!reader.Take("]")) {
      operand.most_rank = reader.Number();
      operand.exists_above = reader.Take("+");
      reader.Require(reader.Take("]"));
    }
    return operand;
  }
  operand.exists_above = reader.Take("+");
  reader.Require(reader.Take("]"));
  return operand;
}

std::string RankText(const OnnxOperand& operand) {
  if (operand.most_rank == kAnyRank) return fmt::format("rank {} or more", operand.least_rank);
  if (operand.least_rank == operand.most_rank) return fmt::format("rank {}", operand.least_rank);
  return fmt::format("rank {} to {}", operand.least_rank, operand.most_rank);
}

const char* ElementsText(OnnxElements elements) {
  switch (elements) {
    case OnnxElements::kAny: return "elements";
    case OnnxElements::kFloat: return "floats";
    case OnnxElements::kInt: return "integers";
    case OnnxElements::kNumber: return "numbers";
    case OnnxElements::kBool: return "bools";
    case OnnxElements::kSame: return "elements of the type of input 0";
    case OnnxElements::kSequence:
    case OnnxElements::kValue: break;
  }
  return "elements";
}

/// Whether elements may be of `dtype`; `first` is the first input's.
bool Has(OnnxElements elements, DataType dtype, DataType first) {
  switch (elements) {
    case OnnxElements::kAny: return true;
    case OnnxElements::kFloat: return dtype.is_floating();
    case OnnxElements::kInt: return dtype.is_integer() && !dtype.is_bool();
    case OnnxElements::kNumber: return !dtype.is_bool();
    case OnnxElements::kBool: return dtype.is_bool();
    case OnnxElements::kSame: return dtype == first;
    case OnnxElements::kSequence:
    case OnnxElements::kValue: break;
  }
  return true;
}

/// "2", "2 to 3", "1 or more".
std::string CountText(size_t least, size_t most) {
  if (most == std::numeric_limits<size_t>::max()) return fmt::format("{} or more", least);
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

/// The problem with the number of inputs or outputs; "" when there is none.
std::string WrongCount(const char* what, size_t count, size_t least, size_t most, const std::string& names) {
  if (count >= least && count <= most) return "";
  return fmt::format("has {} {}{}, {} wanted{}", count, what, count == 1 ? "" : "s",
                     CountText(least, most) + (least == 1 && most == 1 ? " is" : " are"),
                     names.empty() ? "" : " (" + names + ")");
}

void CheckCounts(const NodeContext& node, const OnnxSignature& signature) {
  size_t least = 0, most = 0, given = 0;
  std::string names;
  for (const OnnxOperand& operand : signature.inputs) {
    if (operand.since > node.opset()) continue;
    names += (names.empty() ? "" : ", ") + operand.name;
    if (operand.is_variadic) {
      least += signature.least_inputs;
      most = std::numeric_limits<size_t>::max();
      continue;
    }
    ++most;
    if (!operand.is_optional) least = most;
  }
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (node.HasInput(i)) given = i + 1;
  }
  if (const std::string wrong = WrongCount("input", given, least, most, names); !wrong.empty()) node.Invalid(wrong);
  size_t outputs = 0;
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    if (node.HasOutput(i)) outputs = i + 1;
  }
  // A name that nobody reads may be empty, but has its place.
  outputs = std::max(outputs, std::min(node.num_outputs(), signature.least_outputs));
  const std::string wrong = WrongCount("output", outputs, signature.least_outputs, signature.most_outputs, "");
  if (!wrong.empty()) node.Invalid(wrong);
}

}  // namespace

OnnxSignature::OnnxSignature(std::string_view text) {
  Reader reader(text);
  while (!reader.Take("->")) {
    reader.Require(inputs.empty() || (!inputs.back().is_variadic && reader.Take(",")));
    inputs.push_back(ReadOperand(reader, &least_inputs));
  }
  while (!reader.AtEnd()) {
    reader.Require(most_outputs == 0 || reader.Take(","));
    size_t least = 0;
    const OnnxOperand output = ReadOperand(reader, &least);
    most_outputs = output.is_variadic ? std::numeric_limits<size_t>::max() : most_outputs + 1;
    if (output.is_variadic) {
      least_outputs = least;
    } else if (!output.is_optional) {
      least_outputs = most_outputs;
    }
  }
}

void CheckOperands(const NodeContext& node, const OnnxSignature& signature) {
  CheckCounts(node, signature);
  std::string wrong;
  bool is_supported = true;
  const auto add = [&](const std::string& text) { wrong += (wrong.empty() ? "" : "; ") + text; };
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (i >= signature.inputs.size() && (signature.inputs.empty() || !signature.inputs.back().is_variadic)) break;
    const OnnxOperand& operand = signature.inputs[std::min(i, signature.inputs.size() - 1)];
    const std::string name = fmt::format("input {} ('{}')", i, operand.name);
    if (!node.HasInput(i)) {
      if (!operand.is_optional && operand.since <= node.opset()) add(name + " is missing");
      continue;
    }
    if (operand.elements == OnnxElements::kValue) continue;
    if (const bool is_sequence = operand.elements == OnnxElements::kSequence;
        is_sequence || IsAbsent(node.Input(i)) || AsSequence(node.Input(i)) != nullptr) {
      const char* wanted = is_sequence ? "a sequence" : "a tensor";
      if (!is_sequence || AsSequence(node.Input(i)) == nullptr)
        add(fmt::format("{} is {}, {} is wanted", name, FormOf(node.Input(i)), wanted));
      continue;
    }
    const Type& type = node.Input(i)->checked_type();
    const TensorTypeNode* tensor = AsTensorType(type);
    if (tensor == nullptr) {
      add(fmt::format("{} is {}, a tensor is wanted", name, ToString(type)));
      continue;
    }
    const bool is_above = tensor->rank() > operand.most_rank;
    if (tensor->rank() < operand.least_rank || is_above) {
      is_supported = is_supported && !(is_above && operand.exists_above);
      add(fmt::format("{} is {}, {} is {}", name, ToString(type), RankText(operand),
                      is_above && operand.exists_above ? "supported" : "wanted"));
    }
    const TensorTypeNode* first = node.HasInput(0) ? AsTensorType(node.Input(0)->checked_type()) : nullptr;
    if (!Has(operand.elements, tensor->dtype(), first == nullptr ? tensor->dtype() : first->dtype())) {
      add(fmt::format("{} is {}, {} are wanted", name, ToString(type), ElementsText(operand.elements)));
    }
  }
  if (wrong.empty()) return;
  if (!is_supported) node.Unsupported(wrong);
  node.Invalid(wrong);
}

void OnnxConverters::Add(const std::string& op, OnnxConverter convert, std::string_view signature, NarrowUse narrow) {
  const bool is_new = rows_.try_emplace(op, std::move(convert), signature, narrow).second;
  COLLAGE_CHECK(is_new) << "operator '" << op << "' of ONNX has two rows";
}

const OnnxRow* OnnxConverters::Find(const std::string& op) const {
  const auto it = rows_.find(op);
  return it == rows_.end() ? nullptr : &it->second;
}

std::vector<std::string> OnnxConverters::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, row] : rows_) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace collage
