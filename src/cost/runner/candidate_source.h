// candidate_source.h: names of candidates between the compiler, estimators and measuring workers.
#pragma once

#include <compare>
#include <utility>

#include "collage/target/toolchain.h"
#include "partition/sub_graph.h"

namespace collage {

/// Names a candidate of a CandidateSource in one choice of layouts at its boundary. Valid while that source lives, and
/// in workers forked meanwhile.
struct CandidateHandle {
  int number = -1;
  auto operator<=>(const CandidateHandle&) const = default;
};

/// The candidates whose costs are asked for.
class CandidateSource {
 public:
  virtual ~CandidateSource() = default;
  /// A candidate's partition, ready to be compiled, and its toolchain.
  virtual std::pair<PartitionRequest, const Toolchain*> Find(CandidateHandle candidate) const = 0;
  /// Returns a candidate's nodes, and their graph.
  virtual std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(CandidateHandle candidate) const = 0;
};

}  // namespace collage
