// bind_program.cc: executables with control flow or dynamic shapes, under the same interface as others.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "bindings.h"
#include "bytecode/bytecode.h"
#include "bytecode/file_format.h"
#include "casters.h"
#include "collage/ir/value.h"
#include "collage/vm/vm.h"
#include "explain/explanation_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

[[noreturn]] void FailNoTensors(const std::string& what) {
  throw Error(ErrorCategory::kUnsupported, what + " of the program is no tensor", "",
              "collage.relay.vm runs programs of tuples and data");
}

/// @main of an executable, and its machines that nobody is running.
class Program {
 public:
  explicit Program(vm::Executable executable) : executable_(std::move(executable)) {
    const vm::Program& program = executable_.program();
    const auto name = std::ranges::find(program.globals, "main");
    if (name == program.globals.end()) throw Error(ErrorCategory::kInput, "the program has no function '@main'");
    main_ = &program.functions[static_cast<size_t>(name - program.globals.begin())];
    for (size_t i = 0; i < main_->params.size(); ++i) {
      if (AsTensorType(main_->params[i]) == nullptr) FailNoTensors(fmt::format("input '{}'", main_->param_names[i]));
    }
    if (main_->result == nullptr) FailNoTensors("the result");
  }

  const vm::Executable& executable() const { return executable_; }
  const vm::VmFunction& main() const { return *main_; }

  std::vector<Tensor> Run(std::vector<Value> inputs) {
    std::unique_ptr<vm::Machine> machine = Take();
    std::vector<Tensor> outputs = FlattenTensors(machine->Invoke("main", std::move(inputs)));
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(machine));
    return outputs;
  }

 private:
  std::unique_ptr<vm::Machine> Take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<vm::Machine>(executable_);
    std::unique_ptr<vm::Machine> machine = std::move(idle_.back());
    idle_.pop_back();
    return machine;
  }

  vm::Executable executable_;
  const vm::VmFunction* main_ = nullptr;
  std::mutex mutex_;
  std::vector<std::unique_ptr<vm::Machine>> idle_;
};

/// A row as Model has it; dynamic sizes are -1, with their names beside them.
nb::dict PortOf(const std::string& name, const TensorTypeNode& type, bool is_text,
                const std::vector<std::string>& dims) {
  nb::list shape, names;
  for (size_t axis = 0; axis < type.shape().size(); ++axis) {
    const Dim& dim = type.shape()[axis];
    shape.append(dim.is_any() ? int64_t{-1} : dim.size());
    names.append(axis < dims.size() ? dims[axis] : "");
  }
  nb::dict row;
  row["name"] = name;
  row["shape"] = nb::tuple(shape);
  row["dtype"] = is_text ? "string" : type.dtype().ToString();
  row["dimension_names"] = nb::tuple(names);
  return row;
}

nb::list InputsOf(const Program& self) {
  const vm::VmFunction& main = self.main();
  nb::list rows;
  for (size_t i = 0; i < main.params.size(); ++i) {
    const std::vector<std::string> dims =
        i < main.dimensions.names().size() ? main.dimensions.names()[i] : std::vector<std::string>();
    rows.append(PortOf(main.param_names[i], *AsTensorType(main.params[i]), main.strings.IsParam(i), dims));
  }
  return rows;
}

nb::list OutputsOf(const Program& self) {
  const std::vector<std::string> names = self.executable().ResultNames("main");
  const std::vector<Type> types = FlattenTensorTypes(self.main().result);
  nb::list rows;
  for (size_t i = 0; i < types.size(); ++i)
    rows.append(PortOf(names[i], *AsTensorType(types[i]), self.main().strings.IsResult(i), {}));
  return rows;
}

nb::list RunProgram(Program& self, const nb::list& arrays) {
  const StringTensors& strings = self.main().strings;
  StringNumbers numbers(&strings.known());
  std::vector<Value> inputs;
  for (size_t i = 0; i < arrays.size(); ++i)
    inputs.emplace_back(strings.IsParam(i) ? NumbersFrom(arrays[i], numbers) : TensorFrom(arrays[i]));
  std::vector<Tensor> outputs;
  {
    nb::gil_scoped_release release;
    outputs = self.Run(std::move(inputs));
  }
  nb::list results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.append(strings.IsResult(i) ? TextsOf(outputs[i], numbers) : ToNumpy(outputs[i], /*writable=*/true));
  return results;
}

nb::object ProfileProgramOf(const Program& self, const nb::list& arrays, const std::map<std::string, int64_t>& sizes,
                            double seconds, bool counters, bool cold, bool roof) {
  const StringTensors& strings = self.main().strings;
  StringNumbers numbers(&strings.known());
  RunInputs inputs;
  inputs.sizes = sizes;
  for (size_t i = 0; i < std::min(arrays.size(), self.main().param_names.size()); ++i) {
    inputs.tensors[self.main().param_names[i]] =
        strings.IsParam(i) ? NumbersFrom(arrays[i], numbers) : TensorFrom(arrays[i]);
  }
  return ProfileInPython({seconds, counters, cold, roof}, [&](const ProfileOptions& options) {
    return ProfileProgram(self.executable(), inputs, options);
  });
}

nb::list PartitionsOf(const Program& self) {
  nb::list rows;
  for (const vm::KernelFunction& kernel : self.executable().program().kernels) {
    rows.extend(PartitionRows(kernel.executable.plan()));
  }
  return rows;
}

}  // namespace

void BindProgram(nb::module_& m) {
  nb::class_<Program>(m, "Program", "`Model` with control flow or dynamic shapes: the same functions.")
      .def_static(
          "load",
          [](const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            return std::make_unique<Program>(vm::Executable::Load(path));
          },
          "path"_a, "Reads a file that was compiled.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& data, const std::string& name) {
            const std::string_view bytes(data.c_str(), data.size());
            nb::gil_scoped_release release;
            return std::make_unique<Program>(vm::Executable::Deserialize(bytes, name));
          },
          "data"_a, "name"_a, "Loads the bytes of such a file, which are copied; errors call them `name`.")
      .def_static(
          "begins",
          [](const nb::bytes& data) {
            return vm::IsProgramFile({data.c_str(), std::min<size_t>(data.size(), 8)});
          },
          "data"_a, "Whether bytes begin as the file of a program does.")
      .def(
          "save", [](const Program& self, const std::filesystem::path& path) { self.executable().Save(path); },
          "path"_a, "Writes the file, whole or not at all.")
      .def("run", &RunProgram, "inputs"_a, "Runs once on arrays in the order of the inputs.")
      .def("inputs", &InputsOf, "Names, shapes, dtypes, names of dimensions.")
      .def("outputs", &OutputsOf, "Names, shapes, dtypes, names of dimensions.")
      .def("partitions", &PartitionsOf, "Partitions of parts that were searched, with their toolchains.")
      .def("profile", &ProfileProgramOf, "inputs"_a, "sizes"_a, "seconds"_a, "counters"_a, "cold"_a, "roof"_a,
           "See `Executable.profile`.")
      .def_prop_ro(
          "num_threads", [](const Program& self) { return self.executable().num_threads(); },
          "Threads that it was compiled for.")
      .def_prop_ro(
          "metadata_json", [](const Program&) { return "{}"; }, "Nothing is known of how it was made.")
      .def(
          "explanation_json", [](const Program& self) { return ExplanationTextOf(self.executable()); },
          "See `collage.Executable.explain`; None if there is none.");
}

}  // namespace collage::python
