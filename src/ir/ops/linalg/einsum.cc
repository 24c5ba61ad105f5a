// einsum.cc: terms, what an ellipsis stands for, and the result where the equation names none.
#include "ir/ops/linalg/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ir/ops/relations.h"

namespace collage {
namespace {

std::string Ellipsis(size_t count) {
  std::string labels;
  for (size_t i = count; i-- > 0;) labels += static_cast<char>('0' + i);
  return labels;
}

/// The result of an equation without an arrow, behind its ellipsis: letters that occur once, in alphabetical order.
std::string LabelsUsedOnce(const std::vector<std::string>& terms) {
  std::map<char, int> uses;
  for (const std::string& term : terms) {
    for (char label : term) ++uses[label];
  }
  std::string labels;
  for (const auto& [label, count] : uses) {
    if (count == 1 && std::isalpha(static_cast<unsigned char>(label))) labels += label;
  }
  return labels;
}

}  // namespace

Einsum::Einsum(const std::string& equation, const std::vector<int>& ranks) {
  std::string text = equation;
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  size_t most = 0;
  for (size_t start = 0; start <= left.size();) {
    const size_t comma = std::min(left.find(',', start), left.size());
    const size_t index = inputs.size();
    if (index >= ranks.size())
      throw RelationFailure{fmt::format("'{}' has more terms than there are tensors", equation)};
    std::string term = left.substr(start, comma - start);
    const size_t dots = term.find("...");
    if (dots != std::string::npos) {
      const auto rest = static_cast<int>(term.size()) - 3;
      if (ranks[index] < rest)
        throw RelationFailure{fmt::format("'{}' does not fit a tensor of rank {}", term, ranks[index])};
      const auto count = static_cast<size_t>(ranks[index] - rest);
      most = std::max(most, count);
      term.replace(dots, 3, Ellipsis(count));
    }
    if (static_cast<int>(term.size()) != ranks[index]) {
      throw RelationFailure{fmt::format("'{}' does not fit a tensor of rank {}", term, ranks[index])};
    }
    inputs.push_back(term);
    start = comma + 1;
  }
  if (inputs.size() != ranks.size())
    throw RelationFailure{fmt::format("'{}' has fewer terms than there are tensors", equation)};
  if (arrow != std::string::npos) {
    output = text.substr(arrow + 2);
    const size_t dots = output.find("...");
    if (dots != std::string::npos) output.replace(dots, 3, Ellipsis(most));
  } else {
    output = Ellipsis(most) + LabelsUsedOnce(inputs);
  }
  for (char label : output) {
    if (std::count(output.begin(), output.end(), label) > 1)
      throw RelationFailure{fmt::format("the result of '{}' has '{}' twice", equation, label)};
    bool known = false;
    for (const std::string& term : inputs) known = known || term.find(label) != std::string::npos;
    if (!known) throw RelationFailure{fmt::format("no term of '{}' has '{}'", equation, label)};
  }
}

std::map<char, Dim> Einsum::Sizes(const std::vector<std::vector<Dim>>& shapes) const {
  std::map<char, Dim> sizes;
  for (size_t t = 0; t < inputs.size(); ++t) {
    for (size_t d = 0; d < inputs[t].size(); ++d) {
      const Dim dim = shapes[t][d];
      auto [it, is_new] = sizes.try_emplace(inputs[t][d], dim);
      if (is_new || dim.IsSame(it->second) || dim == Dim(1)) continue;
      if (dim.is_any() && it->second.is_any()) {
        it->second = Dim::Any();
        continue;
      }
      if (it->second != Dim(1) && !it->second.is_any() && !dim.is_any()) {
        throw RelationFailure{
            fmt::format("'{}' is both {} and {}", inputs[t][d], it->second.ToString(), dim.ToString())};
      }
      if (it->second == Dim(1) || it->second.is_any()) it->second = dim;
    }
  }
  return sizes;
}

}  // namespace collage
