// bind_exprs.cc: Relay's expressions: handles, what is in them, how they are made.
#include <fmt/format.h>

#include "bindings.h"
#include "casters.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

template <typename Ref, typename Node>
const Node& NodeOf(const Ref& ref) {
  return static_cast<const Node&>(*ref.node);
}

/// A property of a node, read through its handle.
template <typename Node, typename Get>
auto Field(Get get) {
  return [get](const NodeRef<Node>& self) { return get(static_cast<const Node&>(*self.node)); };
}

void BindExprBase(nb::module_& m) {
  nb::class_<ExprRef>(
      m, "Expr",
      "An expression of Relay: immutable; using it twice means computing it once. Equal to itself only; "
      "`structural_equal` compares what it says.")
      .def("__eq__", [](const ExprRef& self, const ExprRef& other) { return self.node == other.node; })
      .def("__eq__", [](const ExprRef&, nb::handle) { return false; })
      .def("__hash__", [](const ExprRef& self) { return std::hash<const void*>()(self.node.get()); })
      .def("__str__", [](const ExprRef& self) { return PrintExpr(self.node); })
      .def("__repr__",
           [](nb::handle self) {
             const Expr& node = nb::inst_ptr<ExprRef>(self)->node;
             const VarNode* var = As<VarNode>(node);
             return fmt::format("<{} {}>", nb::cast<std::string>(self.type().attr("__name__")),
                                var != nullptr ? "%" + var->name() : PrintExpr(node));
           })
      .def(
          "astext", [](const ExprRef& self, bool types) { return PrintExpr(self.node, {.types = types}); },
          "types"_a = false, "The text of the expression; with `types` each value's type behind it.")
      .def_prop_ro(
          "checked_type", [](const ExprRef& self) { return self.node->checked_type(); },
          nb::sig("def checked_type(self) -> Type | None"), "The type; None until it was inferred.")
      .def_prop_ro(
          "span",
          [](const ExprRef& self) {
            const Span& span = self.node->span();
            return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
          },
          "Its origin: a place in a text, or the name of a model's node; else empty.")
      .def(
          "infer_type", [](const ExprRef& self) { return InferType(self.node); },
          "Infers the types of the expression and all within it; returns its own.")
      .def(
          "structural_equal", [](const ExprRef& self, const Expr& other) { return StructuralEqual(self.node, other); },
          "other"_a,
          "Whether both say the same, up to names of variables. Sharing counts, and so do the types of variables: "
          "infer "
          "those first.")
      .def(
          "structural_hash", [](const ExprRef& self) { return StructuralHash(self.node); },
          "32 hexadecimal digits, equal for expressions that are structurally equal.")
      .def(
          "children", [](const ExprRef& self) { return Children(self.node); },
          "The direct sub-expressions, in the order of evaluation.")
      .def(
          "post_order",
          [](const ExprRef& self) {
            std::vector<Expr> nodes;
            PostOrder(self.node, [&](const Expr& expr) { nodes.push_back(expr); });
            return nodes;
          },
          "Every node within, once, children before parents, this one last.")
      .def(
          "free_vars", [](const ExprRef& self) { return FreeVars(self.node); },
          "Variables that nothing within binds, in the order of their first use.");
}

void BindLeaves(nb::module_& m) {
  nb::class_<VarRef, ExprRef>(m, "Var", "A local variable. Its identity is the node, the name only a hint.")
      .def(nb::new_([](std::string name, Type type) { return MakeVar(std::move(name), std::move(type)); }), "name"_a,
           "type_annotation"_a = nb::none(), "A new variable, equal to no other.")
      .def_prop_ro("name_hint", Field<VarNode>([](const VarNode& var) { return var.name(); }), "Its name in texts.")
      .def_prop_ro("type_annotation", Field<VarNode>([](const VarNode& var) { return var.type_annotation(); }),
                   nb::sig("def type_annotation(self) -> Type | None"), "The type it was given, if any.");
  nb::class_<GlobalVarRef, ExprRef>(m, "GlobalVar", "A function of the module, by name.")
      .def(nb::new_([](std::string name) -> Expr { return std::make_shared<GlobalVarNode>(std::move(name)); }),
           "name"_a, "Refers to the function called `name`.")
      .def_prop_ro("name_hint", Field<GlobalVarNode>([](const GlobalVarNode& var) { return var.name(); }),
                   "The function's name.");
  nb::class_<ConstantRef, ExprRef>(m, "Constant", "A tensor that is known.")
      .def(nb::new_([](nb::handle value) { return MakeConstant(TensorFrom(value).Clone()); }), "value"_a,
           "A copy of an array.")
      .def_prop_ro("data", Field<ConstantNode>([](const ConstantNode& constant) {
                     return ToNumpy(constant.value(), /*writable=*/false);
                   }),
                   nb::sig("def data(self) -> numpy.typing.NDArray[typing.Any]"), "The value, read only, not copied.");
  nb::class_<OpRef, ExprRef>(m, "Op", "An operator of the table; there is one object of each.")
      .def_prop_ro("name", Field<OpNode>([](const OpNode& op) { return op.name(); }), "Its name, as \"nn.conv2d\".")
      .def_prop_ro("doc", Field<OpNode>([](const OpNode& op) { return op.def().doc; }),
                   "Description of its computation.")
      .def_prop_ro("args", Field<OpNode>([](const OpNode& op) { return op.def().args; }), "Names of its arguments.")
      .def_prop_ro("attrs", Field<OpNode>([](const OpNode& op) {
                     Attrs defaults;
                     for (const AttrField& field : op.def().attrs) defaults.Set(field.name, field.default_value);
                     return defaults;
                   }),
                   "Its attributes and their defaults.")
      .def_prop_ro("kind", Field<OpNode>([](const OpNode& op) { return std::string(1, KindLetter(op.def().pattern)); }),
                   "How it may be fused: E, B, I, R, A, T or O.");
  nb::class_<ConstructorRef, ExprRef>(m, "Constructor", "A constructor of a data type; call it with its fields.")
      .def_prop_ro("name_hint", Field<ConstructorNode>([](const ConstructorNode& one) { return one.name(); }),
                   "Its name.")
      .def_prop_ro("inputs", Field<ConstructorNode>([](const ConstructorNode& one) { return one.inputs(); }),
                   "The types of its fields.");
}

