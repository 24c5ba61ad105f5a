// registered_rule.h: asking functions of rules from outside of the tree, as a rule or as a combiner.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/partition_rules.h"
#include "partition/partition_rule.h"
#include "support/json_reader.h"

namespace collage {

/// A function by its name, with the options that a rule gives it.
struct RegisteredFunction {
  std::string name;
  std::string options;  ///< JSON
  FindCandidatesFn find;

  /// Reads fields "function" and "options". Throws kInput at its place for a name that nobody registered.
  static RegisteredFunction Read(const JsonReader& json);
  void AddTo(RuleJson& json) const;

  /// Questions to one function about one graph; all arguments must outlive it.
  class Caller {
   public:
    Caller(const RegisteredFunction& function, const DataflowGraph& graph, const Toolchain& toolchain);

    /// Adds a candidate to those that the function is told.
    void Tell(const CandidatePartition& candidate);
    size_t num_told() const { return nested_.size(); }
    /// Returns the function's candidates, which need not be valid. Throws kInput for what is no set of nodes.
    std::vector<CandidatePartition> Ask();

   private:
    CandidatePartition FromRule(const RuleCandidate& candidate) const;

    const RegisteredFunction& function_;
    const DataflowGraph& graph_;
    RuleRequest request_;
    std::vector<std::vector<NestedSubGraph>> nested_;  ///< by candidate that was told
    std::unordered_map<const ExprNode*, int> indices_;
  };
};

}  // namespace collage
