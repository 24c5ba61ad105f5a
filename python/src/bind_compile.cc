// bind_compile.cc: targets, toolchains and the main job.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>

#include "bindings.h"
#include "casters.h"
#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/operator_table.h"
#include "collage/support/error.h"
#include "collage/support_report.h"
#include "collage/target/target.h"
#include "compile_settings.h"
#include "driver/tuning/tune_models.h"
#include "facts.h"
#include "report/compile_facts.h"
#include "report/toolchain_facts.h"
#include "support/machine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// Tells an object of Python with methods `phase`, `measuring`, `play_off`, `warn`; may raise to end the compilation.
class PythonProgress : public CompileProgress {
 public:
  explicit PythonProgress(nb::object self) : self_(std::move(self)) {}

  void Phase(const std::string& name) override { Tell("phase", name); }
  void Measuring(int64_t measured, int64_t from_database, const std::string& what) override {
    Tell("measuring", measured, from_database, what);
  }
  void Written(double seconds, std::optional<double> gap) override { Tell("written", seconds, gap); }
  void PlayOff(int round, int rounds, const std::string& what) override { Tell("play_off", round, rounds, what); }
  void Warn(const std::string& text) override { Tell("warn", text); }

 private:
  template <typename... Args>
  void Tell(const char* hook, const Args&... args) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!self_.is_none()) self_.attr(hook)(args...);
  }

  nb::object self_;
};

/// A task of a search, for as long as the search is asked.
struct TaskRef {
  CoverTask* task;
  CoverTask& operator*() const {
    if (task == nullptr) throw Error(ErrorCategory::kInput, "the search that this task was for has ended");
    return *task;
  }
};

/// Returns the result of `work`, which gets settings from Python and runs without the interpreter's lock. `hooks` are
/// what no setting is: "output", "runner_python", "pass_context", and the callables "estimate" and "search_with".
template <typename Work>
auto RunWith(const nb::dict& settings, const nb::dict& hooks, nb::object progress, nb::object should_stop,
             const Work& work) {
  CompileOptions options;
  options.pass_context = nb::cast<PassContext>(hooks["pass_context"]);
  SetOptions(options, settings);
  options.output = nb::cast<std::filesystem::path>(hooks["output"]);
  options.runner_python = nb::cast<std::string>(hooks["runner_python"]);
  nb::object estimate = hooks.contains("estimate") ? nb::object(hooks["estimate"]) : nb::none();
  if (!estimate.is_none()) {
    options.estimate = [&estimate](const IRModule& candidate, const Target& target) {
      nb::gil_scoped_acquire gil;
      return nb::cast<double>(estimate(candidate, target.ToString()));
    };
  }
  nb::object search = hooks.contains("search_with") ? nb::object(hooks["search_with"]) : nb::none();
  if (!search.is_none()) {
    options.search_with = [&search](CoverTask& task) {
      nb::gil_scoped_acquire gil;
      const nb::object shown = nb::cast(TaskRef{&task});
      try {
        auto covers = nb::cast<std::vector<std::vector<int>>>(search(shown));
        nb::inst_ptr<TaskRef>(shown)->task = nullptr;
        return covers;
      } catch (...) {
        nb::inst_ptr<TaskRef>(shown)->task = nullptr;  // the traceback may keep it
        throw;
      }
    };
  }
  PythonProgress teller(std::move(progress));
  options.progress = &teller;
  options.should_stop = [&should_stop] {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return !should_stop.is_none() && nb::cast<bool>(should_stop());
  };
  nb::gil_scoped_release release;
  return work(options);
}

nb::dict ToDict(const CompileReport& report) { return nb::cast<nb::dict>(ToPython(CompileFacts(report))); }

/// Tunes all models and returns their reports. The first failure is thrown when all have had their turn.
nb::list TuneFiles(const std::vector<std::filesystem::path>& paths, const nb::dict& settings, const nb::dict& hooks,
                   nb::object progress, nb::object should_stop) {
  const std::vector<TunedModel> tuned =
      RunWith(settings, hooks, std::move(progress), std::move(should_stop),
              [&](const CompileOptions& filled) { return TuneModels(paths, filled); });
  nb::list reports;
  for (const TunedModel& one : tuned) {
    ThrowFailure(one);
    reports.append(ToDict(one.report));
  }
  return reports;
}

void BindTargets(nb::module_& m) {
  nb::class_<Target>(m, "TargetCore", "The compiler's side of `collage.target.Target`.")
      .def(nb::new_([](const std::string& text) { return Target::Parse(text); }), "text"_a,
           "Reads \"KIND -option=value …\".")
      .def_prop_ro("kind", &Target::kind, "The kind of device.")
      .def_prop_ro("device_type", &Target::device_type, "Its DLDeviceType.")
      .def_prop_ro("compiler", &Target::compiler, "Which toolchain; empty for native code.")
      .def_prop_ro("partition_rule", &Target::partition_rule, "The rule that finds its candidates, if one is given.")
      .def_prop_ro("options", &Target::options, "All options.")
      .def("refines", &Target::Refines, "other"_a, "Whether it says more of how to use the same thing.")
      .def("__str__", &Target::ToString);
  m.def(
      "target_kinds",
      [] {
        std::map<std::string, std::string> kinds;
        for (const TargetKind* kind : TargetKinds()) kinds[kind->name()] = kind->doc();
        return kinds;
      },
      "The kinds of targets and what they are.");
}

