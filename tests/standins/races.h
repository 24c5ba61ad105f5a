// races.h: who wrote and read a byte last, and whether anything orders that before another access.
#pragma once

#include <cstdint>
#include <string>

namespace standin {

/// One access of a thread. Threads of a warp are ordered by its synchronisations, those of a block by its barriers, and
/// those of different blocks by nothing.
struct Access {
  uint32_t thread = 0;         ///< its number among all threads of the grid
  uint32_t block_threads = 0;  ///< threads of a block
  uint64_t epoch = 0;          ///< synchronisations of the warp before
  uint64_t phase = 0;          ///< barriers of the block before
  bool is_store = false;
  bool is_by_itself = false;  ///< not in the order of the thread's other accesses
};

/// The last accesses of a byte.
class Mark {
 public:
  /// Notes `access`. Returns what it is in no order with; empty where all is well.
  std::string Note(const Access& access);

 private:
  struct Last {
    uint32_t thread = 0;  ///< number + 1; 0: nobody
    uint64_t epoch = 0, phase = 0;
  };
  static bool IsBefore(const Last& last, const Access& access);

  Last writer_, reader_;
  uint32_t readers_ = 0;  ///< a bit for each warp of the last reader's block that reads in its phase
};

}  // namespace standin
