// compile_settings.h: settings of compilations from keyword arguments of Python.
#pragma once

#include <nanobind/nanobind.h>

#include "collage/compile.h"

namespace collage::python {

/// Returns the options that keyword arguments ask for, by the table of settings. Raises TypeError, with near misses,
/// for a name that is no setting; throws kInput, naming the argument, for a value that its row does not allow.
CompileOptions OptionsFrom(const nanobind::dict& settings);

/// Adds the table of settings and the parser of durations to the module.
void BindSettings(nanobind::module_& m);

}  // namespace collage::python
