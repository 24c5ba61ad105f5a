// compile_settings.h: settings of compilations from keyword arguments of Python.
#pragma once

#include <nanobind/nanobind.h>

#include "collage/compile.h"

namespace collage::python {

/// Stores in `options` what keyword arguments ask for, by the table of settings. Raises TypeError, with near misses,
/// for a name that is no setting; throws kInput, naming the argument, for a value that its row does not allow.
void SetOptions(CompileOptions& options, const nanobind::dict& settings);

/// Adds the table of settings and the parser of durations to the module.
void BindSettings(nanobind::module_& m);

}  // namespace collage::python
