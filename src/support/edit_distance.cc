// edit_distance.cc: Levenshtein distance by the two-row dynamic programme.
#include "support/edit_distance.h"

#include <algorithm>
#include <cctype>

namespace collage {

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i - 1])) == std::tolower(static_cast<unsigned char>(b[j - 1]));
      const int replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> NearMisses(std::string_view name, const std::vector<std::string>& names) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& candidate : names) {
    const int distance = EditDistance(name, candidate);
    if (distance <= std::max<int>(1, static_cast<int>(name.size()) / 3)) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) result.push_back(ranked[i].second);
  return result;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  std::string hint;
  for (const std::string& near : NearMisses(name, names)) hint += (hint.empty() ? "did you mean '" : "', '") + near;
  return hint.empty() ? "" : hint + "'?";
}

}  // namespace collage
