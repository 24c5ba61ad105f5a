// library.cc: fills the table from the library.
#include "backends/cudnn/loader/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cuda_driver/toolkit.h"
#include "collage/support/error.h"

namespace collage::cudnn {
namespace {

using cuda_driver::FindSymbol;

constexpr const char* kFile = "libcudnn.so.9";
constexpr Status kNotSupported = 3000;
constexpr Status kNotSupportedEnd = 4000;
constexpr size_t kMostText = 2000;

Library Open() {
  Library library;
#define COLLAGE_CUDNN_FIND(name, symbol, parameters) \
  library.name = reinterpret_cast<Status(*) parameters>(FindSymbol(kFile, symbol));
  COLLAGE_CUDNN_FUNCTIONS(COLLAGE_CUDNN_FIND)
#undef COLLAGE_CUDNN_FIND
  library.GetVersion = reinterpret_cast<size_t (*)()>(FindSymbol(kFile, "cudnnGetVersion"));
  library.GetErrorString = reinterpret_cast<const char* (*)(Status)>(FindSymbol(kFile, "cudnnGetErrorString"));
  library.GetLastErrorString = reinterpret_cast<void (*)(char*, size_t)>(FindSymbol(kFile, "cudnnGetLastErrorString"));
  return library;
}

/// The library's last words: the last one of its lines that has a reason, without where in its sources that is.
std::string LastReason(const Library& library) {
  std::array<char, kMostText> text{};
  library.GetLastErrorString(text.data(), text.size());
  std::string all(text.data());
  while (!all.empty() && all.back() == '\n') all.pop_back();
  const std::string line = all.substr(all.rfind('\n') + 1);
  constexpr std::string_view kMark = "Reason: ";
  const size_t mark = line.find(kMark);
  return mark == std::string::npos ? line : line.substr(mark + kMark.size());
}

}  // namespace

void Library::Check(Status status, std::string_view doing) const {
  if (status == 0) return;
  const bool is_other = status == kVersionMismatch || status == kArchitectureMismatch;
  const bool is_unsupported = status >= kNotSupported && status < kNotSupportedEnd;
  const std::string reason = LastReason(*this);
  throw Error(is_other         ? ErrorCategory::kUnavailable
              : is_unsupported ? ErrorCategory::kUnsupported
                               : ErrorCategory::kInternal,
              fmt::format("cannot {}: {}{}{}", doing, GetErrorString(status), reason.empty() ? "" : ": ", reason),
              "cudnn");
}

const Library& GetLibrary() {
  static const Library library = Open();
  return library;
}

std::string LibraryVersion() {
  const size_t version = GetLibrary().GetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace collage::cudnn
