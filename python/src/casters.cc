// casters.cc: handles for nodes of all kinds, attributes as Python values.
#include "casters.h"

#include "ir/attr_visitor.h"

namespace nb = nanobind;

namespace collage::python {
namespace {

template <typename Ref>
nb::object Wrap(const Expr& expr) {
  Ref ref;
  ref.node = expr;
  return nb::cast(std::move(ref));
}

template <typename Ref>
nb::object Wrap(const Type& type) {
  Ref ref;
  ref.type = type;
  return nb::cast(std::move(ref));
}

}  // namespace

nb::object ToPython(const Expr& expr) {
  if (!expr) return nb::none();
  switch (expr->kind()) {
    case ExprKind::kVar: return Wrap<VarRef>(expr);
    case ExprKind::kGlobalVar: return Wrap<GlobalVarRef>(expr);
    case ExprKind::kConstant: return Wrap<ConstantRef>(expr);
    case ExprKind::kTuple: return Wrap<TupleRef>(expr);
    case ExprKind::kTupleGetItem: return Wrap<TupleGetItemRef>(expr);
    case ExprKind::kCall: return Wrap<CallRef>(expr);
    case ExprKind::kFunction: return Wrap<FunctionRef>(expr);
    case ExprKind::kLet: return Wrap<LetRef>(expr);
    case ExprKind::kIf: return Wrap<IfRef>(expr);
    case ExprKind::kOp: return Wrap<OpRef>(expr);
    case ExprKind::kConstructor: return Wrap<ConstructorRef>(expr);
    case ExprKind::kMatch: return Wrap<MatchRef>(expr);
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite: break;
  }
  return Wrap<ExprRef>(expr);
}

nb::object ToPython(const Type& type) {
  if (!type) return nb::none();
  if (AsTensorType(type) != nullptr) return Wrap<TensorTypeRef>(type);
  if (AsTupleType(type) != nullptr) return Wrap<TupleTypeRef>(type);
  if (AsFuncType(type) != nullptr) return Wrap<FuncTypeRef>(type);
  return Wrap<TypeRef>(type);
}

namespace {

struct AttrConverter {
  nb::object None() const { return nb::none(); }
  nb::object Bool(bool flag) const { return nb::bool_(flag); }
  nb::object Int(int64_t number) const { return nb::int_(number); }
  nb::object Double(double number) const { return nb::float_(number); }
  nb::object Text(const std::string& text) const { return nb::str(text.c_str(), text.size()); }
  nb::object List(const AttrValue::List& list) const {
    nb::list result;
    for (const AttrValue& item : list) result.append(VisitAttr(item, *this));
    return result;
  }
};

}  // namespace

nb::object ToPython(const AttrValue& value) { return VisitAttr(value, AttrConverter()); }

nb::object ToPython(const Attrs& attrs) {
  nb::dict result;
  for (const auto& [name, value] : attrs) result[name.c_str()] = ToPython(value);
  return result;
}

bool FromPython(nb::handle source, AttrValue* value) {
  try {
    if (source.is_none()) {
      *value = AttrValue();
    } else if (PyBool_Check(source.ptr())) {
      *value = nb::cast<bool>(source);
    } else if (nb::isinstance<nb::str>(source)) {
      *value = nb::cast<std::string>(source);
    } else if (PyIndex_Check(source.ptr())) {  // Python's and NumPy's integers
      *value = nb::cast<int64_t>(nb::int_(nb::borrow(source)));
    } else if (nb::isinstance<nb::list>(source) || nb::isinstance<nb::tuple>(source)) {
      AttrValue::List list;
      for (nb::handle item : source) {
        if (!FromPython(item, &list.emplace_back())) return false;
      }
      *value = std::move(list);
    } else if (PyFloat_Check(source.ptr())) {
      *value = nb::cast<double>(source);
    } else {
      return false;
    }
    return true;
  } catch (const std::exception&) {
    PyErr_Clear();
    return false;
  }
}

}  // namespace collage::python
