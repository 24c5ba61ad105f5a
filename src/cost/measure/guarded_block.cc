// guarded_block.cc: pages without any rights around each block, and the handler of faults in them.
#include "cost/measure/guarded_block.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kGuardBytes = size_t{1} << 16;  // address space on each side
constexpr int kMostBlocks = 4096;

/// Kinds of faults, the first of which is kept.
enum Noted : int { kNothing, kReadBefore, kReadBehind, kWroteBefore, kWroteBehind, kWroteTo };

/// A block as the handler sees it.
struct Watched {
  std::atomic<uintptr_t> begin{0};  ///< begin of the guard before it; 0: nothing is watched
  std::atomic<uintptr_t> data{0};
  std::atomic<uintptr_t> end{0};  ///< end of the guard behind it
  std::atomic<size_t> bytes{0};
  std::atomic<int> noted{kNothing};
};

/// State of the process, as its signal handlers are.
struct Watch {
  std::array<Watched, kMostBlocks> blocks;
  int num_blocks = 0;  ///< blocks in use
  struct sigaction before {};
};
Watch& TheWatch() {
  static Watch watch;
  return watch;
}

/// Whether a write made the page fault. Other processors than x86 do not say so in one place: there all are taken for
/// reads, but for those of a block that may be read.
bool IsWrite([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWriteBit = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
  return false;
#endif
}

void OnFault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_write = IsWrite(context);
  for (Watched& one : TheWatch().blocks) {
    const uintptr_t begin = one.begin.load();
    if (begin == 0 || address < begin || address >= one.end.load()) continue;
    const bool is_before = address < one.data.load();
    const bool is_behind = address >= one.data.load() + one.bytes.load();
    const int found = is_before   ? (is_write ? kWroteBefore : kReadBefore)
                      : is_behind ? (is_write ? kWroteBehind : kReadBehind)
                                  : kWroteTo;
    int nothing = kNothing;
    one.noted.compare_exchange_strong(nothing, found);
    mprotect(reinterpret_cast<void*>(begin), one.end.load() - begin, PROT_READ | PROT_WRITE);
    return;
  }
  // Not ours: it happens again, under the handler of before.
  sigaction(signal, &TheWatch().before, nullptr);
}

int AddToWatch(uintptr_t begin, uintptr_t data, size_t bytes, uintptr_t end) {
  Watch& watch = TheWatch();
  const auto place = std::ranges::find_if(watch.blocks, [](const Watched& one) { return one.begin.load() == 0; });
  if (place == watch.blocks.end()) return -1;
  if (watch.num_blocks++ == 0) {
    struct sigaction action {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &watch.before);
  }
  place->data = data;
  place->bytes = bytes;
  place->end = end;
  place->noted = kNothing;
  place->begin = begin;
  return static_cast<int>(place - watch.blocks.begin());
}

void RemoveFromWatch(int place) {
  Watch& watch = TheWatch();
  if (place < 0) return;
  watch.blocks[static_cast<size_t>(place)].begin = 0;
  if (--watch.num_blocks == 0) sigaction(SIGSEGV, &watch.before, nullptr);
}

}  // namespace

GuardedBlock::GuardedBlock(size_t bytes, BlockPlacement placement) : bytes_(bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  page_bytes_ = (bytes + 2 * kAlignment + page - 1) / page * page;
  const size_t all = page_bytes_ + 2 * kGuardBytes;
  void* begin = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    throw Error(ErrorCategory::kResource, "no memory to check a kernel in: " + std::string(std::strerror(errno)));
  }
  pages_ = static_cast<std::byte*>(begin) + kGuardBytes;
  mprotect(pages_, page_bytes_, PROT_READ | PROT_WRITE);
  const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t offset = page_bytes_ - padded;
  if (placement == BlockPlacement::kLeastAligned && offset % (2 * kAlignment) == 0) offset -= kAlignment;
  data_ = pages_ + offset;
  std::memset(pages_, kPoison, offset);
  std::memset(data_ + bytes, kPoison, page_bytes_ - offset - bytes);
  place_ = AddToWatch(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(data_), bytes,
                      reinterpret_cast<uintptr_t>(begin) + all);
}

GuardedBlock::~GuardedBlock() {
  RemoveFromWatch(place_);
  munmap(pages_ - kGuardBytes, page_bytes_ + 2 * kGuardBytes);
}

void GuardedBlock::Poison() { std::memset(data_, kPoison, bytes_); }

void GuardedBlock::SetReadOnly(bool is_read_only) {
  mprotect(pages_, page_bytes_, is_read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

std::string GuardedBlock::Fault() const {
  const int noted = place_ < 0 ? kNothing : TheWatch().blocks[static_cast<size_t>(place_)].noted.load();
  switch (noted) {
    case kReadBefore: return "read before";
    case kReadBehind: return "read beyond";
    case kWroteBefore: return "wrote before";
    case kWroteBehind: return "wrote beyond";
    case kWroteTo: return "wrote to";
    default: break;
  }
  const size_t offset = static_cast<size_t>(data_ - pages_);
  if (!IsPoison(pages_, offset)) return "wrote before";
  if (!IsPoison(data_ + bytes_, page_bytes_ - offset - bytes_)) return "wrote beyond";
  return "";
}

bool IsPoison(const void* begin, size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(begin);
  return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == kPoison; });
}

Tensor TensorIn(const std::shared_ptr<GuardedBlock>& block, const Shape& shape, DataType dtype) {
  return Tensor::View(shape, dtype, block->data(), block);
}

}  // namespace collage
