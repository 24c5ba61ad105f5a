// target.cc: the table of common options; reading and writing targets.
#include "collage/target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <vector>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/attr_visitor.h"
#include "support/edit_distance.h"
#include "target/option_text.h"

namespace collage {
namespace {

/// Options of every target.
const std::vector<AttrField>& CommonOptions() {
  static const std::vector<AttrField> options{
      {"compiler", AttrKind::kString, "", "which toolchain; native code without"},
      {"partition_rule", AttrKind::kString, "", "JSON of the rule that finds candidates"},
      {"device_type", AttrKind::kInt, 0, "DLDeviceType, where it is not the kind's"},
      {"host", AttrKind::kString, "", "target of what drives the device"},
      {"mcpu", AttrKind::kString, "", "processor"},
      {"mtriple", AttrKind::kString, "", "LLVM's triple"},
      {"mattr", AttrKind::kString, "", "instruction sets"},
      {"arch", AttrKind::kString, "", "architecture, sm_90"},
      {"model", AttrKind::kString, "", "name of the device"},
      {"tag", AttrKind::kString, "", "name of the target"},
      {"num_cores", AttrKind::kInt, 0, "processors"},
      {"opt_level", AttrKind::kInt, 0, "effort of the compiler"},
  };
  return options;
}

std::optional<int64_t> AsInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<double> AsDouble(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}
std::optional<bool> AsBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return std::nullopt;
}

/// true, 16, 0.5, or a string.
AttrValue ByForm(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const std::optional<int64_t> value = AsInt(text)) return *value;
  if (const std::optional<double> value = AsDouble(text)) return *value;
  return text;
}

/// The value of that kind; nothing when the text is no such value.
std::optional<AttrValue> OfKind(AttrKind kind, const std::string& text) {
  const auto wrap = [](const auto& value) { return value ? std::optional<AttrValue>(*value) : std::nullopt; };
  switch (kind) {
    case AttrKind::kBool: return wrap(AsBool(text));
    case AttrKind::kInt: return wrap(AsInt(text));
    case AttrKind::kDouble: return wrap(AsDouble(text));
    case AttrKind::kString: return AttrValue(text);
    default: return ByForm(text);
  }
}

/// Whether the kind is one of a toolchain of `registry`, not of a device.
bool IsToolchain(const TargetKind& kind, const ToolchainRegistry& registry) {
  const Toolchain* toolchain = registry.Find(kind.name());
  return toolchain != nullptr && TargetKindOf(*toolchain) == &kind;
}

/// "use_fp16 (true or false), max_workspace (an integer)".
std::string ListOf(const std::vector<AttrField>& options) {
  std::string text;
  for (const AttrField& option : options) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", option.name, OptionKindText(option.kind));
  }
  return text;
}

class TargetReader {
 public:
  TargetReader(std::string_view text, const ToolchainRegistry& registry) : text_(text), registry_(registry) {}

  /// The kind, and the options by name in the order of the text.
  std::pair<const TargetKind*, Attrs> Read() {
    const TargetKind& kind = ReadKind();
    std::vector<std::pair<size_t, std::pair<std::string, std::string>>> written;
    for (Skip(); at_ < text_.size(); Skip()) {
      const size_t place = at_;
      written.emplace_back(place, ReadOption());
      if (IsOneLibrary(kind, written.back().second)) written.back().second.first = "compiler";
    }
    Attrs options;
    const auto compiler = std::find_if(written.begin(), written.end(),
                                       [](const auto& option) { return option.second.first == "compiler"; });
    std::string compiler_name = compiler == written.end() ? "" : compiler->second.second;
    if (IsToolchain(kind, registry_)) {
      if (compiler != written.end()) FailAt(compiler->first, fmt::format("kind '{}' is its own compiler", kind.name()));
      compiler_name = kind.name();
    }
    toolchain_ = compiler_name.empty() ? OwnToolchainOf(kind, registry_) : registry_.Find(compiler_name);
    for (const auto& [place, option] : written) {
      if (options.Has(option.first)) FailAt(place, fmt::format("option '{}' is given twice", option.first));
      options.Set(option.first, Typed(place, option.first, option.second, compiler_name));
    }
    return {&kind, options};
  }

