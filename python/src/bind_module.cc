// bind_module.cc: modules, their text, ONNX import.
#include <nanobind/stl/filesystem.h>

#include "bindings.h"
#include "casters.h"
#include "collage/frontend/onnx.h"
#include "collage/frontend/onnx_export.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/module.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "support/hash.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// The definition as text: what tells types apart.
std::string TypeText(const TypeData& type) {
  std::string text = type.header->name();
  for (const TypeVar& var : type.type_vars) text += " " + var->name();
  for (const Constructor& constructor : type.constructors) {
    text += "|" + constructor->name();
    for (const Type& input : constructor->inputs()) text += " " + ToString(input);
  }
  return text;
}

bool ModulesEqual(const IRModule& a, const IRModule& b) {
  if (a.functions().size() != b.functions().size() || a.types().size() != b.types().size()) return false;
  for (const auto& [name, type] : a.types()) {
    const auto other = b.types().find(name);
    if (other == b.types().end() || TypeText(type) != TypeText(other->second)) return false;
  }
  for (const auto& [name, function] : a.functions()) {
    if (!b.Has(name) || !StructuralEqual(function, b.Lookup(name))) return false;
  }
  return true;
}

std::string HashModule(const IRModule& module) {
  Hasher hasher;
  for (const auto& [name, type] : module.types()) hasher.Add(TypeText(type));
  for (const auto& [name, function] : module.functions()) {
    hasher.Add(name);
    hasher.Add(StructuralHash(function));
  }
  return hasher.Hex();
}

IRModule FromExpr(const Expr& expr) {
  const std::vector<Var> free = FreeVars(expr);
  Function function = AsShared<FunctionNode>(expr);
  if (!function || !free.empty()) function = MakeFunction(free, expr);
  return IRModule::FromFunction(function);
}

IRModule ParseText(const std::string& text, const std::string& name, const std::vector<Expr>& constants,
                   bool infer_types) {
  ParseOptions options{.infer_types = infer_types};
  for (const Expr& constant : constants) {
    if (As<ConstantNode>(constant) == nullptr) throw Error(ErrorCategory::kInput, "'constants' are relay.Constant");
    options.constants.push_back(AsShared<ConstantNode>(constant));
  }
  nb::gil_scoped_release release;
  return ParseModule(text, name, options);
}

const Constructor& FindConstructor(const IRModule& module, const std::string& name) {
  for (const auto& [type_name, type] : module.types()) {
    for (const Constructor& constructor : type.constructors) {
      if (constructor->name() == name) return constructor;
    }
  }
  throw Error(ErrorCategory::kInput, "no type of this module has a constructor '" + name + "'");
}

Type CallType(const IRModule& module, const std::string& name, std::vector<Type> args) {
  const auto type = module.types().find(name);
  if (type == module.types().end()) throw Error(ErrorCategory::kInput, "this module defines no type '" + name + "'");
  return std::make_shared<TypeCallNode>(type->second.header, std::move(args));
}

IRModule FromOnnx(const std::filesystem::path& path, const std::map<std::string, Shape>& shapes,
                  const nb::dict& constants, const std::map<std::string, std::pair<int64_t, int64_t>>& dims,
                  const std::map<std::string, int64_t>& lengths) {
  ImportOptions options{.shapes = shapes, .lengths = lengths};
  for (const auto& [name, range] : dims) options.dims[name] = {range.first, range.second};
  for (auto [name, value] : constants) options.constants[nb::cast<std::string>(name)] = TensorFrom(value);
  nb::gil_scoped_release release;
  return ImportOnnx(path, options);
}

}  // namespace

