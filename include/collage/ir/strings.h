// strings.h: tensors of strings, which Relay has not: an element is the number of a string, as int64.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/support/string_numbers.h"

namespace collage {

/// Function attribute: the strings that its constants and its results hold, by their numbers.
inline constexpr const char* kAttrStrings = "strings";
/// Function attributes: the places of parameters, and of results, that are tensors of strings.
inline constexpr const char* kAttrStringParams = "string_params";
inline constexpr const char* kAttrStringResults = "string_results";

/// The parameters and results of a function that are tensors of strings. A run gives each string of its inputs the
/// number that it has in the model, or one behind these, and reads results by the same numbers.
class StringTensors {
 public:
  StringTensors() = default;
  StringTensors(std::vector<std::string> texts, std::set<int64_t> params, std::set<int64_t> results);
  /// Reads what the attributes of a function state; values of another form count as none.
  explicit StringTensors(const Attrs& attrs);

  bool empty() const { return params_.empty() && results_.empty(); }
  bool IsParam(size_t place) const { return params_.contains(static_cast<int64_t>(place)); }
  bool IsResult(size_t place) const { return results_.contains(static_cast<int64_t>(place)); }
  /// The strings that the model has.
  const StringNumbers& known() const { return known_; }
  /// Sets the attributes, where a parameter or result is one of strings.
  void AddTo(Attrs& attrs) const;

 private:
  StringNumbers known_;
  std::set<int64_t> params_, results_;
};

}  // namespace collage
