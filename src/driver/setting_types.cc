// setting_types.cc: each type reads text, checks a value, stores it and gives it back.
#include "driver/setting_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <type_traits>
#include <utility>

#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "runtime/npy.h"
#include "support/argument_text.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

constexpr const char* kPythonPath = "str | os.PathLike[str]";

/// The value of a pass's option, as SetConfigText reads it.
std::string TextOf(const AttrValue& value) {
  if (const bool* yes = value.as_bool()) return *yes ? "true" : "false";
  if (const int64_t* number = value.as_int()) return fmt::format("{}", *number);
  return *value.as_string();
}

[[noreturn]] void Fail(const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, "", hint);
}

/// A value of the wrong kind, for a message.
std::string KindOf(const SettingValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const double* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&value)) return fmt::format("the text '{}'", *text);
  return std::holds_alternative<std::vector<std::string>>(value) ? "a list of texts" : "a mapping or a list of such";
}

/// The value as `T`; throws where it is of another kind.
template <typename T>
const T& As(const SettingValue& value, const std::string& wanted) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  Fail(fmt::format("expected {}, got {}", wanted, KindOf(value)));
}

/// The value as a number; integers are numbers, too.
double NumberOf(const SettingValue& value, const std::string& wanted) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return As<double>(value, wanted);
}

SettingValue ValueOf(int value) { return int64_t{value}; }
SettingValue ValueOf(uint64_t value) { return static_cast<int64_t>(value); }
SettingValue ValueOf(double value) { return std::isinf(value) && value > 0 ? SettingValue() : SettingValue(value); }
SettingValue ValueOf(const std::filesystem::path& value) { return value.string(); }
SettingValue ValueOf(const std::vector<std::filesystem::path>& value) {
  return std::vector<std::string>(value.begin(), value.end());
}
template <typename T>
SettingValue ValueOf(const T& value) {
  return value;
}
template <typename T>
SettingValue ValueOf(const std::optional<T>& value) {
  return value ? SettingValue(*value) : SettingValue();
}

/// The field of `options`, or of their pass context.
template <typename Options, typename T, typename Owner>
auto& FieldOf(Options& options, T Owner::*field) {
  if constexpr (std::is_same_v<Owner, PassContext>) {
    return options.pass_context.*field;
  } else {
    return options.*field;
  }
}

/// The type of a field of `Owner`, CompileOptions or PassContext, without `parse` and `set`.
template <typename T, typename Owner>
SettingType TypeOf(T Owner::*field, std::string values, std::string placeholder, std::string python,
                   bool is_repeated = false) {
  SettingType type{std::move(values), std::move(placeholder), std::move(python), is_repeated, {}, {}, {}, {}};
  type.get = [=](const CompileOptions& options) { return ValueOf(FieldOf(options, field)); };
  type.reset = [=](CompileOptions& options) {
    const CompileOptions defaults;
    FieldOf(options, field) = FieldOf(defaults, field);
  };
  return type;
}

SettingValue ParseOneInteger(const std::vector<std::string>& texts) { return ParseInteger(texts.back()); }
/// A number, or a percentage: "5%".
SettingValue ParseOneShare(const std::vector<std::string>& texts) {
  std::string text = texts.back();
  if (!text.ends_with('%')) return ParseNumber(text);
  text.pop_back();
  return ParseNumber(text) / 100;
}
SettingValue ParseOneText(const std::vector<std::string>& texts) { return texts.back(); }
SettingValue ParseAllTexts(const std::vector<std::string>& texts) { return texts; }

/// Throws unless `low <= value <= high`; a number that is none is in no range.
template <typename T>
void CheckRange(const T& value, const T& low, const T& high) {
  if (!(value >= low && value <= high)) Fail(fmt::format("expected a value from {} to {}, got {}", low, high, value));
}

/// Integers from `low` to `high` in a field of type `T`, which may be a std::optional.
template <typename T, typename Owner>
SettingType IntegerIn(T Owner::*field, int64_t low, int64_t high, std::string values) {
  SettingType type = TypeOf(field, values, "N", "int");
  type.parse = ParseOneInteger;
  type.set = [=](CompileOptions& options, const SettingValue& value) {
    const int64_t number = As<int64_t>(value, values);
    CheckRange(number, low, high);
    FieldOf(options, field) = static_cast<T>(number);
  };
  return type;
}

