// bind_toolchain.cc: registering toolchains that are written in Python, and workers that know them.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "collage/compile.h"
#include "collage/runtime/kernel.h"
#include "collage/target/library_functions.h"
#include "collage/target/toolchain.h"
#include "driver/serve_worker.h"
#include "python_kernel.h"
#include "python_toolchain.h"
#include "worker/worker.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

void Register(nb::object self) {
  ProbeToolchains();  // the built-in ones come first
  const auto revision = nb::cast<std::string>(self.attr("revision"));
  std::unique_ptr<Toolchain> toolchain = MakePythonToolchain(self);
  const std::string loader = PythonLoaderName(toolchain->name());
  ToolchainRegistry::Global().Add(std::move(toolchain), revision);
  AddKernelLoader(loader, MakePythonLoader(self));  // the toolchain holds it
}

// ---- functions of C libraries ----

std::vector<LibraryFunction> FunctionsFrom(nb::handle rows) {
  std::vector<LibraryFunction> functions;
  for (nb::handle row : rows) {
    functions.push_back({nb::cast<std::string>(row.attr("library")), nb::cast<std::string>(row.attr("symbol")),
                         nb::cast<std::string>(row.attr("signature")), nb::cast<std::string>(row.attr("hint"))});
  }
  return functions;
}

// ---- workers: children of this process that go on in Python ----

PyGILState_STATE forking_state;

void BeforeFork() {
  forking_state = PyGILState_Ensure();
  PyOS_BeforeFork();
}

void AfterForkInParent() {
  PyOS_AfterFork_Parent();
  PyGILState_Release(forking_state);
}

void AfterForkInChild() {
  PyOS_AfterFork_Child();
  PyGILState_Release(forking_state);
}

}  // namespace

void BindToolchain(nb::module_& m) {
  SetForkHooks({BeforeFork, AfterForkInParent, AfterForkInChild});
  m.def("register_toolchain", &Register, "toolchain"_a, "See `collage.register_toolchain`.");
  m.def("let_go_of_toolchains", &LetGoOfToolchains,
        "Called when the interpreter ends: toolchains are not asked any more.");
  m.def(
      "declare_functions", [](nb::handle functions) { return DeclareFunctions(FunctionsFrom(functions)); },
      "functions"_a, "See `collage.toolchain.declare_functions`.");
  m.def(
      "why_functions_missing", [](nb::handle functions) { return WhyFunctionsMissing(FunctionsFrom(functions)); },
      "functions"_a, "See `collage.toolchain.why_functions_missing`.");
  m.def(
      "serve_worker",
      [](const std::string& wanted, double timeout_seconds, int64_t memory_bytes) {
        nb::gil_scoped_release release;
        ServeWorker(wanted, std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000)), memory_bytes);
      },
      "wanted"_a, "timeout_seconds"_a, "memory_bytes"_a,
      "`collage worker`, with the toolchains of this process: answers lines of standard input until it ends.");
}

}  // namespace collage::python
