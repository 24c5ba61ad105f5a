// indices.h: the numbers that searches count in. A graph's nodes are plain integers, their post-dfs indices.
#pragma once

#include "support/typed_index.h"

namespace collage {

struct CandidatePartition;
struct CandidateVariant;
struct CoverVariant;

/// The number of a candidate.
using CandidateIndex = TypedIndex<CandidatePartition>;

/// The number of a candidate in one of its layout combinations.
using VariantIndex = TypedIndex<CandidateVariant>;

/// A node that must be covered, by its place in an order of dataflow.
using Position = TypedIndex<struct PositionKind>;

using CandidateList = IndexedVector<CandidateIndex, CandidatePartition>;
using VariantList = IndexedVector<VariantIndex, CandidateVariant>;

/// For variants that are numbered anew, their original numbers.
using OriginalVariants = IndexedVector<VariantIndex, VariantIndex>;

}  // namespace collage
