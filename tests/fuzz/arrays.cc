// arrays.cc: what is read of array files survives being written and read again.
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "runtime/npy.h"

namespace collage::fuzz {
namespace {

void RequireEqual(const StoredArrays& arrays, const StoredArrays& again) {
  Require(arrays.size() == again.size(), "another number of arrays after writing");
  for (const auto& [name, stored] : arrays) {
    const auto found = again.find(name);
    Require(found != again.end(), "an array is lost by writing: " + name);
    const Tensor& tensor = found->second.tensor;
    Require(tensor.shape() == stored.tensor.shape() && tensor.dtype() == stored.tensor.dtype(),
            "another type after writing: " + name);
  }
}

}  // namespace

void ReadArrays(const std::string& given) {
  std::string bytes = given;
  StringNumbers strings;
  StoredArrays arrays;
  switch (TakeNumber(bytes) % 3) {
    case 0: arrays["x"] = ReadArray(MemoryFile(bytes, "x.npy").path(), strings); break;
    case 1: arrays = ReadNpz(MemoryFile(bytes, "x.npz").path(), strings); break;
    default: arrays["x"] = ReadArray(MemoryFile(bytes, "x.pb").path(), strings); break;
  }
  const MemoryFile written("", "y.npz");
  WriteNpz(written.path(), arrays, strings);
  RequireEqual(arrays, ReadNpz(written.path(), strings));
}

}  // namespace collage::fuzz
