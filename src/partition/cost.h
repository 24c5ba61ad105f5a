// cost.h: what candidates and covers cost (RFC 0.81, "Util Datatypes").
#pragma once

#include <compare>
#include <string>

namespace collage {

/// Seconds, of which some may be unknown, or invalid: cannot be run. Costs add up, and are totally ordered: known ones
/// by their seconds, then those with unknown parts, the fewer the less and then by their known seconds, then the
/// invalid one. So any of them can be a key.
class Cost {
 public:
  Cost() = default;  ///< zero
  static Cost Zero() { return {}; }
  /// Finite and not negative.
  static Cost Value(double seconds);
  /// Could not be found out: only to be taken where nothing else will do.
  static Cost Unknown() { return {0, 1}; }
  /// The toolchain could not compile or run it.
  static Cost Invalid();
  /// Infinity is invalid, NaN unknown.
  static Cost FromDouble(double seconds);

  bool is_invalid() const;
  bool is_unknown() const { return num_unknown_ > 0; }
  bool is_value() const { return !is_unknown() && !is_invalid(); }
  /// Without unknown parts; infinite when invalid.
  double known_seconds() const { return seconds_; }
  /// Seconds; infinity when invalid, NaN when a part is unknown.
  double ToDouble() const;

  Cost operator+(const Cost& other) const;
  /// By a factor that is finite and not negative; an invalid cost stays invalid, an unknown part unknown.
  Cost operator*(double factor) const;
  Cost& operator+=(const Cost& other) { return *this = *this + other; }
  bool operator==(const Cost&) const = default;
  std::strong_ordering operator<=>(const Cost& other) const;

  /// "0", "12.5us", "unknown", "12.5us+unknown", "invalid".
  std::string ToString() const;

 private:
  Cost(double seconds, int num_unknown) : seconds_(seconds), num_unknown_(num_unknown) {}

  double seconds_ = 0;  ///< never NaN nor -0
  int num_unknown_ = 0;
};

}  // namespace collage
