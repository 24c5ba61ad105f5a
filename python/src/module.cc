// module.cc: the extension module, and how errors cross into Python.
#include "bindings.h"
#include "casters.h"
#include "collage/frontend/unsupported_nodes.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"

namespace nb = nanobind;

namespace collage::python {
namespace {

/// The class of python/collage/errors.py that stands for the category.
const char* ClassOf(ErrorCategory category) {
  switch (category) {
    case ErrorCategory::kInput: return "InputError";
    case ErrorCategory::kUnsupported: return "UnsupportedError";
    case ErrorCategory::kUnavailable: return "UnavailableError";
    case ErrorCategory::kCorrupt: return "CorruptError";
    case ErrorCategory::kResource: return "ResourceError";
    case ErrorCategory::kInternal: return "InternalError";
  }
  return "Error";
}

/// Sets the exception of Python; `more` are arguments of its class.
template <typename... More>
void Raise(const Error& error, const More&... more) {
  const nb::object type = nb::module_::import_("collage.errors").attr(ClassOf(error.category()));
  const nb::object instance = type(error.message(), error.where(), error.hint(), more...);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void Translate(const std::exception_ptr& pending, void*) {
  try {
    std::rethrow_exception(pending);
  } catch (const UnsupportedNodesError& error) {
    nb::list nodes;
    for (const UnsupportedNode& node : error.nodes()) nodes.append(nb::make_tuple(node.name, node.op, node.reason));
    Raise(error, nodes);
  } catch (const Error& error) {
    Raise(error);
  }
}

}  // namespace
}  // namespace collage::python

NB_MODULE(_core, m) {
  using namespace collage::python;
  m.doc() = "The compiler's C++ side. Its public names are re-exported by the modules of the package.";
  m.def(
      "version", [] { return COLLAGE_VERSION; }, "The version of Collage.");
  m.def(
      "find_beside_modules",
      [](const std::string& file) -> std::optional<std::string> {
        const std::optional<std::filesystem::path> found = collage::FindBesideModules(file);
        return found ? std::optional(found->string()) : std::nullopt;
      },
      nb::arg("file"), "The path of a file beside Collage's libraries, None where there is none.");
  nb::register_exception_translator(Translate);
  BindTypes(m);
  BindExprs(m);
  BindModule(m);
  BindTransform(m);
  BindPatterns(m);
  BindInspect(m);
  BindRuntime(m);
  BindExplanation(m);
  BindProgram(m);
  BindCompile(m);
  BindDatabase(m);
  BindVm(m);
  BindToolchain(m);
}
