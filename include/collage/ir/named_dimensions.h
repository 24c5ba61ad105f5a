// named_dimensions.h: what a model calls the dynamic dimensions of its inputs, and which sizes they may have.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// The size of a dimension that is the sum of others, as its name says: "past + sequence", "sequence + 1".
struct SizeSum {
  std::vector<std::string> names;
  int64_t number = 0;

  /// The sum, of dimensions of these sizes; nothing where one of its names has none.
  std::optional<int64_t> Of(const std::map<std::string, int64_t>& sizes) const;
  /// "past + sequence + 1".
  std::string ToString() const;
};

/// Reads the name of a dimension as a sum of names and numbers, at least two; nothing where it is none.
std::optional<SizeSum> ReadSum(std::string_view name);

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
  /// The sum that a dimension is by its name, if other dimensions have all the names in it; it has no size of its own.
  std::optional<SizeSum> SumOf(size_t param, size_t axis) const;
  /// Sets the attributes, where there is something to state.
  void AddTo(Attrs& attrs) const;
  /// Whether dimensions of one name have one size in all of `args`, sums are those of their terms, and each size is in
  /// its range; the reason names two that differ, or one that is outside.
  Result<void> Check(const std::vector<Value>& args) const;

 private:
  /// A dimension that Check looks at, and the first one of its name.
  struct Place {
    size_t param, axis, first_param, first_axis;
    SizeRange range;
    std::optional<SizeSum> sum;  ///< if its name is one
  };

  /// By name, the size of its first dimension.
  std::map<std::string, int64_t> SizesIn(const std::vector<Value>& args) const;

  Names names_;
  Ranges ranges_;
  std::vector<std::string> params_;
  std::vector<Place> places_;
};

}  // namespace collage
