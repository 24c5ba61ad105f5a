// casters.h: how the compiler's values look in Python. Expressions and types are handles there, compared by node;
// attributes are plain Python values.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "collage/ir/expr.h"
#include "collage/ir/type.h"

namespace collage::python {

/// The content of Python's `Expr`. Its subclasses add no state, so that each can stand for its base.
struct ExprRef {
  Expr node;
};
template <typename Node>
struct NodeRef : ExprRef {};
using VarRef = NodeRef<VarNode>;
using GlobalVarRef = NodeRef<GlobalVarNode>;
using ConstantRef = NodeRef<ConstantNode>;
using TupleRef = NodeRef<TupleNode>;
using TupleGetItemRef = NodeRef<TupleGetItemNode>;
using CallRef = NodeRef<CallNode>;
using FunctionRef = NodeRef<FunctionNode>;
using LetRef = NodeRef<LetNode>;
using IfRef = NodeRef<IfNode>;
using OpRef = NodeRef<OpNode>;
using ConstructorRef = NodeRef<ConstructorNode>;
using MatchRef = NodeRef<MatchNode>;

/// The content of Python's `Type`, likewise.
struct TypeRef {
  Type type;
};
struct TensorTypeRef : TypeRef {};
struct TupleTypeRef : TypeRef {};
struct FuncTypeRef : TypeRef {};

/// As the Python class of their kind; None for null.
nanobind::object ToPython(const Expr& expr);
nanobind::object ToPython(const Type& type);
nanobind::object ToPython(const AttrValue& value);
nanobind::object ToPython(const Attrs& attrs);
/// None, bool, int, float, str, dtypes, sequences of such; false for anything else.
bool FromPython(nanobind::handle source, AttrValue* value);

}  // namespace collage::python

namespace nanobind::detail {

template <typename Node, typename Ref>
struct NodeCaster {
  NB_TYPE_CASTER(std::shared_ptr<const Node>, make_caster<Ref>::Name)
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!isinstance<Ref>(source)) return false;
    value = std::static_pointer_cast<const Node>(inst_ptr<collage::python::ExprRef>(source)->node);
    return true;
  }
  static handle from_cpp(const std::shared_ptr<const Node>& node, rv_policy, cleanup_list*) noexcept {
    return collage::python::ToPython(collage::Expr(node)).release();
  }
};

template <>
struct type_caster<collage::Expr> : NodeCaster<collage::ExprNode, collage::python::ExprRef> {};
template <>
struct type_caster<collage::Var> : NodeCaster<collage::VarNode, collage::python::VarRef> {};
template <>
struct type_caster<collage::Constant> : NodeCaster<collage::ConstantNode, collage::python::ConstantRef> {};
template <>
struct type_caster<collage::Function> : NodeCaster<collage::FunctionNode, collage::python::FunctionRef> {};
template <>
struct type_caster<collage::Op> : NodeCaster<collage::OpNode, collage::python::OpRef> {};
template <>
struct type_caster<collage::Constructor> : NodeCaster<collage::ConstructorNode, collage::python::ConstructorRef> {};

template <>
struct type_caster<collage::Type> {
  NB_TYPE_CASTER(collage::Type, make_caster<collage::python::TypeRef>::Name)
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (source.is_none()) return true;  // not known yet; only where an argument may be None
    if (!isinstance<collage::python::TypeRef>(source)) return false;
    value = inst_ptr<collage::python::TypeRef>(source)->type;
    return true;
  }
  static handle from_cpp(const collage::Type& type, rv_policy, cleanup_list*) noexcept {
    return collage::python::ToPython(type).release();
  }
};

template <>
struct type_caster<collage::AttrValue> {
  NB_TYPE_CASTER(collage::AttrValue, const_name("object"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return collage::python::FromPython(source, &value);
  }
  static handle from_cpp(const collage::AttrValue& attr, rv_policy, cleanup_list*) noexcept {
    return collage::python::ToPython(attr).release();
  }
};

template <>
struct type_caster<collage::Attrs> {
  NB_TYPE_CASTER(collage::Attrs, const_name("dict[str, object]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!isinstance<dict>(source)) return false;
    for (auto [name, attr] : borrow<dict>(source)) {
      collage::AttrValue one;
      if (!isinstance<str>(name) || !collage::python::FromPython(attr, &one)) return false;
      value.Set(borrow<str>(name).c_str(), std::move(one));
    }
    return true;
  }
  static handle from_cpp(const collage::Attrs& attrs, rv_policy, cleanup_list*) noexcept {
    return collage::python::ToPython(attrs).release();
  }
};

}  // namespace nanobind::detail
