// races.cc: what happened before an access, by barriers that lie between.
#include "races.h"

namespace standin {
namespace {

constexpr uint32_t kLanes = 32;

std::string Name(uint32_t thread, uint32_t block_threads) {
  return "thread " + std::to_string(thread % block_threads) + " of block " + std::to_string(thread / block_threads);
}

}  // namespace

bool Mark::IsBefore(const Last& last, const Access& access) {
  if (last.thread == 0) return true;
  const uint32_t other = last.thread - 1;
  if (other == access.thread && !access.is_by_itself) return true;
  if (other / access.block_threads != access.thread / access.block_threads) return false;
  if (last.phase < access.phase) return true;
  return other / kLanes == access.thread / kLanes && last.epoch < access.epoch;
}

std::string Mark::Note(const Access& access) {
  std::string problem;
  const uint32_t block = access.thread / access.block_threads;
  const uint32_t warp = uint32_t{1} << access.thread % access.block_threads / kLanes;
  const bool is_same_phase =
      reader_.thread != 0 && (reader_.thread - 1) / access.block_threads == block && reader_.phase == access.phase;
  const char* doing = access.is_store ? "writes" : "reads";
  if (!IsBefore(writer_, access)) {
    problem =
        std::string(doing) + " a byte that " + Name(writer_.thread - 1, access.block_threads) + " writes, in no order";
  } else if (access.is_store && (!IsBefore(reader_, access) || (is_same_phase && (readers_ & ~warp) != 0))) {
    problem =
        "writes a byte that " + Name(reader_.thread - 1, access.block_threads) + " or another one reads, in no order";
  }
  const Last own{access.thread + 1, access.epoch, access.phase};
  if (access.is_store) {
    writer_ = own;
  } else {
    readers_ = (is_same_phase ? readers_ : 0) | warp;
    reader_ = own;
  }
  return problem;
}

}  // namespace standin
