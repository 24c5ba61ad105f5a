// bind_patterns.cc: patterns over dataflow, as objects: `is_op("nn.relu")(wildcard())`.
#include <fmt/format.h>
#include <nanobind/stl/function.h>

#include <algorithm>

#include "bindings.h"
#include "casters.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "dataflow/pattern_builder.h"
#include "ir/attr_visitor.h"
#include "partition/extract.h"
#include "partition/rewrite.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

struct PatternRef {
  DFPatternPtr pattern;
};

/// Writes values as patterns spell them: 1, 0.5, True, None, name, [1,2].
struct PatternAttrPrinter {
  std::string None() const { return "None"; }
  std::string Bool(bool flag) const { return flag ? "True" : "False"; }
  std::string Int(int64_t number) const { return std::to_string(number); }
  std::string Double(double number) const { return fmt::format("{}", number); }
  std::string Text(const std::string& text) const { return text; }
  std::string List(const AttrValue::List& list) const {
    std::string text;
    for (const AttrValue& item : list) text += (text.empty() ? "" : ",") + VisitAttr(item, *this);
    return "[" + text + "]";
  }
};

std::vector<DFPatternPtr> Inner(const std::vector<PatternRef>& patterns) {
  std::vector<DFPatternPtr> inner;
  for (const PatternRef& one : patterns) inner.push_back(one.pattern);
  return inner;
}

PatternRef CallOf(const PatternRef& self, const nb::args& args) {
  std::vector<DFPatternPtr> inner;
  for (nb::handle arg : args) {
    if (!nb::isinstance<PatternRef>(arg)) throw nb::type_error("a pattern is called with patterns");
    inner.push_back(nb::cast<PatternRef&>(arg).pattern);
  }
  const DFPattern& callee = *self.pattern;
  return {callee.kind == DFPattern::Kind::kOp ? CallPattern(callee.op, inner) : CallPattern(self.pattern, inner)};
}

PatternRef HasAttr(const PatternRef& self, const Attrs& attrs) {
  const DFPattern::Kind kind = self.pattern->kind;
  if (kind != DFPattern::Kind::kCall && kind != DFPattern::Kind::kFunction) {
    throw Error(ErrorCategory::kInput, "only patterns of calls and functions have attributes", "",
                "call the operator first: is_op(\"nn.relu\")(wildcard()).has_attr({…})");
  }
  auto pattern = std::make_shared<DFPattern>(*self.pattern);
  for (const auto& [name, value] : attrs) pattern->attrs.emplace_back(name, VisitAttr(value, PatternAttrPrinter()));
  return {pattern};
}

PatternRef HasType(const PatternRef& self, const Type& type) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) throw Error(ErrorCategory::kUnsupported, "patterns know the types of tensors only");
  std::vector<int64_t> shape;
  for (const Dim& dim : tensor->shape()) shape.push_back(dim.is_any() ? -1 : dim.size());
  auto pattern = std::make_shared<DFPattern>(*WithShape(self.pattern, std::move(shape)));
  pattern->dtype = tensor->dtype().ToString();
  return {pattern};
}

/// The graph of a function whose body is `expr`; types as far as they can be had.
DataflowGraph GraphOf(const Expr& expr) {
  try {
    InferType(expr);
  } catch (const Error&) {
    // Patterns of types then match nothing that has none.
  }
  return DataflowGraph(MakeFunction(FreeVars(expr), expr), Boundaries::kExact);
}

std::vector<std::vector<Expr>> MatchesAt(const DFPattern& pattern, const Expr& expr) {
  const DataflowGraph graph = GraphOf(expr);
  std::vector<std::vector<Expr>> matches;
  MatchPattern(graph, pattern, graph.IndexOf(expr), [&](const std::vector<int>& inside) {
    std::vector<Expr>& nodes = matches.emplace_back();
    for (int index : inside) nodes.push_back(graph.node(index).expr);
  });
  return matches;
}

using Check = std::function<bool(const Function&)>;

