// attr_visitor.h: tells the kinds of attribute values apart, for all code that writes, prints or compares them.
#pragma once

#include "collage/ir/attrs.h"

namespace collage {

/// Returns what `visitor` answers for the kind of `value`: `None()`, `Bool(bool)`, `Int(int64_t)`, `Double(double)`,
/// `Text(const std::string&)` or `List(const AttrValue::List&)`.
///
/// Each function has a name of its own, so that a visitor that lacks one does not compile and no kind is converted to
/// another. A visitor visits the items of a list itself, since it decides what stands between them.
template <typename Visitor>
auto VisitAttr(const AttrValue& value, Visitor&& visitor) {
  if (const bool* flag = value.as_bool()) return visitor.Bool(*flag);
  if (const int64_t* number = value.as_int()) return visitor.Int(*number);
  if (const double* number = value.as_double()) return visitor.Double(*number);
  if (const std::string* text = value.as_string()) return visitor.Text(*text);
  if (const AttrValue::List* list = value.as_list()) return visitor.List(*list);
  return visitor.None();
}

}  // namespace collage
