// random_cover_problem.cc: generation, and enumeration by definition.
#include "property/random_cover_problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace collage::testing_covers {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kFormats = 3;
constexpr int kToolchains = 3;

/// Node and position are the same here: each must be covered.
std::vector<Position> PositionsOf(const std::vector<int>& nodes) {
  std::vector<Position> positions;
  for (int node : nodes) positions.push_back(Position(node));
  return positions;
}

class Generator {
 public:
  Generator(int num_nodes, uint32_t seed) : random_(seed), size_(num_nodes), made_(std::make_unique<RandomProblem>()) {}

  std::unique_ptr<RandomProblem> Make() {
    MakeGraph();
    const bool has_formats = Below(3) != 0;
    for (int node = 0; has_formats && node < size_; ++node) {
      if (Below(2) == 0)
        made_->problem.values[node] = {Position(node), PositionsOf(made_->node_outputs[static_cast<size_t>(node)])};
      for (int from = 0; from < kFormats; ++from) {
        for (int to = 0; to < kFormats; ++to) made_->costs.converts[{node, from, to}] = Below(4);
      }
    }
    for (const auto& [node, _] : made_->problem.values) {
      if (Below(6) == 0) made_->problem.returned.push_back({node, 0});
    }
    std::sort(made_->problem.returned.begin(), made_->problem.returned.end());
    for (const std::set<int>& members : MakeSets()) AddVariants(members);
    const bool has_switch_penalties = Below(2) == 0;
    for (int from = 0; from < kToolchains; ++from) {
      for (int to = 0; to < kToolchains; ++to) {
        made_->costs.switch_penalties[{from, to}] = has_switch_penalties && from != to ? Below(4) : 0;
      }
    }
    return std::move(made_);
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }

  void MakeGraph() {
    made_->problem.num_positions = size_;
    made_->problem.node_inputs.resize(static_cast<size_t>(size_));
    made_->node_outputs.resize(static_cast<size_t>(size_));
    const int reach = 1 + Below(5);
    for (int node = 1; node < size_; ++node) {
      std::set<int> inputs;
      for (int i = Below(4) == 0 ? 0 : 1 + Below(2); i > 0; --i) inputs.insert(node - 1 - Below(std::min(node, reach)));
      for (int input : inputs) {
        made_->problem.node_inputs[static_cast<size_t>(node)].push_back(input);
        made_->node_outputs[static_cast<size_t>(input)].push_back(node);
      }
    }
  }

  std::vector<std::set<int>> MakeSets() {
    std::vector<std::set<int>> sets;
    for (int node = 0; node < size_; ++node) {
      if (Below(8) != 0) sets.push_back({node});
    }
    for (int i = Below(3 * size_); i > 0; --i) {
      std::set<int> set{Below(size_)};
      const int wanted = Below(10) == 0 ? size_ : 2 + Below(3);
      for (int tries = 0; tries < 4 * wanted && static_cast<int>(set.size()) < wanted; ++tries) {
        const int from = *std::next(set.begin(), Below(static_cast<int>(set.size())));
        const auto& near = Below(2) == 0 ? made_->problem.node_inputs[static_cast<size_t>(from)]
                                         : made_->node_outputs[static_cast<size_t>(from)];
        if (Below(5) == 0) set.insert(Below(size_));
        if (!near.empty()) set.insert(near[static_cast<size_t>(Below(static_cast<int>(near.size())))]);
      }
      if (!Reenters(set)) sets.push_back(std::move(set));
    }
    std::shuffle(sets.begin(), sets.end(), random_);
    return sets;
  }

  bool Reenters(const std::set<int>& set) const {
    std::vector<char> tainted(static_cast<size_t>(size_));
    for (int node = 0; node < size_; ++node) {
      for (int input : made_->problem.node_inputs[static_cast<size_t>(node)]) {
        const bool is_tainted = tainted[static_cast<size_t>(input)] != 0;
        if (set.contains(node) && is_tainted) return true;
        if (!set.contains(node) && (is_tainted || set.contains(input))) tainted[static_cast<size_t>(node)] = 1;
      }
    }
    return false;
  }

