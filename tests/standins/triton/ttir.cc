// ttir.cc: one operation a line, as MLIR prints them.
#include "ttir.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace standin::ttir {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Element ElementFrom(std::string_view name) {
  static const std::map<std::string_view, Element> known{
      {"f32", Element::kFloat32}, {"f16", Element::kFloat16}, {"bf16", Element::kBFloat16}, {"i1", Element::kInt1},
      {"i8", Element::kInt8},     {"i32", Element::kInt32},   {"i64", Element::kInt64}};
  const auto found = known.find(name);
  if (found == known.end()) throw Failure("there is no type '" + std::string(name) + "'");
  return found->second;
}

/// The place at which the types of an operation begin: the first ':' outside of brackets.
size_t FindTypes(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '(' || c == '<') ++depth;
    if (c == '}' || c == ')' || (c == '>' && text[i - 1] != '-')) --depth;
    if (c == ':' && depth == 0) return i;
  }
  return text.size();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Function Run() {
    Function function;
    for (std::string_view line = Line(); !line.starts_with("tt.func"); line = Line()) {
      if (is_over_) throw Failure("there is no function");
    }
    ReadFunction(current_, function);
    ReadBlock(function.body, "}");
    function.num_values = static_cast<int>(values_.size());
    return function;
  }

 private:
  /// The next line without spaces around it.
  std::string_view Line() {
    is_over_ = rest_.empty();
    const size_t end = rest_.find('\n');
    current_ = Trimmed(rest_.substr(0, end));
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return current_;
  }

  int Value(std::string_view name) {
    return values_.try_emplace(std::string(name), static_cast<int>(values_.size())).first->second;
  }

  /// Values that `text` names, "%12", "%38#1", in order.
  std::vector<int> ValuesIn(std::string_view text) {
    std::vector<int> found;
    for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
      const size_t end = text.find_first_of(" ,)(:={}", at);
      std::string name(text.substr(at, end - at));
      // The first of several results has two names.
      if (name.ends_with("#0")) name.resize(name.size() - 2);
      found.push_back(Value(name));
    }
    return found;
  }

  /// "tt.func public @name(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, …) attributes {…} {".
  void ReadFunction(std::string_view line, Function& function) {
    const size_t open = line.find('('), at = line.find('@');
    if (open == std::string_view::npos || at == std::string_view::npos) throw Failure("a function has no name");
    function.name = line.substr(at + 1, open - at - 1);
    for (size_t from = line.find('%', open); from != std::string_view::npos;) {
      const size_t next = line.find('%', from + 1);
      const std::string_view one = line.substr(from, next - from);
      const size_t colon = one.find(':');
      std::string_view type = Trimmed(one.substr(colon + 1));
      type = type.substr(0, type.find_first_of(" ,)"));
      const std::string divisibility = WordBehind(one, "tt.divisibility = ");
      function.arguments.push_back(
          {Value(one.substr(0, colon)), ParseType(type), divisibility.empty() ? 1 : std::atoll(divisibility.c_str())});
      from = next;
    }
  }

  /// Reads lines up to one that begins with `end`.
  void ReadBlock(Block& block, std::string_view end) {
    for (std::string_view line = Line(); !line.starts_with(end); line = Line()) {
      if (is_over_) throw Failure("a block does not end");
      if (!line.empty()) block.operations.push_back(ReadOperation(line));
    }
  }

  Operation ReadOperation(std::string_view line) {
    Operation operation;
    if (line.starts_with('%')) {
      const size_t equals = line.find(" = ");
      ReadResults(line.substr(0, equals), operation);
      line = line.substr(equals + 3);
    }
    const size_t end = line.find_first_of(" (");
    operation.name = line.substr(0, end);
    line = end == std::string_view::npos ? std::string_view() : line.substr(end);
    if (operation.name == "scf.for") {
      ReadLoop(line, operation);
    } else if (operation.name == "\"tt.reduce\"") {
      ReadReduction(line, operation);
    } else {
      ReadPlain(line, operation);
    }
    return operation;
  }

  /// "%12" or "%38:3".
  void ReadResults(std::string_view text, Operation& operation) {
    const size_t colon = text.find(':');
    const std::string name(text.substr(0, colon));
    operation.results.push_back(Value(name));
    const int count = colon == std::string_view::npos ? 1 : std::atoi(std::string(text.substr(colon + 1)).c_str());
    for (int i = 1; i < count; ++i) operation.results.push_back(Value(name + "#" + std::to_string(i)));
  }

  void ReadPlain(std::string_view line, Operation& operation) {
    const size_t types = FindTypes(line);
    operation.text = line.substr(0, types);
    operation.operands = ValuesIn(operation.text);
    if (types == line.size()) return;
    std::string_view type = line.substr(types + 1);
    for (const std::string_view arrow : {" -> ", " to "}) {
      const size_t at = type.rfind(arrow);
      if (at != std::string_view::npos) type = type.substr(at + arrow.size());
    }
    if (operation.name == "scf.yield" || operation.name == "tt.store") return;
    // Types of several operands: the last one is the result's, but that of an address comes first.
    const size_t comma = type.find(", ");
    if (comma != std::string_view::npos) {
      type = operation.name == "tt.addptr" ? type.substr(0, comma) : type.substr(comma + 2);
    }
    operation.type = ParseType(Trimmed(type));
  }

  /// "scf.for %i = %a to %b step %c iter_args(%x = %y, …) -> (…)  : i32 {".
  void ReadLoop(std::string_view line, Operation& operation) {
    const size_t arrow = std::min(line.find(" -> "), line.rfind(" : "));
    const std::vector<int> values = ValuesIn(line.substr(0, arrow));
    if (values.size() < 4 || values.size() % 2 != 0) throw Failure("a loop is not understood");
    operation.body.arguments.push_back(values[0]);
    operation.operands = {values[1], values[2], values[3]};
    for (size_t i = 4; i < values.size(); i += 2) {
      operation.body.arguments.push_back(values[i]);
      operation.operands.push_back(values[i + 1]);
    }
    ReadBlock(operation.body, "}");
  }

  /// ""tt.reduce"(%x) <{axis = 1 : i32}> ({", "^bb0(%a: f32, %b: f32):", …, "}) : (tensor<…>) -> tensor<…>".
  void ReadReduction(std::string_view line, Operation& operation) {
    operation.name = "tt.reduce";
    operation.text = line;
    operation.operands = ValuesIn(line);
    if (operation.operands.size() != 1) throw Failure("reduces several tensors at a time");
    operation.body.arguments = ValuesIn(Line());
    ReadBlock(operation.body, "})");
    operation.type = ParseType(current_.substr(current_.rfind(" -> ") + 4));
  }

  std::string_view rest_, current_;
  bool is_over_ = false;
  std::map<std::string, int> values_;
};

}  // namespace