void BindModule(nb::module_& m) {
  nb::class_<IRModule>(m, "IRModule", "Global functions by name, and definitions of data types. `str` gives its text.")
      .def(nb::init<>(), "A module of nothing.")
      .def(
          "__init__",
          [](IRModule* self, const std::map<std::string, Function>& functions) {
            new (self) IRModule();
            for (const auto& [name, function] : functions) self->Set(name, function);
          },
          "functions"_a, "A module of these functions, by name.")
      .def_static(
          "from_text", &ParseText, "text"_a, "file_name"_a = "text", "constants"_a = nb::list(), "infer_types"_a = true,
          "Reads Relay's text format, version 0.0.5. `constants` are what `meta[relay.Constant][i]` means behind "
          "the text's own metadata. Raises InputError with all mistakes, each with its place.")
      .def_static("from_expr", &FromExpr, "expr"_a,
                  "A module whose `main` is `expr`, a function, or a function of its free variables.")
      .def("__str__", [](const IRModule& self) { return PrintModule(self); })
      .def("__repr__",
           [](const IRModule& self) {
             std::string names;
             for (const auto& [name, function] : self.functions()) names += " @" + name;
             return "<IRModule" + names + ">";
           })
      .def(
          "astext",
          [](const IRModule& self, bool metadata, bool types) {
            return PrintModule(self, {.types = types, .metadata = metadata});
          },
          "show_meta_data"_a = true, "types"_a = false,
          "The text; without metadata the values of constants are left out, with `types` each value's type is there.")
      .def("__getitem__", [](const IRModule& self, const std::string& name) { return self.Lookup(name); })
      .def("__setitem__", [](IRModule& self, std::string name, Function value) { self.Set(std::move(name), value); })
      .def("__delitem__",
           [](IRModule& self, const std::string& name) {
             self.Lookup(name);
             self.Remove(name);
           })
      .def("__contains__", [](const IRModule& self, const std::string& name) { return self.Has(name); })
      .def("__len__", [](const IRModule& self) { return self.functions().size(); })
      .def_prop_ro(
          "functions",
          [](const IRModule& self) {
            return std::map<std::string, Function>(self.functions().begin(), self.functions().end());
          },
          "The functions by name, a copy.")
      .def_prop_ro(
          "main", [](const IRModule& self) { return self.main(); }, "The function `main`.")
      .def_prop_ro(
          "attrs", [](const IRModule& self) { return self.attrs; }, "Attributes of the module.")
      .def_prop_ro(
          "type_names",
          [](const IRModule& self) {
            std::vector<std::string> names;
            for (const auto& [name, type] : self.types()) names.push_back(name);
            return names;
          },
          "The names of its data types.")
      .def("constructor", &FindConstructor, "name"_a, "The constructor called `name` of its data types.")
      .def("type_call", &CallType, "name"_a, "args"_a = nb::list(), "A data type applied to its arguments, `List[A]`.")
      .def(
          "copy", [](const IRModule& self) { return self; }, "A module of the same functions.")
      .def("__copy__", [](const IRModule& self) { return self; })
      .def(
          "infer_type",
          [](const IRModule& self) {
            IRModule input = self;
            nb::gil_scoped_release release;
            return InferTypes(std::move(input));
          },
          "Infers and checks the types of all functions; returns the module.")
      .def("structural_equal", &ModulesEqual, "other"_a,
           "Whether both have the same types and structurally equal functions of the same names.")
      .def("structural_hash", &HashModule, "32 hexadecimal digits, equal for modules that are structurally equal.")
      .def("__getstate__", [](const IRModule& self) { return PrintModule(self); })
      .def("__setstate__",
           [](IRModule& self, const std::string& text) { new (&self) IRModule(ParseModule(text, "pickle")); });
  m.def("from_onnx", &FromOnnx, "path"_a, "shapes"_a, "constants"_a, "dims"_a, "lengths"_a, "See `from_onnx`.");
  m.def(
      "to_onnx",
      [](const IRModule& module, const std::vector<std::string>& output_names) {
        const std::string bytes =
            ExportOnnx(RunPasses({"qnn.CanonicalizeOps"}, module), {.output_names = output_names});
        return nb::bytes(bytes.data(), bytes.size());
      },
      "module"_a, "output_names"_a, "See `collage.frontend.to_onnx`.");
  m.def(
      "write_onnx",
      [](const IRModule& module, const std::filesystem::path& path, const std::vector<std::string>& output_names) {
        WriteOnnx(RunPasses({"qnn.CanonicalizeOps"}, module), path, {.output_names = output_names});
      },
      "module"_a, "path"_a, "output_names"_a, "See `collage.frontend.to_onnx`.");
  m.def("onnx_operators", &OnnxExportableOps, "See `collage.frontend.onnx_operators`.");
}

}  // namespace collage::python