void BindCompound(nb::module_& m) {
  nb::class_<TupleRef, ExprRef>(m, "Tuple", "`(a, b)`.")
      .def(nb::new_([](std::vector<Expr> fields) { return MakeTuple(std::move(fields)); }), "fields"_a,
           "A tuple of these.")
      .def_prop_ro("fields", Field<TupleNode>([](const TupleNode& tuple) { return tuple.fields(); }), "Its elements.");
  nb::class_<TupleGetItemRef, ExprRef>(m, "TupleGetItem", "`t.0`.")
      .def(nb::new_([](Expr tuple, int index) { return MakeTupleGetItem(std::move(tuple), index); }), "tuple_value"_a,
           "index"_a, "Field `index` of a tuple.")
      .def_prop_ro("tuple_value", Field<TupleGetItemNode>([](const TupleGetItemNode& node) { return node.tuple(); }),
                   "The tuple.")
      .def_prop_ro("index", Field<TupleGetItemNode>([](const TupleGetItemNode& node) { return node.index(); }),
                   "Which field.");
  nb::class_<CallRef, ExprRef>(m, "Call",
                               "A call of an operator, a function, a constructor or anything of function type.")
      .def(nb::new_([](Expr callee, std::vector<Expr> args, std::optional<Attrs> attrs) {
             if (const OpNode* op = As<OpNode>(callee)) {
               return MakeCall(op->name(), std::move(args), attrs.value_or(Attrs()));
             }
             return MakeCall(std::move(callee), std::move(args), attrs.value_or(Attrs()));
           }),
           "op"_a, "args"_a, "attrs"_a = nb::none(),
           "A call; attributes of operators are checked and completed with their defaults.")
      .def_prop_ro("op", Field<CallNode>([](const CallNode& call) { return call.callee(); }), "The callee.")
      .def_prop_ro("args", Field<CallNode>([](const CallNode& call) { return call.args(); }), "The arguments.")
      .def_prop_ro("attrs", Field<CallNode>([](const CallNode& call) { return call.attrs(); }),
                   "All attributes, defaults included.");
  nb::class_<FunctionRef, ExprRef>(m, "Function", "`fn (%x: T) -> R { body }`.")
      .def(nb::new_([](std::vector<Var> params, Expr body, Type result, std::optional<Attrs> attrs) {
             return MakeFunction(std::move(params), std::move(body), std::move(result), attrs.value_or(Attrs()));
           }),
           "params"_a, "body"_a, "ret_type"_a = nb::none(), "attrs"_a = nb::none(), "A function of these parameters.")
      .def_prop_ro("params", Field<FunctionNode>([](const FunctionNode& function) { return function.params(); }),
                   "The parameters.")
      .def_prop_ro("body", Field<FunctionNode>([](const FunctionNode& function) { return function.body(); }),
                   "The expression that it computes.")
      .def_prop_ro("ret_type", Field<FunctionNode>([](const FunctionNode& function) { return function.result_type(); }),
                   nb::sig("def ret_type(self) -> Type | None"), "The type it was said to return, if any.")
      .def_prop_ro("attrs", Field<FunctionNode>([](const FunctionNode& function) { return function.attrs(); }),
                   "Attributes such as Primitive, Compiler, Composite.")
      .def(
          "with_attr",
          [](const FunctionRef& self, std::string name, AttrValue value) {
            return WithAttr(std::static_pointer_cast<const FunctionNode>(self.node), std::move(name), std::move(value));
          },
          "name"_a, "value"_a.none(), "Returns a copy with one attribute set.");
  nb::class_<LetRef, ExprRef>(m, "Let", "`let %x = value; body`.")
      .def(nb::new_([](Var var, Expr value, Expr body) -> Expr {
             return std::make_shared<LetNode>(std::move(var), std::move(value), std::move(body));
           }),
           "variable"_a, "value"_a, "body"_a, "Binds a variable in `body`.")
      .def_prop_ro("var", Field<LetNode>([](const LetNode& let) { return let.var(); }), "The variable.")
      .def_prop_ro("value", Field<LetNode>([](const LetNode& let) { return let.value(); }), "The bound value.")
      .def_prop_ro("body", Field<LetNode>([](const LetNode& let) { return let.body(); }), "Its scope.");
  nb::class_<IfRef, ExprRef>(m, "If", "`if (condition) { a } else { b }`.")
      .def(nb::new_([](Expr condition, Expr yes, Expr no) -> Expr {
             return std::make_shared<IfNode>(std::move(condition), std::move(yes), std::move(no));
           }),
           "cond"_a, "true_branch"_a, "false_branch"_a, "The value of one branch, by a scalar of type bool.")
      .def_prop_ro("cond", Field<IfNode>([](const IfNode& node) { return node.condition(); }), "The condition.")
      .def_prop_ro("true_branch", Field<IfNode>([](const IfNode& node) { return node.then_branch(); }), "If it holds.")
      .def_prop_ro("false_branch", Field<IfNode>([](const IfNode& node) { return node.else_branch(); }), "If not.");
}

