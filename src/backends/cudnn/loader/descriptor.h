// descriptor.h: a descriptor of cuDNN's backend API, until this ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/cudnn/loader/library.h"

namespace collage::cudnn {

/// The library checks and copies what is set. All methods throw as Library::Check does.
class Descriptor {
 public:
  explicit Descriptor(DescriptorKind kind);

  DescriptorPointer pointer() const { return pointer_.get(); }

  template <typename T>
  void Set(Attribute attribute, Type type, std::span<const T> elements) const {
    SetBytes(attribute, type, static_cast<int64_t>(elements.size()), elements.data());
  }
  template <typename T>
  void Set(Attribute attribute, Type type, const T& element) const {
    SetBytes(attribute, type, 1, &element);
  }
  void Set(Attribute attribute, std::span<const int64_t> numbers) const { Set(attribute, Type::kInt64, numbers); }
  void Set(Attribute attribute, const Descriptor& descriptor) const {
    Set(attribute, Type::kDescriptor, descriptor.pointer());
  }
  /// Nothing may be set behind this. `what` is named where it fails.
  void Finalize(std::string_view what) const;

  int64_t Number(Attribute attribute) const;
  /// Up to `most` elements.
  std::vector<int> Numbers(Attribute attribute, Type type, int64_t most) const;
  std::string Text(Attribute attribute) const;
  /// How many descriptors the attribute has.
  int64_t Count(Attribute attribute) const;
  /// Fills `descriptors` and returns how many there are.
  int64_t Get(Attribute attribute, std::span<const Descriptor> descriptors) const;

 private:
  void SetBytes(Attribute attribute, Type type, int64_t count, const void* elements) const;

  std::unique_ptr<void, Status (*)(DescriptorPointer)> pointer_;
};

}  // namespace collage::cudnn
