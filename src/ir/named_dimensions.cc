// named_dimensions.cc: the attributes, and the check before each run.
#include "collage/ir/named_dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace collage {
namespace {

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

NamedDimensions::Names NamesIn(const Attrs& attrs) {
  NamedDimensions::Names names;
  const AttrValue* params = attrs.Find(kAttrDimensionNames);
  if (params == nullptr || params->as_list() == nullptr) return names;
  for (const AttrValue& param : *params->as_list()) {
    names.emplace_back();
    if (param.as_list() == nullptr) continue;
    for (const AttrValue& name : *param.as_list()) {
      names.back().push_back(name.as_string() == nullptr ? "" : *name.as_string());
    }
  }
  return names;
}

NamedDimensions::Ranges RangesIn(const Attrs& attrs) {
  NamedDimensions::Ranges ranges;
  const AttrValue* all = attrs.Find(kAttrDimensionRanges);
  if (all == nullptr || all->as_list() == nullptr) return ranges;
  for (const AttrValue& one : *all->as_list()) {
    const AttrValue::List* fields = one.as_list();
    if (fields == nullptr || fields->size() != 3) continue;
    const std::string* name = (*fields)[0].as_string();
    const int64_t *low = (*fields)[1].as_int(), *high = (*fields)[2].as_int();
    if (name != nullptr && low != nullptr && high != nullptr) ranges[*name] = {*low, *high};
  }
  return ranges;
}

std::string RangeText(const SizeRange& range) {
  return range.high == kNoBound ? fmt::format("{} or more", range.low) : fmt::format("{} to {}", range.low, range.high);
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

}  // namespace

std::optional<int64_t> SizeSum::Of(const std::map<std::string, int64_t>& sizes) const {
  int64_t sum = number;
  for (const std::string& name : names) {
    const auto size = sizes.find(name);
    if (size == sizes.end() || __builtin_add_overflow(sum, size->second, &sum)) return std::nullopt;
  }
  return sum;
}

std::string SizeSum::ToString() const {
  const std::string text = fmt::format("{}", fmt::join(names, " + "));
  return number == 0 ? text : names.empty() ? std::to_string(number) : fmt::format("{} + {}", text, number);
}

std::optional<SizeSum> ReadSum(std::string_view name) {
  if (name.find('+') == std::string_view::npos) return std::nullopt;
  SizeSum sum;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('+', begin), name.size());
    const std::string_view term = Trimmed(name.substr(begin, end - begin));
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(term.data(), term.data() + term.size(), number);
    if (error == std::errc() && rest == term.data() + term.size() && number >= 0) {
      if (__builtin_add_overflow(sum.number, number, &sum.number)) return std::nullopt;
    } else if (IsIdentifier(term)) {
      sum.names.emplace_back(term);
    } else {
      return std::nullopt;
    }
    begin = end + 1;
  }
  return sum.names.empty() ? std::nullopt : std::optional(std::move(sum));
}

NamedDimensions::NamedDimensions(Names names, Ranges ranges, std::vector<std::string> params)
    : names_(std::move(names)), ranges_(std::move(ranges)), params_(std::move(params)) {
  std::map<std::string, std::pair<size_t, size_t>> first;
  for (size_t param = 0; param < params_.size() && param < names_.size(); ++param) {
    for (size_t axis = 0; axis < names_[param].size(); ++axis) {
      const SizeRange range = RangeOf(param, axis);
      const auto& [first_param, first_axis] = first.emplace(NameOf(param, axis), std::pair(param, axis)).first->second;
      const bool is_first = first_param == param && first_axis == axis;
      std::optional<SizeSum> sum = is_first ? SumOf(param, axis) : std::nullopt;
      if (is_first && range == SizeRange() && !sum) continue;
      places_.push_back({param, axis, first_param, first_axis, is_first ? range : SizeRange(), std::move(sum)});
    }
  }
}

NamedDimensions::NamedDimensions(const Attrs& attrs, std::vector<std::string> params)
    : NamedDimensions(NamesIn(attrs), RangesIn(attrs), std::move(params)) {}

