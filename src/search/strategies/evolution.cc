// evolution.cc: the genetic algorithm. Random numbers are drawn from the generator's raw output, so that results do not
// depend on the standard library.
#include "search/strategies/evolution.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <random>

namespace collage {
namespace {

class Evolution {
 public:
  Evolution(const std::vector<int>& num_alleles, std::vector<Genome> seeds, const EvolutionOptions& options,
            const std::function<double(const Genome&)>& fitness)
      : num_alleles_(num_alleles),
        seeds_(std::move(seeds)),
        options_(options),
        fitness_(fitness),
        random_(options.seed) {}

  EvolutionResult Run() {
    std::vector<Genome> population = FirstPopulation();
    result_.best = population[0];
    result_.fitness = std::numeric_limits<double>::infinity();
    for (const Genome& genome : population) FitnessOf(genome);
    const bool can_change = std::any_of(num_alleles_.begin(), num_alleles_.end(), [](int count) { return count > 1; });
    while (can_change && result_.num_generations < options_.max_generations && !IsSpent()) {
      population = NextPopulation(population);
      ++result_.num_generations;
    }
    return result_;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  bool Happens(double rate) { return static_cast<double>(random_() >> 11) * 0x1p-53 < rate; }

  bool IsSpent() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    return result_.num_evaluations >= options_.max_evaluations ||
           (options_.budget_seconds > 0 && seconds >= options_.budget_seconds);
  }

  /// Infinite when it may not be asked for any more.
  double FitnessOf(const Genome& genome) {
    if (auto it = known_.find(genome); it != known_.end()) return it->second;
    if (result_.num_evaluations > 0 && IsSpent()) return std::numeric_limits<double>::infinity();
    ++result_.num_evaluations;
    const double fitness = fitness_(genome);
    if (fitness < result_.fitness) {
      result_.fitness = fitness;
      result_.best = genome;
    }
    return known_[genome] = fitness;
  }

  std::vector<Genome> FirstPopulation() {
    std::vector<Genome> population{Genome(num_alleles_.size(), 0)};
    population.insert(population.end(), seeds_.begin(), seeds_.end());
    while (std::ssize(population) < options_.population) {
      Genome genome;
      for (int count : num_alleles_) genome.push_back(static_cast<int>(Below(count)));
      population.push_back(std::move(genome));
    }
    return population;
  }

  std::vector<Genome> NextPopulation(const std::vector<Genome>& population) {
    std::vector<Genome> next;
    for (size_t i = 0; i < population.size(); ++i) next.push_back(Winner(population));
    for (size_t i = 1; i < next.size(); i += 2) {
      if (Happens(options_.crossover_rate)) Cross(next[i - 1], next[i]);
    }
    for (Genome& genome : next) {
      if (Happens(options_.mutation_rate)) Mutate(genome);
    }
    for (const Genome& genome : next) FitnessOf(genome);
    return next;
  }

  const Genome& Winner(const std::vector<Genome>& population) {
    const Genome* winner = nullptr;
    double best = 0;
    for (int i = 0; i < std::max(1, options_.tournament); ++i) {
      const Genome& entrant = population[Below(population.size())];
      const double fitness = FitnessOf(entrant);
      if (winner == nullptr || fitness < best) {
        winner = &entrant;
        best = fitness;
      }
    }
    return *winner;
  }

  void Cross(Genome& a, Genome& b) {
    size_t begin = Below(a.size() + 1);
    size_t end = Below(a.size() + 1);
    if (begin > end) std::swap(begin, end);
    for (size_t i = begin; i < end; ++i) std::swap(a[i], b[i]);
  }

  void Mutate(Genome& genome) {
    for (size_t i = 0; i < genome.size(); ++i) {
      const size_t count = num_alleles_[i];
      if (count < 2 || !Happens(options_.flip_rate)) continue;
      genome[i] = static_cast<int>((genome[i] + 1 + Below(count - 1)) % count);
    }
  }

  const std::vector<int>& num_alleles_;
  std::vector<Genome> seeds_;
  const EvolutionOptions& options_;
  const std::function<double(const Genome&)>& fitness_;
  std::mt19937_64 random_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<Genome, double> known_;
  EvolutionResult result_;
};

}  // namespace

EvolutionResult Evolve(const std::vector<int>& num_alleles, std::vector<Genome> seeds, const EvolutionOptions& options,
                       const std::function<double(const Genome&)>& fitness) {
  return Evolution(num_alleles, std::move(seeds), options, fitness).Run();
}

}  // namespace collage
