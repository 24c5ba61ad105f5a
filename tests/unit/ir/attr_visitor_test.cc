// attr_visitor_test.cc: each kind of attribute value reaches the function of its name.
#include "ir/attr_visitor.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

struct KindNames {
  std::string None() const { return "none"; }
  std::string Bool(bool) const { return "bool"; }
  std::string Int(int64_t) const { return "int"; }
  std::string Double(double) const { return "double"; }
  std::string Text(const std::string&) const { return "text"; }
  std::string List(const AttrValue::List& list) const {
    std::string names;
    for (const AttrValue& item : list) names += VisitAttr(item, *this) + " ";
    return "[ " + names + "]";
  }
};

TEST(AttrVisitorTest, KindsAreToldApartAndNotConverted) {
  const AttrValue::List list{{}, true, 1, 1.0, "1", AttrValue::List{false, AttrValue::List{}}};
  EXPECT_EQ(VisitAttr(list, KindNames()), "[ none bool int double text [ bool [ ] ] ]");
}

}  // namespace
}  // namespace collage
