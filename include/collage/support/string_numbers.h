// string_numbers.h: numbers that stand for strings, which no tensor holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/error.h"

namespace collage {

/// Numbers of strings: equal strings have one number.
class StringNumbers {
 public:
  StringNumbers() = default;
  /// Numbers of `known` strings, and others behind them. `known` must outlive it and stay as it is.
  explicit StringNumbers(const StringNumbers* known) : known_(known) {}
  explicit StringNumbers(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (size_t i = 0; i < texts_.size(); ++i) numbers_.emplace(texts_[i], static_cast<int64_t>(i));
  }

  /// The number of `text`, which gets the next one if it has none.
  int64_t Add(std::string_view text) {
    if (known_ != nullptr) {
      if (const auto found = known_->numbers_.find(text); found != known_->numbers_.end()) return found->second;
    }
    if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
    const int64_t next = first() + static_cast<int64_t>(texts_.size());
    texts_.emplace_back(text);
    numbers_.emplace(text, next);
    return next;
  }

  /// The string of a number. Throws kInput where there is none.
  const std::string& TextOf(int64_t number) const {
    if (number >= 0 && number < first()) return known_->TextOf(number);
    const int64_t place = number - first();
    if (place >= 0 && place < static_cast<int64_t>(texts_.size())) return texts_[static_cast<size_t>(place)];
    throw Error(ErrorCategory::kInput, std::to_string(number) + " is not the number of a string");
  }

  /// All but the known ones, in the order of their numbers.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  int64_t first() const { return known_ == nullptr ? 0 : static_cast<int64_t>(known_->texts_.size()); }

  const StringNumbers* known_ = nullptr;
  std::vector<std::string> texts_;
  std::map<std::string, int64_t, std::less<>> numbers_;
};

}  // namespace collage
