// library.cc: fills the table from the library.
#include "backends/cublas/loader/library.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "backends/cuda_driver/toolkit.h"
#include "collage/support/error.h"

namespace collage::cublas {
namespace {

using cuda_driver::FindSymbol;

// The newest first.
constexpr std::array kFiles{"libcublasLt.so.13", "libcublasLt.so.12"};

/// The file that is here. Throws where none is.
std::string FindFile() {
  std::string reason;
  for (const char* file : kFiles) {
    try {
      FindSymbol(file, "cublasLtCreate");
      return file;
    } catch (const Error& error) {
      if (reason.empty()) reason = error.message();
    }
  }
  throw Error(ErrorCategory::kUnavailable, reason);
}

Library Open() {
  const std::string file = FindFile();
  Library library;
#define COLLAGE_CUBLAS_FIND(name, symbol, parameters) \
  library.name = reinterpret_cast<Status(*) parameters>(FindSymbol(file, symbol));
  COLLAGE_CUBLAS_FUNCTIONS(COLLAGE_CUBLAS_FIND)
#undef COLLAGE_CUBLAS_FIND
  library.GetVersion = reinterpret_cast<size_t (*)()>(FindSymbol(file, "cublasLtGetVersion"));
  library.GetStatusString = reinterpret_cast<const char* (*)(Status)>(FindSymbol(file, "cublasLtGetStatusString"));
  return library;
}

}  // namespace

void Library::Check(Status status, std::string_view doing) const {
  if (status == 0) return;
  throw Error(ErrorCategory::kInternal, fmt::format("cannot {}: {}", doing, GetStatusString(status)), "cublas");
}

const Library& GetLibrary() {
  static const Library library = Open();
  return library;
}

}  // namespace collage::cublas
