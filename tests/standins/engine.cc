// engine.cc: a block is as many fibres as it has threads, which are kept for all blocks of a launch.
#include "engine.h"

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "backends/cuda_driver/emulation.h"
#include "races.h"
#include "tensor_cores.h"

namespace standin {
namespace {

using boost::context::fiber;
using collage::cuda_driver::Emulated;
using collage::cuda_driver::EmulatedProduct;

constexpr uint32_t kLanes = 32;
constexpr size_t kSinkBytes = size_t{64} << 10;
constexpr size_t kWordBytes = 4;
/// Shared memory begins at a multiple of so many bytes, which code may ask for.
constexpr size_t kSharedAlignment = 1024;
constexpr std::byte kPoison{0xFF};

class Engine {
 public:
  Engine(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters, const FindMemory& find)
      : kernel_(kernel),
        grid_(grid),
        find_(find),
        lanes_(grid.threads),
        epochs_(grid.threads / kLanes),
        pending_((grid.shared_bytes + kWordBytes - 1) / kWordBytes),
        written_(pending_.size()),
        memory_(grid.shared_bytes + kSharedAlignment),
        sink_(kSinkBytes) {
    for (const std::vector<std::byte>& parameter : parameters) {
      parameters_.push_back(const_cast<std::byte*>(parameter.data()));
    }
    void* begin = memory_.data();
    size_t bytes = memory_.size();
    begin = std::align(kSharedAlignment, grid.shared_bytes, begin, bytes);
    shared_ = {static_cast<std::byte*>(begin), grid.shared_bytes};
    watches_races_ = std::getenv("STANDIN_CUDA_RACES") != nullptr;
    is_reversed_ = std::getenv("STANDIN_CUDA_REVERSED") != nullptr;
  }

  std::string Run() {
    current_ = this;
    for (Lane& lane : lanes_) {
      lane.fibre = fiber([this, &lane](fiber&& main) {
        main_ = std::move(main);
        for (;;) {
          kernel_.thread(parameters_.data());
          lane.state = Lane::kFinished;
          main_ = std::move(main_).resume();
          if (is_over_) return std::move(main_);
        }
      });
    }
    for (block_ = 0; block_ < grid_.blocks; ++block_) RunBlock();
    is_over_ = true;
    for (Lane& lane : lanes_) lane.fibre = std::move(lane.fibre).resume();
    current_ = nullptr;
    return problem_;
  }

  // ---- what threads call ----

  static uint32_t Thread() { return current_->lane_; }
  static uint32_t Block() { return current_->block_; }
  static uint32_t BlockSize() { return current_->grid_.threads; }
  static uint32_t GridSize() { return current_->grid_.blocks; }
  static uint32_t Shuffle(uint32_t word, uint32_t lane) { return current_->Wait(Lane::kShuffle, word, lane); }
  static uint32_t ShuffleXor(uint32_t word, uint32_t mask) { return current_->Wait(Lane::kShuffleXor, word, mask); }
  static void Synchronise() { current_->Wait(Lane::kSynchronise, 0, 0); }
  static void SynchroniseBlock() { current_->Wait(Lane::kSynchroniseBlock, 0, 0); }
  static void* Shared() { return current_->shared_.data(); }
  static void Copy(void* to, const void* from, uint32_t bytes, uint32_t size) {
    current_->Begin({reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, size});
  }
  static void EndCopies() { ++current_->lanes_[current_->lane_].groups; }
  static void AwaitCopies(uint32_t late) { current_->Await(late); }
  static void Multiply(uint32_t product, uint32_t* words) {
    current_->lanes_[current_->lane_].words = words;
    current_->Wait(Lane::kMultiply, 0, product);
  }
  static void LoadMatrices(const void* row, uint32_t* words) {
    constexpr uint64_t kRowBytes = 16;
    Lane& lane = current_->lanes_[current_->lane_];
    lane.words = words;
    lane.row = current_->Find(reinterpret_cast<uint64_t>(row), kRowBytes, kRowBytes, /*is_store=*/false);
    current_->Wait(Lane::kLoadMatrices, 0, 0);
  }
  static void WaitForGroup(uint32_t product, uint32_t columns, uint32_t depth, uint32_t* words, const void* matrix) {
    Lane& lane = current_->lanes_[current_->lane_];
    lane.words = words;
    lane.row = matrix;
    lane.group = {static_cast<EmulatedProduct>(product), columns, depth};
    current_->Wait(Lane::kMultiplyGroup, 0, 0);
  }
  static void ProxyFence() { ++current_->lanes_[current_->lane_].fences; }
  static void* Address(void* address, uint64_t bytes, uint32_t alignment, uint32_t is_store) {
    return current_->Find(reinterpret_cast<uint64_t>(address), bytes, alignment, is_store != 0);
  }

