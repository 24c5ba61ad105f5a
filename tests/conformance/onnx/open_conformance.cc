// open_conformance.cc: ONNX's own test cases for its operators with all sizes of their inputs symbolic.
//
//     open_conformance CASES REFUSED OPEN_REFUSED [NAME… | --update | --batch]
//
// CASES and REFUSED are those of onnx_conformance; the cases that REFUSED lists are left out. Dimensions of a case's
// inputs become symbols, one for each size that occurs. Imported once so, the model must give the results that are
// stored, and at other sizes (each one larger, each twice, those of 1 larger) what an import with these sizes bound
// gives. Where the import declines, only the first input keeps its symbols, the others are constants, as weights are.
//
// A case whose import declines that, too, must be in OPEN_REFUSED, a table as REFUSED is one, and no others may be.
// With NAMEs (patterns), only these cases run, and what happened to each is printed. --update in their place writes the
// table anew; with --batch only the first dimension of matrices and larger tensors is symbolic.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "collage/frontend/onnx.h"
#include "collage/ir/strings.h"
#include "collage/support/error.h"
#include "conformance/onnx/node_cases.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "onnx/onnx-ml.pb.h"
#include "unit/frontend/open_model_check.h"

namespace collage {
namespace {

enum class Kind : char {
  kRight = 'a',       ///< with symbols in all inputs
  kRightFirst = 'f',  ///< with symbols in the first one
  kRefused = 'r',
  kWrong = 'w',
  kNoSymbols = 'n',  ///< all inputs are constants, elements of sequences, or have no dimensions
};

struct Outcome {
  Kind kind = Kind::kWrong;
  std::string text;
  int num_equal = 0;    ///< other sizes at which the two imports agree
  int num_refused = 0;  ///< those that the bound import refuses
};

/// A case under test.
class OpenCaseCheck {
 public:
  OpenCaseCheck(const std::filesystem::path& path, bool only_batch)
      : path_(path), only_batch_(only_batch), names_(OnnxInputNames(path)) {
    data_ = ReadNodeCase(std::filesystem::path(path).replace_extension(".npz"));
    names_ = TensorNames(data_, names_, lengths_);
    names_.resize(std::min(names_.size(), data_.inputs.size()));
  }

