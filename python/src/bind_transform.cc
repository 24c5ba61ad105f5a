// bind_transform.cc: passes, under which conditions they run, who watches them.
#include <nanobind/stl/shared_ptr.h>

#include "bindings.h"
#include "casters.h"
#include "collage/partition_for.h"
#include "collage/transform/passes.h"
#include "driver/builtins.h"
#include "partition/byoc/toolchains.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// An object of Python with methods `should_run`, `before` and `after`, any of which may be missing.
class PythonInstrument : public PassInstrument {
 public:
  explicit PythonInstrument(nb::object self) : self_(std::move(self)) {}
  ~PythonInstrument() override {
    nb::gil_scoped_acquire gil;
    self_.reset();
  }

  bool ShouldRun(const Pass& pass, const IRModule& module) override {
    nb::gil_scoped_acquire gil;
    return !nb::hasattr(self_, "should_run") || nb::cast<bool>(self_.attr("should_run")(pass, module));
  }
  void Before(const Pass& pass, const IRModule& module) override { Tell("before", pass, module); }
  void After(const Pass& pass, const IRModule& module) override { Tell("after", pass, module); }

 private:
  void Tell(const char* hook, const Pass& pass, const IRModule& module) {
    nb::gil_scoped_acquire gil;
    if (nb::hasattr(self_, hook)) self_.attr(hook)(pass, module);
  }

  nb::object self_;
};

/// A callable that may be copied and dropped without the interpreter's lock.
std::shared_ptr<nb::object> Shared(nb::object callable) {
  return {new nb::object(std::move(callable)), [](nb::object* owned) {
            nb::gil_scoped_acquire gil;
            delete owned;
          }};
}

Pass PassOfPython(std::string name, int opt_level, std::vector<std::string> required, std::string summary,
                  nb::object function, bool on_functions) {
  const auto shared = Shared(std::move(function));
  Pass pass{std::move(name), opt_level, std::move(required), std::move(summary), {}};
  if (on_functions) {
    pass.run = OnEachFunction([shared](const Function& one, const IRModule& module, const PassContext&) {
      nb::gil_scoped_acquire gil;
      return nb::cast<Function>((*shared)(one, module));
    });
  } else {
    pass.run = [shared](IRModule module, const PassContext&) {
      nb::gil_scoped_acquire gil;
      return nb::cast<IRModule>((*shared)(std::move(module)));
    };
  }
  return pass;
}

void BindContext(nb::module_& m) {
  nb::class_<PassContext>(m, "PassContextCore", "The compiler's side of `collage.transform.PassContext`.")
      .def(nb::new_([](int opt_level, std::vector<std::string> required, std::vector<std::string> disabled,
                       const std::vector<nb::object>& instruments, const Attrs& config) {
             PassContext context;
             context.opt_level = opt_level;
             context.required_pass = std::move(required);
             context.disabled_pass = std::move(disabled);
             for (const nb::object& one : instruments) {
               context.instruments.push_back(std::make_shared<PythonInstrument>(one));
             }
             for (const auto& [key, value] : config) context.SetConfig(key, value);
             CheckPassNames(context);
             return context;
           }),
           "opt_level"_a, "required_pass"_a, "disabled_pass"_a, "instruments"_a, "config"_a,
           "Raises InputError for keys and passes that do not exist and values of another type.")
      .def(
          "at_level_of_compilations",
          [](PassContext self) {
            self.opt_level = kPreparationLevel;
            return self;
          },
          "A copy at the level at which models are prepared unless something else is asked for.")
      .def(
          "config", [](const PassContext& self, const std::string& key) { return self.Config(key); }, "key"_a,
          "Returns the value that was set, else the default.");
}

using ForOneToolchain = IRModule (*)(const Toolchain& toolchain, IRModule module, const PassContext& context);

