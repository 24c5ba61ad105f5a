// number_table.h: finding the number of a thing by its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage {

/// Finds the number of an equal value; the numbered values are stored elsewhere, by number. Open addressing in one
/// block of memory: eight bytes for each of twice to four times as many slots as there are numbers. Nothing is removed.
class NumberTable {
 public:
  /// The number of what has `hash` and of which `is_equal(number)` says yes; -1 when there is none.
  template <typename IsEqual>
  int Find(uint64_t hash, const IsEqual& is_equal) const {
    return slots_.empty() ? kNone : slots_[SlotOf(Mixed(hash), is_equal)].number;
  }

  /// Finds the number as above, or enters `number` if there is none; also returns whether it entered it.
  template <typename IsEqual>
  std::pair<int, bool> Emplace(uint64_t hash, int number, const IsEqual& is_equal) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    const uint32_t mixed = Mixed(hash);
    Slot& slot = slots_[SlotOf(mixed, is_equal)];
    if (slot.number != kNone) return {slot.number, false};
    slot = {mixed, number};
    ++size_;
    return {number, true};
  }

 private:
  static constexpr int kNone = -1;
  static constexpr size_t kFirstSlots = 16;  // a power of two, as all sizes

  struct Slot {
    uint32_t hash = 0;
    int number = kNone;
  };

  static uint32_t Mixed(uint64_t hash) { return static_cast<uint32_t>((hash * 0x9e3779b97f4a7c15u) >> 32); }

  template <typename IsEqual>
  size_t SlotOf(uint32_t hash, const IsEqual& is_equal) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || !is_equal(slots_[at].number)))
      at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) slots_[SlotOf(slot.hash, [](int) { return false; })] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace collage