/// Seconds of a number or of text such as "90s".
double SecondsOf(const SettingValue& value, const std::string& wanted) {
  if (const std::string* text = std::get_if<std::string>(&value)) return ParseDuration(*text);
  const double seconds = NumberOf(value, wanted);
  if (!(seconds >= 0)) Fail(fmt::format("a duration is not below 0 seconds, got {}", seconds));
  return seconds;
}

/// A tuning budget that is written as text.
std::pair<double, int64_t> ParseTuningBudget(const std::string& text) {
  constexpr std::string_view kTrials = "trials";
  std::pair<double, int64_t> budget{0, 0};
  const std::vector<std::string> parts = SplitCommas(text);
  if (parts.empty()) Fail(fmt::format("malformed tuning budget '{}'", text), "write 30s or 200trials");
  for (const std::string& part : parts) {
    if (!part.ends_with(kTrials)) {
      budget.first = ParseDuration(part);
      continue;
    }
    const std::string number = part.substr(0, part.size() - kTrials.size());
    try {
      budget.second = ParseInteger(number.substr(0, number.find_last_not_of(' ') + 1));
    } catch (const Error&) {
      budget.second = 0;
    }
    if (budget.second < 1) Fail(fmt::format("malformed tuning budget '{}'", text), "write 30s or 200trials");
  }
  return budget;
}

/// Names in a list, each of which passes `check`.
template <typename Owner>
SettingType NamesIn(std::vector<std::string> Owner::*field, std::string placeholder,
                    std::function<void(const std::string& name)> check) {
  SettingType type = TypeOf(field, "names, separated by commas", std::move(placeholder), "str | Sequence[str]");
  type.parse = ParseOneText;
  type.set = [field, check, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const std::string* text = std::get_if<std::string>(&value);
    const auto names = text != nullptr ? SplitCommas(*text) : As<std::vector<std::string>>(value, wanted);
    if (check) std::ranges::for_each(names, check);
    FieldOf(options, field) = names;
  };
  return type;
}

void CheckIsThere(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) Fail(fmt::format("there is no file '{}'", path));
}

}  // namespace

SettingType Integer(int CompileOptions::*field, int64_t low, int64_t high) {
  return IntegerIn(field, low, high, fmt::format("an integer from {} to {}", low, high));
}

SettingType Integer(uint64_t CompileOptions::*field) {
  return IntegerIn(field, 0, std::numeric_limits<int64_t>::max(), "an integer, not below 0");
}

SettingType Count(std::optional<int64_t> CompileOptions::*field) {
  return IntegerIn(field, 0, std::numeric_limits<int64_t>::max(), "an integer, not below 0");
}

SettingType Fraction(std::optional<double> CompileOptions::*field) {
  SettingType type = TypeOf(field, "a number from 0 to 1, or a percentage", "FRACTION", "float");
  type.parse = ParseOneShare;
  type.set = [field, values = type.values](CompileOptions& options, const SettingValue& value) {
    const double number = NumberOf(value, values);
    CheckRange(number, 0.0, 1.0);
    options.*field = number;
  };
  return type;
}

SettingType Duration(double CompileOptions::*field) {
  SettingType type = TypeOf(field, "a duration, such as 90s, 10m or 1h, or seconds", "TIME", "float | str");
  type.parse = ParseOneText;
  type.set = [field, values = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = SecondsOf(value, values);
  };
  return type;
}

SettingType Bytes(int64_t CompileOptions::*field) {
  SettingType type = TypeOf(field, "bytes, such as 500MB or 12GiB", "SIZE", "int | str");
  type.parse = ParseOneText;
  type.get = [=](const CompileOptions& options) { return SettingValue(FormatBinaryBytes(options.*field)); };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const std::string* text = std::get_if<std::string>(&value);
    const int64_t bytes = text != nullptr ? ParseBytes(*text) : As<int64_t>(value, wanted);
    if (bytes < 0) Fail(fmt::format("a size is not below 0 bytes, got {}", bytes));
    options.*field = bytes;
  };
  return type;
}

SettingType Word(std::string CompileOptions::*field, std::vector<std::string> choices) {
  SettingType type = TypeOf(field, fmt::format("{}", fmt::join(choices, ", ")), "NAME", "str");
  type.parse = ParseOneText;
  type.set = [field, choices, values = type.values](CompileOptions& options, const SettingValue& value) {
    const auto& word = As<std::string>(value, values);
    if (!word.empty() && std::ranges::find(choices, word) == choices.end()) {
      const std::vector<std::string> near = NearMisses(word, choices);
      Fail(fmt::format("'{}' is not one of {}", word, values), near.empty() ? "" : "did you mean '" + near[0] + "'?");
    }
    options.*field = word;
  };
  return type;
}

