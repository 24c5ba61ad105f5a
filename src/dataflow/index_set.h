// index_set.h: sets of post-dfs indices as bit vectors, operated on word by word (RFC 0.81, "Util Datatypes").
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage {

/// A subset of [0, size). Only the words between the first and the last member are kept, so that a small sub-graph of a
/// large graph stays small. All binary operations need equal sizes.
class IndexSet {
 public:
  IndexSet() = default;
  explicit IndexSet(size_t size) : size_(size) {}
  IndexSet(size_t size, const std::vector<int>& members) : IndexSet(size) {
    for (int member : members) Add(member);
  }

  size_t size() const { return size_; }
  void Add(int index);
  void Remove(int index);
  bool Contains(int index) const {
    const size_t word = static_cast<size_t>(index) / 64;
    return (Word(word) >> (index % 64) & 1) != 0;
  }

  bool IsZero() const { return words_.empty(); }
  bool AreDisjoint(const IndexSet& other) const;
  bool Intersects(const IndexSet& other) const { return !AreDisjoint(other); }
  bool IsSubset(const IndexSet& of) const;
  IndexSet operator|(const IndexSet& other) const;
  IndexSet operator&(const IndexSet& other) const;
  IndexSet operator-(const IndexSet& other) const;

  size_t PopCount() const;
  /// The first or last member; `size()` when empty.
  size_t FirstInside() const;
  size_t LastInside() const;
  /// The first index that is no member; `size()` when full.
  size_t FirstOutside() const;
  /// The first member from `from` on; `size()` when there is none.
  size_t NextInside(size_t from) const;
  /// Members in ascending order.
  std::vector<int> Members() const;

  size_t Hash() const;
  bool operator==(const IndexSet&) const = default;
  /// At the first index in which two sets differ, the one that has it is less.
  std::strong_ordering operator<=>(const IndexSet& other) const;

  /// "{1,3..6,8}": runs of three or more are abbreviated.
  std::string ToString() const;

 private:
  uint64_t Word(size_t word) const { return word < base_ || word - base_ >= words_.size() ? 0 : words_[word - base_]; }
  size_t EndWord() const { return base_ + words_.size(); }
  /// Word i is `function(i)` for i in [begin, end), zero elsewhere.
  template <typename F>
  static IndexSet FromWords(size_t size, size_t begin, size_t end, F function);
  /// Restores that the outermost words are not zero.
  void Trim();

  size_t size_ = 0;
  size_t base_ = 0;              ///< which word `words_[0]` is; 0 when empty
  std::vector<uint64_t> words_;  ///< the first and the last are not zero
};

struct IndexSetHash {
  size_t operator()(const IndexSet& set) const { return set.Hash(); }
};

}  // namespace collage
