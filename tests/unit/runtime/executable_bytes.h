// executable_bytes.h: taking files of executables apart and putting them together with other plans, checksums and all.
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

}  // namespace collage
