// node_checks.cc: attributes and constant inputs whose values are checked where they are read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/onnx/importer.h"

namespace collage {
namespace {

// Sizes of windows, steps and padding beyond this mean nothing, and products of two of them fit 63 bits.
constexpr int64_t kLargestInt = std::numeric_limits<int32_t>::max();

}  // namespace

int64_t NodeContext::IntWithin(const char* name, int64_t fallback, int64_t least, int64_t most) const {
  const int64_t value = Int(name, fallback);
  if (value < least || value > most)
    Invalid(fmt::format("attribute '{}' is {}, a number from {} to {} is wanted", name, value, least, most));
  return value;
}

int64_t NodeContext::PositiveInt(const char* name, int64_t fallback) const {
  return IntWithin(name, fallback, 1, kLargestInt);
}

std::vector<int64_t> NodeContext::IntsWithin(const char* name, size_t count, int64_t fallback, int64_t least) const {
  const std::vector<int64_t> values = Ints(name, std::vector<int64_t>(count, fallback));
  const bool fits = std::ranges::all_of(values, [&](int64_t value) { return value >= least && value <= kLargestInt; });
  if (values.size() == count && fits) return values;
  Invalid(fmt::format("attribute '{}' is [{}], {} number{} from {} to {} {} wanted", name,
                      fmt::join(values.begin(), values.end(), ", "), count, count == 1 ? "" : "s", least, kLargestInt,
                      count == 1 ? "is" : "are"));
}

std::vector<int64_t> NodeContext::PositiveInts(const char* name, size_t count) const {
  return IntsWithin(name, count, /*fallback=*/1, /*least=*/1);
}

std::vector<int64_t> NodeContext::Pads(const char* name, size_t count) const {
  return IntsWithin(name, count, /*fallback=*/0, /*least=*/-kLargestInt);
}

std::string NodeContext::OneOf(const char* name, const char* fallback,
                               std::initializer_list<std::string_view> known) const {
  std::string value = String(name, fallback);
  if (std::ranges::find(known, value) != known.end()) return value;
  Invalid(fmt::format("attribute '{}' is '{}', one of '{}' is wanted", name, value,
                      fmt::join(known.begin(), known.end(), "', '")));
}

int64_t NodeContext::ConstantInt(size_t i) const {
  const std::vector<int64_t> values = ConstantInts(i);
  if (values.size() != 1) Invalid(fmt::format("input {} has {} elements, one is wanted", i, values.size()));
  return values[0];
}

double NodeContext::ConstantNumber(size_t i) const {
  const Tensor value = Constant(i);
  if (value.num_elements() != 1)
    Invalid(fmt::format("input {} has {} elements, one is wanted", i, value.num_elements()));
  return value.At(0);
}

}  // namespace collage