SettingType Text(std::string CompileOptions::*field, std::string placeholder, std::string values) {
  SettingType type = TypeOf(field, std::move(values), std::move(placeholder), "str");
  type.parse = ParseOneText;
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = As<std::string>(value, wanted);
  };
  return type;
}

SettingType Path(std::filesystem::path CompileOptions::*field, std::string placeholder, bool must_exist) {
  SettingType type = TypeOf(field, must_exist ? "a file that exists" : "a path", std::move(placeholder), kPythonPath);
  type.parse = ParseOneText;
  type.set = [field, must_exist, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const auto& path = As<std::string>(value, wanted);
    if (must_exist && !path.empty()) CheckIsThere(path);
    options.*field = path;
  };
  return type;
}

SettingType Paths(std::vector<std::filesystem::path> CompileOptions::*field, std::string placeholder) {
  SettingType type = TypeOf(field, "files that exist", std::move(placeholder),
                            fmt::format("{} | Sequence[{}]", kPythonPath, kPythonPath), /*is_repeated=*/true);
  type.parse = ParseAllTexts;
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const std::string* text = std::get_if<std::string>(&value);
    const std::vector<std::string> paths =
        text != nullptr ? std::vector{*text} : As<std::vector<std::string>>(value, wanted);
    for (const std::string& path : paths) CheckIsThere(path);
    (options.*field).assign(paths.begin(), paths.end());
  };
  return type;
}

SettingType Names(std::vector<std::string> CompileOptions::*field) { return NamesIn(field, "NAME,…", {}); }

SettingType Texts(std::vector<std::string> CompileOptions::*field, std::string placeholder, std::string values) {
  SettingType type =
      TypeOf(field, std::move(values), std::move(placeholder), "str | Sequence[str]", /*is_repeated=*/true);
  type.parse = ParseAllTexts;
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const std::string* text = std::get_if<std::string>(&value);
    options.*field = text != nullptr ? std::vector{*text} : As<std::vector<std::string>>(value, wanted);
  };
  return type;
}

SettingType Shapes(std::map<std::string, Shape> CompileOptions::*field) {
  SettingType type = TypeOf(field, "shapes by the names of inputs", "NAME=1x3x640x640", "Mapping[str, Sequence[int]]",
                            /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) { return SettingValue(ParseShapes(texts)); };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = As<std::map<std::string, Shape>>(value, wanted);
  };
  return type;
}

SettingType Sizes(std::map<std::string, Shape> CompileOptions::*field) {
  SettingType type = TypeOf(field, "sizes by the names of dimensions", "NAME=SIZE,…", "Mapping[str, Sequence[int]]",
                            /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) { return SettingValue(ParseSizes(texts)); };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const auto& sizes = As<std::map<std::string, Shape>>(value, wanted);
    for (const auto& [name, values] : sizes) {
      if (values.empty()) Fail(fmt::format("dimension '{}' is named without a size", name));
    }
    options.*field = sizes;
  };
  return type;
}

SettingType Dimensions(std::map<std::string, Shape> CompileOptions::*field) {
  SettingType type = TypeOf(field, "a size or a range by the names of dimensions", "NAME=SIZE|LOW..HIGH",
                            "Mapping[str, int | Sequence[int]]", /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) { return SettingValue(ParseDimensions(texts)); };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const auto& sizes = As<std::map<std::string, Shape>>(value, wanted);
    for (const auto& [name, range] : sizes) {
      if (range.empty() || range.size() > 2)
        Fail(fmt::format("dimension '{}' has {} sizes", name, range.size()), "give one, or the least and the largest");
      if (range.front() < 1 || range.front() > range.back()) {
        Fail(fmt::format("dimension '{}' cannot have sizes from {} to {}", name, range.front(), range.back()));
      }
    }
    options.*field = sizes;
  };
  return type;
}

SettingType Lengths(std::map<std::string, Shape> CompileOptions::*field) {
  SettingType type =
      TypeOf(field, "numbers by the names of sequences", "NAME=NUMBER", "Mapping[str, int | Sequence[int]]",
             /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) { return SettingValue(ParseSizes(texts)); };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const auto& lengths = As<std::map<std::string, Shape>>(value, wanted);
    for (const auto& [name, numbers] : lengths) {
      if (numbers.size() != 1 || numbers.front() < 0) Fail(fmt::format("sequence '{}' has no such length", name));
    }
    options.*field = lengths;
  };
  return type;
}

