// library_calls.cc: see library_calls.h.
#include "runtime/library_calls.h"

#include <fmt/format.h>

#include "collage/runtime/micro_kernels.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"
#include "support/machine.h"

namespace collage {
namespace {

constexpr std::string_view kFile = "file:";

void* ResolveRequest(const LibraryCall& call) {
  void* address = nullptr;
  try {
    address = FindMicroKernel(call.library, call.function);
  } catch (const Error& error) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("a kernel calls '{}', which is not here: {}", call.library, error.message()), "",
                call.hint);
  }
  if (address != nullptr) return address;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("a kernel calls '{}' for '{}', which it does not have on this processor ({})", call.library,
                          call.function, ThisMachine().cpu),
              "", "compile the model on this machine");
}

}  // namespace

std::string LibraryCall::ToString() const {
  return fmt::format("{}{}|{}|{}", kind == Kind::kSymbol ? kFile : "", library, function, hint);
}

LibraryCall LibraryCall::Parse(std::string_view line) {
  LibraryCall call;
  const std::string whole(line);
  if (line.starts_with(kFile)) {
    call.kind = Kind::kSymbol;
    line.remove_prefix(kFile.size());
  }
  const size_t function_at = line.find('|');
  const size_t hint_at = function_at == line.npos ? line.npos : line.find('|', function_at + 1);
  if (hint_at == line.npos || function_at == 0 || line.substr(0, function_at).find('/') != line.npos) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("a kernel's code calls '{}', which is no function", whole));
  }
  call.library = line.substr(0, function_at);
  call.function = line.substr(function_at + 1, hint_at - function_at - 1);
  call.hint = line.substr(hint_at + 1);
  return call;
}

void* Resolve(const LibraryCall& call) {
  if (call.kind == LibraryCall::Kind::kRequest) return ResolveRequest(call);
  try {
    return FindLibrarySymbol(call.library, call.function);
  } catch (const Error& error) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("a kernel calls '{}' of '{}': {}", call.function, call.library, error.message()), "",
                call.hint.empty() ? error.hint() : call.hint + "; " + error.hint());
  }
}

}  // namespace collage
