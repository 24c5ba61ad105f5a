// bind_vm.cc: bytecode for programs with control flow, closures, data.
#include <nanobind/stl/filesystem.h>

#include <mutex>

#include "bindings.h"
#include "casters.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/target/toolchain.h"
#include "collage/vm/vm.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// Tensors are arrays, tuples tuples, data `ADT`; functions and references stay what they are.
nb::object FromValue(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor: return ToNumpy(value.tensor(), /*writable=*/true);
    case Value::Kind::kTuple:
    case Value::Kind::kData: {
      nb::list fields;
      for (const Value& field : value.fields()) fields.append(FromValue(field));
      if (value.kind() == Value::Kind::kTuple) return nb::tuple(fields);
      return nb::module_::import_("collage.relay.vm").attr("ADT")(value.constructor(), nb::tuple(fields));
    }
    default: return nb::cast(value);
  }
}

Value ToValue(nb::handle source) {
  if (nb::isinstance<Value>(source)) return nb::cast<Value>(source);
  const bool is_data = nb::isinstance(source, nb::module_::import_("collage.relay.vm").attr("ADT"));
  if (!is_data && !nb::isinstance<nb::tuple>(source)) return TensorFrom(source).Clone();
  std::vector<Value> fields;
  for (nb::handle field : is_data ? nb::object(source.attr("fields")) : nb::borrow(source)) {
    fields.push_back(ToValue(field));
  }
  if (!is_data) return Value::Tuple(std::move(fields));
  return Value::Data(nb::cast<Constructor>(source.attr("constructor")), std::move(fields));
}

bool IsPartition(const IRModule& module, const Expr& expr) {
  const GlobalVarNode* global = As<GlobalVarNode>(expr);
  return global != nullptr && module.Has(global->name()) &&
         module.Lookup(global->name())->attrs().IntOr("Primitive", 0) != 0;
}

/// Partitions that are global functions where they are called: bytecode calls kernels of function literals only.
IRModule WithPartitionsInPlace(const IRModule& module) {
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) {
    if (function->attrs().IntOr("Primitive", 0) != 0) {
      result.Remove(name);
      continue;
    }
    const Expr placed = Rewrite(function, [&](const Expr& expr) -> Expr {
      return IsPartition(module, expr) ? module.Lookup(As<GlobalVarNode>(expr)->name()) : expr;
    });
    result.Set(name, AsShared<FunctionNode>(placed));
  }
  return InferTypes(std::move(result));
}

struct LockedMachine {
  explicit LockedMachine(const vm::Executable& executable) : machine(executable) {}
  vm::Machine machine;
  std::mutex busy;

  nb::object Invoke(const std::string& name, const nb::list& args, size_t max_depth) {
    std::vector<Value> values;
    for (nb::handle arg : args) values.push_back(ToValue(arg));
    Value result;
    {
      nb::gil_scoped_release release;
      const std::scoped_lock lock(busy);
      result = machine.Invoke(name, std::move(values), {.max_depth = max_depth});
    }
    return FromValue(result);
  }
};

}  // namespace

void BindVm(nb::module_& m) {
  nb::class_<Value>(m, "Value", "A function or a reference that a program gave back; it can be handed in again.")
      .def("__repr__", [](const Value& self) { return "<value " + ToString(self) + ">"; });
  nb::class_<vm::Executable>(m, "Bytecode", "The compiler's side of `collage.relay.vm.Executable`.")
      .def("disassemble", &vm::Executable::Disassemble, "The bytecode as text.")
      .def("save", &vm::Executable::Save, "path"_a, "Writes the file, whole or not at all.")
      .def_static("is_bytecode", &vm::Executable::IsBytecode, "path"_a, "Whether a file begins as bytecode does.")
      .def_static("load", &vm::Executable::Load, "path"_a, "Reads what `save` writes.");
  nb::class_<LockedMachine>(m, "Machine", "The compiler's side of `collage.relay.vm.VirtualMachine`.")
      .def(
          "__init__", [](LockedMachine* self, const vm::Executable& bytecode) { new (self) LockedMachine(bytecode); },
          "bytecode"_a, "With kernels of its own.")
      .def("invoke", &LockedMachine::Invoke, "name"_a, "args"_a, "max_depth"_a = vm::RunOptions().max_depth,
           "Calls a function; at most `max_depth` calls may be open at once.");
  m.def(
      "compile_bytecode",
      [](const IRModule& module, bool with_kernels, int num_threads) {
        const IRModule copy = with_kernels ? WithPartitionsInPlace(module) : module;
        nb::gil_scoped_release release;
        return vm::Compile(copy, {with_kernels ? &ToolchainRegistry::Global() : nullptr, num_threads});
      },
      "module"_a, "with_kernels"_a, "num_threads"_a, "See `collage.relay.vm.compile`.");
}

}  // namespace collage::python