void BindSearchTask(nb::module_& m) {
  nb::class_<TaskRef>(m, "SearchTask",
                      "What a search chooses from: positions 0, 1, … (the operator calls that must be covered, in an "
                      "order of dataflow) and candidates 0, 1, … (partitions with layouts at their boundaries).")
      .def_prop_ro(
          "num_positions", [](const TaskRef& self) { return (*self).num_positions(); }, "How many must be covered.")
      .def_prop_ro(
          "num_candidates", [](const TaskRef& self) { return (*self).num_candidates(); }, "How many there are.")
      .def(
          "positions", [](const TaskRef& self, int candidate) { return (*self).positions(candidate); }, "candidate"_a,
          "Which positions it covers, ascending.")
      .def(
          "toolchain", [](const TaskRef& self, int candidate) { return (*self).toolchain(candidate); }, "candidate"_a,
          "The name of the toolchain whose it is.")
      .def(
          "cost",
          [](const TaskRef& self, int candidate) {
            nb::gil_scoped_release release;
            return (*self).cost(candidate);
          },
          "candidate"_a, "Its seconds, measured when they are first asked for; infinity when it cannot be run.")
      .def(
          "lower_bound", [](const TaskRef& self, int candidate) { return (*self).lower_bound(candidate); },
          "candidate"_a, "Known at once, never above its cost.")
      .def(
          "seconds",
          [](const TaskRef& self, const std::vector<int>& cover) {
            nb::gil_scoped_release release;
            return (*self).seconds(cover);
          },
          "cover"_a,
          "Of a cover, a list of candidates: their costs, what partitions cost beside, and the changes of layout that "
          "they make necessary; infinity when it is none.");
}

void BindReports(nb::module_& m) {
  m.def(
      "toolchains",
      [] { return nb::cast<nb::list>(ToPython(*ToolchainsFacts(ProbeToolchains(), {}).Find("toolchains"))); },
      "See `collage.toolchains`.");
  m.def(
      "support",
      [](const IRModule& module, const std::vector<std::string>& toolchains) {
        SupportReport report;
        {
          nb::gil_scoped_release release;
          report = DescribeSupport(module, toolchains);
        }
        return nb::cast<nb::dict>(ToPython(SupportFacts(report, "module")));
      },
      "module"_a, "toolchains"_a, "See `collage.support`.");
  m.def(
      "operator_table",
      [](const std::vector<std::string>& toolchains, const std::vector<std::string>& operators,
         const std::vector<std::string>& dtypes, int calls, uint32_t seed, int threads) {
        OperatorTableOptions options;
        options.toolchains = toolchains;
        options.operators = operators;
        options.dtypes = dtypes;
        options.num_calls = calls;
        options.seed = seed;
        options.num_threads = threads;
        std::vector<OperatorTable> tables;
        {
          nb::gil_scoped_release release;
          tables = TabulateOperators(options);
        }
        return nb::cast<nb::list>(ToPython(*OperatorTablesFacts(tables).Find("toolchains")));
      },
      "toolchains"_a, "operators"_a, "dtypes"_a, "calls"_a, "seed"_a, "threads"_a, "See `collage.operator_table`.");
}

}  // namespace

void BindCompile(nb::module_& m) {
  ProbeToolchains();  // registers them: passes and rules know them by name
  BindTargets(m);
  BindSearchTask(m);
  BindReports(m);
  m.def(
      "machine_fingerprint", [] { return ThisMachine().fingerprint; },
      "Text that is equal on machines of one kind, which can run each other's executables.");
  m.def("estimators", &KnownEstimators, "See `collage.estimators`.");
  BindSettings(m);
  m.def(
      "compile_file",
      [](const std::filesystem::path& path, const nb::dict& settings, const nb::dict& hooks, nb::object progress,
         nb::object should_stop) {
        return ToDict(RunWith(settings, hooks, progress, should_stop,
                              [&](const CompileOptions& filled) { return CompileModel(path, filled); }));
      },
      "path"_a, "settings"_a, "hooks"_a, "progress"_a.none(), "should_stop"_a.none(), "See `collage.compile`.");
  m.def(
      "compile_module",
      [](const IRModule& module, const std::string& name, const nb::dict& settings, const nb::dict& hooks,
         nb::object progress, nb::object should_stop) {
        const IRModule copy = module;
        return ToDict(RunWith(settings, hooks, progress, should_stop,
                              [&](const CompileOptions& filled) { return CompileModule(copy, name, filled); }));
      },
      "module"_a, "name"_a, "settings"_a, "hooks"_a, "progress"_a.none(), "should_stop"_a.none(),
      "See `collage.compile`.");
  m.def("tune_files", &TuneFiles, "paths"_a, "settings"_a, "hooks"_a, "progress"_a.none(), "should_stop"_a.none(),
        "See `collage.tune`.");
}

}  // namespace collage::python