 private:
  /// Shared memory that a thread's copy will fill: `size` bytes, zeros behind the first `bytes`.
  struct AsyncCopy {
    uint64_t to, from;
    uint32_t bytes, size;
    uint64_t group = 0;
  };

  struct Lane {
    enum State : uint8_t {
      kRunning,
      kShuffle,
      kShuffleXor,
      kSynchronise,
      kMultiply,
      kLoadMatrices,
      kMultiplyGroup,
      kSynchroniseBlock,
      kFinished
    };
    fiber fibre;
    State state = kRunning;
    uint32_t word = 0, argument = 0, answer = 0;
    uint32_t* words = nullptr;
    const void* row = nullptr;
    GroupProduct group;
    uint64_t fences = 0;           ///< before
    std::deque<AsyncCopy> copies;  ///< on their way
    uint64_t groups = 0;           ///< groups before this one
  };

  void Complain(const std::string& what) {
    if (!problem_.empty()) return;
    problem_ = "kernel " + kernel_.name + ", block " + std::to_string(block_) + ", thread " + std::to_string(Thread()) +
               ": " + what;
  }

  uint32_t Wait(Lane::State state, uint32_t word, uint32_t argument) {
    Lane& lane = lanes_[lane_];
    lane.state = state;
    lane.word = word;
    lane.argument = argument;
    main_ = std::move(main_).resume();
    return lane.answer;
  }

  void RunBlock() {
    std::ranges::fill(shared_, kPoison);
    std::ranges::fill(pending_, uint16_t{0});
    std::ranges::fill(written_, Written());
    if (watches_races_) shared_marks_.assign(shared_.size(), {});
    for (Lane& lane : lanes_) {
      lane.state = Lane::kRunning;
      lane.copies.clear();
      lane.groups = 0;
    }
    std::ranges::fill(epochs_, uint64_t{1});
    phase_ = 1;
    const auto count = static_cast<uint32_t>(epochs_.size());
    for (;;) {
      for (uint32_t i = 0; i < count; ++i) RunWarp(is_reversed_ ? count - 1 - i : i);
      if (MultiplyGroups()) continue;
      if (AreAll(lanes_, Lane::kFinished)) return;
      if (!AreAll(lanes_, Lane::kSynchroniseBlock)) Complain("the threads of its block do not wait for each other");
      Release(lanes_);
      for (uint64_t& epoch : epochs_) ++epoch;
      ++phase_;
    }
  }

  std::span<Lane> LanesOf(uint32_t warp) { return std::span(lanes_).subspan(warp * kLanes, kLanes); }
  static bool AreAll(std::span<const Lane> lanes, Lane::State state) {
    return std::ranges::all_of(lanes, [&](const Lane& lane) { return lane.state == state; });
  }
  static void Release(std::span<Lane> lanes) {
    for (Lane& lane : lanes) {
      if (lane.state != Lane::kFinished) lane.state = Lane::kRunning;
    }
  }

  /// Runs all threads of a warp that can run until they wait or are done.
  void Advance(uint32_t warp) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      lane_ = warp * kLanes + (is_reversed_ ? kLanes - 1 - i : i);
      Lane& lane = lanes_[lane_];
      if (lane.state == Lane::kRunning) lane.fibre = std::move(lane.fibre).resume();
    }
  }

