// small_kernels.cc: kernels as the native compiler would make them for the architecture "emulated", some of them with a
// mistake. Each has two parameters: an address of 64 uint32 and a number.
#include <cstdint>

#include "backends/cuda_driver/emulation.h"

using collage::cuda_driver::Emulated;

extern "C" {
void* collage_emulation[static_cast<int>(Emulated::kNumFunctions)];
}

namespace {

template <typename Function>
Function* At(Emulated place) {
  return reinterpret_cast<Function*>(collage_emulation[static_cast<int>(place)]);
}

uint32_t Thread() { return At<uint32_t()>(Emulated::kThread)(); }
uint32_t Shuffle(uint32_t word, uint32_t lane) {
  return At<uint32_t(uint32_t, uint32_t)>(Emulated::kShuffle)(word, lane);
}
uint32_t ShuffleXor(uint32_t word, uint32_t mask) {
  return At<uint32_t(uint32_t, uint32_t)>(Emulated::kShuffleXor)(word, mask);
}
void Synchronise() { At<void()>(Emulated::kSynchronise)(); }
void SynchroniseBlock() { At<void()>(Emulated::kSynchroniseBlock)(); }
uint64_t Shared() { return reinterpret_cast<uint64_t>(At<void*()>(Emulated::kShared)()); }
void LoadMatrices(uint64_t row, uint32_t* words) {
  At<void(const void*, uint32_t*)>(Emulated::kLoadMatrices)(reinterpret_cast<const void*>(row), words);
}

uint32_t& Find(uint64_t address, uint32_t is_store) {
  using Fn = void*(void*, uint64_t, uint32_t, uint32_t);
  return *static_cast<uint32_t*>(At<Fn>(Emulated::kAddress)(reinterpret_cast<void*>(address), 4, 4, is_store));
}
uint32_t Load(uint64_t address) { return Find(address, 0); }
void Store(uint64_t address, uint32_t value) { Find(address, 1) = value; }

struct Parameters {
  uint64_t memory;
  uint64_t number;
};
Parameters ParametersAt(void* const* parameters) {
  return {*static_cast<const uint64_t*>(parameters[0]), *static_cast<const uint64_t*>(parameters[1])};
}
uint64_t Place(uint64_t memory, uint32_t index) { return memory + uint64_t{4} * index; }

}  // namespace

#define KERNEL(name)                             \
  extern "C" const uint64_t name##_sizes[];      \
  const uint64_t name##_sizes[] = {8, 8, 0};     \
  extern "C" void name(void* const* parameters); \
  void name(void* const* parameters)

/// Each thread's number, plus `number`.
KERNEL(count) {
  const auto [memory, number] = ParametersAt(parameters);
  Store(Place(memory, Thread()), Thread() + static_cast<uint32_t>(number));
}

/// The sum of all lanes' numbers, and behind it the number of lane 31 minus the own one.
KERNEL(sum) {
  const auto [memory, number] = ParametersAt(parameters);
  uint32_t sum = Thread();
  for (uint32_t step = 16; step > 0; step /= 2) sum += ShuffleXor(sum, step);
  Store(Place(memory, Thread()), sum);
  Store(Place(memory, 32 + Thread()), Shuffle(Thread(), 31) - Thread() + static_cast<uint32_t>(number));
}

/// Each thread reads what its neighbour has written: synchronised unless `number` is 1.
KERNEL(pass_on) {
  const auto [memory, number] = ParametersAt(parameters);
  Store(Place(memory, Thread()), Thread());
  if (number != 1) Synchronise();
  Store(Place(memory, 32 + Thread()), Load(Place(memory, (Thread() + 1) % 32)));
}

/// Writes `number` elements too far.
KERNEL(run_over) {
  const auto [memory, number] = ParametersAt(parameters);
  Store(Place(memory, Thread() + static_cast<uint32_t>(number)), 0);
}

/// Writes `number` bytes behind the beginning.
KERNEL(slip) {
  const auto [memory, number] = ParametersAt(parameters);
  if (Thread() == 3) Store(memory + number, 0);
}

/// A thread leaves while the others wait for it.
KERNEL(leave) {
  const auto [memory, number] = ParametersAt(parameters);
  if (Thread() == number) return;
  Store(Place(memory, Thread()), Shuffle(Thread(), 0));
}

/// Each thread of a block of two warps passes its number to the other warp: synchronised unless `number` is 1. Thread 0
/// goes without the barrier if it is 2.
KERNEL(pass_across) {
  const auto [memory, number] = ParametersAt(parameters);
  Store(Place(Shared(), Thread()), Thread());
  if (number == 2 && Thread() == 0) return;
  if (number == 1) {
    Synchronise();
  } else {
    SynchroniseBlock();
  }
  Store(Place(memory, Thread()), Load(Place(Shared(), Thread() ^ 32)));
}

/// Loads matrices of words that say where they are, `number` bytes behind the beginning, and adds up the four words.
KERNEL(load_matrices) {
  const auto [memory, number] = ParametersAt(parameters);
  const uint64_t row = Shared() + uint64_t{16} * Thread();
  for (uint32_t i = 0; i < 4; ++i) Store(Place(row, i), 4 * Thread() + i);
  Synchronise();
  uint32_t words[4];
  LoadMatrices(row + number, words);
  Store(Place(memory, Thread()), words[0] + 1000 * words[3]);
}
