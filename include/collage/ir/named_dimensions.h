// named_dimensions.h: what a model calls the dynamic dimensions of its inputs, and which sizes they may have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/ir/symbolic_size.h"
#include "collage/ir/value.h"

namespace collage {

/// Function attribute: a list for each parameter with the names of its dimensions, "" for those without.
inline constexpr const char* kAttrDimensionNames = "dimension_names";
/// Function attribute: a list [name, least size, largest size] for each dimension that has a range. A dimension without
/// a name is called "x[0]", by parameter and axis.
inline constexpr const char* kAttrDimensionRanges = "dimension_ranges";

/// The dimensions of a function's parameters that have names or ranges.
class NamedDimensions {
 public:
  using Names = std::vector<std::vector<std::string>>;  ///< by parameter and axis; "" without a name
  using Ranges = std::map<std::string, SizeRange>;

  NamedDimensions() = default;
  NamedDimensions(Names names, Ranges ranges, std::vector<std::string> params);
  /// Reads what the attributes of a function with parameters called `params` state; lists of another form count as
  /// none.
  NamedDimensions(const Attrs& attrs, std::vector<std::string> params);

  const Names& names() const { return names_; }
  const Ranges& ranges() const { return ranges_; }
  bool HasName(size_t param, size_t axis) const;
  /// The name of a dimension that has one; else "x[0]".
  std::string NameOf(size_t param, size_t axis) const;
  /// The sizes that a dimension may have.
  SizeRange RangeOf(size_t param, size_t axis) const;
  /// Sets the attributes, where there is something to state.
  void AddTo(Attrs& attrs) const;
  /// Whether dimensions of one name have one size in all of `args`, and each is in its range; the reason names two that
  /// differ, or one that is outside.
  Result<void> Check(const std::vector<Value>& args) const;

 private:
  /// A dimension that Check looks at, and the first one of its name.
  struct Place {
    size_t param, axis, first_param, first_axis;
    SizeRange range;
  };

  Names names_;
  Ranges ranges_;
  std::vector<std::string> params_;
  std::vector<Place> places_;
};

}  // namespace collage