  /// Runs a warp until it is done, or waits for the others of its group or block.
  void RunWarp(uint32_t warp) {
    constexpr std::array kEnds{Lane::kFinished, Lane::kSynchroniseBlock, Lane::kMultiplyGroup};
    const std::span<Lane> lanes = LanesOf(warp);
    for (;;) {
      Advance(warp);
      if (std::ranges::any_of(kEnds, [&](Lane::State end) { return AreAll(lanes, end); })) return;
      Meet(warp);
    }
  }

  /// All threads have come to the same instruction, or something is wrong with the program.
  void Meet(uint32_t warp) {
    const std::span<Lane> lanes = LanesOf(warp);
    const Lane::State state = lanes[0].state;
    for (uint32_t i = 0; i < kLanes; ++i) {
      lane_ = warp * kLanes + i;
      if (lanes[i].state != state) Complain("the threads of its warp do not wait for the same thing");
    }
    if (AreAll(lanes, Lane::kMultiply)) MultiplyTogether(lanes);
    if (AreAll(lanes, Lane::kLoadMatrices)) LoadTogether(lanes);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t from = (lanes[i].state == Lane::kShuffleXor ? i ^ lanes[i].argument : lanes[i].argument) % kLanes;
      lanes[i].answer = lanes[from].word;
    }
    Release(lanes);
    if (state == Lane::kSynchronise) ++epochs_[warp];
  }

  void MultiplyTogether(std::span<const Lane> lanes) {
    std::array<uint32_t*, kLanes> words;
    for (uint32_t i = 0; i < kLanes; ++i) {
      words[i] = lanes[i].words;
      if (lanes[i].argument != lanes[0].argument) return Complain("the threads of its warp do not multiply the same");
    }
    MultiplyBlocks(static_cast<EmulatedProduct>(lanes[0].argument), words);
  }

  /// Four warps each that have come to wgmma. Returns whether there were some.
  bool MultiplyGroups() {
    constexpr size_t kThreads = 4 * kLanes;
    bool were_some = false;
    for (size_t first = 0; first + kThreads <= lanes_.size(); first += kThreads) {
      const std::span<Lane> lanes = std::span(lanes_).subspan(first, kThreads);
      if (!AreAll(lanes, Lane::kMultiplyGroup)) continue;
      lane_ = static_cast<uint32_t>(first);
      MultiplyGroup(lanes);
      Release(lanes);
      were_some = true;
    }
    return were_some;
  }

  void MultiplyGroup(std::span<const Lane> lanes) {
    const GroupProduct group = lanes[0].group;
    const auto begin = reinterpret_cast<uint64_t>(lanes[0].row);
    for (const Lane& lane : lanes) {
      if (lane.row != lanes[0].row || lane.group != group) return Complain("its four warps do not multiply the same");
    }
    const uint64_t bytes = uint64_t{group.columns} * group.depth * kWordBytes;
    const std::byte* matrix = FindShared(begin, bytes);
    if (matrix == nullptr || matrix == sink_.data()) return Complain("multiplies what is no shared memory");
    const auto place = static_cast<uint64_t>(matrix - shared_.data());
    if (place % group.PatternBytes() != 0) return Complain("multiplies columns in the middle of a pattern");
    ComplainOfCopies(matrix, bytes);
    WatchShared(matrix, bytes, /*is_store=*/false);
    for (size_t word = place / kWordBytes; word < (place + bytes) / kWordBytes; ++word) {
      const Written& last = written_[word];
      if (last.thread != 0 && lanes_[last.thread - 1].fences == last.fences) {
        return Complain("multiplies what no fence orders behind the copy of thread " + std::to_string(last.thread - 1));
      }
    }
    std::array<uint32_t*, 4 * kLanes> words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = lanes[i].words;
    standin::MultiplyGroup(group, matrix, words);
  }

  static void LoadTogether(std::span<const Lane> lanes) {
    std::array<uint32_t*, kLanes> words;
    std::array<const void*, kLanes> rows;
    for (uint32_t i = 0; i < kLanes; ++i) {
      words[i] = lanes[i].words;
      rows[i] = lanes[i].row;
    }
    standin::LoadMatrices(rows, words);
  }

  /// Shared memory at `address`; null for other memory.
  std::byte* FindShared(uint64_t address, uint64_t bytes) {
    const auto begin = reinterpret_cast<uint64_t>(shared_.data());
    if (address < begin || address >= begin + shared_.size()) return nullptr;
    if (bytes <= begin + shared_.size() - address) return shared_.data() + (address - begin);
    Complain("uses " + std::to_string(bytes) + " bytes at the end of shared memory");
    return sink_.data();
  }

  /// Counts the copies that are on their way to shared memory.
  std::span<uint16_t> Pending(const std::byte* place, uint64_t bytes) {
    const auto first = static_cast<size_t>(place - shared_.data());
    const size_t end = (first + bytes + kWordBytes - 1) / kWordBytes;
    return std::span(pending_).subspan(first / kWordBytes, end - first / kWordBytes);
  }

  /// cp.async: the bytes come when they are waited for, and are nobody's until then.
  void Begin(AsyncCopy copy) {
    const auto [to, from, bytes, size, group] = copy;
    if (to % size != 0 || from % size != 0) return Complain("copies to or from a misaligned address");
    std::byte* place = FindShared(to, size);
    if (place == nullptr) return Complain("copies to what is no shared memory");
    if (place == sink_.data()) return;
    if (bytes > size || (bytes > 0 && Cached(from, bytes) == nullptr)) {
      return Complain("copies " + std::to_string(bytes) + " bytes from outside of the device's memory");
    }
    ComplainOfCopies(place, size);
    // Nothing orders it behind what its own thread does.
    WatchShared(place, size, /*is_store=*/true, /*is_by_itself=*/true);
    std::fill_n(place, size, kPoison);
    for (uint16_t& count : Pending(place, size)) ++count;
    Lane& lane = lanes_[lane_];
    copy.group = lane.groups;
    lane.copies.push_back(copy);
  }

  void Await(uint32_t late) {
    Lane& lane = lanes_[lane_];
    while (!lane.copies.empty() && lane.copies.front().group + late < lane.groups) {
      const AsyncCopy& copy = lane.copies.front();
      std::byte* place = FindShared(copy.to, copy.size);
      std::fill_n(place, copy.size, std::byte{0});
      if (copy.bytes > 0) std::memcpy(place, Cached(copy.from, copy.bytes), copy.bytes);
      for (uint16_t& count : Pending(place, copy.size)) --count;
      // From now on it is there for its thread, and for those that a barrier orders behind this.
      WatchShared(place, copy.size, /*is_store=*/true);
      lane.copies.pop_front();
    }
  }

  /// Says so where bytes are used that a copy is to fill.
  void ComplainOfCopies(const std::byte* place, uint64_t bytes) {
    const std::span<const uint16_t> counts = Pending(place, bytes);
    if (std::ranges::any_of(counts, [](uint16_t count) { return count > 0; })) {
      Complain("uses shared memory that a copy is on its way to");
    }
  }

  void* Find(uint64_t address, uint64_t bytes, uint32_t alignment, bool is_store) {
    const char* doing = is_store ? "writes " : "reads ";
    if (address % alignment != 0) {
      Complain(doing + std::to_string(bytes) + " bytes at an address that is no multiple of " +
               std::to_string(alignment));
    }
    if (std::byte* shared = FindShared(address, bytes)) {
      if (shared == sink_.data()) return shared;
      ComplainOfCopies(shared, bytes);
      WatchShared(shared, bytes, is_store);
      return shared;
    }
    std::byte* found = Cached(address, bytes);
    if (found == nullptr) {
      Complain(doing + std::to_string(bytes) + " bytes outside of the device's memory");
      return bytes <= kSinkBytes ? sink_.data() : std::calloc(bytes, 1);
    }
    for (uint64_t i = 0; watches_races_ && i < bytes; ++i) Watch(marks_[address + i], is_store);
    return found;
  }

  /// The place of an allocation that was asked for before, or else what the driver says.
  std::byte* Cached(uint64_t address, uint64_t bytes) {
    constexpr uint64_t kPage = 4096;
    Page& page = pages_[address / kPage % pages_.size()];
    const uint64_t begin = address / kPage * kPage;
    if (page.begin == begin && page.within != nullptr && address - begin + bytes <= kPage) {
      return page.within + (address - begin);
    }
    if (std::byte* whole = find_(begin, kPage)) page = {begin, whole};
    return find_(address, bytes);
  }

  void WatchShared(const std::byte* place, uint64_t bytes, bool is_store, bool is_by_itself = false) {
    const auto first = static_cast<size_t>(place - shared_.data());
    for (size_t word = first / kWordBytes; is_store && word < (first + bytes) / kWordBytes; ++word) {
      written_[word] = {lane_ + 1, lanes_[lane_].fences};
    }
    for (uint64_t i = 0; watches_races_ && i < bytes; ++i) Watch(shared_marks_[first + i], is_store, is_by_itself);
  }

  void Watch(Mark& mark, bool is_store, bool is_by_itself = false) {
    const std::string problem = mark.Note(
        {block_ * grid_.threads + Thread(), grid_.threads, epochs_[lane_ / kLanes], phase_, is_store, is_by_itself});
    if (!problem.empty()) Complain(problem);
  }

  /// The thread, plus 1, that wrote a word last, and its fences before.
  struct Written {
    uint32_t thread = 0;
    uint64_t fences = 0;
  };
  struct Page {
    uint64_t begin = 1;
    std::byte* within = nullptr;
  };

  static thread_local Engine* current_;

  const EmulatedKernel& kernel_;
  Grid grid_;
  const FindMemory& find_;
  std::vector<void*> parameters_;
  std::vector<Lane> lanes_;       ///< the threads of a block
  std::vector<uint64_t> epochs_;  ///< synchronisations of each of its warps
  uint64_t phase_ = 1;            ///< barriers of the block
  fiber main_;
  bool is_over_ = false;
  bool watches_races_ = false;
  bool is_reversed_ = false;
  uint32_t block_ = 0;
  uint32_t lane_ = 0;  ///< the thread that runs
  std::array<Page, 64> pages_;
  std::unordered_map<uint64_t, Mark> marks_;
  std::vector<Mark> shared_marks_;  ///< for this block's memory
  std::vector<uint16_t> pending_;   ///< copies on their way to each word of shared memory
  std::vector<Written> written_;    ///< likewise
  std::vector<std::byte> memory_;
  std::span<std::byte> shared_;  ///< the block's
  std::vector<std::byte> sink_;
  std::string problem_;
};