void BindMatch(nb::module_& m) {
  nb::class_<Pattern>(m, "Pattern", "Pattern of a clause of `Match`; see `relay.PatternVar` and similar.")
      .def_static(
          "wildcard", [] { return Pattern{}; }, "Matches anything.")
      .def_static(
          "variable",
          [](Var var) {
            return Pattern{Pattern::Kind::kVar, std::move(var), nullptr, {}};
          },
          "var"_a, "Matches anything and binds it.")
      .def_static(
          "constructor",
          [](Constructor constructor, std::vector<Pattern> fields) {
            return Pattern{Pattern::Kind::kConstructor, nullptr, std::move(constructor), std::move(fields)};
          },
          "constructor"_a, "patterns"_a, "Matches data made by a constructor, whose fields match.")
      .def_static(
          "tuple",
          [](std::vector<Pattern> fields) {
            return Pattern{Pattern::Kind::kTuple, nullptr, nullptr, std::move(fields)};
          },
          "patterns"_a, "Matches a tuple whose fields match.");
  nb::class_<MatchRef, ExprRef>(m, "Match", "`match (data) { pattern => { body }, … }`.")
      .def(nb::new_([](Expr data, std::vector<std::pair<Pattern, Expr>> clauses, bool complete) -> Expr {
             std::vector<Clause> made;
             for (auto& [pattern, body] : clauses) made.push_back({std::move(pattern), std::move(body)});
             return std::make_shared<MatchNode>(std::move(data), std::move(made), complete);
           }),
           "data"_a, "clauses"_a, "complete"_a = true,
           "The body of the first clause whose pattern matches; clauses are pairs of pattern and body.")
      .def_prop_ro("data", Field<MatchNode>([](const MatchNode& match) { return match.data(); }), "The matched value.")
      .def_prop_ro("bodies", Field<MatchNode>([](const MatchNode& match) {
                     std::vector<Expr> bodies;
                     for (const Clause& clause : match.clauses()) bodies.push_back(clause.body);
                     return bodies;
                   }),
                   "The clauses' bodies.")
      .def_prop_ro("complete", Field<MatchNode>([](const MatchNode& match) { return match.complete(); }),
                   "Whether some clause must match.");
}

}  // namespace

void BindExprs(nb::module_& m) {
  BindExprBase(m);
  BindLeaves(m);
  BindCompound(m);
  BindMatch(m);
  m.def(
      "ref_create", [](Expr value) -> Expr { return std::make_shared<RefCreateNode>(std::move(value)); }, "value"_a,
      "A new cell that holds `value`.");
  m.def(
      "ref_read", [](Expr ref) -> Expr { return std::make_shared<RefReadNode>(std::move(ref)); }, "ref"_a,
      "Reads a cell's value.");
  m.def(
      "ref_write",
      [](Expr ref, Expr value) -> Expr { return std::make_shared<RefWriteNode>(std::move(ref), std::move(value)); },
      "ref"_a, "value"_a, "Puts `value` into a cell; gives ().");
  m.def("get_op", &GetOp, "name"_a, "The operator called `name`; the error for an unknown one lists names like it.");
  m.def(
      "op_names",
      [] {
        std::vector<std::string> names;
        for (const Op& op : AllOps()) names.push_back(op->name());
        return names;
      },
      "The names of all operators.");
  m.def(
      "scalar", [](double value, const std::string& dtype) { return MakeScalar(value, DataType::FromString(dtype)); },
      "value"_a, "dtype"_a, "A constant of rank 0.");
  m.def(
      "parse_expr",
      [](const std::string& text, const std::string& name, bool infer_types) {
        return ParseExpr(text, name, {.infer_types = infer_types});
      },
      "text"_a, "file_name"_a = "text", "infer_types"_a = true, "Reads one expression; see `collage.parse_expr`.");
}

}  // namespace collage::python
