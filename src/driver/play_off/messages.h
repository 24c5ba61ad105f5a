// messages.h: messages between a play-off and its worker, as JSON (support/json_fields.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "support/json_fields.h"

namespace collage {

/// Results of building, checking and timing a contender: the message's fields and those of its result in the tuning
/// database (ranking is by them). A new one is a line here.
template <typename Self, typename Visitor>
requires IsMessage<Self, Contender>
void VisitFields(Self& contender, Visitor& visit) {
  visit.Field("p50", contender.p50);
  visit.Field("p90", contender.p90);
  visit.Field("minimum", contender.minimum);
  visit.Field("num_samples", contender.samples);
  visit.Field("max_error", contender.max_error);
  visit.Field("reason", contender.failure);
  visit.Field("partitions", contender.partitions);
  visit.Field("relative", contender.relative);
  visit.Field("first_relative", contender.first_relative);
  visit.Field("is_finalist", contender.is_finalist);
  visit.OptionalField("first_rounds", contender.first_rounds);
  visit.OptionalField("final_rounds", contender.final_rounds);
}

/// A request to the worker.
struct PlayOffRequest {
  enum class Kind : uint8_t {
    kTime,       ///< build, check, time and rank the contenders
    kCheck,      ///< build and check them
    kBuild,      ///< build them, run nothing
    kSerialise,  ///< write the executable of the only one to `file`
  };
  Kind kind = Kind::kTime;
  std::vector<int> contenders;  ///< their indices
  std::string file;
};

constexpr std::array<const char*, 4> NamesOf(PlayOffRequest::Kind) { return {"time", "check", "build", "serialise"}; }

template <typename Self, typename Visitor>
requires IsMessage<Self, PlayOffRequest>
void VisitFields(Self& request, Visitor& visit) {
  visit.Field("kind", request.kind);
  visit.Field("contenders", request.contenders);
  visit.OptionalField("file", request.file);
}

/// Progress of the worker.
struct PlayOffNews {
  enum class Kind : uint8_t { kBuild, kRound };
  Kind kind = Kind::kBuild;
  int contender = -1;  ///< the one being built
  int round = 0;
  int rounds = 0;
};

constexpr std::array<const char*, 2> NamesOf(PlayOffNews::Kind) { return {"build", "round"}; }

template <typename Self, typename Visitor>
requires IsMessage<Self, PlayOffNews>
void VisitFields(Self& news, Visitor& visit) {
  visit.Field("kind", news.kind);
  visit.Field("contender", news.contender);
  visit.Field("round", news.round);
  visit.Field("rounds", news.rounds);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, PlayOffSeconds>
void VisitFields(Self& seconds, Visitor& visit) {
  visit.Field("check", seconds.check);
  visit.Field("build", seconds.build);
  visit.Field("timing", seconds.timing);
}

/// One contender's part of an answer.
struct ContenderAnswer {
  int contender = -1;
  Contender found;  ///< the fields of VisitFields
};

template <typename Self, typename Visitor>
requires IsMessage<Self, ContenderAnswer>
void VisitFields(Self& answer, Visitor& visit) {
  visit.Field("contender", answer.contender);
  visit.Field("found", answer.found);
}

/// The answer to kTime and kCheck.
struct PlayOffAnswer {
  std::vector<ContenderAnswer> contenders;
  int winner = -1;  ///< its index; -1: all failed
  PlayOffSeconds seconds;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, PlayOffAnswer>
void VisitFields(Self& answer, Visitor& visit) {
  visit.Field("contenders", answer.contenders);
  visit.Field("winner", answer.winner);
  visit.Field("seconds", answer.seconds);
}

/// The answer to kSerialise.
struct SerialiseAnswer {
  std::string failure;  ///< why the file could not be written; empty when it was
};

template <typename Self, typename Visitor>
requires IsMessage<Self, SerialiseAnswer>
void VisitFields(Self& answer, Visitor& visit) { visit.Field("failure", answer.failure); }

}  // namespace collage