/// Binds `run` as a function of a toolchain's name, a module and a context.
void BindForOneToolchain(nb::module_& m, const char* name, ForOneToolchain run, const char* doc) {
  m.def(
      name,
      [run](const std::string& toolchain, const IRModule& module, const PassContext& context) {
        AddBuiltins();
        IRModule input = module;
        nb::gil_scoped_release release;
        return run(ToolchainRegistry::Global().Get(toolchain), std::move(input), context);
      },
      "toolchain"_a, "module"_a, "context"_a, doc);
}

void BindPartitioning(nb::module_& m) {
  m.def(
      "prepare_for_partitioning",
      [](const IRModule& module, const PassContext& context) {
        nb::gil_scoped_release release;
        return PrepareForPartitioning(module, context);
      },
      "module"_a, "context"_a, "Runs the passes that precede partitioning, as far as the context enables them.");
  BindForOneToolchain(m, "optimize_for", &OptimizeFor, "See `collage.relay.collage.optimize_for`.");
  BindForOneToolchain(m, "partition_for", &PartitionFor, "See `collage.relay.collage.partition_for`.");
  m.def(
      "toolchain_names",
      [] {
        AddBuiltins();
        std::vector<std::string> names;
        for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) names.push_back(toolchain->name());
        return names;
      },
      "Names of the toolchains of this process, whether or not they are available.");
}

}  // namespace

void BindTransform(nb::module_& m) {
  nb::class_<Pass>(m, "Pass", "A named transformation of modules. Call it with one, under the current PassContext.")
      .def(nb::new_(&PassOfPython), "name"_a, "opt_level"_a, "required"_a, "summary"_a, "function"_a, "on_functions"_a,
           "See `collage.transform.module_pass` and `function_pass`.")
      .def_ro("name", &Pass::name, "Its name.")
      .def_ro("opt_level", &Pass::opt_level, "`Sequential` leaves it out at lower levels.")
      .def_ro("required", &Pass::required, "Passes that `Sequential` runs first.")
      .def_ro("summary", &Pass::summary, "Description of the pass.")
      .def("__repr__", [](const Pass& self) { return "<Pass " + self.name + ">"; })
      .def(
          "__call__",
          [](const Pass& self, const IRModule& module) {
            const auto context =
                nb::cast<PassContext>(nb::module_::import_("collage.transform").attr("_current_core")());
            const Pass pass = self;
            IRModule input = module;  // others may change theirs meanwhile
            nb::gil_scoped_release release;
            return RunPass(pass, std::move(input), context);
          },
          "module"_a, "Applies it, whatever its level, and infers types.");
  nb::class_<ConfigKey>(m, "ConfigKey", "An option of a pass.")
      .def_ro("name", &ConfigKey::name, "Its name, as in `PassContext(config={name: value})`.")
      .def_prop_ro(
          "default", [](const ConfigKey& self) { return self.default_value; }, "Its value if it is not given.")
      .def_ro("doc", &ConfigKey::doc, "Description of the option.")
      .def("__repr__", [](const ConfigKey& self) { return "<ConfigKey " + self.name + ">"; });
  BindContext(m);
  m.def(
      "all_passes", [] { return std::vector<Pass>(AllPasses().begin(), AllPasses().end()); },
      "All passes, in the order of the table.");
  m.def(
      "get_pass", [](const std::string& name) { return GetPass(name); }, "name"_a,
      "The pass called `name`; the error for an unknown one lists names like it.");
  m.def(
      "all_config_keys", [] { return std::vector<ConfigKey>(AllConfigKeys().begin(), AllConfigKeys().end()); },
      "All options of passes.");
  m.def(
      "run_sequential",
      [](std::vector<Pass> passes, const IRModule& module, const PassContext& context) {
        IRModule input = module;
        nb::gil_scoped_release release;
        return Sequential(std::move(passes)).Run(std::move(input), context);
      },
      "passes"_a, "module"_a, "context"_a, "Runs those that the context enables, with what they require.");
  BindPartitioning(m);
}

}  // namespace collage::python
