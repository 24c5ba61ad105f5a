// emulation.cc: a block is as many fibres as it has threads, which are kept for all blocks of a launch.
#include "emulation.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>

#include "backends/cuda_driver/emulation.h"
#include "cutlass.h"
#include "races.h"
#include "tensor_cores.h"
#include "triton/open.h"

namespace standin {
namespace {

using boost::context::fiber;
using collage::cuda_driver::Emulated;
using collage::cuda_driver::EmulatedProduct;

constexpr uint32_t kLanes = 32;
constexpr size_t kSinkBytes = size_t{64} << 10;
constexpr size_t kWordBytes = 4;
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
        shared_(grid.shared_bytes),
        sink_(kSinkBytes) {
    for (const std::vector<std::byte>& parameter : parameters) {
      parameters_.push_back(const_cast<std::byte*>(parameter.data()));
    }
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
      kSynchroniseBlock,
      kFinished
    };
    fiber fibre;
    State state = kRunning;
    uint32_t word = 0, argument = 0, answer = 0;
    uint32_t* words = nullptr;
    const void* row = nullptr;
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

  /// Runs a warp until it is done, or waits for the others of its block.
  void RunWarp(uint32_t warp) {
    for (;;) {
      Advance(warp);
      if (AreAll(LanesOf(warp), Lane::kFinished) || AreAll(LanesOf(warp), Lane::kSynchroniseBlock)) return;
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
    for (uint64_t i = 0; watches_races_ && i < bytes; ++i) Watch(shared_marks_[first + i], is_store, is_by_itself);
  }

  void Watch(Mark& mark, bool is_store, bool is_by_itself = false) {
    const std::string problem = mark.Note(
        {block_ * grid_.threads + Thread(), grid_.threads, epochs_[lane_ / kLanes], phase_, is_store, is_by_itself});
    if (!problem.empty()) Complain(problem);
  }

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
  std::vector<std::byte> shared_;   ///< the block's
  std::vector<std::byte> sink_;
  std::string problem_;
};

thread_local Engine* Engine::current_ = nullptr;

/// Bytes of an ELF file, whose last part is the table of its sections; 0 for what is none.
size_t SizeOf(const void* image) {
  Elf64_Ehdr header;
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

}  // namespace

std::unique_ptr<EmulatedModule> EmulatedModule::Open(const void* image) {
  for (const auto open : {OpenInstance, OpenTriton}) {
    std::vector<std::unique_ptr<EmulatedKernel>> kernels = open(image);
    if (kernels.empty()) continue;
    std::unique_ptr<EmulatedModule> module(new EmulatedModule(nullptr, -1));
    module->kernels_ = std::move(kernels);
    return module;
  }
  const size_t size = SizeOf(image);
  const int file = size == 0 ? -1 : memfd_create("code of a device", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  const bool is_written = write(file, image, size) == static_cast<ssize_t>(size);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* handle = is_written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    close(file);
    return nullptr;
  }
  std::unique_ptr<EmulatedModule> module(new EmulatedModule(handle, file));
  auto* table = static_cast<void**>(dlsym(handle, collage::cuda_driver::kEmulationTable));
  if (table == nullptr) return nullptr;
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
  set(Emulated::kAddress, Engine::Address);
  return module;
}

EmulatedModule::~EmulatedModule() {
  if (handle_ == nullptr) return;
  dlclose(handle_);
  close(file_);
}

const EmulatedKernel* EmulatedModule::Find(const std::string& name) {
  const auto known = std::ranges::find(kernels_, name, [](const auto& kernel) { return kernel->name; });
  if (known != kernels_.end()) return known->get();
  if (handle_ == nullptr) return nullptr;
  void* thread = dlsym(handle_, name.c_str());
  const auto* sizes =
      static_cast<const uint64_t*>(dlsym(handle_, (name + collage::cuda_driver::kEmulationSizes).c_str()));
  if (thread == nullptr || sizes == nullptr) return nullptr;
  auto kernel = std::make_unique<EmulatedKernel>();
  kernel->name = name;
  kernel->thread = reinterpret_cast<void (*)(void* const*)>(thread);
  for (; *sizes != 0; ++sizes) kernel->parameter_sizes.push_back(*sizes);
  return kernels_.emplace_back(std::move(kernel)).get();
}

std::string RunGrid(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters,
                    const FindMemory& find) {
  if (kernel.whole) return kernel.whole(grid, parameters, find);
  return Engine(kernel, grid, parameters, find).Run();
}

}  // namespace standin

/// The only attribute that is known here is the most memory that threads of a block may share.
extern "C" int cuFuncSetAttribute(void* function, int attribute, int value) {
  constexpr int kMostDynamicSharedBytes = 8, kInvalidValue = 1, kMostShared = 163 << 10;
  if (function == nullptr || attribute != kMostDynamicSharedBytes || value < 0 || value > kMostShared) {
    return kInvalidValue;
  }
  static_cast<standin::EmulatedKernel*>(function)->most_shared_bytes = static_cast<uint32_t>(value);
  return 0;
}
