// emulation.cc: a warp is 32 fibres that are kept for all warps of a launch.
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
#include <unordered_map>
#include <utility>

#include "backends/cuda_driver/emulation.h"
#include "cutlass.h"
#include "tensor_cores.h"
#include "triton/open.h"

namespace standin {
namespace {

using boost::context::fiber;
using collage::cuda_driver::Emulated;
using collage::cuda_driver::EmulatedProduct;

constexpr uint32_t kLanes = 32;
constexpr size_t kSinkBytes = size_t{64} << 10;
/// Bytes of a copy to shared memory.
constexpr uint64_t kCopyBytes = 16;
constexpr std::byte kPoison{0xFF};

/// The last writer and reader of a byte, and when they did so. Synchronisation orders threads of a warp; nothing orders
/// those of different warps.
struct Mark {
  uint32_t writer = 0, reader = 0;  ///< number of the thread + 1; 0: nobody
  uint64_t written = 0, read = 0;   ///< the warp's synchronisations before
};

class Engine {
 public:
  Engine(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters, const FindMemory& find)
      : kernel_(kernel), grid_(grid), find_(find), shared_(grid.shared_bytes), sink_(kSinkBytes) {
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
    for (block_ = 0; block_ < grid_.blocks; ++block_) {
      std::ranges::fill(shared_, kPoison);
      shared_marks_.clear();
      for (warp_ = 0; warp_ < grid_.threads / kLanes; ++warp_) RunWarp();
    }
    is_over_ = true;
    for (Lane& lane : lanes_) lane.fibre = std::move(lane.fibre).resume();
    current_ = nullptr;
    return problem_;
  }

  // ---- what threads call ----

  static uint32_t Thread() { return current_->warp_ * kLanes + current_->lane_; }
  static uint32_t Block() { return current_->block_; }
  static uint32_t BlockSize() { return current_->grid_.threads; }
  static uint32_t GridSize() { return current_->grid_.blocks; }
  static uint32_t Shuffle(uint32_t word, uint32_t lane) { return current_->Wait(Lane::kShuffle, word, lane); }
  static uint32_t ShuffleXor(uint32_t word, uint32_t mask) { return current_->Wait(Lane::kShuffleXor, word, mask); }
  static void Synchronise() { current_->Wait(Lane::kSynchronise, 0, 0); }
  static void* Shared() { return current_->shared_.data(); }
  static void Copy(void* to, const void* from, uint32_t bytes) {
    current_->Begin(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes);
  }
  static void EndCopies() { ++current_->lanes_[current_->lane_].groups; }
  static void AwaitCopies(uint32_t late) { current_->Await(late); }
  static void Multiply(uint32_t product, uint32_t* words) {
    current_->lanes_[current_->lane_].words = words;
    current_->Wait(Lane::kMultiply, 0, product);
  }
  static void* Address(void* address, uint64_t bytes, uint32_t alignment, uint32_t is_store) {
    return current_->Find(reinterpret_cast<uint64_t>(address), bytes, alignment, is_store != 0);
  }

 private:
  /// 16 bytes of shared memory that a thread's copy will fill.
  struct AsyncCopy {
    uint64_t to, from;
    uint32_t bytes;
    uint64_t group;
  };

  struct Lane {
    enum State : uint8_t { kRunning, kShuffle, kShuffleXor, kSynchronise, kMultiply, kFinished };
    fiber fibre;
    State state = kRunning;
    uint32_t word = 0, argument = 0, answer = 0;
    uint32_t* words = nullptr;
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

  /// Runs all threads that can run until they wait or are done.
  void Advance() {
    for (uint32_t i = 0; i < kLanes; ++i) {
      lane_ = is_reversed_ ? kLanes - 1 - i : i;
      Lane& lane = lanes_[lane_];
      if (lane.state == Lane::kRunning) lane.fibre = std::move(lane.fibre).resume();
    }
  }

  void RunWarp() {
    for (Lane& lane : lanes_) {
      lane.state = Lane::kRunning;
      lane.copies.clear();
      lane.groups = 0;
    }
    epoch_ = 1;
    for (Advance(); !AreFinished(); Advance()) Meet();
  }

  bool AreFinished() const {
    for (const Lane& lane : lanes_) {
      if (lane.state != Lane::kFinished) return false;
    }
    return true;
  }

  /// All threads have come to the same instruction, or something is wrong with the program.
  void Meet() {
    const Lane::State state = lanes_[0].state;
    for (lane_ = 0; lane_ < kLanes; ++lane_) {
      if (lanes_[lane_].state != state) Complain("the threads of its warp do not wait for the same thing");
    }
    if (state == Lane::kMultiply) MultiplyTogether();
    for (uint32_t i = 0; i < kLanes; ++i) {
      Lane& lane = lanes_[i];
      const uint32_t from = (lane.state == Lane::kShuffleXor ? i ^ lane.argument : lane.argument) % kLanes;
      lane.answer = lanes_[from].word;
    }
    for (Lane& lane : lanes_) {
      if (lane.state != Lane::kFinished) lane.state = Lane::kRunning;
    }
    if (state == Lane::kSynchronise) ++epoch_;
  }

  void MultiplyTogether() {
    std::array<uint32_t*, kLanes> words;
    for (uint32_t i = 0; i < kLanes; ++i) {
      words[i] = lanes_[i].words;
      if (lanes_[i].state != Lane::kMultiply || lanes_[i].argument != lanes_[0].argument) {
        return Complain("the threads of its warp do not multiply the same");
      }
    }
    MultiplyBlocks(static_cast<EmulatedProduct>(lanes_[0].argument), words);
  }

