// index_set.cc: word-wise operations and text of index sets.
#include "dataflow/index_set.h"

#include <algorithm>

#include "collage/support/error.h"

namespace collage {

void IndexSet::Trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
  size_t zeros = 0;
  while (zeros < words_.size() && words_[zeros] == 0) ++zeros;
  words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(zeros));
  base_ = words_.empty() ? 0 : base_ + zeros;
}

void IndexSet::Add(int index) {
  COLLAGE_CHECK(index >= 0 && static_cast<size_t>(index) < size_)
      << "index " << index << " of a set in [0, " << size_ << ")";
  const size_t word = static_cast<size_t>(index) / 64;
  if (words_.empty()) {
    base_ = word;
    words_.push_back(0);
  } else if (word < base_) {
    words_.insert(words_.begin(), base_ - word, 0);
    base_ = word;
  } else if (word >= EndWord()) {
    words_.resize(word - base_ + 1);
  }
  words_[word - base_] |= uint64_t{1} << (index % 64);
}

void IndexSet::Remove(int index) {
  const size_t word = static_cast<size_t>(index) / 64;
  if (Word(word) == 0) return;
  words_[word - base_] &= ~(uint64_t{1} << (index % 64));
  Trim();
}

bool IndexSet::AreDisjoint(const IndexSet& other) const {
  const size_t end = std::min(EndWord(), other.EndWord());
  for (size_t i = std::max(base_, other.base_); i < end; ++i) {
    if ((words_[i - base_] & other.words_[i - other.base_]) != 0) return false;
  }
  return true;
}

bool IndexSet::IsSubset(const IndexSet& of) const {
  for (size_t i = 0; i < words_.size(); ++i) {
    if ((words_[i] & ~of.Word(base_ + i)) != 0) return false;
  }
  return true;
}

template <typename F>
IndexSet IndexSet::FromWords(size_t size, size_t begin, size_t end, F function) {
  IndexSet result(size);
  result.base_ = begin;
  for (size_t i = begin; i < end; ++i) result.words_.push_back(function(i));
  result.Trim();
  return result;
}

IndexSet IndexSet::operator|(const IndexSet& other) const {
  if (IsZero()) return other;
  if (other.IsZero()) return *this;
  return FromWords(size_, std::min(base_, other.base_), std::max(EndWord(), other.EndWord()),
                   [&](size_t i) { return Word(i) | other.Word(i); });
}

IndexSet IndexSet::operator&(const IndexSet& other) const {
  return FromWords(size_, std::max(base_, other.base_), std::min(EndWord(), other.EndWord()),
                   [&](size_t i) { return Word(i) & other.Word(i); });
}

IndexSet IndexSet::operator-(const IndexSet& other) const {
  return FromWords(size_, base_, EndWord(), [&](size_t i) { return Word(i) & ~other.Word(i); });
}

size_t IndexSet::PopCount() const {
  size_t count = 0;
  for (uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
  return count;
}

size_t IndexSet::FirstInside() const {
  return words_.empty() ? size_ : base_ * 64 + static_cast<size_t>(std::countr_zero(words_.front()));
}

size_t IndexSet::LastInside() const {
  return words_.empty() ? size_ : EndWord() * 64 - 1 - static_cast<size_t>(std::countl_zero(words_.back()));
}

size_t IndexSet::FirstOutside() const {
  if (base_ > 0 || words_.empty()) return 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    if (~words_[i] != 0) return std::min(size_, i * 64 + static_cast<size_t>(std::countr_one(words_[i])));
  }
  return std::min(size_, words_.size() * 64);
}

size_t IndexSet::NextInside(size_t from) const {
  for (size_t i = std::max(base_, from / 64); i < EndWord(); ++i) {
    uint64_t word = words_[i - base_];
    if (i == from / 64) word &= ~uint64_t{0} << (from % 64);
    if (word != 0) return i * 64 + static_cast<size_t>(std::countr_zero(word));
  }
  return size_;
}

std::vector<int> IndexSet::Members() const {
  std::vector<int> members;
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
      members.push_back(static_cast<int>((base_ + i) * 64) + std::countr_zero(word));
    }
  }
  return members;
}

size_t IndexSet::Hash() const {
  uint64_t hash = 0x9e3779b97f4a7c15u + base_;
  for (uint64_t word : words_) hash = (std::rotl(hash, 13) ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

std::strong_ordering IndexSet::operator<=>(const IndexSet& other) const {
  const size_t end = std::max(EndWord(), other.EndWord());
  for (size_t i = std::min(base_, other.base_); i < end; ++i) {
    const uint64_t difference = Word(i) ^ other.Word(i);
    if (difference == 0) continue;
    const bool is_mine = (Word(i) >> std::countr_zero(difference) & 1) != 0;
    return is_mine ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  return std::strong_ordering::equal;
}

std::string IndexSet::ToString() const {
  const std::vector<int> members = Members();
  std::string text = "{";
  for (size_t i = 0; i < members.size();) {
    size_t last = i;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    if (text.size() > 1) text += ",";
    text += std::to_string(members[i]);
    if (last >= i + 2) {
      text += ".." + std::to_string(members[last]);
      i = last + 1;
    } else {
      ++i;
    }
  }
  return text + "}";
}

}  // namespace collage