size_t BytesOf(Element element) {
  switch (element) {
    case Element::kFloat16:
    case Element::kBFloat16: return 2;
    case Element::kInt1:
    case Element::kInt8: return 1;
    case Element::kInt64:
    case Element::kPointer: return 8;
    case Element::kFloat32:
    case Element::kInt32: break;
  }
  return 4;
}

Type ParseType(std::string_view text) {
  constexpr std::string_view kTensor = "tensor<", kPointer = "!tt.ptr<";
  Type type;
  if (text.starts_with(kTensor) && text.ends_with('>')) {
    text = text.substr(kTensor.size(), text.size() - kTensor.size() - 1);
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      const size_t end = text.find('x');
      type.shape.push_back(std::atoll(std::string(text.substr(0, end)).c_str()));
      text = text.substr(end + 1);
    }
  }
  if (text.starts_with(kPointer) && text.ends_with('>')) {
    type.element = Element::kPointer;
    type.pointee = ElementFrom(text.substr(kPointer.size(), text.size() - kPointer.size() - 1));
  } else {
    type.element = ElementFrom(text);
  }
  return type;
}

std::string WordBehind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return "";
  text = text.substr(at + mark.size());
  return std::string(text.substr(0, text.find_first_of(" ,}>)\"")));
}

Function Parse(std::string_view text) { return Parser(text).Run(); }

}  // namespace standin::ttir