thread_local Engine* Engine::current_ = nullptr;

}  // namespace

void FillTable(void** table) {
  const auto set = [&](Emulated place, auto* function) {
    table[static_cast<size_t>(place)] = reinterpret_cast<void*>(function);
  };
  set(Emulated::kThread, Engine::Thread);
  set(Emulated::kBlock, Engine::Block);
  set(Emulated::kBlockSize, Engine::BlockSize);
  set(Emulated::kGridSize, Engine::GridSize);
  set(Emulated::kShuffle, Engine::Shuffle);
  set(Emulated::kShuffleXor, Engine::ShuffleXor);
  set(Emulated::kSynchronise, Engine::Synchronise);
  set(Emulated::kSynchroniseBlock, Engine::SynchroniseBlock);
  set(Emulated::kShared, Engine::Shared);
  set(Emulated::kCopy, Engine::Copy);
  set(Emulated::kEndCopies, Engine::EndCopies);
  set(Emulated::kAwaitCopies, Engine::AwaitCopies);
  set(Emulated::kMultiply, Engine::Multiply);
  set(Emulated::kLoadMatrices, Engine::LoadMatrices);
  set(Emulated::kMultiplyGroup, Engine::WaitForGroup);
  set(Emulated::kProxyFence, Engine::ProxyFence);
  set(Emulated::kAddress, Engine::Address);
}

std::string RunThreads(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters,
                       const FindMemory& find) {
  return Engine(kernel, grid, parameters, find).Run();
}

}  // namespace standin
