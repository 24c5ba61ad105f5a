// index_set.h: sets of post-dfs indices as bit vectors, operated on word by word (RFC 0.81, "Util Datatypes").
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage {

/// A subset of [0, size). All binary operations need equal sizes.
class IndexSet {
 public:
  IndexSet() = default;
  explicit IndexSet(size_t size) : size_(size), words_((size + 63) / 64) {}
  IndexSet(size_t size, const std::vector<int>& members) : IndexSet(size) {
    for (int member : members) Add(member);
  }

  size_t size() const { return size_; }
  void Add(int index) { words_[static_cast<size_t>(index) / 64] |= uint64_t{1} << (index % 64); }
  void Remove(int index) { words_[static_cast<size_t>(index) / 64] &= ~(uint64_t{1} << (index % 64)); }
  bool Contains(int index) const { return (words_[static_cast<size_t>(index) / 64] >> (index % 64) & 1) != 0; }

  bool IsZero() const {
    for (uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  bool AreDisjoint(const IndexSet& other) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return false;
    }
    return true;
  }
  bool IsSubset(const IndexSet& of) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~of.words_[i]) != 0) return false;
    }
    return true;
  }
  IndexSet operator|(const IndexSet& other) const {
    IndexSet result = *this;
    for (size_t i = 0; i < words_.size(); ++i) result.words_[i] |= other.words_[i];
    return result;
  }
  IndexSet operator&(const IndexSet& other) const {
    IndexSet result = *this;
    for (size_t i = 0; i < words_.size(); ++i) result.words_[i] &= other.words_[i];
    return result;
  }
  IndexSet operator-(const IndexSet& other) const {
    IndexSet result = *this;
    for (size_t i = 0; i < words_.size(); ++i) result.words_[i] &= ~other.words_[i];
    return result;
  }

  size_t PopCount() const {
    size_t count = 0;
    for (uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
    return count;
  }
  /// The first member; `size()` when empty.
  size_t FirstInside() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != 0) return i * 64 + static_cast<size_t>(std::countr_zero(words_[i]));
    }
    return size_;
  }
  /// Members in ascending order.
  std::vector<int> Members() const {
    std::vector<int> members;
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        members.push_back(static_cast<int>(i * 64) + std::countr_zero(word));
      }
    }
    return members;
  }

  size_t Hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint64_t word : words_) hash = (std::rotl(hash, 13) ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
  }
  bool operator==(const IndexSet&) const = default;
  auto operator<=>(const IndexSet&) const = default;

  /// "{1,3..6,8}": runs of three or more are abbreviated.
  std::string ToString() const;

 private:
  size_t size_ = 0;
  std::vector<uint64_t> words_;
};

struct IndexSetHash {
  size_t operator()(const IndexSet& set) const { return set.Hash(); }
};

}  // namespace collage
