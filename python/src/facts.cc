// facts.cc: reports as objects of Python.
#include "facts.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace collage::python {
namespace {

void AddFacts(const Fact& record, nb::dict& result) {
  for (const Fact& part : record.parts) {
    if (part.kind == Fact::Kind::kLine) {
      AddFacts(part, result);
    } else if (!part.key.empty()) {
      result[part.key.c_str()] = ToPython(part);
    }
  }
}

}  // namespace

nb::object ToPython(const Fact& fact) {
  switch (fact.kind) {
    case Fact::Kind::kMap:
    case Fact::Kind::kRecord:
    case Fact::Kind::kLine: {
      nb::dict result;
      AddFacts(fact, result);
      return result;
    }
    case Fact::Kind::kList:
    case Fact::Kind::kTable: {
      nb::list result;
      for (const Fact& part : fact.parts) result.append(ToPython(part));
      return result;
    }
    default: break;
  }
  if (const bool* flag = std::get_if<bool>(&fact.value)) return nb::bool_(*flag);
  if (const int64_t* integer = std::get_if<int64_t>(&fact.value)) return nb::int_(*integer);
  if (const double* number = std::get_if<double>(&fact.value)) return nb::float_(*number);
  if (const std::string* text = std::get_if<std::string>(&fact.value)) return nb::cast(*text);
  return nb::none();
}

}  // namespace collage::python
