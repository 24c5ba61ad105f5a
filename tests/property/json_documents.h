// json_documents.h: the JSON that people write: rules, costs, targets, limits, partitionings, tuning records.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collage {

/// A kind of document: examples, and what reads it.
struct JsonKind {
  const char* name;
  std::vector<nlohmann::ordered_json> seeds;
  std::function<void(const std::string& text)> read;
};

/// All kinds. Readers throw Error for what they refuse.
std::vector<JsonKind> AllJsonKinds();

}  // namespace collage
