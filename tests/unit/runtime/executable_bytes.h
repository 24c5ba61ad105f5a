// executable_bytes.h: taking files of executables and programs apart and putting them together with other plans,
// checksums and all.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "support/checksum.h"

namespace collage {

/// Places in the header, as executable.cc documents them.
inline constexpr size_t kVersionAt = 4;
inline constexpr size_t kPlanAt = 8;
inline constexpr size_t kPlanChecksumAt = 24;
inline constexpr size_t kHeaderChecksumAt = 56;

struct PlanPlace {
  uint64_t offset;
  uint64_t size;
};

inline PlanPlace FindPlan(const std::string& bytes) {
  PlanPlace place{};
  std::memcpy(&place, bytes.data() + kPlanAt, sizeof place);
  return place;
}

inline nlohmann::json PlanOf(const std::string& bytes) {
  const PlanPlace place = FindPlan(bytes);
  return nlohmann::json::parse(bytes.substr(place.offset, place.size));
}

/// `bytes` with a header whose checksum fits it.
inline std::string WithHeaderSealed(std::string bytes) {
  const uint64_t checksum = Checksum(bytes.data(), kHeaderChecksumAt);
  std::memcpy(bytes.data() + kHeaderChecksumAt, &checksum, sizeof checksum);
  return bytes;
}

/// `bytes` with another plan and the checksums that fit it.
inline std::string WithPlanText(std::string bytes, const std::string& text) {
  const PlanPlace place = FindPlan(bytes);
  bytes.resize(place.offset);
  bytes += text;
  const uint64_t size = text.size();
  const uint64_t checksum = Checksum(text.data(), text.size());
  std::memcpy(bytes.data() + kPlanAt + offsetof(PlanPlace, size), &size, sizeof size);
  std::memcpy(bytes.data() + kPlanChecksumAt, &checksum, sizeof checksum);
  return WithHeaderSealed(std::move(bytes));
}

inline std::string WithPlan(const std::string& bytes, const nlohmann::json& plan) {
  return WithPlanText(bytes, plan.dump());
}

/// Gives the places in `json` that are in the file the checksums of what lies there.
inline void SealPieces(const std::string& bytes, nlohmann::json& json) {
  for (nlohmann::json& child : json) {
    if (child.is_structured()) SealPieces(bytes, child);
  }
  const bool is_place = json.is_array() && json.size() == 3 && json[0].is_number_unsigned() &&
                        json[1].is_number_unsigned() && json[2].is_number_integer();
  if (!is_place) return;
  const auto offset = json[0].get<uint64_t>();
  const auto size = json[1].get<uint64_t>();
  if (offset < 64 || offset % 64 != 0 || offset > bytes.size() || size > bytes.size() - offset) return;
  json[2] = Checksum(bytes.data() + offset, size);
}

/// The instructions of a program's file.
inline std::string BytecodeOf(const std::string& bytes) {
  const nlohmann::json place = PlanOf(bytes).at("bytecode");
  return bytes.substr(place.at(0).get<size_t>(), place.at(1).get<size_t>());
}

/// `bytes` with other instructions, behind the pieces that it has.
inline std::string WithBytecode(std::string bytes, const std::string& bytecode) {
  nlohmann::json index = PlanOf(bytes);
  uint64_t end = FindPlan(bytes).offset;
  bytes.resize(end);
  index["bytecode"] = {end, bytecode.size(), Checksum(bytecode.data(), bytecode.size())};
  bytes += bytecode;
  end = (bytes.size() + 63) / 64 * 64;
  bytes.resize(end);
  std::memcpy(bytes.data() + kPlanAt, &end, sizeof end);
  return WithPlan(bytes, index);
}

}  // namespace collage
