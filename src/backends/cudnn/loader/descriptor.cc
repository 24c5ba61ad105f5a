// descriptor.cc: attributes by the library's functions.
#include "backends/cudnn/loader/descriptor.h"

#include <fmt/format.h>

#include <string>

namespace collage::cudnn {
namespace {

DescriptorPointer Create(DescriptorKind kind) {
  DescriptorPointer pointer = nullptr;
  GetLibrary().Check(GetLibrary().BackendCreateDescriptor(kind, &pointer), "create a descriptor");
  return pointer;
}

std::string Getting(Attribute attribute) { return fmt::format("get attribute {}", static_cast<int>(attribute)); }

}  // namespace

Descriptor::Descriptor(DescriptorKind kind) : pointer_(Create(kind), GetLibrary().BackendDestroyDescriptor) {}

void Descriptor::SetBytes(Attribute attribute, Type type, int64_t count, const void* elements) const {
  const Library& library = GetLibrary();
  const Status status = library.BackendSetAttribute(pointer(), attribute, type, count, elements);
  if (status != 0) library.Check(status, fmt::format("set attribute {}", static_cast<int>(attribute)));
}

void Descriptor::Finalize(std::string_view what) const {
  const Library& library = GetLibrary();
  const Status status = library.BackendFinalize(pointer());
  if (status != 0) library.Check(status, fmt::format("make {}", what));
}

int64_t Descriptor::Number(Attribute attribute) const {
  int64_t number = 0, count = 0;
  const Library& library = GetLibrary();
  library.Check(library.BackendGetAttribute(pointer(), attribute, Type::kInt64, 1, &count, &number),
                Getting(attribute));
  return number;
}

std::vector<int> Descriptor::Numbers(Attribute attribute, Type type, int64_t most) const {
  std::vector<int> numbers(static_cast<size_t>(most));
  int64_t count = 0;
  const Library& library = GetLibrary();
  library.Check(library.BackendGetAttribute(pointer(), attribute, type, most, &count, numbers.data()),
                Getting(attribute));
  numbers.resize(static_cast<size_t>(std::min(count, most)));
  return numbers;
}

std::string Descriptor::Text(Attribute attribute) const {
  int64_t size = 0;
  const Library& library = GetLibrary();
  library.Check(library.BackendGetAttribute(pointer(), attribute, Type::kChar, 0, &size, nullptr), Getting(attribute));
  std::string text(static_cast<size_t>(size), '\0');
  library.Check(library.BackendGetAttribute(pointer(), attribute, Type::kChar, size, &size, text.data()),
                Getting(attribute));
  return text.substr(0, text.find('\0'));
}

int64_t Descriptor::Count(Attribute attribute) const {
  int64_t count = 0;
  const Library& library = GetLibrary();
  library.Check(library.BackendGetAttribute(pointer(), attribute, Type::kDescriptor, 0, &count, nullptr),
                Getting(attribute));
  return count;
}

int64_t Descriptor::Get(Attribute attribute, std::span<const Descriptor> descriptors) const {
  std::vector<DescriptorPointer> pointers;
  for (const Descriptor& descriptor : descriptors) pointers.push_back(descriptor.pointer());
  int64_t count = 0;
  const Library& library = GetLibrary();
  library.Check(library.BackendGetAttribute(pointer(), attribute, Type::kDescriptor,
                                            static_cast<int64_t>(pointers.size()), &count, pointers.data()),
                Getting(attribute));
  return std::min<int64_t>(count, static_cast<int64_t>(pointers.size()));
}

}  // namespace collage::cudnn