  Outcome Run() {
    // Elements of sequences have the shapes that a case gives them.
    if (!lengths_.empty()) return {Kind::kNoSymbols, "", 0, 0};
    FindBinding();
    std::vector<size_t> open;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!IsConstant(i) && data_.inputs[i].rank() > (only_batch_ ? 1 : 0)) open.push_back(i);
    }
    if (open.empty()) return {Kind::kNoSymbols, "", 0, 0};
    Outcome outcome = Check(open);
    if (outcome.kind != Kind::kRefused) return outcome;
    const std::string why = outcome.text;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (i != open[0]) constants_[names_[i]] = data_.inputs[i];
    }
    if (open.size() == 1 && names_.size() == 1) return outcome;
    outcome = Check({open[0]});
    if (outcome.kind == Kind::kRight) outcome.kind = Kind::kRightFirst;
    if (outcome.kind == Kind::kRightFirst) outcome.text = why;
    return outcome;
  }

 private:
  bool IsConstant(size_t input) const { return constants_.contains(names_[input]); }

  /// Makes constants of as few inputs as the bound import needs.
  void FindBinding() {
    for (const Binding binding : {Binding::kNone, Binding::kIntegers, Binding::kAll}) {
      constants_.clear();
      ImportOptions options;
      for (size_t i = 0; i < names_.size(); ++i) {
        const Tensor& value = data_.inputs[i];
        if (binding == Binding::kAll || (binding == Binding::kIntegers && !value.dtype().is_floating())) {
          constants_[names_[i]] = value;
        } else {
          options.shapes[names_[i]] = value.shape();
        }
      }
      options.constants = constants_;
      try {
        ImportOnnx(path_, options);
        return;
      } catch (const Error& error) {
        if (error.category() != ErrorCategory::kUnsupported || binding == Binding::kAll) throw;
      }
    }
  }

  /// The model with symbols in place of the sizes of the inputs `open`, in a file of its own.
  std::filesystem::path WriteOpen(const std::vector<size_t>& open) const {
    onnx::ModelProto model;
    std::ifstream file(path_, std::ios::binary);
    if (!model.ParseFromIstream(&file)) throw Error(ErrorCategory::kInput, "cannot read the model", path_.string());
    for (auto& input : *model.mutable_graph()->mutable_input()) {
      const auto name = std::ranges::find(names_, input.name());
      const auto number = static_cast<size_t>(name - names_.begin());
      if (name == names_.end() || std::ranges::find(open, number) == open.end()) continue;
      onnx::TypeProto* type = input.mutable_type();
      if (type->has_optional_type()) type = type->mutable_optional_type()->mutable_elem_type();
      auto& shape = *type->mutable_tensor_type()->mutable_shape();
      shape.clear_dim();
      for (const int64_t size : data_.inputs[number].shape()) {
        if (only_batch_ && shape.dim_size() > 0) {
          shape.add_dim()->set_dim_value(size);
        } else {
          shape.add_dim()->set_dim_param(fmt::format("s{}", size));
        }
      }
    }
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("collage_node_{}.onnx", getpid());
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return path;
  }

  /// The case's elements over and over again, so that they stay what the operator expects.
  Tensor InputOf(const std::string& name, const Shape& shape) const {
    const auto number = static_cast<size_t>(std::ranges::find(names_, name) - names_.begin());
    const Tensor& given = data_.inputs[number];
    if (given.num_elements() == 0) return Tensor::Zeros(shape, given.dtype());
    const Tensor input = Tensor::Empty(shape, given.dtype());
    const size_t bytes = given.dtype().size_bytes();
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      std::memcpy(static_cast<std::byte*>(input.raw()) + static_cast<size_t>(i) * bytes,
                  static_cast<std::byte*>(given.raw()) + static_cast<size_t>(i % given.num_elements()) * bytes, bytes);
    }
    return input;
  }

  std::vector<InputShapes> OtherSizes(const std::vector<size_t>& open) const {
    std::vector<InputShapes> all(3);
    for (const size_t input : open) {
      const Shape& shape = data_.inputs[input].shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t size = shape[d];
        const bool stays = only_batch_ && d > 0;
        all[0][names_[input]].push_back(size > 1 && !stays ? size + 1 : size);
        all[1][names_[input]].push_back(size > 1 && !stays ? 2 * size : size);
        all[2][names_[input]].push_back(size == 1 && !stays ? 3 : size);
      }
    }
    return all;
  }

  Outcome Check(const std::vector<size_t>& open) const {
    const std::filesystem::path path = WriteOpen(open);
    Outcome outcome = CheckAt(path, open);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return outcome;
  }

  Outcome CheckAt(const std::filesystem::path& path, const std::vector<size_t>& open) const {
    IRModule module;
    try {
      module = ImportOnnx(path, {.constants = constants_});
    } catch (const Error& error) {
      const bool is_users =
          error.category() == ErrorCategory::kInput || error.category() == ErrorCategory::kUnsupported;
      return {is_users ? Kind::kRefused : Kind::kWrong, error.message(), 0, 0};
    }
    const StringTensors strings(module.main()->attrs());
    StringNumbers numbers(&strings.known()), wanted = data_.strings;
    std::vector<Value> inputs;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (IsConstant(i)) continue;
      const bool is_text = strings.IsParam(inputs.size());
      inputs.emplace_back(is_text ? Renumbered(data_.inputs[i], data_.strings, numbers) : data_.inputs[i]);
    }
    try {
      std::vector<Tensor> results = FlattenTensors(Interpret(module, "main", inputs));
      for (size_t i = 0; i < results.size(); ++i) {
        if (strings.IsResult(i)) results[i] = Renumbered(results[i], numbers, wanted);
      }
      const std::string difference = Difference(results, data_);
      if (!difference.empty()) return {Kind::kWrong, "at its own sizes: " + difference, 0, 0};
    } catch (const Error& error) {
      return {Kind::kWrong, "at its own sizes: " + error.Format(), 0, 0};
    }
    OpenCheckOptions options;
    options.constants = constants_;
    options.make_input = [&](const std::string& name, const Shape& shape, DataType) { return InputOf(name, shape); };
    const OpenVerdict verdict = CheckOpenModel(path, OtherSizes(open), options);
    const bool is_right = verdict.kind == OpenVerdict::Kind::kRight;
    return {is_right ? Kind::kRight : Kind::kWrong, verdict.text, verdict.num_equal,
            verdict.num_refused + verdict.num_lenient};
  }

  std::filesystem::path path_;
  bool only_batch_;
  std::vector<std::string> names_;
  NodeCase data_;
  std::map<std::string, Tensor> constants_;
  std::map<std::string, int64_t> lengths_;
};

