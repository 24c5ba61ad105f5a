// call_table.cc: see call_table.h.
#include "target/call_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/native_loader.h"

namespace collage {

size_t CallTable::Add(const LibraryCall& call) {
  const auto known = std::find(calls_.begin(), calls_.end(), call);
  const auto slot = static_cast<size_t>(known - calls_.begin());
  if (known == calls_.end()) calls_.push_back(call);
  return slot;
}

std::string CallTable::ToMlir() const {
  if (calls_.empty()) return "";
  std::string lines;
  for (const LibraryCall& call : calls_) {
    for (const char c : call.ToString())
      lines += c == '"' || c == '\\' ? fmt::format("\\{:02X}", c) : std::string(1, c);
    lines += "\\0A";
  }
  const std::string type = fmt::format("!llvm.array<{} x ptr>", calls_.size());
  return fmt::format(
      "llvm.mlir.global external constant @{}(\"{}\\00\")\n"
      "llvm.mlir.global external @{}() : {} {{\n  %none = llvm.mlir.zero : {}\n  llvm.return %none : {}\n}}\n",
      kObjectCalls, lines, kObjectAddresses, type, type, type);
}

}  // namespace collage
