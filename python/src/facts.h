// facts.h: reports as objects of Python.
#pragma once

#include <nanobind/nanobind.h>

#include "report/fact.h"

namespace collage::python {

/// Returns a report as dictionaries, lists and values, with None for what is not known.
nanobind::object ToPython(const Fact& fact);

}  // namespace collage::python
