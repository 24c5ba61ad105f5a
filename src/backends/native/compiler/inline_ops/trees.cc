// trees.cc: ml.tree_leaves: each lane walks through a tree of its own, all of them together, until the last one has
// come to its leaf. A step is four gathers.
#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native {
namespace {

class TreeWalk {
 public:
  TreeWalk(Expressions& x, const CallNode& call, const Indices& indices)
      : x_(x), e_(x.emitter()), m_(x.math()), call_(call), row_(indices[0]), tree_(indices[1]) {}

  Value Run() {
    Value root = x_.At(call_.args()[1], {tree_});
    // Lanes that are not read have come to their leaf.
    if (!e_.mask().is_none()) root = m_.Select(AsValue(e_.mask()), root, m_.Integer(-1));
    const Value end = Loop(root, call_.attrs().Int("depth"));
    return m_.Select(IsNode(end), m_.Integer(0), m_.Subtract(m_.Integer(-1), end));
  }

 private:
  Value IsNode(const Value& place) { return m_.Compare("oge", "sge", place, m_.Integer(0)); }

  /// `number` as a coordinate of a dimension of `length`.
  Index Clipped(const Value& number, int64_t length) {
    const Index index = e_.FromLanes(AsLanes(number));
    return e_.IndexOp("minsi", e_.IndexOp("maxsi", index, 0), e_.Added(length, -1));
  }

  /// Steps until no lane is at a node, `most` at most.
  Value Loop(const Value& root, int64_t most) {
    const std::string places = e_.TypeOf(ElementKind::kInt), types = places + ", i64";
    const std::string result = e_.Fresh(), place = e_.Fresh(), count = e_.Fresh();
    const I64 none = e_.Int(0), one = e_.Int(1), bound = e_.Int(most);
    e_.Open(fmt::format("{}:2 = scf.while ({} = {}, {} = {}) : ({}) -> ({}) {{", result, place, root.name, count, none,
                        types, types));
    const Value here{place, ElementKind::kInt};
    const I1 has_node = e_.IntCompare("sge", e_.LargestLane(here), e_.Int(0));
    const I1 goes_on = e_.And(has_node, e_.IntCompare("slt", I64{count}, bound));
    e_.Line(fmt::format("scf.condition({}) {}, {} : {}", goes_on, place, count, types));
    const std::string node = e_.Fresh(), step = e_.Fresh();
    e_.Close("} do {");
    e_.Open(fmt::format("^bb0({}: {}, {}: i64):", node, places, step));
    Value next;
    x_.Inside([&] { next = Step({node, ElementKind::kInt}); });
    e_.Line(fmt::format("scf.yield {}, {} : {}", next.name, e_.AddInt(I64{step}, one), types));
    e_.Close();
    return {result + "#0", ElementKind::kInt};
  }

  /// The children of lanes at nodes; others stay.
  Value Step(const Value& node) {
    const std::vector<Expr>& args = call_.args();
    const Index at = Clipped(node, ShapeOf(args[2])[0]);
    const Index feature = Clipped(x_.At(args[2], {at}), ShapeOf(args[0])[1]);
    const Value number = x_.At(args[0], {row_, feature}), threshold = x_.At(args[3], {at});
    const Value is_greater = m_.Compare("ogt", "sgt", number, threshold);
    const Value is_at_most = m_.Compare("ole", "sle", number, threshold);
    const Value branch = m_.Select(is_at_most, m_.Integer(0), m_.Select(is_greater, m_.Integer(1), m_.Integer(2)));
    const Value child = x_.At(args[4], {at, e_.FromLanes(AsLanes(branch))});
    return m_.Select(IsNode(node), child, node);
  }

  Expressions& x_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const Index& row_;
  const Index& tree_;
};

}  // namespace

Value inline_ops::TreeLeaves(X& x, C call, I indices) { return TreeWalk(x, call, indices).Run(); }

}  // namespace collage::native