/// Matches of one result that do not overlap, the last in order of dataflow and the largest first.
std::vector<CandidatePartition> DisjointMatches(const DataflowGraph& graph, const DFPattern& pattern,
                                                const std::optional<Check>& check) {
  PatternMatcher matcher(graph);
  std::vector<CandidatePartition> taken;
  IndexSet covered(graph.size());
  for (int root = static_cast<int>(graph.size()) - 2; root >= 0; --root) {
    std::vector<std::vector<int>> found;
    matcher.Match(pattern, root, [&](const std::vector<int>& inside) { found.push_back(inside); });
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (std::vector<int>& inside : found) {
      if (inside.empty()) continue;
      CandidatePartition one{"", SubGraph(graph, std::move(inside)), nullptr};
      const SubGraph& sub_graph = one.sub_graph;
      if (sub_graph.inside().Intersects(covered) || !sub_graph.CheckValid(graph, {.max_exits = 1}).ok()) continue;
      if (check && !(*check)(Extract(graph, sub_graph).function)) continue;
      covered = covered | sub_graph.inside();
      taken.push_back(std::move(one));
    }
  }
  return taken;
}

Expr PartitionByPattern(const PatternRef& self, const Expr& expr, const Attrs& attrs,
                        const std::optional<Check>& check) {
  const Function given = AsShared<FunctionNode>(expr);
  const Function function = given ? given : MakeFunction(FreeVars(expr), expr);
  InferType(function);
  const DataflowGraph graph(function, Boundaries::kExact);
  std::vector<CandidatePartition> candidates = DisjointMatches(graph, *self.pattern, check);
  for (CandidatePartition& one : candidates) {
    Attrs own = attrs;
    if (own.empty()) own.Set("PartitionedFromPattern", one.sub_graph.OperatorLabel(graph));
    one.sub_graph.nested = {{one.sub_graph.members(), own, {}}};
  }
  const std::optional<Function> rewritten = RewriteNested(graph, candidates);
  if (!rewritten) throw Error(ErrorCategory::kInput, "matches depend on each other in a circle");
  InferType(*rewritten);
  return given ? Expr(*rewritten) : (*rewritten)->body();
}

void BindClass(nb::module_& m) {
  nb::class_<PatternRef>(
      m, "DFPattern",
      "A pattern over dataflow. `str` gives the text that toolchains' tables and rules hold. The same "
      "object in two places of a pattern stands for the same node.")
      .def("__str__", [](const PatternRef& self) { return PatternText(*self.pattern); })
      .def("__repr__",
           [](const PatternRef& self) {
             const bool has_text = self.pattern->kind != DFPattern::Kind::kExpr;
             return "<pattern " + (has_text ? PatternText(*self.pattern) : "of an expression") + ">";
           })
      .def("__call__", &CallOf, nb::sig("def __call__(self, *args: DFPattern) -> DFPattern"),
           "A call of what this matches, with arguments that match `args`.")
      .def(
          "__or__",
          [](const PatternRef& self, const PatternRef& other) {
            return PatternRef{AlternativePattern({self.pattern, other.pattern})};
          },
          "Matches what either pattern matches.")
      .def(
          "optional",
          [](const PatternRef& self, const std::function<PatternRef(PatternRef)>& wrap) {
            return PatternRef{OptionalPattern(
                self.pattern, [&](DFPatternPtr pattern) { return wrap(PatternRef{std::move(pattern)}).pattern; })};
          },
          "wrap"_a, "This, or what `wrap` makes of it: `conv.optional(lambda x: is_op(\"nn.relu\")(x))`.")
      .def(
          "dominates",
          [](const PatternRef& self, const PatternRef& parent, const std::optional<PatternRef>& path) {
            return PatternRef{DominatorPattern(parent.pattern, path ? path->pattern : Wildcard(), self.pattern)};
          },
          "parent"_a, "path"_a = nb::none(),
          "This at the root, `parent` further up such that all uses of its value come together here, every node "
          "between "
          "matching `path`.")
      .def("has_attr", &HasAttr, "attrs"_a, "A call or function with these attributes as well.")
      .def(
          "has_dtype",
          [](const PatternRef& self, const std::string& dtype) {
            return PatternRef{WithDType(self.pattern, DataType::FromString(dtype))};
          },
          "dtype"_a, "A tensor of this dtype as well.")
      .def(
          "has_shape",
          [](const PatternRef& self, const std::vector<std::optional<int64_t>>& shape) {
            std::vector<int64_t> dims;
            for (const std::optional<int64_t>& dim : shape) dims.push_back(dim.value_or(-1));
            return PatternRef{WithShape(self.pattern, std::move(dims))};
          },
          "shape"_a, "A tensor of this shape as well; None stands for any size.")
      .def("has_type", &HasType, "type"_a, "A tensor of this type as well.")
      .def(
          "match", [](const PatternRef& self, const Expr& expr) { return !MatchesAt(*self.pattern, expr).empty(); },
          "expr"_a, "Whether it matches with `expr` as its root.")
      .def(
          "matches", [](const PatternRef& self, const Expr& expr) { return MatchesAt(*self.pattern, expr); }, "expr"_a,
          "For every way in which it matches with `expr` as its root, the nodes inside of the match, in order of "
          "dataflow.")
      .def("partition", &PartitionByPattern, "expr"_a, "attrs"_a = nb::dict(), "check"_a = nb::none(),
           "`expr` with every match of one result as a call of a function with `attrs`, such as {\"Composite\": name}. "
           "Matches do not overlap: the last in order of dataflow and the largest are taken first. `check` is asked of "
           "each match, as a function.");
}

}  // namespace

