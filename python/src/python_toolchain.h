// python_toolchain.h: toolchains that are written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "collage/target/toolchain.h"

namespace collage::python {

/// A toolchain whose functions call methods of `self`, a collage.toolchain.Toolchain. Throws kInput for what it says of
/// itself that makes no sense.
std::unique_ptr<Toolchain> MakePythonToolchain(nanobind::object self);

/// The name of the loader of kernels that the toolchain `name` runs in Python.
std::string PythonLoaderName(const std::string& name);

/// Lets go of all Python objects that toolchains refer to; called when the interpreter ends, with its lock. Registered
/// toolchains live as long as the process: nanobind would report everything that their modules hold as leaked.
void LetGoOfToolchains();

}  // namespace collage::python