  void AddVariants(const std::set<int>& set) {
    CoverVariant variant;
    const std::vector<int> nodes(set.begin(), set.end());
    variant.covers = PositionsOf(nodes);
    int num_exits = 0;
    std::set<int> inputs;
    for (int node : set) {
      for (int input : made_->problem.node_inputs[static_cast<size_t>(node)]) {
        if (!set.contains(input)) inputs.insert(input);
      }
      const std::vector<int>& outputs = made_->node_outputs[static_cast<size_t>(node)];
      const auto is_outside = [&](int output) { return !set.contains(output); };
      if (outputs.empty() || std::any_of(outputs.begin(), outputs.end(), is_outside)) ++num_exits;
    }
    if (num_exits > 1) variant.members = nodes;
    variant.toolchain = Below(kToolchains);
    variant.priority = variant.toolchain / 2;
    if (Below(50) == 0) variant.covers.clear();  // reshapes only
    const int exact = Below(12) + Below(3) * static_cast<int>(set.size());
    for (int i = 1 + Below(3); i > 0; --i) {
      variant.wants.clear();
      variant.makes.clear();
      for (int input : inputs) {
        if (made_->problem.values.contains(input)) variant.wants.push_back({input, Below(kFormats)});
      }
      for (int node : set) {
        if (made_->problem.values.contains(node)) variant.makes.push_back({node, Below(kFormats)});
      }
      made_->problem.variants.push_back(variant);
      const double own = Below(12) == 0 ? kInfinity : Below(20) == 0 ? std::nan("") : exact + Below(3);
      made_->costs.exact.push_back(own);
      made_->costs.bounds.push_back(std::isfinite(own) && Below(4) != 0 ? std::max(0.0, own - Below(3)) : 0);
      made_->costs.transitions.push_back(Below(3));
      made_->costs.places.push_back(variant.toolchain);
    }
  }

  std::mt19937 random_;
  int size_;
  std::unique_ptr<RandomProblem> made_;
};

/// Whether the partitions can be run one after the other: takes away one that needs no other, again and again.
bool CanBeRun(const RandomProblem& random, const std::vector<VariantIndex>& cover) {
  IndexedVector<Position, VariantIndex> owner(static_cast<size_t>(random.problem.num_positions));
  for (VariantIndex v : cover) {
    for (Position position : random.problem.variants[v].covers) owner[position] = v;
  }
  std::set<VariantIndex> left(cover.begin(), cover.end());
  while (!left.empty()) {
    const auto is_ready = [&](VariantIndex v) {
      for (Position position : random.problem.variants[v].covers) {
        for (int input : random.problem.node_inputs[static_cast<size_t>(position.number())]) {
          const VariantIndex needed = owner[Position(input)];
          if (needed != v && left.contains(needed)) return false;
        }
      }
      return true;
    };
    const auto ready = std::find_if(left.begin(), left.end(), is_ready);
    if (ready == left.end()) return false;
    left.erase(ready);
  }
  return true;
}

/// `variants` by their first positions: as they run.
Cover Costed(RandomProblem& random, std::vector<VariantIndex> variants) {
  std::map<int, Format> made;
  std::set<FormatUse> wanted(random.problem.returned.begin(), random.problem.returned.end());
  Cover cover{std::move(variants), 0, 0};
  for (size_t i = 1; i < cover.variants.size(); ++i) {
    const auto place = [&](size_t of) { return random.costs.places[cover.variants[of]]; };
    cover.seconds += random.costs.switch_penalties.at({place(i - 1), place(i)});
  }
  for (VariantIndex v : cover.variants) {
    const double exact = random.costs.exact[v];
    cover.num_unknown += std::isnan(exact) ? 1 : 0;
    cover.seconds += (std::isnan(exact) ? 0 : exact) + random.costs.transitions[v];
    const CoverVariant& variant = random.problem.variants[v];
    wanted.insert(variant.wants.begin(), variant.wants.end());
    for (const FormatUse& make : variant.makes) made[make.value] = make.format;
  }
  for (const FormatUse& want : wanted) {
    const Format from = made.at(want.value);
    if (from != want.format) cover.seconds += random.costs.converts.at({want.value, from, want.format});
  }
  return cover;
}

}  // namespace

std::unique_ptr<RandomProblem> MakeRandomProblem(int num_nodes, uint32_t seed) {
  return Generator(num_nodes, seed).Make();
}

bool AllCovers(RandomProblem& random, size_t most, std::vector<Cover>& covers) {
  std::vector<VariantIndex> chosen;
  IndexedVector<Position, char> covered(static_cast<size_t>(random.problem.num_positions));
  size_t num_tried = 0;
  const std::function<void()> extend = [&] {
    const Position next(static_cast<int>(std::find(covered.begin(), covered.end(), 0) - covered.begin()));
    if (++num_tried > most) return;
    if (next == covered.next()) {
      if (CanBeRun(random, chosen)) covers.push_back(Costed(random, chosen));
      return;
    }
    for (VariantIndex v : random.problem.variants.indices()) {
      const std::vector<Position>& covers_of = random.problem.variants[v].covers;
      if (covers_of.empty() || covers_of.front() != next || random.costs.exact[v] == kInfinity) continue;
      if (std::any_of(covers_of.begin(), covers_of.end(), [&](Position p) { return covered[p] != 0; })) {
        continue;
      }
      for (Position p : covers_of) covered[p] = 1;
      chosen.push_back(v);
      extend();
      chosen.pop_back();
      for (Position p : covers_of) covered[p] = 0;
    }
  };
  extend();
  return num_tried <= most;
}

}  // namespace collage::testing_covers
