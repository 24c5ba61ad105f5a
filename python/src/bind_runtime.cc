// bind_runtime.cc: executables. Inputs are read and outputs written where NumPy or torch have them; the interpreter's
// lock is free while a model runs.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <mutex>

#include "bindings.h"
#include "casters.h"
#include "collage/profile.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "explain/explanation_file.h"
#include "facts.h"
#include "report/profile_facts.h"

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

/// One execution, as `Instance` of Python: a caller holds its lock while it runs.
struct Instance {
  explicit Instance(const Executable& executable) : instance(executable), outputs(executable.outputs()) {}

  ExecutionInstance instance;
  std::vector<PortInfo> outputs;
  std::mutex busy;

  void Run() {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(busy);
    instance.Run();
  }
  std::vector<double> RunTimed() {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(busy);
    return instance.RunTimed();
  }
  void SetInput(size_t index, nb::handle array) {
    const Tensor tensor = TensorFrom(array);
    nb::gil_scoped_release release;  // what is replaced may be dropped under the lock
    const std::scoped_lock lock(busy);
    instance.SetInput(index, tensor);
  }
  void SetOutput(size_t index, nb::handle array) {
    if (nb::hasattr(array, "flags") && !nb::cast<bool>(array.attr("flags").attr("writeable"))) {
      throw Error(ErrorCategory::kInput, "an array for an output is read only");
    }
    const Tensor tensor = TensorFrom(array);
    nb::gil_scoped_release release;
    const std::scoped_lock lock(busy);
    instance.SetOutput(index, tensor);
  }
  nb::object Output(size_t index) {
    if (index >= outputs.size()) throw nb::index_error("there is no such output");
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

void BindInstance(nb::module_& m) {
  nb::class_<Instance>(
      m, "Instance",
      "One execution of an executable, with memory of its own: bind arrays once, run often. Calls from "
      "several threads take turns; instances of one executable share its constants.")
      .def(
          "__init__", [](Instance* self, const Model& model) { new (self) Instance(model.executable()); }, "model"_a,
          "Made by `Executable.instance`.")
      .def("set_input", &Instance::SetInput, "index"_a, "array"_a,
           "Reads input `index` where the array lies, without a copy if that is 64-byte aligned (torch's are, "
           "`collage.empty` gives such).")
      .def("set_output", &Instance::SetOutput, "index"_a, "array"_a,
           "Writes output `index` into this array, which must be 64-byte aligned.")
      .def("output", &Instance::Output, "index"_a,
           "The array that output `index` is written to, by the next run as well.")
      .def("run", &Instance::Run, "Runs the model once; other threads of Python go on meanwhile.")
      .def("run_timed", &Instance::RunTimed, "Runs it once; seconds of each step.");
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
  nb::class_<Model>(m, "Model", "The compiler's side of `collage.Executable`.")
      .def_static(
          "load",
          [](const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            return std::make_unique<Model>(Executable::Load(path));
          },
          "path"_a, "Maps a file that was compiled.")
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
  BindFiles(m);
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
