// evolution.h: a genetic algorithm over lists of small numbers, as the paper's graph-level search uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/find_covers.h"

namespace collage {

/// For each gene one of its alleles 0, 1, ….
using Genome = std::vector<int>;

struct EvolutionResult {
  Genome best;  ///< the best that was ever seen; among equals the first
  double fitness = 0;
  int64_t num_evaluations = 0;  ///< distinct genomes
  int64_t num_generations = 0;
};

/// Minimises `fitness`, which may be infinite. The first population holds the genome of zeros, the `seeds`, and random
/// ones. Each generation is drawn from the one before by tournaments; neighbours exchange the stretch between two
/// points; some mutate. A genome's fitness is asked for once. Equal seeds give equal results, unless time runs out.
EvolutionResult Evolve(const std::vector<int>& num_alleles, std::vector<Genome> seeds, const EvolutionOptions& options,
                       const std::function<double(const Genome&)>& fitness);

}  // namespace collage
