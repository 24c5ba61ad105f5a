// result.h: "no" as a normal answer. A toolchain declines, a candidate fails, a database misses: the reason travels
// with the answer and ends in the explanation instead of a log.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "collage/support/error.h"

namespace collage {

/// Why something was declined. `origin` names who said so, such as a toolchain or a rule.
struct Reason {
  std::string text;
  std::string origin;
};

/// Either a value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Reason reason) : reason_(std::move(reason)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() {
    COLLAGE_CHECK(ok()) << "value asked of a refusal: " << reason_.text;
    return *value_;
  }
  const T& value() const {
    COLLAGE_CHECK(ok()) << "value asked of a refusal: " << reason_.text;
    return *value_;
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Only meaningful when `!ok()`.
  const Reason& reason() const { return reason_; }

 private:
  std::optional<T> value_;
  Reason reason_;
};

/// Yes, or no with a reason.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Reason reason) : reason_(std::move(reason)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !reason_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Reason& reason() const { return *reason_; }

 private:
  std::optional<Reason> reason_;
};

}  // namespace collage
