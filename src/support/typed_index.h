// typed_index.h: numbers of things of one kind, which cannot be taken for those of another.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace collage {

/// The number of a thing in a list of its kind, from 0. `Kind` tells kinds apart; any type will do, a declared one too:
///
///     using VariantIndex = TypedIndex<struct CandidateVariant>;
///
/// Indices are compared and counted on, but not mixed with those of another kind or with plain integers.
template <class Kind>
class TypedIndex {
 public:
  constexpr TypedIndex() = default;
  constexpr explicit TypedIndex(int number) : number_(number) {}

  constexpr int number() const { return number_; }
  constexpr auto operator<=>(const TypedIndex&) const = default;

  constexpr TypedIndex& operator++() {
    ++number_;
    return *this;
  }
  constexpr TypedIndex& operator--() {
    --number_;
    return *this;
  }
  friend constexpr TypedIndex operator+(TypedIndex index, int distance) { return TypedIndex(index.number_ + distance); }
  friend constexpr TypedIndex operator-(TypedIndex index, int distance) { return TypedIndex(index.number_ - distance); }

 private:
  int number_ = 0;
};

/// The indices from 0 up to `end`, which is not among them; for range-based loops.
template <class Index>
class IndexRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(Index index) : index_(index) {}
    constexpr Index operator*() const { return index_; }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    Index index_;
  };

  constexpr explicit IndexRange(Index end) : end_(end) {}
  constexpr Iterator begin() const { return Iterator(Index(0)); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  Index end_;
};

/// A vector whose elements are numbered by `Index`, a TypedIndex.
template <class Index, class T>
class IndexedVector {
  using Vector = std::vector<T>;

 public:
  using value_type = T;

  IndexedVector() = default;
  explicit IndexedVector(size_t size, T value = T()) : elements_(size, std::move(value)) {}
  IndexedVector(std::initializer_list<T> elements) : elements_(elements) {}
  explicit IndexedVector(Vector elements) : elements_(std::move(elements)) {}

  typename Vector::reference operator[](Index index) { return elements_[static_cast<size_t>(index.number())]; }
  typename Vector::const_reference operator[](Index index) const {
    return elements_[static_cast<size_t>(index.number())];
  }
  /// Throws std::out_of_range.
  typename Vector::const_reference at(Index index) const { return elements_.at(static_cast<size_t>(index.number())); }

  size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  /// The index that the next element gets.
  Index next() const { return Index(static_cast<int>(elements_.size())); }
  IndexRange<Index> indices() const { return IndexRange<Index>(next()); }

  void push_back(T element) { elements_.push_back(std::move(element)); }
  void reserve(size_t size) { elements_.reserve(size); }
  void clear() { elements_.clear(); }

  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }
  typename Vector::reference back() { return elements_.back(); }

 private:
  Vector elements_;
};

/// Plain numbers, for what is outside.
template <class Kind>
std::vector<int> NumbersOf(const std::vector<TypedIndex<Kind>>& indices) {
  std::vector<int> numbers;
  numbers.reserve(indices.size());
  for (TypedIndex<Kind> index : indices) numbers.push_back(index.number());
  return numbers;
}

}  // namespace collage

template <class Kind>
struct std::hash<collage::TypedIndex<Kind>> {
  size_t operator()(collage::TypedIndex<Kind> index) const { return std::hash<int>()(index.number()); }
};
