// call_table.h: the functions of libraries that loops call, and the MLIR text that names them to the loader of kernels
// (runtime/native_loader.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/library_calls.h"

namespace collage {

/// A module's table. Its loops load the address of function N from slot N of the array kObjectAddresses.
class CallTable {
 public:
  /// Returns the slot of `call`; equal ones share it.
  size_t Add(const LibraryCall& call);
  /// The definitions of the table, at most once in a module; empty where nothing was added.
  std::string ToMlir() const;

 private:
  std::vector<LibraryCall> calls_;
};

}  // namespace collage
