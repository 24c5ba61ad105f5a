// bind_runtime.cc: executables. Inputs are read and outputs written where NumPy or torch have them; the interpreter's
// lock is free while a model runs.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <variant>

#include "bindings.h"
#include "casters.h"
#include "collage/profile.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "explain/explanation_file.h"
#include "facts.h"
#include "profile/plan_steps.h"
#include "report/profile_facts.h"
#include "runtime/plan/signature.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

nb::list PortsOf(const std::vector<PortInfo>& ports) {
  nb::list rows;
  for (const PortInfo& port : ports) {
    nb::dict row;
    row["name"] = port.name;
    row["shape"] = nb::tuple(nb::cast(port.shape));
    row["dtype"] = port.dtype.ToString();
    rows.append(row);
  }
  return rows;
}

/// An input or an output, by its number or its name.
using PortKey = std::variant<int64_t, std::string>;

/// Returns the number of an input or output; `kind` is which, for messages. Throws kInput where there is none.
size_t IndexOf(const std::vector<PortInfo>& ports, const PortKey& key, const std::string& kind) {
  const int64_t* number = std::get_if<int64_t>(&key);
  std::string names;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (number == nullptr ? ports[i].name == std::get<std::string>(key) : *number == static_cast<int64_t>(i)) return i;
    names += (i == 0 ? "" : ", ") + ports[i].name;
  }
  const std::string what = number == nullptr ? "'" + std::get<std::string>(key) + "'" : std::to_string(*number);
  throw Error(ErrorCategory::kInput, fmt::format("there is no {} {}", kind, what), "", "there are: " + names);
}

/// A step of a run, and how long it took.
struct TimedStep {
  double seconds = 0;
  StepProfile step;
};

/// One execution, as `Instance` of Python: a caller holds its lock while it runs.
struct Instance {
  explicit Instance(const Executable& executable)
      : executable(executable), instance(executable), inputs(executable.inputs()), outputs(executable.outputs()) {}

  Executable executable;
  ExecutionInstance instance;
  std::vector<PortInfo> inputs;
  std::vector<PortInfo> outputs;
  std::mutex busy;

  void Run() {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(busy);
    instance.Run();
  }
  std::vector<TimedStep> RunTimed() {
    nb::gil_scoped_release release;
    std::vector<double> seconds;
    {
      const std::scoped_lock lock(busy);
      seconds = instance.RunTimed();
    }
    std::vector<TimedStep> steps;
    for (size_t i = 0; i < seconds.size(); ++i) {
      steps.push_back({seconds[i], DescribePlanStep(executable.plan(), "", static_cast<int>(i))});
    }
    return steps;
  }
  void SetInput(const PortKey& key, nb::handle array) {
    const size_t index = IndexOf(inputs, key, "input");
    const Tensor tensor = TensorFrom(array);
    nb::gil_scoped_release release;  // what is replaced may be dropped under the lock
    const std::scoped_lock lock(busy);
    instance.SetInput(index, tensor);
  }
  void SetOutput(const PortKey& key, nb::handle array) {
    const size_t index = IndexOf(outputs, key, "output");
    if (nb::hasattr(array, "flags") && !nb::cast<bool>(array.attr("flags").attr("writeable"))) {
      throw Error(ErrorCategory::kInput, "an array for an output is read only");
    }
    const Tensor tensor = TensorFrom(array);
    nb::gil_scoped_release release;
    const std::scoped_lock lock(busy);
    instance.SetOutput(index, tensor);
  }
  nb::object Output(const PortKey& key) {
    const size_t index = IndexOf(outputs, key, "output");
    Tensor tensor;
    {
      nb::gil_scoped_release release;
      const std::scoped_lock lock(busy);
      tensor = instance.Output(index);
    }
    return ToNumpy(tensor, /*writable=*/true);
  }
};

/// An executable and its instances that nobody is running.
class Model {
 public:
  explicit Model(Executable executable) : executable_(std::move(executable)) {}

  const Executable& executable() const { return executable_; }