  /// Shared memory at `address`; null for other memory.
  std::byte* FindShared(uint64_t address, uint64_t bytes) {
    const auto begin = reinterpret_cast<uint64_t>(shared_.data());
    if (address < begin || address >= begin + shared_.size()) return nullptr;
    if (bytes <= begin + shared_.size() - address) return shared_.data() + (address - begin);
    Complain("uses " + std::to_string(bytes) + " bytes at the end of shared memory");
    return sink_.data();
  }

  /// cp.async: the bytes come when they are waited for, and are nobody's until then.
  void Begin(uint64_t to, uint64_t from, uint32_t bytes) {
    if (to % kCopyBytes != 0 || from % kCopyBytes != 0) return Complain("copies to or from a misaligned address");
    std::byte* place = FindShared(to, kCopyBytes);
    if (place == nullptr) return Complain("copies to what is no shared memory");
    if (bytes > kCopyBytes || (bytes > 0 && Cached(from, bytes) == nullptr)) {
      return Complain("copies " + std::to_string(bytes) + " bytes from outside of the device's memory");
    }
    ComplainOfCopies(to, kCopyBytes);
    // Nothing orders it behind what its own thread does.
    if (watches_races_) Watch(shared_marks_, to, kCopyBytes, /*is_store=*/true, /*is_by_itself=*/true);
    std::fill_n(place, kCopyBytes, kPoison);
    Lane& lane = lanes_[lane_];
    lane.copies.push_back({to, from, bytes, lane.groups});
  }

  void Await(uint32_t late) {
    Lane& lane = lanes_[lane_];
    while (!lane.copies.empty() && lane.copies.front().group + late < lane.groups) {
      const AsyncCopy& copy = lane.copies.front();
      std::byte* place = FindShared(copy.to, kCopyBytes);
      std::fill_n(place, kCopyBytes, std::byte{0});
      if (copy.bytes > 0) std::memcpy(place, Cached(copy.from, copy.bytes), copy.bytes);
      lane.copies.pop_front();
    }
  }

  /// Says so where bytes are used that a copy is to fill.
  void ComplainOfCopies(uint64_t address, uint64_t bytes) {
    for (const Lane& lane : lanes_) {
      for (const AsyncCopy& copy : lane.copies) {
        if (address < copy.to + kCopyBytes && copy.to < address + bytes) {
          return Complain("uses shared memory that a copy is on its way to");
        }
      }
    }
  }

  void* Find(uint64_t address, uint64_t bytes, uint32_t alignment, bool is_store) {
    const char* doing = is_store ? "writes " : "reads ";
    if (address % alignment != 0) {
      Complain(doing + std::to_string(bytes) + " bytes at an address that is no multiple of " +
               std::to_string(alignment));
    }
    if (std::byte* shared = FindShared(address, bytes)) {
      ComplainOfCopies(address, bytes);
      if (watches_races_) Watch(shared_marks_, address, bytes, is_store);
      return shared;
    }
    std::byte* found = Cached(address, bytes);
    if (found == nullptr) {
      Complain(doing + std::to_string(bytes) + " bytes outside of the device's memory");
      return bytes <= kSinkBytes ? sink_.data() : std::calloc(bytes, 1);
    }
    if (watches_races_) Watch(marks_, address, bytes, is_store);
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

  using Marks = std::unordered_map<uint64_t, Mark>;

  /// `is_by_itself`: not in the order of its thread's other accesses.
  void Watch(Marks& marks, uint64_t address, uint64_t bytes, bool is_store, bool is_by_itself = false) {
    const uint32_t self = block_ * grid_.threads + Thread() + 1;
    const auto is_ordered = [&](uint32_t other, uint64_t when) {
      if (other == 0 || (other == self && !is_by_itself)) return true;
      return (other - 1) / kLanes == (self - 1) / kLanes && when < epoch_;
    };
    for (uint64_t i = 0; i < bytes; ++i) {
      Mark& mark = marks[address + i];
      if (!is_ordered(mark.writer, mark.written)) {
        Complain(std::string(is_store ? "writes" : "reads") + " a byte that thread " + Name(mark.writer) +
                 " writes, in no order");
      }
      if (is_store && !is_ordered(mark.reader, mark.read)) {
        Complain("writes a byte that thread " + Name(mark.reader) + " reads, in no order");
      }
      (is_store ? mark.writer : mark.reader) = self;
      (is_store ? mark.written : mark.read) = epoch_;
    }
  }

  std::string Name(uint32_t number) const {
    return std::to_string((number - 1) % grid_.threads) + " of block " + std::to_string((number - 1) / grid_.threads);
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
  std::array<Lane, kLanes> lanes_;
  fiber main_;
  bool is_over_ = false;
  bool watches_races_ = false;
  bool is_reversed_ = false;
  uint32_t block_ = 0, warp_ = 0, lane_ = 0;
  uint64_t epoch_ = 1;
  std::array<Page, 64> pages_;
  Marks marks_;
  Marks shared_marks_;             ///< in this block's memory
  std::vector<std::byte> shared_;  ///< the block's
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
  set(Emulated::kShared, Engine::Shared);
  set(Emulated::kCopy, Engine::Copy);
  set(Emulated::kEndCopies, Engine::EndCopies);
  set(Emulated::kAwaitCopies, Engine::AwaitCopies);
  set(Emulated::kMultiply, Engine::Multiply);
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
