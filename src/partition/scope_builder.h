// scope_builder.h: rebuilds some nodes of a dataflow graph as a new expression, nested sub-graphs as calls of
// functions. Extraction (phase 3) and rewriting (phase 4) share it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "partition/extract.h"

namespace collage {

/// Builds one scope: the body of a function. A unit is a nested sub-graph, or a node in none; it is built when all that
/// it needs is there, depth first with an explicit stack.
class ScopeBuilder {
 public:
  /// Makes the function of nested sub-graph number i final, given without attributes that only the caller knows.
  using Finish = std::function<Function(size_t number, Function function)>;

  /// `members` null: the whole graph. Values that members need from outside become parameters.
  ScopeBuilder(const DataflowGraph& graph, const IndexSet* members, const std::vector<NestedSubGraph>& nested,
               Finish finish = {});

  /// Builds what the values of `results` need, the last one's first; false when units depend on each other in a circle.
  bool Build(const std::vector<int>& results);

  /// The value of a built node.
  const Expr& ValueOf(int node) const { return values_.at(node); }
  /// Parameters, in the order of first use, and what they stand for.
  const std::vector<Var>& params() const { return params_; }
  const std::vector<BoundaryValue>& inputs() const { return inputs_; }

 private:
  /// Nodes that are built in one step.
  struct Unit {
    int node;    ///< when `nested` is negative
    int nested;  ///< number of the nested sub-graph
    bool operator==(const Unit&) const = default;
  };
  struct Frame {
    Unit unit;
    std::vector<BoundaryValue> needs;
    size_t next = 0;
  };
  struct NestedFunction {
    Function function;
    Boundary boundary;
    std::vector<int> exits;
  };
  enum class Progress : uint8_t { kNew, kOpen, kBuilt };

  bool IsLeaf(int node) const;
  bool IsInside(int node) const;
  bool IsDissolvedLet(int node) const;
  std::vector<Expr> PartsOf(int node) const;
  Unit UnitOf(int node) const;
  Progress& ProgressOf(const Unit& unit);
  std::vector<BoundaryValue> NeedsOf(const Unit& unit);
  bool BuildFrom(int root);
  void AddParam(const BoundaryValue& value);
  void BuildUnit(const Unit& unit);
  void BuildNode(int node);
  void CallNested(int number);
  Expr Use(const BoundaryValue& value) const;
  Expr ValueOrLeaf(int node) const;
  const NestedFunction& FunctionOf(int number);

  const DataflowGraph& graph_;
  const IndexSet* members_;
  const std::vector<NestedSubGraph>& nested_;
  Finish finish_;
  std::unordered_map<int, int> nested_of_;  ///< node → number of the nested sub-graph that holds it
  std::unordered_map<int, NestedFunction> functions_;
  std::unordered_map<int, Progress> node_progress_, nested_progress_;
  std::unordered_map<int, Expr> values_;
  std::map<BoundaryValue, Expr> fields_;  ///< fields of tuples that are passed field by field
  std::vector<Var> params_;
  std::vector<BoundaryValue> inputs_;
};

/// Nodes of `inside` (ascending) whose values are used outside of it.
std::vector<int> ExitsOf(const DataflowGraph& graph, const std::vector<int>& inside);

/// The results of a function that makes `exits`, and their flattened tensors.
struct ScopeResult {
  Expr body;
  std::vector<BoundaryValue> outputs;
};
ScopeResult ResultOf(const DataflowGraph& graph, const ScopeBuilder& scope, const std::vector<int>& exits);

/// A typed function without attributes.
Function TypedFunction(const std::vector<Var>& params, const Expr& body, Attrs attrs = {});

}  // namespace collage