  /// Runs on an instance of its own, into fresh memory.
  std::vector<Tensor> Run(const std::vector<Tensor>& inputs) {
    std::unique_ptr<ExecutionInstance> instance = Take();
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < inputs.size(); ++i) instance->SetInput(i, inputs[i]);
    for (const PortInfo& port : executable_.outputs()) {
      outputs.push_back(Tensor::Empty(port.shape, port.dtype));
      instance->SetOutput(outputs.size() - 1, outputs.back());
    }
    instance->Run();
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(instance));
    return outputs;
  }

 private:
  std::unique_ptr<ExecutionInstance> Take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<ExecutionInstance> instance = std::move(idle_.back());
        idle_.pop_back();
        return instance;
      }
    }
    return std::make_unique<ExecutionInstance>(executable_);
  }

  Executable executable_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ExecutionInstance>> idle_;
};

nb::list RunModel(Model& self, const nb::list& arrays) {
  const size_t wanted = self.executable().plan().inputs.size();
  std::vector<Tensor> inputs;
  for (nb::handle array : arrays) inputs.push_back(TensorFrom(array));
  if (inputs.size() != wanted) {
    throw Error(ErrorCategory::kInput,
                "the model has " + std::to_string(wanted) + " inputs, got " + std::to_string(inputs.size()));
  }
  std::vector<Tensor> outputs;
  {
    nb::gil_scoped_release release;
    outputs = self.Run(inputs);
  }
  nb::list results;
  for (const Tensor& output : outputs) results.append(ToNumpy(output, /*writable=*/true));
  return results;
}

nb::list Partitions(const Model& self) { return PartitionRows(self.executable().plan()); }

nb::object ProfileModel(const Model& self, const nb::list& arrays, double seconds, bool counters, bool cold,
                        bool roof) {
  RunInputs inputs;
  const std::vector<PortInfo> ports = self.executable().inputs();
  for (size_t i = 0; i < std::min(arrays.size(), ports.size()); ++i) {
    inputs.tensors[ports[i].name] = TensorFrom(arrays[i]);
  }
  return ProfileInPython({seconds, counters, cold, roof}, [&](const ProfileOptions& options) {
    return ProfileExecutable(self.executable(), inputs, options);
  });
}

void BindTimedStep(nb::module_& m) {
  nb::class_<TimedStep>(m, "TimedStep", "A step of a run, and how long it took; `float` of it is its seconds.")
      .def_ro("seconds", &TimedStep::seconds, "How long the step took.")
      .def_prop_ro(
          "kind", [](const TimedStep& self) { return self.step.kind; }, "\"kernel\", \"layout change\" or \"copy\".")
      .def_prop_ro(
          "toolchain", [](const TimedStep& self) { return self.step.toolchain; },
          "The toolchain that computes it; \"host\" for a change of layout or a copy.")
      .def_prop_ro(
          "operators", [](const TimedStep& self) { return self.step.operators; }, "Its operators, joined by '+'.")
      .def_prop_ro(
          "nodes", [](const TimedStep& self) { return self.step.nodes; }, "The model's names of what it computes.")
      .def_prop_ro(
          "partition", [](const TimedStep& self) { return self.step.partition; },
          "Its place in `Executable.partitions`; None for a change of layout or a copy.")
      .def("__float__", [](const TimedStep& self) { return self.seconds; })
      .def("__repr__", [](const TimedStep& self) {
        return fmt::format("<TimedStep {:.1f} us, {}: {}>", self.seconds * 1e6, self.step.toolchain,
                           self.step.operators.empty() ? self.step.kind : self.step.operators);
      });
}

void BindInstance(nb::module_& m) {
  nb::class_<Instance>(
      m, "Instance",
      "One execution of an executable, with memory of its own: bind arrays once, run often. Calls from "
      "several threads take turns; instances of one executable share its constants.")
      .def(
          "__init__", [](Instance* self, const Model& model) { new (self) Instance(model.executable()); }, "model"_a,
          "Made by `Executable.instance`.")
      .def("set_input", &Instance::SetInput, "input"_a, "array"_a,
           "Reads an input, by its number or its name, where the array lies, without a copy if that is 64-byte aligned "
           "(torch's are, `collage.empty` gives such).")
      .def("set_output", &Instance::SetOutput, "output"_a, "array"_a,
           "Writes an output, by its number or its name, into this array, which must be 64-byte aligned.")
      .def("get_output", &Instance::Output, "output"_a,
           "The array that an output, by its number or its name, is written to, by the next run as well.")
      .def("output", &Instance::Output, "output"_a, "The same as `get_output`.")
      .def("run", &Instance::Run, "Runs the model once; other threads of Python go on meanwhile.")
      .def("run_timed", &Instance::RunTimed, "Runs it once; a `TimedStep` for each step.");
}

}  // namespace

