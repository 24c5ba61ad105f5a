// bind_types.cc: Relay's types.
#include <nanobind/operators.h>

#include "bindings.h"
#include "casters.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// None, "?" and negative numbers stand for sizes known at run time only.
Type MakeTensorType(nb::sequence shape, const std::string& dtype) {
  std::vector<Dim> dims;
  for (nb::handle dim : shape) {
    const bool is_any = dim.is_none() || nb::isinstance<nb::str>(dim) || nb::cast<int64_t>(dim) < 0;
    dims.push_back(is_any ? Dim::Any() : Dim(nb::cast<int64_t>(dim)));
  }
  return TensorType(std::move(dims), DataType::FromString(dtype));
}

nb::tuple ShapeOf(const TensorTypeNode& type) {
  nb::list shape;
  for (const Dim& dim : type.shape()) {
    if (dim.is_any()) {
      shape.append(nb::none());
    } else {
      shape.append(dim.size());
    }
  }
  return nb::tuple(shape);
}

/// Parses a type without names of data types, which only a module knows.
Type ParseType(const std::string& text) {
  return As<VarNode>(ParseExpr("free_var %x: " + text + "; %x", "type", {.infer_types = false}))->type_annotation();
}

}  // namespace

void BindTypes(nb::module_& m) {
  nb::class_<TypeRef>(m, "Type", "A type of Relay. Equal when of equal structure; `str` gives its text.")
      .def("__str__", [](const TypeRef& self) { return ToString(self.type); })
      .def("__repr__", [](const TypeRef& self) { return "<type " + ToString(self.type) + ">"; })
      .def("__eq__", [](const TypeRef& self, const TypeRef& other) { return TypeEqual(self.type, other.type); })
      .def("__eq__", [](const TypeRef&, nb::handle) { return false; })
      .def("__hash__", [](const TypeRef& self) { return std::hash<std::string>()(ToString(self.type)); });
  nb::class_<TensorTypeRef, TypeRef>(m, "TensorType", "`Tensor[(1, ?, 28), float32]`.")
      .def(nb::new_([](nb::sequence shape, const std::string& dtype) { return MakeTensorType(shape, dtype); }),
           "shape"_a, "dtype"_a = "float32",
           "Sizes and element type; None or \"?\" for a size that is known at run time only.")
      .def_prop_ro(
          "shape", [](const TensorTypeRef& self) { return ShapeOf(*AsTensorType(self.type)); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"), "Sizes, outermost first; None where unknown.")
      .def_prop_ro(
          "dtype", [](const TensorTypeRef& self) { return AsTensorType(self.type)->dtype().ToString(); },
          "Name of the element type, as \"float32\".");
  nb::class_<TupleTypeRef, TypeRef>(m, "TupleType", "`(A, B)`.")
      .def(nb::new_([](std::vector<Type> fields) { return TupleType(std::move(fields)); }), "fields"_a,
           "The types of the fields.")
      .def_prop_ro(
          "fields", [](const TupleTypeRef& self) { return AsTupleType(self.type)->fields(); },
          "The types of the fields.");
  nb::class_<FuncTypeRef, TypeRef>(m, "FuncType", "`fn (A, B) -> C`.")
      .def(nb::new_([](std::vector<Type> args, Type result) { return FuncType(std::move(args), std::move(result)); }),
           "arg_types"_a, "ret_type"_a, "The types of parameters and result.")
      .def_prop_ro(
          "arg_types", [](const FuncTypeRef& self) { return AsFuncType(self.type)->args(); },
          "The types of the parameters.")
      .def_prop_ro(
          "ret_type", [](const FuncTypeRef& self) { return AsFuncType(self.type)->result(); },
          "The type of the result.");
  m.def("parse_type", &ParseType, "text"_a, "Reads the text of a type, such as \"Tensor[(1, ?), float32]\".");
}

}  // namespace collage::python