 private:
  /// Whether an option is TVM's spelling of a toolchain, "cuda -libs=cudnn", for a kind whose own has no such option.
  bool IsOneLibrary(const TargetKind& kind, const std::pair<std::string, std::string>& option) const {
    const Toolchain* own = OwnToolchainOf(kind, registry_);
    if (option.first != "libs" || own == nullptr || registry_.Find(option.second) == nullptr) return false;
    return std::ranges::none_of(own->Options(), [](const AttrField& field) { return field.name == "libs"; });
  }

  [[noreturn]] void FailAt(size_t at, const std::string& message, const std::string& hint = "") const {
    throw Error(ErrorCategory::kInput, fmt::format("{}, at character {} of target '{}'", message, at + 1, text_), "",
                hint);
  }
  const TargetKind& ReadKind() {
    Skip();
    const size_t begin = at_;
    const std::string name = Word();
    if (const TargetKind* kind = FindTargetKind(name, registry_)) return *kind;
    std::vector<std::string> names;
    std::string list;
    for (const TargetKind* one : TargetKinds(registry_)) {
      names.push_back(one->name());
      list += (list.empty() ? "" : ", ") + one->name();
    }
    const std::vector<std::string> near = name.empty() ? std::vector<std::string>() : NearMisses(name, names);
    FailAt(begin, name.empty() ? "expected a kind of target" : fmt::format("there is no kind of target '{}'", name),
           (near.empty() ? "" : "did you mean '" + near[0] + "'? ") + "there are: " + list);
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '=') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::pair<std::string, std::string> ReadOption() {
    const size_t begin = at_;
    if (text_[at_] != '-') FailAt(begin, "expected an option, '-name=value'");
    at_ += text_.substr(at_).starts_with("--") ? 2 : 1;
    std::string name = Word();
    if (name.empty() || at_ >= text_.size() || text_[at_] != '=') FailAt(begin, "expected an option, '-name=value'");
    ++at_;
    return {std::move(name), Value(begin)};
  }

  std::string Value(size_t option) {
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') {
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != ' ') ++at_;
      if (begin == at_) FailAt(option, "expected a value behind '='");
      return std::string(text_.substr(begin, at_ - begin));
    }
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ >= text_.size()) FailAt(option, "expected the quote that ends the value");
    ++at_;
    return value;
  }

  AttrValue Typed(size_t place, const std::string& name, const std::string& value, const std::string& compiler) const {
    const bool is_of_unknown = !compiler.empty() && toolchain_ == nullptr;
    if (is_of_unknown && FindOption(CommonOptions(), name) == nullptr) return ByForm(value);
    const std::vector<AttrField> own = toolchain_ == nullptr ? std::vector<AttrField>() : toolchain_->Options();
    const AttrField* option = FindOption(CommonOptions(), name);
    if (option == nullptr) option = FindOption(own, name);
    if (option == nullptr) {
      std::string hint = "every target has " + ListOf(CommonOptions());
      if (toolchain_ != nullptr) {
        hint = fmt::format("'{}' has {}; {}", toolchain_->name(), own.empty() ? "no options of its own" : ListOf(own),
                           hint);
      }
      FailAt(place,
             fmt::format("there is no option '{}'{}", name, compiler.empty() ? "" : fmt::format(" of '{}'", compiler)),
             hint);
    }
    if (std::optional<AttrValue> typed = OfKind(option->kind, value)) return *typed;
    FailAt(place, fmt::format("option '{}' is {}, got '{}'", name, OptionKindText(option->kind), value));
  }

  static const AttrField* FindOption(const std::vector<AttrField>& options, const std::string& name) {
    const auto it =
        std::find_if(options.begin(), options.end(), [&](const AttrField& one) { return one.name == name; });
    return it == options.end() ? nullptr : &*it;
  }

  std::string_view text_;
  const ToolchainRegistry& registry_;
  const Toolchain* toolchain_ = nullptr;  ///< whose options the target may have; null when it is not known
  size_t at_ = 0;
};

}  // namespace

