// name_supply.h: names that are fit for C and distinct (RFC 0.81, "NameSupply").
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace collage {

class NameSupply {
 public:
  explicit NameSupply(std::string prefix = "") : prefix_(std::move(prefix)) {}

  /// Prefix and hints that are not empty, joined by '_'; what is no letter or digit becomes '_', a name that begins
  /// with none gets one before. The second of a name gets "_1" behind it, the third "_2" …
  std::string Fresh(std::initializer_list<std::string_view> hints);
  /// Takes a name that exists elsewhere.
  void Reserve(const std::string& name) { ++times_[name]; }

 private:
  std::string prefix_;
  std::map<std::string, int> times_;
};

}  // namespace collage