nb::list PartitionRows(const ExecutionPlan& plan) {
  nb::list rows;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
    nb::dict row;
    row["toolchain"] = kernel.toolchain;
    row["operators"] = kernel.label;
    row["nodes"] = kernel.nodes;
    row["estimated_seconds"] = kernel.estimated_seconds;
    rows.append(row);
  }
  return rows;
}

namespace {

/// Functions of executables' files.
void BindFiles(nb::module_& m) {
  m.def(
      "explanation_json", [](const std::filesystem::path& path) { return ToJsonText(ReadExplanation(path)); }, "path"_a,
      "See `collage.explanation`.");
  m.def(
      "verify",
      [](const std::filesystem::path& path) {
        nb::gil_scoped_release release;
        vm::Executable::IsBytecode(path) ? vm::Executable::Load(path).CheckConstants() : Executable::Verify(path);
      },
      "path"_a, "Checks all checksums of an executable's file; raises CorruptError.");
  m.def(
      "sign",
      [](const std::filesystem::path& path, const std::filesystem::path& key) {
        nb::gil_scoped_release release;
        return SignFile(path, key);
      },
      "path"_a, "key"_a, "See `collage.sign`.");
  m.def(
      "require_signatures", [](const std::filesystem::path& key) { RequireSignatures(key); }, "key"_a,
      "See `collage.require_signatures`.");
}

void BindModel(nb::module_& m) {
  nb::class_<Model>(m, "Model", "The compiler's side of `collage.Executable`.")
      .def_static(
          "load",
          [](const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            return std::make_unique<Model>(Executable::Load(path));
          },
          "path"_a, "Maps a file that was compiled.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& data, const std::string& name) {
            const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
            nb::gil_scoped_release release;
            return std::make_unique<Model>(Executable::FromBytes(bytes, name));
          },
          "data"_a, "name"_a, "Loads the bytes of such a file, which are copied; errors call them `name`.")
      .def(
          "save",
          [](const Model& self, const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            self.executable().Save(path);
          },
          "path"_a, "Writes the file, whole or not at all.")
      .def("run", &RunModel, "inputs"_a, "Runs once on arrays in the order of the inputs.")
      .def(
          "inputs", [](const Model& self) { return PortsOf(self.executable().inputs()); }, "Names, shapes, dtypes.")
      .def(
          "outputs", [](const Model& self) { return PortsOf(self.executable().outputs()); }, "Names, shapes, dtypes.")
      .def("partitions", &Partitions, "Partitions with their toolchains.")
      .def("profile", &ProfileModel, "inputs"_a, "seconds"_a, "counters"_a, "cold"_a, "roof"_a,
           "See `Executable.profile`.")
      .def_prop_ro(
          "num_threads", [](const Model& self) { return self.executable().plan().num_threads; },
          "Threads that it was compiled for.")
      .def_prop_ro(
          "metadata_json", [](const Model& self) { return self.executable().plan().metadata_json; }, "How it was made.")
      .def(
          "explanation_json", [](const Model& self) { return ExplanationTextOf(self.executable()); },
          "See `collage.Executable.explain`; None if there is none.");
}

}  // namespace

nb::object ProfileInPython(const ProfileOptions& options,
                           const std::function<Profile(const ProfileOptions&)>& profile) {
  Profile found;
  {
    nb::gil_scoped_release release;
    found = profile(options);
  }
  return ToPython(ProfileFacts(found));
}

void BindRuntime(nb::module_& m) {
  BindModel(m);
  BindFiles(m);
  BindTimedStep(m);
  BindInstance(m);
  m.def(
      "empty",
      [](const Shape& shape, const std::string& dtype) {
        return ToNumpy(Tensor::Empty(shape, DataType::FromString(dtype)), /*writable=*/true);
      },
      "shape"_a, "dtype"_a, nb::sig("def empty(shape: Sequence[int], dtype: str) -> numpy.typing.NDArray[typing.Any]"),
      "See `collage.empty`.");
  m.def("num_threads", &NumThreads, "Threads that this process's pool uses.");
  m.def("available_processors", &AvailableProcessors, "Processors that this process may use.");
  m.def("set_num_threads", &SetNumThreads, "count"_a,
        "Sets how many threads, the caller included, kernels loaded later use.");
}

}  // namespace collage::python
