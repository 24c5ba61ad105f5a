// target.cc: the tables of kinds and options; reading and writing targets.
#include "collage/target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <vector>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

constexpr TargetKind kKinds[] = {
    {"llvm", 1, "processors"},
    {"c", 1, "processors, by way of C"},
    {"cuda", 2, "NVIDIA's graphics processors"},
    {"opencl", 4, "OpenCL devices"},
    {"vulkan", 7, "Vulkan devices"},
    {"metal", 8, "Apple's graphics processors"},
    {"rocm", 10, "AMD's graphics processors"},
};

struct Option {
  const char* name;
  AttrKind kind;
};
/// Of every target.
constexpr Option kOptions[] = {
    {"compiler", AttrKind::kString}, {"partition_rule", AttrKind::kString}, {"device_type", AttrKind::kInt},
    {"host", AttrKind::kString},     {"mcpu", AttrKind::kString},           {"mtriple", AttrKind::kString},
    {"mattr", AttrKind::kString},    {"arch", AttrKind::kString},           {"model", AttrKind::kString},
    {"tag", AttrKind::kString},      {"num_cores", AttrKind::kInt},         {"opt_level", AttrKind::kInt},
};

std::optional<int64_t> AsInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// true, 16, 0.5, or a string.
AttrValue ByForm(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const std::optional<int64_t> value = AsInt(text)) return *value;
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

class TargetReader {
 public:
  explicit TargetReader(std::string_view text) : text_(text) {}

  /// The kind, and the options by name in the order of the text.
  std::pair<std::string, Attrs> Read() {
    Skip();
    const size_t begin = at_;
    const std::string kind = Word();
    const bool is_known =
        std::any_of(std::begin(kKinds), std::end(kKinds), [&](const TargetKind& one) { return kind == one.name; });
    if (!is_known) {
      std::vector<std::string> names;
      for (const TargetKind& one : kKinds) names.emplace_back(one.name);
      FailAt(begin, kind.empty() ? "expected a kind of target" : fmt::format("there is no kind of target '{}'", kind),
             Near(kind, names));
    }
    std::vector<std::pair<size_t, std::pair<std::string, std::string>>> written;
    for (Skip(); at_ < text_.size(); Skip()) {
      const size_t place = at_;
      written.emplace_back(place, ReadOption());
    }
    Attrs options;
    const bool has_compiler = std::any_of(written.begin(), written.end(),
                                          [](const auto& option) { return option.second.first == "compiler"; });
    for (const auto& [place, option] : written) {
      if (options.Has(option.first)) FailAt(place, fmt::format("option '{}' is given twice", option.first));
      options.Set(option.first, Typed(place, option.first, option.second, has_compiler));
    }
    return {kind, options};
  }

 private:
  [[noreturn]] void FailAt(size_t at, const std::string& message, const std::string& hint = "") const {
    throw Error(ErrorCategory::kInput, fmt::format("{}, at character {} of target '{}'", message, at + 1, text_), "",
                hint);
  }
  static std::string Near(const std::string& name, const std::vector<std::string>& names) {
    const std::vector<std::string> near = NearMisses(name, names);
    return near.empty() ? "" : "did you mean '" + near[0] + "'?";
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

  AttrValue Typed(size_t place, const std::string& name, const std::string& value, bool has_compiler) const {
    std::vector<std::string> names;
    for (const Option& option : kOptions) {
      names.emplace_back(option.name);
      if (name != option.name) continue;
      if (option.kind != AttrKind::kInt) return value;
      const std::optional<int64_t> number = AsInt(value);
      if (!number) FailAt(place, fmt::format("option '{}' is an integer, got '{}'", name, value));
      return *number;
    }
    if (!has_compiler) FailAt(place, fmt::format("there is no option '{}'", name), Near(name, names));
    return ByForm(value);
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string ValueText(const AttrValue& value) {
  if (const bool* flag = value.as_bool()) return *flag ? "true" : "false";
  if (const int64_t* number = value.as_int()) return std::to_string(*number);
  if (const double* number = value.as_double()) return fmt::format("{}", *number);
  const std::string& text = *value.as_string();
  if (text.find_first_of(" '\"\\") == std::string::npos && !text.empty()) return text;
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::span<const TargetKind> TargetKinds() { return kKinds; }

Target Target::Parse(std::string_view text) {
  Target target;
  std::tie(target.kind_, target.options_) = TargetReader(text).Read();
  return target;
}

int Target::device_type() const {
  if (options_.Has("device_type")) return static_cast<int>(options_.Int("device_type"));
  for (const TargetKind& kind : kKinds) {
    if (kind_ == kind.name) return kind.device_type;
  }
  return 0;
}

bool Target::Refines(const Target& other) const {
  const auto is_refined = [](const Target& target) {
    return target.options_.Has("compiler") || target.options_.Has("partition_rule");
  };
  if (!is_refined(*this) || is_refined(other) || kind_ != other.kind_) return false;
  // What a toolchain is told is part of the refinement: only options that every target has are compared.
  for (const Option& option : kOptions) {
    const std::string name = option.name;
    if (name == "compiler" || name == "partition_rule") continue;
    const AttrValue* mine = options_.Find(name);
    const AttrValue* its = other.options_.Find(name);
    if ((mine == nullptr) != (its == nullptr) || (mine != nullptr && !(*mine == *its))) return false;
  }
  return true;
}

std::string Target::ToString() const {
  std::string text = kind_;
  for (const auto& [name, value] : options_) text += fmt::format(" -{}={}", name, ValueText(value));
  return text;
}

}  // namespace collage