bool NamedDimensions::HasName(size_t param, size_t axis) const {
  return param < names_.size() && axis < names_[param].size() && !names_[param][axis].empty();
}

std::string NamedDimensions::NameOf(size_t param, size_t axis) const {
  return HasName(param, axis) ? names_[param][axis] : fmt::format("{}[{}]", params_.at(param), axis);
}

SizeRange NamedDimensions::RangeOf(size_t param, size_t axis) const {
  if (ranges_.empty()) return {};
  const auto range = ranges_.find(NameOf(param, axis));
  return range == ranges_.end() ? SizeRange() : range->second;
}

std::optional<SizeSum> NamedDimensions::SumOf(size_t param, size_t axis) const {
  if (!HasName(param, axis)) return std::nullopt;
  std::optional<SizeSum> sum = ReadSum(names_[param][axis]);
  const auto is_dimension = [&](const std::string& name) {
    return std::ranges::any_of(names_, [&](const auto& dims) { return std::ranges::find(dims, name) != dims.end(); });
  };
  return sum && std::ranges::all_of(sum->names, is_dimension) ? sum : std::nullopt;
}

void NamedDimensions::AddTo(Attrs& attrs) const {
  bool has_names = !ranges_.empty();  // whose places follow from the lists of names
  AttrValue::List params, ranges;
  for (const std::vector<std::string>& dims : names_) {
    params.emplace_back(AttrValue::List(dims.begin(), dims.end()));
    for (const std::string& name : dims) has_names = has_names || !name.empty();
  }
  for (const auto& [name, range] : ranges_) ranges.emplace_back(AttrValue::List{name, range.low, range.high});
  if (has_names) attrs.Set(kAttrDimensionNames, std::move(params));
  if (!ranges_.empty()) attrs.Set(kAttrDimensionRanges, std::move(ranges));
}

Result<void> NamedDimensions::Check(const std::vector<Value>& args) const {
  const auto size_at = [&](size_t param, size_t axis) -> std::optional<int64_t> {
    if (param >= args.size() || args[param].kind() != Value::Kind::kTensor) return std::nullopt;
    const Shape& shape = args[param].tensor().shape();
    return axis < shape.size() ? std::optional(shape[axis]) : std::nullopt;
  };
  for (const auto& [param, axis, first_param, first_axis, range, sum] : places_) {
    const std::optional<int64_t> size = size_at(param, axis), first = size_at(first_param, first_axis);
    if (!size || !first) continue;
    if (*size != *first) {
      return Reason{fmt::format("inputs differ: '{}' is {} in '{}' and {} in '{}'", NameOf(param, axis), *first,
                                params_.at(first_param), *size, params_.at(param)),
                    ""};
    }
    if (*size < range.low || *size > range.high) {
      return Reason{fmt::format("'{}' is {} in '{}', the model was compiled for {}", NameOf(param, axis), *size,
                                params_.at(param), RangeText(range)),
                    ""};
    }
    if (sum) {
      const std::optional<int64_t> wanted = sum->Of(SizesIn(args));
      if (wanted && *wanted != *size) {
        return Reason{fmt::format("inputs differ: '{}' is {} in '{}', its terms add up to {}", NameOf(param, axis),
                                  *size, params_.at(param), *wanted),
                      ""};
      }
    }
  }
  return {};
}

std::map<std::string, int64_t> NamedDimensions::SizesIn(const std::vector<Value>& args) const {
  std::map<std::string, int64_t> sizes;
  for (size_t param = 0; param < std::min(names_.size(), args.size()); ++param) {
    if (args[param].kind() != Value::Kind::kTensor) continue;
    const Shape& shape = args[param].tensor().shape();
    for (size_t axis = 0; axis < std::min(names_[param].size(), shape.size()); ++axis) {
      if (HasName(param, axis)) sizes.emplace(names_[param][axis], shape[axis]);
    }
  }
  return sizes;
}

}  // namespace collage