void BindPatterns(nb::module_& m) {
  BindClass(m);
  m.def(
      "wildcard", [] { return PatternRef{Wildcard()}; }, "Matches anything; it stays outside of the match.");
  m.def(
      "is_constant", [] { return PatternRef{ConstantPattern()}; }, "Matches a constant.");
  m.def(
      "is_var", [](std::string name) { return PatternRef{VarPattern(std::move(name))}; }, "name"_a = "",
      "Matches a variable, of this name if one is given.");
  m.def(
      "is_expr", [](Expr expr) { return PatternRef{ExprPattern(std::move(expr))}; }, "expr"_a,
      "Matches this very node.");
  m.def(
      "is_op", [](const std::string& name) { return PatternRef{OpPattern(name)}; }, "name"_a,
      "Matches an operator; call it with patterns to match its calls.");
  m.def(
      "any_call",
      [](const std::string& name, const Attrs& attrs) {
        PatternAttrs wanted;
        for (const auto& [key, value] : attrs) wanted.emplace_back(key, VisitAttr(value, PatternAttrPrinter()));
        return PatternRef{AnyCallPattern(name, std::move(wanted))};
      },
      "name"_a, "attrs"_a = nb::dict(), "Matches calls of an operator with any arguments.");
  m.def(
      "is_tuple", [](const std::vector<PatternRef>& fields) { return PatternRef{TuplePattern(Inner(fields))}; },
      "fields"_a, "Matches a tuple.");
  m.def(
      "is_tuple_get_item",
      [](const PatternRef& tuple, int index) { return PatternRef{ProjectionPattern(tuple.pattern, index)}; },
      "tuple_value"_a, "index"_a = -1, "Matches a projection: of field `index`, of any field if that is -1.");
  m.def(
      "is_let",
      [](const PatternRef& var, const PatternRef& value, const PatternRef& body) {
        return PatternRef{LetPattern(var.pattern, value.pattern, body.pattern)};
      },
      "var"_a, "value"_a, "body"_a, "Matches a let.");
  m.def(
      "is_if",
      [](const PatternRef& cond, const PatternRef& yes, const PatternRef& no) {
        return PatternRef{IfPattern(cond.pattern, yes.pattern, no.pattern)};
      },
      "cond"_a, "true_branch"_a, "false_branch"_a, "Matches an if.");
  m.def(
      "is_function",
      [](const std::optional<std::vector<PatternRef>>& params, const PatternRef& body) {
        if (!params) return PatternRef{FunctionPattern(std::nullopt, body.pattern)};
        return PatternRef{FunctionPattern(Inner(*params), body.pattern)};
      },
      "params"_a.none(), "body"_a, "Matches a function by its parameters (None: any) and its body.");
  m.def(
      "dominates",
      [](const PatternRef& parent, const PatternRef& path, const PatternRef& child) {
        return PatternRef{DominatorPattern(parent.pattern, path.pattern, child.pattern)};
      },
      "parent"_a, "path"_a, "child"_a,
      "Matches `child` at the root, `parent` further up, and `path` at every node between the two.");
  m.def(
      "parse_pattern", [](const std::string& text) { return PatternRef{ParsePattern(text)}; }, "text"_a,
      "Reads the text of a pattern, as `str` gives it.");
}

}  // namespace collage::python
