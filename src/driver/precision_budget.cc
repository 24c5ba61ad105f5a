// precision_budget.cc: units of precision, and which of them to keep.
#include "driver/precision_budget.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "target/toolchain_configuration.h"

namespace collage {
namespace {

// The greatest error of rounding to bfloat16, for partitions whose own error is not known.
constexpr double kTypicalError = 1.0 / 512;

/// Operators of a partition that something has to compute, ascending.
std::vector<int> OperatorsOf(const DataflowGraph& graph, const SubGraph& sub_graph) {
  std::vector<int> operators;
  for (int member : sub_graph.members()) {
    if (graph.OpAt(member) != nullptr && !graph.OpAt(member)->is_reshape) operators.push_back(member);
  }
  return operators;
}

bool IsProduct(const DataflowGraph& graph, int node) { return static_cast<bool>(graph.OpAt(node)->multiply_adds); }

/// The numbers that a call computes and writes.
double WeightOf(const DataflowGraph& graph, int node) {
  const CallNode* call = As<CallNode>(graph.node(node).expr);
  double weight = 0;
  for (const Type& type : FlattenTensorTypes(call->checked_type())) {
    weight += static_cast<double>(NumElements(AsTensorType(type)->static_shape()));
  }
  if (!IsProduct(graph, node)) return weight;
  std::vector<Type> types;
  for (const Expr& arg : call->args()) types.push_back(arg->checked_type());
  return weight + call->op()->multiply_adds({types, call->attrs()});
}

/// By node: its share of what its partition costs, 0 where that is not known.
std::vector<double> SecondsByNode(Partitioner& partitioner, const Cover& cover) {
  std::vector<double> seconds;
  for (VariantIndex variant : cover.variants) {
    const DataflowGraph& graph = partitioner.candidates().graph();
    const SubGraph& sub_graph = partitioner.candidates().CandidateOf(variant).sub_graph;
    seconds.resize(graph.size());
    const std::vector<int> operators = OperatorsOf(graph, sub_graph);
    const double exact = partitioner.Exact(variant);
    double all = 0;
    for (int node : operators) all += WeightOf(graph, node);
    if (all == 0 || !std::isfinite(exact)) continue;
    for (int node : operators) seconds[static_cast<size_t>(node)] = exact * WeightOf(graph, node) / all;
  }
  return seconds;
}

/// Before each product but the first.
std::vector<std::vector<int>> CutAtProducts(const DataflowGraph& graph, const std::vector<int>& operators) {
  std::vector<std::vector<int>> parts(1);
  bool has_product = false;
  for (int node : operators) {
    if (IsProduct(graph, node)) {
      if (has_product) parts.emplace_back();
      has_product = true;
    }
    parts.back().push_back(node);
  }
  return parts;
}

double WorthOf(const PrecisionUnit& unit) {
  const double error = unit.error > 0 ? unit.error : kTypicalError;
  return unit.gain / (error * error);
}

}  // namespace

std::vector<int> ChooseWithin(std::span<const PrecisionUnit> units, int max_tries,
                              const std::function<bool(const std::vector<int>& units)>& fits) {
  std::vector<int> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return WorthOf(units[static_cast<size_t>(a)]) > WorthOf(units[static_cast<size_t>(b)]);
  });
  std::vector<int> kept;
  // `kept` with the first `count` of `rest`.
  const auto with = [&](std::span<const int> rest, size_t count) {
    std::vector<int> chosen = kept;
    chosen.insert(chosen.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  };
  std::span<const int> rest = order;
  while (!rest.empty()) {
    size_t few = 0;             // `kept` with so many of `rest` fits
    size_t many = rest.size();  // with so many it does not
    while (few + 1 < many && max_tries > 0) {
      const size_t middle = few + (many - few) / 2;
      --max_tries;
      (fits(with(rest, middle)) ? few : many) = middle;
    }
    kept = with(rest, few);
    rest = rest.subspan(many);
    if (rest.empty() || max_tries == 0) break;
    --max_tries;
    if (fits(with(rest, rest.size()))) return with(rest, rest.size());
  }
  return kept;
}

bool IsLower(const Toolchain& toolchain) { return InferencePrecisionOf(toolchain).has_value(); }

int CountLower(const Partitioner& partitioner, const Cover& cover) {
  return static_cast<int>(std::count_if(cover.variants.begin(), cover.variants.end(), [&](VariantIndex variant) {
    return IsLower(*partitioner.candidates().CandidateOf(variant).toolchain);
  }));
}

std::vector<PrecisionUnit> PrecisionUnits(Partitioner& partitioner, const Cover& best, const Cover& standard,
                                          const IsRationed& is_rationed) {
  const std::vector<double> lower = SecondsByNode(partitioner, best);
  const std::vector<double> full = SecondsByNode(partitioner, standard);
  const DataflowGraph& graph = partitioner.candidates().graph();
  std::vector<PrecisionUnit> units;
  for (VariantIndex variant : best.variants) {
    if (!is_rationed(*partitioner.candidates().CandidateOf(variant).toolchain)) continue;
    const SubGraph& sub_graph = partitioner.candidates().CandidateOf(variant).sub_graph;
    for (std::vector<int>& nodes : CutAtProducts(graph, OperatorsOf(graph, sub_graph))) {
      PrecisionUnit unit{std::move(nodes), 0, partitioner.ErrorOf(variant)};
      for (int node : unit.nodes) unit.gain += full[static_cast<size_t>(node)] - lower[static_cast<size_t>(node)];
      units.push_back(std::move(unit));
    }
  }
  return units;
}

std::optional<BoundedCover> FindBoundedCover(
    Partitioner& partitioner, const Cover& best, const Cover& standard, double allowed,
    const std::function<std::optional<Cover>(const std::function<bool(CandidateIndex candidate)>& may)>& search,
    const std::function<double(const Cover&)>& error_of, const IsRationed& is_rationed) {
  const std::vector<PrecisionUnit> units = PrecisionUnits(partitioner, best, standard, is_rationed);
  if (units.empty()) return std::nullopt;
  const DataflowGraph& graph = partitioner.candidates().graph();
  std::optional<BoundedCover> found;
  const auto fits = [&](const std::vector<int>& chosen) {
    IndexSet kept(graph.size());
    for (int unit : chosen) {
      for (int node : units[static_cast<size_t>(unit)].nodes) kept.Add(node);
    }
    const std::optional<Cover> cover = search([&](CandidateIndex candidate) {
      const CandidatePartition& one = partitioner.candidates().at(candidate);
      return !is_rationed(*one.toolchain) ||
             std::ranges::all_of(OperatorsOf(graph, one.sub_graph), [&](int node) { return kept.Contains(node); });
    });
    if (!cover) return false;
    const double error = error_of(*cover);
    if (error > allowed) return false;
    found = {*cover, error};
    return true;
  };
  const int max_tries = 2 * static_cast<int>(std::bit_width(units.size())) + 1;
  ChooseWithin(units, max_tries, fits);
  return found;
}

}  // namespace collage