const char* OptionKindText(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool: return "true or false";
    case AttrKind::kInt: return "an integer";
    case AttrKind::kDouble: return "a number";
    default: return "a string";
  }
}

namespace {

/// Writes values of options, which are no lists and always there.
struct OptionPrinter {
  std::string Bool(bool flag) const { return flag ? "true" : "false"; }
  std::string Int(int64_t number) const { return std::to_string(number); }
  std::string Double(double number) const { return fmt::format("{}", number); }
  std::string Text(const std::string& text) const {
    if (text.find_first_of(" '\"\\") == std::string::npos && !text.empty()) return text;
    std::string quoted = "'";
    for (char c : text) {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + "'";
  }
  std::string List(const AttrValue::List&) const { return None(); }
  std::string None() const {
    COLLAGE_CHECK(false) << "an option is a bool, a number or a string";
    return "";
  }
};

}  // namespace

std::string OptionValueText(const AttrValue& value) { return VisitAttr(value, OptionPrinter()); }

std::string OptionText(const Attrs& options) {
  std::string text;
  for (const auto& [name, value] : options) text += fmt::format(" -{}={}", name, OptionValueText(value));
  return text;
}

Target Target::Parse(std::string_view text, const ToolchainRegistry& registry) {
  Target target;
  const TargetKind* kind = nullptr;
  std::tie(kind, target.options_) = TargetReader(text, registry).Read();
  target.kind_ = kind->name();
  target.kind_device_type_ = kind->device_type();
  target.is_toolchain_ = IsToolchain(*kind, registry);
  return target;
}

Attrs Target::OptionsFor(const Toolchain& toolchain) const {
  Attrs options;
  for (const AttrField& option : toolchain.Options()) {
    const AttrValue* value = options_.Find(option.name);
    options.Set(option.name, value == nullptr ? option.default_value : *value);
  }
  return options;
}

std::vector<std::string> Target::IdleOptions(const Toolchain& toolchain) const {
  const std::vector<AttrField> own = toolchain.Options();
  std::vector<std::string> idle;
  for (const auto& [name, value] : options_) {
    const auto is_same = [&](const AttrField& option) { return option.name == name; };
    const bool acts = name == "compiler" || name == "partition_rule" || name == "device_type";
    if (!acts && std::none_of(own.begin(), own.end(), is_same)) idle.push_back(name);
  }
  return idle;
}

int Target::device_type() const {
  return options_.Has("device_type") ? static_cast<int>(options_.Int("device_type")) : kind_device_type_;
}

bool Target::Refines(const Target& other) const {
  const auto is_refined = [](const Target& target) {
    return !target.compiler().empty() || target.options_.Has("partition_rule");
  };
  if (!is_refined(*this) || is_refined(other)) return false;
  if (is_toolchain_ ? device_type() != other.device_type() : kind_ != other.kind_) return false;
  // A toolchain's options are part of the refinement: only options that every target has are compared.
  for (const AttrField& option : CommonOptions()) {
    const std::string& name = option.name;
    if (name == "compiler" || name == "partition_rule") continue;
    const AttrValue* mine = options_.Find(name);
    const AttrValue* its = other.options_.Find(name);
    if ((mine == nullptr) != (its == nullptr) || (mine != nullptr && !(*mine == *its))) return false;
  }
  return true;
}

std::string Target::ToString() const { return kind_ + OptionText(options_); }

}  // namespace collage
