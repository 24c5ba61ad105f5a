// library_calls_rule.cc: see library_calls_rule.h.
#include "partition/rules/library_calls_rule.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "collage/target/composite_calls.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

class LibraryCallsPartitionRule : public PartitionRule {
 public:
  explicit LibraryCallsPartitionRule(const Toolchain& library) : library_(library.name()) {
    std::vector<PartitionRulePtr> rows;
    for (const CompositeCall& row : CompositeCallsOf(library)) rows.push_back(RowRule(row.match));
    rows_ = UnionRule(std::move(rows));
  }

  /// The largest matches: those that no other match holds, and the first of several with the same members. A function
  /// that computes more saves more, and each match meets all that native kernels may join with it.
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates matches = rows_->AllCandidates(graph, toolchain, log);
    std::unordered_map<int, std::vector<size_t>> holding;  // node → matches that hold it
    for (size_t i = 0; i < matches.size(); ++i) {
      for (const int member : matches[i].sub_graph.members()) holding[member].push_back(i);
    }
    Candidates largest;
    for (size_t i = 0; i < matches.size(); ++i) {
      const SubGraph& own = matches[i].sub_graph;
      const auto replaces = [&](size_t other) {
        const SubGraph& larger = matches[other].sub_graph;
        const bool is_more = larger.members().size() > own.members().size() || other < i;
        return other != i && is_more && own.inside().IsSubset(larger.inside());
      };
      if (std::ranges::none_of(holding[own.first()], replaces)) largest.push_back(matches[i]);
    }
    return largest;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("LibraryCalls", "");
    json["library"] = library_;
    return json;
  }

 private:
  std::string library_;
  PartitionRulePtr rows_;
};

PartitionRulePtr ReadLibraryCalls(const JsonReader& json, std::string) {
  const JsonReader name = json.At("library");
  const Toolchain* library = ToolchainRegistry::Global().Find(name.String());
  if (library == nullptr) {
    name.Fail("there is no toolchain '" + name.String() + "'", ToolchainRegistry::Global().HintFor(name.String()));
  }
  return LibraryCallsRule(*library);
}

}  // namespace

const RuleKind kLibraryCallsKind{"LibraryCalls", {"library"}, ReadLibraryCalls};

PartitionRulePtr LibraryCallsRule(const Toolchain& library) {
  return std::make_unique<LibraryCallsPartitionRule>(library);
}

}  // namespace collage
