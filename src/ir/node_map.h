// node_map.h: what a walk over a whole graph remembers of each node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Node (by identity) → value. Open addressing in one block of memory, so that a graph of 100,000 nodes costs hardly
/// more per node than a small one. Nothing is ever removed; growing moves the values.
template <typename Value>
class NodeMap {
 public:
  size_t size() const { return size_; }

  /// The value of `node`; null when it has none. Valid until the next `Emplace`.
  Value* Find(const ExprNode* node) { return slots_.empty() ? nullptr : ValueOrNull(slots_[SlotOf(node)]); }
  const Value* Find(const ExprNode* node) const { return const_cast<NodeMap*>(this)->Find(node); }
  bool Contains(const ExprNode* node) const { return Find(node) != nullptr; }

  /// The value of `node`, which becomes `value` if it had none, and whether it had none.
  std::pair<Value*, bool> Emplace(const ExprNode* node, Value value) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[SlotOf(node)];
    const bool is_new = slot.node == nullptr;
    if (is_new) {
      slot = {node, std::move(value)};
      ++size_;
    }
    return {&slot.value, is_new};
  }
  Value& operator[](const ExprNode* node) { return *Emplace(node, Value()).first; }

 private:
  struct Slot {
    const ExprNode* node = nullptr;
    Value value{};
  };

  static Value* ValueOrNull(Slot& slot) { return slot.node == nullptr ? nullptr : &slot.value; }

  /// Returns the slot that holds `node`, or the first free slot behind its own.
  size_t SlotOf(const ExprNode* node) const {
    const size_t mask = slots_.size() - 1;
    // The upper bits of the product depend on all bits of the address.
    size_t at = (reinterpret_cast<uintptr_t>(node) * 0x9e3779b97f4a7c15u) >> 32 & mask;
    while (slots_[at].node != nullptr && slots_[at].node != node) at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.node != nullptr) slots_[SlotOf(slot.node)] = std::move(slot);
    }
  }

  static constexpr size_t kFirstSlots = 16;  // a power of two, as all sizes

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace collage
