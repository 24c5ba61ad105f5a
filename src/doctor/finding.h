// finding.h: what `collage doctor` says of one thing.
#pragma once

#include <cstdint>
#include <string>

namespace collage {

struct Finding {
  enum class State : uint8_t {
    kFine,
    kNote,     ///< worth knowing; nothing to mend
    kProblem,  ///< spoils measurements, or keeps something from working
  };

  std::string subject;  ///< "load"
  State state = State::kFine;
  std::string text;    ///< "0.02 processes beside this one"
  std::string advice;  ///< to be followed; of problems, and of some notes
};

}  // namespace collage