Outcome RunModelApart(const std::filesystem::path& model, bool only_batch) {
  const auto text = [](const Outcome& outcome) {
    return fmt::format("{}{} {} {}", static_cast<char>(outcome.kind), outcome.num_equal, outcome.num_refused,
                       outcome.text);
  };
  const std::string answer = RunApart(
      [&] {
        try {
          return text(OpenCaseCheck(model, only_batch).Run());
        } catch (const std::exception& error) {
          return text({Kind::kWrong, error.what(), 0, 0});
        }
      },
      [&](const std::string& what) {
        return text({Kind::kWrong, what, 0, 0});
      });
  Outcome outcome;
  outcome.kind = static_cast<Kind>(answer[0]);
  int length = 0;
  (void)std::sscanf(answer.c_str() + 1, "%d %d %n", &outcome.num_equal, &outcome.num_refused, &length);
  outcome.text = answer.substr(static_cast<size_t>(length) + 1);
  return outcome;
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kRight: return "right";
    case Kind::kRightFirst: return "right with its first input symbolic";
    case Kind::kRefused: return "refused";
    case Kind::kWrong: return "WRONG";
    case Kind::kNoSymbols: return "without symbols";
  }
  return "";
}

/// A row of the table: the operator, the case, and the reason without the place in the model.
std::string TableRow(const std::filesystem::path& model, const std::string& reason) {
  // "node 'y' (Pad, opset 18): needs …"
  const std::string line = reason.substr(0, reason.find('\n'));
  const size_t name = line.find("' ("), place = line.find("): ");
  const bool has_place = line.starts_with("node '") && name < place && place != std::string::npos;
  const std::string op = has_place ? line.substr(name + 3, line.find(',', name) - name - 3) : "-";
  return fmt::format("{:<19} {:<66} {}\n", op, model.stem().string(), has_place ? line.substr(place + 3) : line);
}

/// Replaces all lines of the table but the comments that it begins with.
void WriteTable(const std::filesystem::path& path, const std::string& rows) {
  std::ifstream old(path);
  std::string head;
  for (std::string line; std::getline(old, line) && line.starts_with('#');) head += line + "\n";
  std::ofstream(path) << head << rows;
}

int Main(int argc, char** argv) {
  std::vector<Refusal> unsupported = ReadTable(argv[2]);
  std::vector<Refusal> table = ReadTable(argv[3]);
  const bool updates = argc == 5 && std::string_view(argv[4]) == "--update";
  const bool only_batch = argc == 5 && std::string_view(argv[4]) == "--batch";
  const bool all = argc == 4 || updates || only_batch;
  std::string rows;
  std::map<Kind, int> kinds;
  std::map<std::string, int> reasons;
  int failed = 0, total = 0, num_equal = 0, num_refused = 0;
  for (const std::filesystem::path& model : ModelsIn(argv[1])) {
    const std::string name = model.stem().string();
    if (!all && std::none_of(argv + 4, argv + argc, [&](const char* pattern) { return Fits(pattern, name); })) continue;
    if (FindRefusal(unsupported, name) != nullptr) continue;
    ++total;
    const Outcome outcome = RunModelApart(model, only_batch);
    ++kinds[outcome.kind];
    num_equal += outcome.num_equal;
    num_refused += outcome.num_refused;
    if (outcome.kind == Kind::kRefused) rows += TableRow(model, outcome.text);
    if (updates && outcome.kind != Kind::kWrong) continue;
    if (outcome.kind == Kind::kRefused) ++reasons[outcome.text.substr(0, outcome.text.find(" at node"))];
    Refusal* const row = FindRefusal(table, name);
    if (row != nullptr) ++row->uses;
    const bool is_as_listed = (outcome.kind == Kind::kRefused) == (row != nullptr) && outcome.kind != Kind::kWrong;
    if (!is_as_listed) ++failed;
    if (all && is_as_listed) continue;
    const char* why = is_as_listed                     ? ""
                      : outcome.kind == Kind::kWrong   ? "FAIL "
                      : outcome.kind == Kind::kRefused ? "FAIL, is not in the table: "
                                                       : "FAIL, is in the table: ";
    fmt::print("{}{} {}: {}\n", why, name, NameOf(outcome.kind), outcome.text);
  }
  if (updates) WriteTable(argv[3], rows);
  if (all && !updates) failed += ReportUnused(table);
  fmt::print(
      "{} cases: {} right with all inputs symbolic, {} with the first one, {} refused, {} without symbols, {} wrong; "
      "at "
      "other sizes {} runs equal, {} refused by the bound import\n",
      total, kinds[Kind::kRight], kinds[Kind::kRightFirst], kinds[Kind::kRefused], kinds[Kind::kNoSymbols],
      kinds[Kind::kWrong], num_equal, num_refused);
  if (!all) {
    for (const auto& [reason, count] : reasons) fmt::print("{:6} {}\n", count, reason);
  }
  return failed == 0 && total > 0 ? 0 : 1;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  constexpr const char* kUsage = "open_conformance CASES REFUSED OPEN_REFUSED [NAME... | --update | --batch]";
  return collage::RunConformance(argc, argv, 3, kUsage, collage::Main);
}
