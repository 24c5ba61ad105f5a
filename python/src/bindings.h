// bindings.h: the parts of the module `collage._core`, one file each.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "collage/profile.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/tensor.h"
#include "collage/support/string_numbers.h"

namespace collage::python {

void BindTypes(nanobind::module_& m);        // bind_types.cc
void BindExprs(nanobind::module_& m);        // bind_exprs.cc
void BindModule(nanobind::module_& m);       // bind_module.cc
void BindTransform(nanobind::module_& m);    // bind_transform.cc
void BindPatterns(nanobind::module_& m);     // bind_patterns.cc
void BindInspect(nanobind::module_& m);      // bind_inspect.cc
void BindRuntime(nanobind::module_& m);      // bind_runtime.cc
void BindExplanation(nanobind::module_& m);  // bind_explanation.cc
void BindProgram(nanobind::module_& m);      // bind_program.cc
void BindCompile(nanobind::module_& m);      // bind_compile.cc
void BindDatabase(nanobind::module_& m);     // bind_database.cc
void BindVm(nanobind::module_& m);           // bind_vm.cc
void BindToolchain(nanobind::module_& m);    // bind_toolchain.cc

/// The elements of a NumPy array, a torch tensor or anything with DLPack or the buffer protocol, which stays alive as
/// long as the tensor; no copy unless they lie apart in memory. Numbers and lists become arrays. Throws kInput for what
/// is no array, or of a dtype that has no name here.
Tensor TensorFrom(nanobind::handle array);
/// A NumPy array over the tensor's memory, which it keeps alive. bfloat16 needs the package ml_dtypes.
nanobind::object ToNumpy(const Tensor& tensor, bool writable);
/// The numbers of an array or list of strings. Throws kInput for other elements.
Tensor NumbersFrom(nanobind::handle array, StringNumbers& numbers);
/// The strings of these numbers, as an array of Python's.
nanobind::object TextsOf(const Tensor& tensor, const StringNumbers& numbers);
/// Calls `profile` without the interpreter's lock; returns the report.
nanobind::object ProfileInPython(const ProfileOptions& options,
                                 const std::function<Profile(const ProfileOptions&)>& profile);
/// The kernels of a plan, each a dictionary.
nanobind::list PartitionRows(const ExecutionPlan& plan);

}  // namespace collage::python