SettingType Constants(std::map<std::string, std::string> CompileOptions::*field) {
  SettingType type =
      TypeOf(field, "values by the names of inputs", "NAME=VALUE", "Mapping[str, str]", /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) {
    std::map<std::string, std::string> values;
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0) {
        Fail(fmt::format("malformed constant '{}'", text), "write NAME=16000, NAME=1,2 or NAME=FILE.npy");
      }
      const bool is_new = values.emplace(text.substr(0, equals), text.substr(equals + 1)).second;
      if (!is_new) Fail(fmt::format("the constant '{}' is given twice", text.substr(0, equals)));
    }
    return SettingValue(values);
  };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = As<std::map<std::string, std::string>>(value, wanted);
  };
  return type;
}

SettingType Rules(std::map<std::string, std::string> CompileOptions::*field) {
  SettingType type =
      TypeOf(field, "JSON by the names of toolchains", "TOOLCHAIN=RULE", "Mapping[str, str]", /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& texts) {
    std::map<std::string, std::string> rules;
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) {
        Fail(fmt::format("malformed rule '{}'", text), "write TOOLCHAIN=FILE.json or TOOLCHAIN={…}");
      }
      rules[text.substr(0, equals)] = ReadJsonArgument(text.substr(equals + 1), text).text;
    }
    return SettingValue(rules);
  };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = As<std::map<std::string, std::string>>(value, wanted);
  };
  return type;
}

SettingType Inputs(std::vector<std::map<std::string, Tensor>> CompileOptions::*field) {
  SettingType type =
      TypeOf(field, ".npz files", "FILE.npz", "CheckInputs | Sequence[CheckInputs]", /*is_repeated=*/true);
  type.parse = [](const std::vector<std::string>& files) {
    std::vector<std::map<std::string, Tensor>> inputs;
    for (const std::string& file : files) {
      CheckIsThere(file);
      inputs.push_back(ReadNpz(file));
    }
    return SettingValue(inputs);
  };
  type.set = [field, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    options.*field = As<std::vector<std::map<std::string, Tensor>>>(value, wanted);
  };
  return type;
}

SettingType PassLevel(int64_t low, int64_t high) {
  return IntegerIn(&PassContext::opt_level, low, high, fmt::format("an integer from {} to {}", low, high));
}

SettingType PassNames(std::vector<std::string> PassContext::*field) {
  return NamesIn(field, "PASS,…", [](const std::string& name) { GetPass(name); });
}

SettingType PassOptions() {
  SettingType type{"values by the names of options", "KEY=VALUE", "Mapping[str, object]", true, {}, {}, {}, {}};
  type.parse = [](const std::vector<std::string>& texts) {
    std::map<std::string, std::string> options;
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) Fail(fmt::format("malformed option '{}'", text), "write KEY=VALUE");
      options[text.substr(0, equals)] = text.substr(equals + 1);
    }
    return SettingValue(options);
  };
  type.set = [wanted = type.values](CompileOptions& options, const SettingValue& value) {
    for (const auto& [key, text] : As<std::map<std::string, std::string>>(value, wanted)) {
      options.pass_context.SetConfigText(key, text);
    }
  };
  type.get = [](const CompileOptions& options) {
    std::map<std::string, std::string> texts;
    for (const auto& [key, value] : options.pass_context.config()) texts[key] = TextOf(value);
    return SettingValue(texts);
  };
  type.reset = [](CompileOptions& options) { options.pass_context.ClearConfig(); };
  return type;
}

SettingType TuningBudget(double CompileOptions::*seconds, int64_t CompileOptions::*trials) {
  SettingType type =
      TypeOf(seconds, "a duration, such as 30s, or a number of trials, such as 200trials", "TIME", "float | str");
  type.parse = ParseOneText;
  type.set = [seconds, trials, wanted = type.values](CompileOptions& options, const SettingValue& value) {
    const std::string* text = std::get_if<std::string>(&value);
    const auto budget = text != nullptr ? ParseTuningBudget(*text) : std::pair(SecondsOf(value, wanted), int64_t{0});
    options.*seconds = budget.first;
    options.*trials = budget.second;
  };
  type.get = [=](const CompileOptions& options) {
    if (options.*trials == 0) return SettingValue(options.*seconds);
    const std::string text = fmt::format("{}trials", options.*trials);
    return SettingValue(options.*seconds == 0 ? text : fmt::format("{}s,{}", options.*seconds, text));
  };
  type.reset = [=](CompileOptions& options) {
    options.*seconds = CompileOptions().*seconds;
    options.*trials = CompileOptions().*trials;
  };
  return type;
}

}  // namespace collage
