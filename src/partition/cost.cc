// cost.cc: sums and order of costs.
#include "partition/cost.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "collage/support/error.h"

namespace collage {

Cost Cost::Value(double seconds) {
  COLLAGE_CHECK(std::isfinite(seconds) && seconds >= 0) << "a cost of " << seconds << " s";
  return {seconds + 0.0, 0};  // -0 becomes 0
}

Cost Cost::Invalid() { return {std::numeric_limits<double>::infinity(), 0}; }

Cost Cost::FromDouble(double seconds) {
  if (std::isnan(seconds)) return Unknown();
  return std::isinf(seconds) && seconds > 0 ? Invalid() : Value(seconds);
}

bool Cost::is_invalid() const { return std::isinf(seconds_); }

double Cost::ToDouble() const { return is_unknown() ? std::numeric_limits<double>::quiet_NaN() : seconds_; }

Cost Cost::operator+(const Cost& other) const {
  const Cost sum{seconds_ + other.seconds_, num_unknown_ + other.num_unknown_};
  return sum.is_invalid() ? Invalid() : sum;
}

Cost Cost::operator*(double factor) const {
  if (is_invalid()) return *this;
  Cost product = FromDouble(seconds_ * factor);
  product.num_unknown_ = product.is_invalid() ? 0 : num_unknown_;
  return product;
}

std::strong_ordering Cost::operator<=>(const Cost& other) const {
  if (is_invalid() != other.is_invalid()) return is_invalid() <=> other.is_invalid();
  if (num_unknown_ != other.num_unknown_) return num_unknown_ <=> other.num_unknown_;
  return seconds_ < other.seconds_   ? std::strong_ordering::less
         : seconds_ > other.seconds_ ? std::strong_ordering::greater
                                     : std::strong_ordering::equal;
}

std::string Cost::ToString() const {
  if (is_invalid()) return "invalid";
  const std::string known = seconds_ == 0 ? "0" : fmt::format("{:.6g}us", seconds_ * 1e6);
  if (!is_unknown()) return known;
  return seconds_ == 0 ? "unknown" : known + "+unknown";
}

}  // namespace collage
