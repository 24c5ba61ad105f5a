// json_inputs_test.cc: JSON that people write (rules, costs, targets, limits, partitionings, tuning records), changed
// at random: it is read, or refused with an error that says whose mistake it is. Nothing else is thrown, nothing
// crashes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/support/error.h"
#include "property/json_documents.h"
#include "property/random_source.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

/// How many documents there are: $COLLAGE_JSON_DOCUMENTS, else some.
int NumDocuments() {
  const char* text = std::getenv("COLLAGE_JSON_DOCUMENTS");
  constexpr int kSome = 1500;
  return text == nullptr ? kSome : std::atoi(text);
}

/// Values that no reader expects. `1e999` and the like are put into the text, since JSON values cannot hold them.
const std::vector<std::string> kOddValues{"null",
                                          "true",
                                          "-1",
                                          "0",
                                          "0.5",
                                          "1e999",
                                          "-1E400",
                                          "1e-999",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "99999999999999999999999",
                                          "-9223372036854775809",
                                          "2147483648",
                                          "1e300",
                                          "\"\"",
                                          "\"*\"",
                                          "\"NaN\"",
                                          "\"inf\"",
                                          "\"\\u0000\"",
                                          "\"\\ud800\"",
                                          "\"é\\u202e\"",
                                          "[]",
                                          "{}",
                                          "[[]]",
                                          "[null]",
                                          "[-1]",
                                          "[1e999]",
                                          "{\"\": null}",
                                          "[0, 0, 0]",
                                          "\"native\"",
                                          "\"dnnl:external\""};

/// Positions of values in a JSON document, by walking it.
void Collect(Json& at, std::vector<Json*>& all) {
  all.push_back(&at);
  if (!at.is_structured()) return;
  for (Json& child : at) Collect(child, all);
}

/// `seed` with a few changes: values replaced, fields dropped, renamed, doubled, lists repeated; at times the text cut
/// or a character of it changed.
std::string Changed(const Json& seed, RandomSource& random) {
  Json json = seed;
  std::vector<std::pair<std::string, std::string>> later;
  for (int changes = 1 + random.Below(3); changes > 0; --changes) {
    std::vector<Json*> all;
    Collect(json, all);
    Json& place = *all[static_cast<size_t>(random.Below(static_cast<int>(all.size())))];
    switch (random.Below(5)) {
      case 0:
        if (place.is_object() && !place.empty()) {
          auto field = place.begin();
          std::advance(field, random.Below(static_cast<int>(place.size())));
          place.erase(field);
          break;
        }
        [[fallthrough]];
      case 1:
        if (place.is_object()) {
          place[random.Pick<std::string>({"", "name", "rule", "cost", "inside", "*", "pattern", "\xc3\xa9"})] =
              Json::parse(R"([{"rule": "Host"}, 1])");
          break;
        }
        [[fallthrough]];
      case 2:
        if (place.is_array() && !place.empty()) {
          place.push_back(place[static_cast<size_t>(random.Below(static_cast<int>(place.size())))]);
          break;
        }
        [[fallthrough]];
      default: {
        const std::string mark = fmt::format("odd value {}", later.size());
        later.emplace_back("\"" + mark + "\"", random.Pick(kOddValues));
        place = mark;
      }
    }
  }
  std::string text = json.dump();
  for (const auto& [mark, value] : later) {
    if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), value);
  }
  if (random.OneIn(12)) text.resize(static_cast<size_t>(random.Below(static_cast<int>(text.size()) + 1)));
  if (!text.empty() && random.OneIn(12)) {
    text[static_cast<size_t>(random.Below(static_cast<int>(text.size())))] = static_cast<char>(random.Below(256));
  }
  if (random.OneIn(40)) text = std::string(static_cast<size_t>(random.Below(3000)), random.OneIn(2) ? '[' : '{') + text;
  return text;
}

TEST(JsonInputs, AreReadOrRefused) {
  ProbeToolchains();
  const std::vector<JsonKind> kinds = AllJsonKinds();
  std::map<std::string, int> read;
  for (int document = 0; document < NumDocuments(); ++document) {
    RandomSource random(static_cast<uint64_t>(document));
    const JsonKind& kind = random.Pick(kinds);
    const std::string text = Changed(random.Pick(kind.seeds), random);
    const std::string about = fmt::format("document {} ({}):\n{}", document, kind.name, text);
    try {
      kind.read(text);
      ++read[kind.name];
    } catch (const Error& error) {
      EXPECT_NE(ToString(error.category()), ToString(ErrorCategory::kInternal)) << error.Format() << "\n" << about;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << about;
    }
    if (HasFailure()) break;
  }
}

TEST(JsonInputs, TheDocumentsThatAreChangedAreRead) {
  ProbeToolchains();
  for (const JsonKind& kind : AllJsonKinds()) {
    for (const Json& seed : kind.seeds) EXPECT_NO_THROW(kind.read(seed.dump())) << kind.name << ": " << seed.dump();
  }
}

}  // namespace
}  // namespace collage
